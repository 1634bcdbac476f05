"""Writes what `measure.py` needs on a machine without TensorFlow, SeqIO, gin and clu.

  SGDX_VOCAB=sentencepiece.model SGDX_ENCODER=minilm python benchmarks/gpu/prepare.py DATA \
    --archive dstc8-schema-guided-dialogue-master.zip --records RECORDS

DATA, a new folder of a few MB, gets token ids, a few dialogues, and the Python packages gin and
clu. RECORDS is the folder of records (`sgdx data prepare`). `--trained` adds a T5DST that `sgdx
weights export` wrote, on which the answers of both engines are compared.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import pathlib
import shutil
import zipfile

import numpy as np
import seqio

import sgdx_t5x.tasks  # noqa: F401 - registers them
from sgdx_t5x.spandst import minilm
from sgdx_t5x.spandst.features import SpanFeatureConverter
from t5x import utils

T5DST_LENGTHS = {"inputs": 512, "targets": 64}
SPANDST_LENGTHS = {  # those of gin/study/spandst.gin
  "inputs": 384, "segments": 384, "slots": 64, "slot_context": 64, "values": 96, "value_slots": 96,
  "memory": 48, "intents": 24, "intent_context": 24, "targets": 512,
}  # fmt: skip
DIALOGUE_FILES = [f"dialogues_{number:03}.json" for number in (1, 9, 17, 25, 33)]  # of test


def main() -> None:
  """Writes the folder."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("data", type=pathlib.Path, help="a new folder")
  parser.add_argument("--archive", required=True, help="the official SGD archive")
  parser.add_argument("--records", required=True, help="the folder of records of SGD")
  parser.add_argument("--rows", type=int, default=256, help="packed rows of either task (256)")
  parser.add_argument("--prompts", type=int, default=10_000, help="prompts to answer (10,000)")
  parser.add_argument("--trained", type=pathlib.Path, help="a folder of `sgdx weights export`")
  args = parser.parse_args()
  args.data.mkdir(parents=True)
  seqio.set_tfds_data_dir_override(args.records)

  t5dst = packed_rows("t5dst_sgd", T5DST_LENGTHS, args.rows, seqio.EncDecFeatureConverter)
  np.savez_compressed(args.data / "t5dst.npz", **t5dst)
  spandst = packed_rows("spandst_sgd", SPANDST_LENGTHS, args.rows, SpanFeatureConverter)
  np.savez_compressed(args.data / "spandst.npz", **spandst)

  texts, prompts = distinct_prompts(args.prompts)
  save_prompts(args.data / "prompts.npz", prompts)
  if args.trained:
    shutil.copytree(args.trained, args.data / "trained")
    vocabulary = seqio.SentencePieceVocabulary(str(args.trained / "spiece.model"))
    own = [[*vocabulary.encode(text)[: T5DST_LENGTHS["inputs"] - 1], 1] for text in texts]
    save_prompts(args.data / "trained" / "prompts.npz", own)

  shutil.copy(minilm.folder() / minilm.VOCABULARY, args.data)
  extract_dialogues(args.archive, args.data / "corpus")
  copy_packages(args.data / "packages")
  size = sum(path.stat().st_size for path in args.data.rglob("*"))
  print(f"{args.data}: {size / 2**20:.1f} MiB")


def copy_packages(out: pathlib.Path) -> None:
  """Copies gin and clu, which are pure Python, from this environment."""
  for name in ("gin", "clu"):
    (folder,) = importlib.util.find_spec(name).submodule_search_locations
    ignored = shutil.ignore_patterns("__pycache__", "*_test.py")
    shutil.copytree(folder, out / name, ignore=ignored)


def packed_rows(task: str, lengths: dict, rows: int, converter) -> dict[str, np.ndarray]:
  """Returns the first packed rows of train: {feature: `[rows, L]`}."""
  cfg = utils.DatasetConfig(task, lengths, "train", rows, shuffle=False, seed=0, pack=True)
  return next(utils.get_dataset(cfg, 0, 1, converter).as_numpy_iterator())


def distinct_prompts(number: int) -> tuple[list[str], list[np.ndarray]]:
  """Returns texts and token ids of prompts from all parts of test: engines may merge equal ones."""
  every = max(150_000 // number - 2, 1)
  examples = seqio.get_mixture_or_task("t5dst_sgd").get_dataset(
    T5DST_LENGTHS, "test", shuffle=False, num_epochs=1, shard_info=seqio.ShardInfo(0, every)
  )
  prompts: dict[bytes, tuple[str, np.ndarray]] = {}
  for example in examples.as_numpy_iterator():
    prompts[example["inputs"].tobytes()] = (
      example["inputs_pretokenized"].decode(),
      example["inputs"],
    )
    if len(prompts) == number:
      break
  texts, ids = zip(*prompts.values(), strict=True)
  return list(texts), list(ids)


def save_prompts(path: pathlib.Path, prompts) -> None:
  """Writes token ids one after another, and their lengths."""
  np.savez_compressed(
    path, tokens=np.concatenate(prompts).astype(np.int32), lengths=[len(x) for x in prompts]
  )


def extract_dialogues(archive: str, folder: pathlib.Path) -> None:
  """Writes some dialogue files of test and its schema, without whitespace."""
  (folder / "test").mkdir(parents=True)
  with zipfile.ZipFile(archive) as source:
    for name in source.namelist():
      path = pathlib.PurePosixPath(name)
      if path.parent.name == "test" and path.name in (*DIALOGUE_FILES, "schema.json"):
        text = json.dumps(json.loads(source.read(name)), separators=(",", ":"))
        (folder / "test" / path.name).write_text(text)


if __name__ == "__main__":
  main()
