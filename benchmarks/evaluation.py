"""Times `python -m t5x.infer`: T5 Small on real prompts of dev, lengths 512 / 256, greedy.

  SGDX_VOCAB=sentencepiece.model python benchmarks/evaluation.py \
    --archive dstc8-schema-guided-dialogue-master.zip [--google PYTHON]

Columns: ours, ours with `utils.get_infer_fn.efficient = False`, and Google's T5X; the same gin
files, settings and prompts of `t5dst_sgdx_v3` for all. The prompts are one shard of dev (every
n-th frame), which `infer.num_shards` gives on either engine. The time is that of the
whole process; compiled programs are cached, so only the first round compiles.

Random weights would decode noise to the full length, which nobody runs. So the model is first
trained for a while on the CPU (once; it is kept in the work folder), until its outputs are short
and end like the targets; the mean lengths of both are printed. Predictions of all columns are
compared token for token.
"""

from __future__ import annotations

import functools
import json
import pathlib
import shutil
import statistics
import subprocess
import sys

import _common

TASK = "t5dst_sgdx_v3"
PLAIN = "ours, efficient = False"
PLAIN_BINDING = "--gin_bindings=utils.get_infer_fn.efficient = False"
TRAINING = (
  "--gin.INITIAL_CHECKPOINT_PATH=[]",
  "--gin.TASK_FEATURE_LENGTHS={'inputs': 128, 'targets': 16}",
  "--gin.BATCH_SIZE=16",
  "--gin.network.T5Config.dtype='float32'",
  "--gin.train/utils.DatasetConfig.pack=False",
  "--gin.DROPOUT_RATE=0.0",
  "--gin.EVAL_STEPS=1",
  "--gin.EVALUATOR_NUM_EXAMPLES=64",
  "--gin.utils.create_learning_rate_scheduler.base_learning_rate=0.01",
)
_COUNT = (
  "import sys; from sgdx_t5x import tasks; v = tasks.vocabulary(); "
  "print(*(len(v.encode(line.rstrip('\\n'))) + 1 for line in sys.stdin))"
)


def make_checkpoint(work: pathlib.Path, data: pathlib.Path, steps: int) -> pathlib.Path:
  """Trains T5 Small with ours for a while; returns the checkpoint, made once."""
  model_dir = work / f"model_{steps}"
  checkpoint = model_dir / f"checkpoint_{steps}"
  if not checkpoint.is_dir():
    print(f"training {steps} steps for a checkpoint (once)", flush=True)
    command = [sys.executable, "-m", "t5x.train", "--gin_file=gin/t5dst.gin"]
    command += ["--gin_file=gin/models/t5_1_0_small.gin", *TRAINING]
    command += [f"--gin.TRAIN_STEPS={steps}", f"--gin.EVAL_PERIOD={steps}"]
    command += [f"--gin.utils.SaveCheckpointConfig.period={steps}"]
    command += [f"--gin.MODEL_DIR='{model_dir}'", f"--tfds_data_dir={data}"]
    seconds = _common.run(command, work / "train.log", _common.environment())
    print(f"trained in {seconds:.0f} s", flush=True)
  return checkpoint


def infer_command(args, checkpoint: pathlib.Path, output: pathlib.Path, data) -> list[str]:
  """The arguments of `t5x.infer` (after the interpreter and the module) of every column."""
  return [
    "--gin_file=gin/infer.gin",
    "--gin_file=gin/models/t5_1_0_small.gin",
    "--gin_file=benchmarks/evaluation.gin",
    f"--gin.MIXTURE_OR_TASK_NAME='{TASK}'",
    f"--gin.CHECKPOINT_PATH='{checkpoint}'",
    f"--gin.INFER_OUTPUT_DIR='{output}'",
    f"--gin.utils.DatasetConfig.batch_size={args.batch_size}",
    "--gin.infer.shard_id=0",
    f"--gin.infer.num_shards={args.shards}",
    f"--tfds_data_dir={data}",
  ]


def read_rows(output: pathlib.Path) -> list[dict]:
  """The rows that a run wrote."""
  (path,) = output.glob(f"{TASK}-predict.jsonl-00000-of-*[0-9]")
  return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tokens_of(row: dict) -> list[int]:
  """The predicted token ids up to the padding."""
  ids = row["prediction_tokens"]
  return ids[: ids.index(0)] if 0 in ids else ids


