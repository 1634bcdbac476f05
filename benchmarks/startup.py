"""Times a whole short training: `python -m t5x.train` for 20 steps of the sample's tiny model.

  python benchmarks/startup.py [--google PYTHON]

From the start of the process to its end: imports, gin, data, initialisation, compilation, 20
steps, checkpoints and the evaluations at the last step. Every run has a new MODEL_DIR. Each
column runs once untimed, so compilation caches are warm where there are any: t5x_lite has one
by default; Google's T5X has one if JAX_COMPILATION_CACHE_DIR is set, which is a separate
column. The target is a ratio of at most 0.7 to Google's T5X as it ships.
"""

from __future__ import annotations

import functools
import pathlib
import shutil

import _common

# The periods are set because Google's finetune.gin saves every 5,000 steps, which 900 (the
# sample's EVAL_PERIOD) does not divide; evaluation still runs at the last step.
BINDINGS = (
  "--gin.TRAIN_STEPS=20",
  "--gin.EVAL_PERIOD=20",
  "--gin.utils.SaveCheckpointConfig.period=20",
  # As when the figures were measured: by default, six times as much is evaluated.
  "--gin.infer_eval/utils.DatasetConfig.mixture_or_task_name='sample_t5dst_sgd'",
  "--gin.EVALUATOR_NUM_EXAMPLES=300",
)


def measure(
  name: str, python: list[str], env: dict[str, str], data: pathlib.Path, work: pathlib.Path
) -> float:
  """Trains once in a new folder; returns seconds."""
  model_dir = work / "model"
  shutil.rmtree(model_dir, ignore_errors=True)
  command = [*python, "-m", "t5x.train", "--gin_file=gin/sample/t5dst.gin", *BINDINGS]
  command += [f"--gin.MODEL_DIR='{model_dir}'", f"--tfds_data_dir={data}"]
  seconds = _common.run(command, work / f"{_common.slug(name)}.log", env)
  if not (model_dir / "checkpoint_20").is_dir():
    _common.fail(f"{name}: no checkpoint_20 in {model_dir}", "see its log beside it")
  return seconds


def main() -> None:
  """Prepares the sample's records, warms up, measures, prints the table."""
  args = _common.make_parser(__doc__, repeats=5, google=True).parse_args()
  work = (args.work_dir / "startup").resolve()
  data = work / "data"
  _common.run(
    _common.sgdx("data", "prepare", "--corpus", "sample", "--data-dir", str(data)),
    work / "data.log",
    _common.environment(),
  )
  engines = _common.find_engines(args.google)
  ours = _common.environment(XDG_CACHE_HOME=work / "cache")  # t5x_lite's default cache is in it
  columns = {_common.OURS: (engines[_common.OURS], ours)}
  if _common.GOOGLE in engines:
    google = engines[_common.GOOGLE]
    cache = _common.environment(JAX_COMPILATION_CACHE_DIR=work / "cache" / "google")
    columns[f"{_common.GOOGLE} as it ships"] = (google, _common.environment())
    columns[f"{_common.GOOGLE} with a JAX cache"] = (google, cache)
  runs = {
    name: functools.partial(measure, name, python, env, data, work)
    for name, (python, env) in columns.items()
  }
  for name, once in runs.items():
    print(f"warming up  {name}: {once():.3g}", flush=True)
  results = _common.interleave(runs, args.repeats)
  reference = list(results)[1] if len(results) > 1 else _common.OURS
  _common.print_table(results, "seconds for the whole process", reference)


if __name__ == "__main__":
  main()
