"""Times `sgdx simulate`: dialogues per second, written to files.

  python benchmarks/simulate.py [--schema SCHEMA.json] [--num-dialogues 20000]

Whole processes, as a user starts them, on what `sgdx simulate --init` makes of the schema: by
default that of the sample's train split, 12 services. Transitions are the defaults, like SGD's.
"""

from __future__ import annotations

import json
import pathlib
import re
import shutil

import _common


def main() -> None:
  """Makes the input once, measures in turn, prints dialogues/s with the target."""
  parser = _common.make_parser(__doc__, repeats=5)
  parser.add_argument("--schema", type=pathlib.Path, help="a schema.json (default: the sample's)")
  parser.add_argument("--num-dialogues", type=int, default=20_000)
  args = parser.parse_args()
  work = (args.work_dir / "simulate").resolve()
  shutil.rmtree(work, ignore_errors=True)
  work.mkdir(parents=True)
  schema = work / "schema.json"
  if args.schema:
    shutil.copyfile(args.schema, schema)
  else:
    from sgdx_t5x.corpus import sample

    schema.write_text(json.dumps(sample.schema("train").to_json()), "utf-8")
  init = _common.sgdx("simulate", "--init", str(schema), "--out", str(work / "start"))
  _common.run(init, work / "init.log", _common.environment())
  columns = {"simulate": lambda: measure(work, args.num_dialogues)}
  results = _common.interleave(columns, args.repeats)
  _common.print_table(results, "dialogues/s", "simulate", digits=0)
  log = (work / "simulate.log").read_text()
  print(re.search(r": ([\d,]+ dialogues, .*)", log)[1])
  size = sum(path.stat().st_size for path in (work / "out").rglob("*.json"))
  print(f"{size / 1e6:,.0f} MB")


def measure(work: pathlib.Path, count: int) -> float:
  """Simulates once, into a new folder. Returns dialogues per second."""
  shutil.rmtree(work / "out", ignore_errors=True)
  start = work / "start"
  command = _common.sgdx(
    "simulate", "--schema", str(work / "schema.json"), "--tables", str(start / "tables"),
    "--scenarios", str(start / "scenarios.json"), "--templates", str(start / "templates.json"),
    "--num-dialogues", str(count), "--out", str(work / "out"),
  )  # fmt: skip
  return count / _common.run(command, work / "simulate.log", _common.environment())


if __name__ == "__main__":
  main()
