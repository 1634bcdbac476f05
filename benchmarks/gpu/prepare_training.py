"""Writes what `train_spandst.py` needs: an encoder, packed rows of train, dialogues and schemas.

  SGDX_ENCODER=mpnet python benchmarks/gpu/prepare_training.py DATA --archive SGD --records RECORDS

DATA, a new folder, gets files of at most 60 MiB, which can travel one by one: weights in 16 bits,
rows in the order of training, dialogues of test, and its schemas in six wordings.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import shutil
from collections.abc import Mapping

import numpy as np
import prepare
import seqio

from sgdx_t5x import tasks, weights
from sgdx_t5x.corpus.dialogue import write_dialogues
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.subset import Subset
from sgdx_t5x.corpus.variants import SGDX_VARIANTS
from sgdx_t5x.spandst.features import SpanFeatureConverter
from t5x import utils

_PART = 60 * 2**20  # bytes of a file
_STEPS = 1000  # in a file


def main() -> None:
  """Writes the folder."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("data", type=pathlib.Path, help="a new folder")
  parser.add_argument("--archive", required=True, help="the official SGD archive")
  parser.add_argument("--records", required=True, help="the folder of records of SGD")
  parser.add_argument("--task", default="spandst_paraphrase", help="(spandst_paraphrase)")
  parser.add_argument("--steps", type=int, default=11_700, help="(11,700: an epoch of 8 rows)")
  parser.add_argument("--rows", type=int, default=8, help="packed rows of a step (8)")
  parser.add_argument("--dialogues", type=int, default=400, help="of test, at random (400)")
  args = parser.parse_args()
  encoder = pathlib.Path(os.environ["SGDX_ENCODER"])
  args.data.mkdir(parents=True)
  seqio.set_tfds_data_dir_override(args.records)

  read = weights.read_huggingface(encoder)
  save_weights(args.data, read.arrays)
  (args.data / "config.json").write_text(
    json.dumps(
      {
        "encoder": read.sizes.gin(),
        "style": dataclasses.asdict(tasks.REGISTERED[args.task].style_or_format),
        "steps": args.steps,
      }
    )
  )
  for name in ("vocab.txt", "tokenizer_config.json"):
    shutil.copy(encoder / name, args.data)
  save_rows(args.data, args.task, args.steps, args.rows)
  save_test(args.data, args.archive, args.dialogues)
  prepare.copy_packages(args.data / "packages")
  size = sum(path.stat().st_size for path in args.data.rglob("*"))
  print(f"{args.data}: {size / 2**20:.0f} MiB")


def save_weights(data: pathlib.Path, arrays: Mapping[str, np.ndarray]) -> None:
  """Writes arrays in 16 bits into weights-N.npz."""
  parts: list[dict[str, np.ndarray]] = [{}]
  for name, array in arrays.items():
    array = array.astype(np.float16)
    if sum(x.nbytes for x in parts[-1].values()) + array.nbytes > _PART:
      parts.append({})
    parts[-1][name] = array
  for number, part in enumerate(parts):
    np.savez(data / f"weights-{number}.npz", **part)


def save_rows(data: pathlib.Path, task: str, steps: int, rows: int) -> None:
  """Writes the batches of the first steps, many in a file: {feature: `[steps, rows, L]`}."""
  cfg = utils.DatasetConfig(
    task, prepare.SPANDST_LENGTHS, "train", rows, shuffle=True, seed=0, pack=True
  )
  batches = utils.get_dataset(cfg, 0, 1, SpanFeatureConverter).as_numpy_iterator()
  for number, start in enumerate(range(0, steps, _STEPS)):
    chunk = list(itertools.islice(batches, min(_STEPS, steps - start)))
    stacked = {}
    for name in chunk[0]:  # ids of pieces, positions and other numbers below 65,536
      stacked[name] = np.stack([batch[name] for batch in chunk]).astype(np.uint16)
    np.savez_compressed(data / f"rows-{number:02}.npz", **stacked)


def save_test(data: pathlib.Path, archive: str, number: int) -> None:
  """Writes dialogues of test, and its schemas in six wordings."""
  corpus = open_corpus(archive)
  folder = data / "corpus" / "test"
  folder.mkdir(parents=True)
  dialogues = Subset(corpus, {"test": number}).dialogues("test")
  (folder / "dialogues_001.json").write_text(write_dialogues(dialogues))
  for variant in ("original", *SGDX_VARIANTS):
    name = folder / "schema.json" if variant == "original" else data / f"{variant}.json"
    name.write_text(json.dumps(corpus.schema("test", variant).to_json()))


if __name__ == "__main__":
  main()
