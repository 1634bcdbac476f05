"""Which models train on which TPU slices, and how: a table of t5x_lite/docs/tpu-aot.md.

  SGDX_VOCAB=sentencepiece.model SGDX_ENCODER=bert-base-cased python benchmarks/aot.py

Compiles gin/t5dst.gin and gin/spandst.gin with every model for every slice, without a TPU
(t5x_lite/docs/tpu-aot.md). If a model does not fit, the first setting that the compiler's report
advises is tried next; four attempts at most. Only vocab.txt of SGDX_ENCODER is read, which must not
have more tokens than the models have embedding rows. Reports are kept in the work directory: rerun
the same command to resume.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Partitions are set for each slice.
_SCALES = {"t5dst": "gin/scale/tpu_v3_32.gin", "spandst": "gin/scale/encoders/tpu_v3_32.gin"}


def _files(experiment: str, model: str | None = None) -> list[str]:
  models = [f"gin/models/{model}.gin"] if model else []
  return [f"gin/{experiment}.gin", *models, _SCALES[experiment]]


MODELS = {
  "T5 1.0 Base": _files("t5dst"),
  "T5 1.1 Small": _files("t5dst", "t5_1_1_small"),
  "T5 1.1 Base": _files("t5dst", "t5_1_1_base"),
  "T5 1.1 Large": _files("t5dst", "t5_1_1_large"),
  "T5 1.1 XL": _files("t5dst", "t5_1_1_xl"),
  "SpanDST, MiniLM": _files("spandst", "minilm"),
  "SpanDST, BERT Base": _files("spandst", "bert_base_cased"),
  "SpanDST, BERT Large": _files("spandst", "bert_large"),
}
# Topology: slice, initial partitions; with the paper's 16 examples, two of 32 devices share one.
SLICES = {"v3:4x4": ("v3-32", 2), "v4:2x2x1": ("v4-8", 1), "v5e:4x8": ("v5e-32", 2)}
SLICES["v6e:2x2"] = ("v6e-4", 1)
ATTEMPTS = 4


def compile_once(
  files: Sequence[str], topology: str, bindings: list[str], steps: str, report: pathlib.Path
) -> dict:
  """Compiles one configuration and returns its report; exits if that fails.

  Args:
    files: gin files, the experiment's first.
    topology: topology of the slice.
    bindings: gin bindings.
    steps: steps to compile, separated by commas.
    report: file for the report.
  """
  if report.exists():
    return json.loads(report.read_text())
  command = [sys.executable, "-m", "t5x.main", "--run_mode=aot", f"--aot_topology={topology}"]
  command += [f"--gin_file={f}" for f in files] + [f"--gin_bindings={b}" for b in bindings]
  command += [f"--aot_steps={steps}", f"--aot_json={report}"]
  done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
  if not report.exists():  # a configuration that does not fit has exit code 1 too
    sys.exit(f"aot.py: exit code {done.returncode}\n{done.stderr[-3000:]}\n{' '.join(command)}")
  return json.loads(report.read_text())


def find_fit(name: str, topology: str, steps: str, work_dir: pathlib.Path) -> dict:
  """Returns the report of the first configuration that fits, else that of the last one tried."""
  settings = {"partitioning.PjitPartitioner.num_partitions": str(SLICES[topology][1])}
  for attempt in range(1, ATTEMPTS + 1):
    slug = f"{name}_{topology}_{steps}_{attempt}".replace(" ", "_").replace(":", "_")
    bindings = [f"{key} = {value}" for key, value in settings.items()]
    report = compile_once(
      MODELS[name], topology, bindings, steps, (work_dir / f"{slug}.json").resolve()
    )
    verdict = "fits" if report["fits"] else "does not fit"
    print(f"{name}, {topology}, {', '.join(bindings)}: {verdict}", file=sys.stderr, flush=True)
    if report["fits"] or not report["advice"] or attempt == ATTEMPTS:
      break
    settings |= dict(binding.split(" = ", 1) for binding in report["advice"][0])
  return report | {"settings": settings}


def row(name: str, topology: str, report: dict) -> str:
  """Returns a line of the table."""
  gib = 2**30
  train = report["steps"]["train"]
  zero = any("parameter_partitioning_dims" in key for key in report["settings"])
  mesh = "{data} x {model}".format(**report["mesh"]) + (", ZeRO-3" if zero else "")
  cells = [
    name,
    SLICES[topology][0],
    "yes" if report["fits"] else "no",
    mesh,
    f"{report['batch_size']} / {report['num_microbatches']}",
    f"{train['needed_bytes'] / gib:.1f} of {train['usable_bytes'] / gib:.1f}",
    f"{train['estimated_ms']:.1f}" if train["fits"] else "-",
    f"{train['bound_ms']:.1f}" if train.get("bound_ms") else "-",
  ]
  decode = report["steps"].get("decode")
  if decode is not None:
    fits = decode["fits"]
    cells += [
      f"{decode[k]:.2f}" if fits and k in decode else "-" for k in ("token_ms", "token_bound_ms")
    ]
  return "| " + " | ".join(cells) + " |"


def main() -> None:
  """Compiles what is not yet compiled and prints the table in Markdown."""
  parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
  parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
  parser.add_argument("--slices", nargs="+", choices=SLICES, default=list(SLICES))
  parser.add_argument("--steps", default="train,eval,decode", help="default train,eval,decode")
  parser.add_argument("--work-dir", type=pathlib.Path, default=pathlib.Path("runs/benchmarks/aot"))
  args = parser.parse_args()
  if "train" not in args.steps.split(","):
    parser.error("--steps must name train, whose figures the table shows")
  args.work_dir.mkdir(parents=True, exist_ok=True)
  head = ["model", "slice", "fits", "data x model", "batch / microbatches", "training, GiB"]
  head += ["step, ms", "bound, ms"]
  if "decode" in args.steps:
    head += ["token, ms", "bound, ms"]
  table = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
  for name in args.models:
    for topology in args.slices:
      table.append(row(name, topology, find_fit(name, topology, args.steps, args.work_dir)))
  print("\n".join(table))


if __name__ == "__main__":
  main()
