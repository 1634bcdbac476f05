"""Records what the official SGD scorer says of the predictions of `official_case.py`.

  python tests/data/official/make.py OFFICIAL_DIR [--archive ARCHIVE.zip]

OFFICIAL_DIR: see benchmarks/_official.py. Writes scores.json beside this file; without
--archive, the numbers of the real corpus stay as they are. About 5 minutes.

scores.json: {"made": how, "cases": {case: {"corpus": checksum, "num_dialogues": predicted,
"groups": [names], "scores": {mode: {metric: [number per group, null where it has none]}}}}}.
A mode is a fuzzy back end, with "+turn" for joint_acc_across_turn. Only "difflib" has all
metrics: the other back ends have those that differ from it, "+turn" those that differ from its
back end's.
"""

import argparse
import datetime
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE.parents[1]))

import official_case  # noqa: E402

from sgdx_t5x.data.corpus import Corpus  # noqa: E402
from sgdx_t5x.data.dialogue import write_dialogues  # noqa: E402
from sgdx_t5x.data.variants import convert_dialogue, renamings  # noqa: E402
from sgdx_t5x.metrics import OFFICIAL_METRICS  # noqa: E402

# Commits of github.com/google-research/google-research that last changed the two files' code.
COMMITS = {"metrics.py": "c81395588a61", "evaluate.py": "1acdadcc599f"}


def main() -> None:
  """Scores every case whose corpus is there."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("official", type=pathlib.Path)
  parser.add_argument("--archive", type=pathlib.Path)
  args = parser.parse_args()
  target = HERE / "scores.json"
  cases = json.loads(target.read_text())["cases"] if target.exists() else {}
  for name, case in official_case.CASES.items():
    if case.corpus != "sgd" or args.archive:
      with tempfile.TemporaryDirectory() as folder:
        cases[name] = record(case, pathlib.Path(folder), args)
      print(name, flush=True)
  cases = {name: cases[name] for name in official_case.CASES if name in cases}
  target.write_text(json.dumps({"made": made(), "cases": cases}, separators=(",", ":")) + "\n")


def made() -> dict[str, object]:
  """What the numbers depend on besides the cases."""
  packages = ("fuzzywuzzy", "Levenshtein", "numpy")  # python-Levenshtein is called Levenshtein
  return {
    "by": "schema_guided_dst/evaluate.py of github.com/google-research/google-research",
    "commits": COMMITS,
    "date": datetime.date.today().isoformat(),
    "versions": {name: importlib.metadata.version(name) for name in packages},
  }


def record(case: official_case.Case, folder: pathlib.Path, args: argparse.Namespace) -> dict:
  """Returns the entry of one case."""
  corpus = official_case.open_case_corpus(case, folder / "tiny", args.archive)
  predictions = official_case.write_predictions(folder / "predictions", corpus, case)
  write_gold(corpus, case.variant, folder / "gold")
  num_dialogues = sum(len(json.loads(f.read_text())) for f in predictions.iterdir())
  scores: dict[str, dict[str, list]] = {}
  for backend in official_case.BACKENDS:
    known = scores.get("difflib", {})
    for turn in (False, True):
      found = official(args.official, predictions, folder / "gold", backend, turn)
      columns = {key: [found[g].get(key) for g in sorted(found)] for key in OFFICIAL_METRICS}
      news = {k: column for k, column in columns.items() if column != known.get(k)}
      scores[backend + "+turn" * turn] = news
      known = columns
  return {
    "corpus": corpus.checksum(),
    "num_dialogues": num_dialogues,
    "groups": sorted(found),
    "scores": scores,
  }


def write_gold(corpus: Corpus, variant: str, folder: pathlib.Path) -> None:
  """Writes the part of a corpus that the official scorer reads, with a variant's names."""
  for split in ("train", official_case.SPLIT):
    (folder / split).mkdir(parents=True)
    text = json.dumps(corpus.schema(split, variant).to_json())
    (folder / split / "schema.json").write_text(text)
  schemas = [corpus.schema(official_case.SPLIT, v) for v in ("original", variant)]
  names = renamings(*schemas)
  text = write_dialogues(convert_dialogue(d, names) for d in corpus.dialogues(official_case.SPLIT))
  (folder / official_case.SPLIT / "dialogues_001.json").write_text(text)


def official(
  code: pathlib.Path, predictions: pathlib.Path, gold: pathlib.Path, backend: str, turn: bool
) -> dict[str, dict[str, float]]:
  """Returns what the official scorer writes: group -> metric -> mean."""
  out = gold / "scores.json"
  command = [sys.executable, ROOT / "benchmarks" / "_official.py", code]
  command += ["levenshtein" if backend == "levenshtein" else "difflib"]
  command += ["--prediction_dir", predictions, "--dstc8_data_dir", gold]
  command += ["--eval_set", official_case.SPLIT, "--output_metric_file", out]
  command += [f"--use_fuzzy_match={backend != 'exact'}", f"--joint_acc_across_turn={turn}"]
  done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
  if done.returncode:
    sys.exit(done.stderr[-2000:])
  (predictions / "dialogues_and_metrics.json").unlink()  # its scores per frame
  return json.loads(out.read_text())


if __name__ == "__main__":
  main()