def compare(rows: dict[str, list[dict]]) -> bool:
  """Prints whether all columns predict the same; returns it."""
  reference = next(iter(rows))
  same = True
  for name, theirs in rows.items():
    if name == reference:
      continue
    pairs = list(zip(rows[reference], theirs, strict=True))
    prompts = sum(a["inputs"] != b["inputs"] for a, b in pairs)
    differing = sum(tokens_of(a) != tokens_of(b) for a, b in pairs)
    same &= not prompts and not differing
    verdict = "equal token for token" if not differing else f"{differing} differ"
    verdict += f"; {prompts} PROMPTS DIFFER" if prompts else ""
    print(f"predictions, {reference} and {name}: {len(pairs)} rows, {verdict}")
  return same


def print_lengths(rows: list[dict], env) -> None:
  """Prints the mean lengths of targets and outputs in tokens, EOS included."""
  text = "\n".join(row["inputs"]["targets_pretokenized"] for row in rows)
  counted = subprocess.run(
    [sys.executable, "-c", _COUNT], cwd=_common.ROOT, env=env, input=text, text=True,
    capture_output=True, check=True,
  )  # fmt: skip
  outputs = [tokens_of(row) for row in rows]
  for name, lengths in (
    ("targets", list(map(int, counted.stdout.split()))),
    ("outputs", list(map(len, outputs))),
  ):
    print(f"{name}: mean {statistics.mean(lengths):.2f} tokens, longest {max(lengths)}")
  ended = sum(tokens[-1:] == [1] for tokens in outputs)
  distinct = len({tuple(tokens) for tokens in outputs})
  print(f"outputs: {ended / len(rows):.1%} end with EOS, {distinct} distinct")


def main() -> None:
  """Makes records and checkpoint, measures, compares, prints the table."""
  parser = _common.make_parser(__doc__, repeats=3)
  parser.add_argument("--archive", help="the official SGD archive; needed once per work dir")
  parser.add_argument("--shards", type=int, default=155, help="take one of so many parts of dev")
  parser.add_argument("--batch-size", type=int, default=64)
  parser.add_argument("--train-steps", type=int, default=200, help="of the checkpoint")
  args = parser.parse_args()
  data = _common.real_records(args.archive, args.work_dir)
  work = (args.work_dir / "evaluation").resolve()
  engines = _common.find_engines(args.google)
  checkpoint = make_checkpoint(work, data, args.train_steps)

  settings = {_common.OURS: (engines[_common.OURS], [])}
  probe = [*engines[_common.OURS], "-m", "t5x.infer", "--dry_run"]
  probe += [*infer_command(args, checkpoint, work / "probe", data), PLAIN_BINDING]
  if subprocess.run(probe, cwd=_common.ROOT, capture_output=True).returncode:
    print("this t5x has no utils.get_infer_fn.efficient: that column is left out")
  else:
    settings[PLAIN] = (engines[_common.OURS], [PLAIN_BINDING])
  if _common.GOOGLE in engines:
    settings[_common.GOOGLE] = (engines[_common.GOOGLE], [])

  rows: dict[str, list[dict]] = {}

  def measure(name: str) -> float:
    python, extra = settings[name]
    slug = _common.slug(name)
    output = work / slug
    shutil.rmtree(output, ignore_errors=True)
    command = [*python, "-m", "t5x.infer", *infer_command(args, checkpoint, output, data), *extra]
    env = _common.environment(JAX_COMPILATION_CACHE_DIR=work / "cache" / slug)
    seconds = _common.run(command, work / f"{slug}.log", env)
    rows[name] = read_rows(output)
    return len(rows[name]) / seconds

  columns = {name: functools.partial(measure, name) for name in settings}
  results = _common.interleave(columns, args.repeats)
  print()
  print_lengths(rows[_common.OURS], _common.environment())
  same = compare(rows)
  reference = _common.GOOGLE if _common.GOOGLE in results else list(results)[-1]
  _common.print_table(results, f"prompts/s, {len(rows[_common.OURS])} prompts", reference)
  if not same:
    sys.exit(1)


if __name__ == "__main__":
  main()
