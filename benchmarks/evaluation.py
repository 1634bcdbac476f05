"""Times `python -m t5x.infer`: T5 Small on real prompts of dev, lengths 512 / 256, greedy.

  SGDX_VOCAB=sentencepiece.model python benchmarks/evaluation.py \
    --archive dstc8-schema-guided-dialogue-master.zip [--google PYTHON] [--peers PYTHON]

Columns: ours; ours with products of bfloat16 (`utils.cpu_matmul.operands`), with
`utils.get_infer_fn.efficient = False`, if asked for; Google's T5X; the same gin files, settings and
prompts of `t5dst_sgdx_v3` for all. The prompts are one shard of dev (every n-th frame), which
`infer.num_shards` gives on either engine. With `--peers`, an interpreter with transformers and
ctranslate2, these too, on the same weights and the prompts' token ids (_peer_driver.py), each in
the dtypes it offers. The time is that of the whole process; compiled programs are cached, so only
the first round compiles.

Random weights would decode noise to the full length, which is unrealistic. So the model is first
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
BFLOAT16 = "ours, products of bfloat16"
PLAIN = "ours, efficient = False"
BINDINGS = {
  BFLOAT16: "--gin_bindings=utils.cpu_matmul.operands = 'bfloat16'",
  PLAIN: "--gin_bindings=utils.get_infer_fn.efficient = False",
}
PEERS = (
  "transformers-float32",
  "transformers-bfloat16",
  "ctranslate2-float32",
  "ctranslate2-int8",
)
INPUTS, TARGETS = 512, 256
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
  """Trains T5 Small with our T5X for a while, once; returns the checkpoint."""
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
  """The arguments of `t5x.infer` (after interpreter and module) common to all columns."""
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


def write_prompts(work: pathlib.Path, data: pathlib.Path, shards: int) -> pathlib.Path:
  """Writes the token ids of the prompts, in the order `infer` has them, for the peers."""
  import seqio

  import sgdx_t5x.tasks  # noqa: F401 - registers them

  path = work / f"prompts_{shards}.json"
  if not path.exists():
    seqio.set_tfds_data_dir_override(str(data))
    lengths = {"inputs": INPUTS, "targets": TARGETS}
    examples = seqio.get_mixture_or_task(TASK).get_dataset(
      lengths, "dev", shuffle=False, num_epochs=1, shard_info=seqio.ShardInfo(0, shards)
    )
    ids = [x["inputs"].tolist() for x in examples.as_numpy_iterator()]
    path.write_text(json.dumps(ids))
  return path


def export_for_peers(python: str, checkpoint: pathlib.Path, work: pathlib.Path) -> dict[str, str]:
  """Converts the checkpoint, once; returns {peer: folder of its model}."""
  folders = {"transformers": work / "hf", "float32": work / "ct2", "int8": work / "ct2_int8"}
  env = _common.environment()
  if not folders["transformers"].is_dir():
    command = _common.sgdx("weights", "export", "--checkpoint", str(checkpoint))
    command += ["--out", str(folders["transformers"]), "--vocab", env["SGDX_VOCAB"]]
    _common.run(command, work / "export.log", env)
  for dtype in ("float32", "int8"):
    if not folders[dtype].is_dir():
      command = [python, "-m", "ctranslate2.converters.transformers"]
      command += ["--model", str(folders["transformers"]), "--output_dir", str(folders[dtype])]
      _common.run([*command, "--quantization", dtype], work / f"convert_{dtype}.log", env)
  library = {name: name.partition("-")[0] for name in PEERS}
  return {n: str(folders.get(library[n], folders.get(n.partition("-")[2]))) for n in PEERS}


def compare(answers: dict[str, list[list[int]]]) -> bool:
  """Prints how many answers equal ours; returns whether all of Google's do."""
  reference = _common.OURS
  exact = True
  for name, theirs in answers.items():
    if name != reference:
      pairs = list(zip(answers[reference], theirs, strict=True))
      equal = sum(a == b for a, b in pairs)
      print(f"answers, {reference} and {name}: {equal} of {len(pairs)} equal token for token")
      exact &= equal == len(pairs) or name not in (_common.GOOGLE,)
  return exact


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
  parser = _common.make_parser(__doc__, repeats=3, google=True)
  parser.add_argument("--archive", help="the official SGD archive; needed once per work dir")
  parser.add_argument("--shards", type=int, default=155, help="take one of so many parts of dev")
  parser.add_argument("--batch-size", type=int, default=64)
  parser.add_argument("--peers", metavar="PYTHON", help="with transformers, torch, ctranslate2")
  parser.add_argument("--plain", action="store_true", help="ours with efficient = False, too")
  parser.add_argument("--train-steps", type=int, default=200, help="of the checkpoint")
  args = parser.parse_args()
  data = _common.real_records(args.archive, args.work_dir)
  work = (args.work_dir / "evaluation").resolve()
  engines = _common.find_engines(args.google)
  checkpoint = make_checkpoint(work, data, args.train_steps)

  settings = {_common.OURS: [], BFLOAT16: [BINDINGS[BFLOAT16]]}
  if args.plain:
    settings[PLAIN] = [BINDINGS[PLAIN]]
  if _common.GOOGLE in engines:
    settings[_common.GOOGLE] = []
  rows: dict[str, list[dict]] = {}
  answers: dict[str, list[list[int]]] = {}

  def measure(name: str) -> float:
    slug = _common.slug(name)
    output = work / slug
    shutil.rmtree(output, ignore_errors=True)
    command = [*engines.get(name, engines[_common.OURS]), "-m", "t5x.infer"]
    command += [*infer_command(args, checkpoint, output, data), *settings[name]]
    env = _common.environment(JAX_COMPILATION_CACHE_DIR=work / "cache" / slug)
    seconds = _common.run(command, work / f"{slug}.log", env)
    rows[name] = read_rows(output)
    answers[name] = [tokens_of(row) for row in rows[name]]
    return len(rows[name]) / seconds

  columns = {name: functools.partial(measure, name) for name in settings}
  if args.peers:
    prompts = write_prompts(work, data, args.shards)
    folders = export_for_peers(args.peers, checkpoint, work)

    def measure_peer(name: str) -> float:
      output = work / f"{name}.json"
      driver = str(_common.ROOT / "benchmarks" / "_peer_driver.py")
      command = [args.peers, driver, name, folders[name], str(prompts), str(output), str(TARGETS)]
      seconds = _common.run(command, work / f"{name}.log", _common.environment())
      answers[name] = json.loads(output.read_text())
      return len(answers[name]) / seconds

    columns |= {name: functools.partial(measure_peer, name) for name in PEERS}

  results = _common.interleave(columns, args.repeats)
  print()
  print_lengths(rows[_common.OURS], _common.environment())
  same = compare(answers)
  reference = _common.GOOGLE if _common.GOOGLE in results else _common.OURS
  _common.print_table(results, f"prompts/s, {len(rows[_common.OURS])} prompts", reference)
  if not same:
    sys.exit(1)


if __name__ == "__main__":
  main()
