"""Times `python -m t5x.eval` of the sample's models: frames per second of each prompt format.

  sgdx data prepare --corpus sample --data-dir data
  python benchmarks/sample_formats.py --data-dir data [--model d3st=runs/sample_d3st_backtrans]

Test split, original schemas and v1 to v5: 4,812 frames per format, each with the network of
gin/sample/model.gin, trained by gin/sample/{format}_backtrans.gin, since decoding time depends on
answer length. A model that is not given is trained once (minutes) and kept in the work folder.
Two tables: for the whole process, half of which is startup and preparing prompts, and for the six
evaluations only, as it logs them. Compiled programs are cached: only the first round compiles.
"""

from __future__ import annotations

import functools
import pathlib
import re
import shutil
import sys

import _common

FORMATS = ("t5dst", "d3st", "sdt")
_SECONDS = re.compile(r"eval \S+ at step \d+: .*examples.* in ([\d.]+) s")
_FRAMES = re.compile(r"num_frames (\d+)")


def train(name: str, data: pathlib.Path, work: pathlib.Path) -> pathlib.Path:
  """Returns the folder of a format's model, which is trained if it does not exist."""
  model, done = work / f"sample_{name}", work / f"sample_{name}.done"
  if not done.exists():
    print(f"training {name} in {model} (once)", flush=True)
    command = [sys.executable, "-m", "t5x.train", f"--tfds_data_dir={data}"]
    command += [f"--gin_file=gin/sample/{name}_backtrans.gin", f"--gin.MODEL_DIR='{model}'"]
    _common.run(command, work / f"sample_{name}.train.log", _common.environment())
    done.touch()
  return model


def evaluate(
  name: str, model: pathlib.Path, data: pathlib.Path, work: pathlib.Path, alone: list[float]
) -> float:
  """Evaluates once; returns frames/s of the process, appends those of the evaluations only."""
  out, log = work / f"sample_{name}_eval", work / f"sample_{name}.log"
  shutil.rmtree(out, ignore_errors=True)
  command = [sys.executable, "-m", "t5x.eval", "--gin_file=gin/sample/eval.gin"]
  if name != "t5dst":
    command.append(f"--gin_file=gin/sample/formats/{name}.gin")
  command += [f"--gin.CHECKPOINT_PATH='{model}'", f"--gin.EVAL_OUTPUT_DIR='{out}'"]
  command += ["--gin.utils.RestoreCheckpointConfig.mode='latest'", f"--tfds_data_dir={data}"]
  seconds = _common.run(command, log, _common.environment())
  text = log.read_text()
  frames = sum(map(int, _FRAMES.findall(text)))
  alone.append(frames / sum(map(float, _SECONDS.findall(text))))
  return frames / seconds


def main() -> None:
  """Measures, prints the tables."""
  parser = _common.make_parser(__doc__, repeats=3)
  parser.add_argument("--data-dir", type=pathlib.Path, default=pathlib.Path("data"))
  parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
  parser.add_argument("--model", nargs="+", default=[], metavar="FORMAT=FOLDER")
  args = parser.parse_args()
  data, work = args.data_dir.resolve(), args.work_dir.resolve()
  models = {k: pathlib.Path(v).resolve() for k, _, v in (x.partition("=") for x in args.model)}
  for name in args.formats:
    if name not in models:
      models[name] = train(name, data, work)
  alone: dict[str, list[float]] = {name: [] for name in args.formats}
  columns = {
    name: functools.partial(evaluate, name, models[name], data, work, alone[name])
    for name in args.formats
  }
  whole = _common.interleave(columns, args.repeats)
  _common.print_table(whole, "frames/s, the whole process", args.formats[0], digits=0)
  _common.print_table(alone, "frames/s, the evaluations alone", args.formats[0], digits=0)


if __name__ == "__main__":
  main()
