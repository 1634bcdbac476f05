"""`sgdx score`: the official numbers and schema sensitivity, for anybody's predictions."""

import argparse
import gc
import json
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sgdx_t5x.errors import SgdxError, UsageError

if TYPE_CHECKING:
  from sgdx_t5x.corpus import Corpus
  from sgdx_t5x.metrics import FrameScores, GoldFrame

_ALL = "all"
# "service" and "domain" keys are in the JSON; the paper's Table 2 has these three rows.
_ROWS = ("all", "seen", "unseen")
# JSON key -> heading, in the order of the paper's Table 2.
_COLUMNS = {
  "jga_orig": "JGA_orig",
  **{f"jga_v{k}": f"v{k}" for k in range(1, 6)},
  "jga_v1_5": "JGA_v1-5",
  "diff_rel": "Diff_rel",
  "ss_jga": "SS_JGA",
}
_WIDTH = 80  # the table fits; a narrower terminal would only break its lines

_EPILOG = """\
examples:
  One model, the original schemas and the five variants (official SGD archive):
    sgdx score --corpus dstc8-schema-guided-dialogue-master.zip --split test \\
      --predictions original=preds/original v1=preds/v1 v2=preds/v2 v3=preds/v3 \\
      v4=preds/v4 v5=preds/v5 --json scores.json

  What t5x.eval wrote for several tasks, each row naming its variant:
    sgdx score --corpus sample --split test --predictions all=eval/inference_eval

  The original only, with the fuzzy matching that python-Levenshtein gives:
    sgdx score --corpus sgd.zip --split dev --predictions original=dialogues_all.json \\
      --fuzzy levenshtein

DIR holds dialogues*.json in DSTC8 format, with the names of the variant or of the original,
or *.jsonl of t5x.infer or t5x.eval; a single file will do. Numbers are percent in the table
and fractions in JSON. JGA_v1-5, Diff_rel and SS_JGA need v1 to v5.
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
  """Adds the subcommand. Args: subparsers is what `ArgumentParser.add_subparsers` returned."""
  parser = subparsers.add_parser(
    "score",
    help="score predictions: JGA per variant and schema sensitivity",
    description=__doc__,
    epilog=_EPILOG,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument(
    "--corpus", required=True, help='the official archive (zip or folder), or "sample"'
  )
  parser.add_argument("--split", default="test", help="train, dev or test (default: test)")
  parser.add_argument(
    "--predictions",
    required=True,
    nargs="+",
    metavar="VARIANT=DIR",
    help="original=DIR, v1=DIR ... v5=DIR; all=DIR takes every variant that JSONL ids name",
  )
  parser.add_argument(
    "--fuzzy",
    default="difflib",
    choices=("difflib", "levenshtein", "exact"),
    help="how values of non-categorical slots are compared (default: difflib, as officially)",
  )
  parser.add_argument(
    "--zero-mean",
    default="zero",
    choices=("zero", "exclude"),
    help="what SS counts for a frame that every variant gets wrong (default: zero)",
  )
  parser.add_argument(
    "--prompt-style",
    nargs="+",
    default=[],
    metavar="FIELD=VALUE",
    help="how JSONL predictions were prompted, if not by default: values=letters lowercase=true",
  )
  parser.add_argument(
    "--allow-missing",
    action="store_true",
    help="score what is there, and mark it PARTIAL, if frames are missing",
  )
  parser.add_argument("--json", metavar="OUT", help="also write all scores to this JSON file")
  parser.add_argument("--format", default="text", choices=("text", "json"), help="what to print")
  parser.set_defaults(run=run)
  return parser


def run(args: argparse.Namespace) -> int:
  """Scores, prints and writes. Returns 0. Raises SgdxError for anything wrong in the input."""
  # Reading makes millions of small objects and no cycles among them; looking for cycles took
  # half of the time (six predictions of the real test files) and freed nothing.
  enabled = gc.isenabled()
  gc.disable()
  try:
    return _run(args)
  finally:
    if enabled:
      gc.enable()


def _run(args: argparse.Namespace) -> int:
  from sgdx_t5x.corpus import open_corpus
  from sgdx_t5x.metrics import gold_frames, score_frames

  sources = _parse_sources(args.predictions)
  style = _parse_style(args.prompt_style)
  corpus = open_corpus(args.corpus)
  gold = gold_frames(corpus.dialogues(args.split))
  if not gold:
    raise SgdxError(
      f"{corpus.origin}: no user frames in split {args.split}",
      expected="dialogues with gold states",
      available=", ".join(f"{s}: {len(corpus.dialogue_files(s))} files" for s in corpus.splits),
      fix="name a split that has dialogues",
    )
  schema, seen = corpus.schema(args.split), corpus.seen_services(args.split)
  scores = {
    variant: score_frames(gold, states, schema, seen, args.fuzzy)
    for variant, states in _read(sources, corpus, args, gold, style)
  }
  scores = {variant: scores[variant] for variant in corpus.variants if variant in scores}
  report, warnings = _report(scores, corpus, gold, args)
  text = json.dumps(report, indent=2, allow_nan=False) + "\n"
  if args.json:
    _write(pathlib.Path(args.json), text)
  if args.format == "json":
    print(text, end="")
  else:
    _print_table(report, warnings)
  return 0


# --- arguments -----------------------------------------------------------------------------


def _parse_sources(items: Sequence[str]) -> list[tuple[str, str]]:
  sources: dict[str, str] = {}
  for item in items:
    variant, sign, path = item.partition("=")
    if not (variant and sign and path):
      raise UsageError(
        f"--predictions {item}",
        expected="VARIANT=DIR",
        available="original, v1, v2, v3, v4, v5, all",
        fix=f"write original={item} if it was predicted with the original schemas",
      )
    if variant in sources:
      raise UsageError(
        f"--predictions names {variant} twice",
        expected="each variant once",
        available=f"{sources[variant]} and {path}",
        fix="keep one of them",
      )
    sources[variant] = path
  return list(sources.items())


def _parse_style(items: Sequence[str]) -> Any:
  import dataclasses

  from sgdx_t5x.prompts.t5dst import PromptStyle

  defaults = dataclasses.asdict(PromptStyle())
  changes: dict[str, Any] = {}
  for item in items:
    field, _, value = item.partition("=")
    is_flag = isinstance(defaults.get(field), bool)
    if field not in defaults or (is_flag and value.lower() not in ("true", "false")):
      raise UsageError(
        f"--prompt-style {item}",
        expected="FIELD=VALUE of PromptStyle; flags are true or false",
        available=", ".join(defaults),
        fix="give what the gin file of the run gives PromptStyle",
      )
    changes[field] = value.lower() == "true" if is_flag else value
  return PromptStyle(**changes)


def _read(sources, corpus: "Corpus", args: argparse.Namespace, gold, style):
  """Yields (variant, states), one variant after the other, so that one is in memory."""
  from sgdx_t5x.predictions import Wanted, read_all_variants, read_predictions

  wanted = Wanted(corpus, args.split, gold, style, args.allow_missing)
  done: set[str] = set()
  for name, path in sources:
    if name == _ALL:
      found = read_all_variants(path, wanted)
    else:
      found = {name: read_predictions(path, name, wanted)}
    if again := done.intersection(found):
      raise UsageError(
        f"--predictions: {', '.join(sorted(again))} in {path} and in another one",
        expected="each variant once",
        fix="leave one of the two out",
      )
    done.update(found)
    yield from found.items()


# --- scores --------------------------------------------------------------------------------


def _report(
  scores: Mapping[str, "FrameScores"],
  corpus: "Corpus",
  gold: "Sequence[GoldFrame]",
  args: argparse.Namespace,
) -> tuple[dict[str, Any], list[str]]:
  """Returns the JSON report and what makes it PARTIAL, a line each."""
  from sgdx_t5x.metrics import common_frames, official_scores, predict_nothing, score_frames

  warnings = _partial(scores, corpus, gold, args.split)
  common = common_frames(scores)
  ids = set(next(iter(common.values())).frame_ids.tolist())
  if not ids:
    raise SgdxError(
      "no frame has predictions in all variants given",
      expected="predictions for the same frames",
      available=", ".join(f"{v}: {len(score):,} frames" for v, score in scores.items()),
      fix="score the variants one by one, or complete their predictions",
    )
  kept = [frame for frame in gold if frame.frame_id in ids]
  nothing = score_frames(
    kept,
    predict_nothing(kept),
    corpus.schema(args.split),
    corpus.seen_services(args.split),
    args.fuzzy,
  )
  report = {
    "signature": _signature(corpus, args, list(scores), len(kept), complete=not warnings),
    "complete": not warnings,
    "variants": {variant: official_scores(score) for variant, score in scores.items()},
    "sgdx": _sgdx(common, args.zero_mean, per_service=True),
    "predict_nothing": _sgdx(dict.fromkeys(common, nothing), args.zero_mean),
  }
  return _null_for_nan(report), warnings


def _sgdx(
  scores: Mapping[str, "FrameScores"], zero_mean: str, per_service: bool = False
) -> dict[str, Any]:
  """Returns the rows of the paper's Table 2; all `scores` are of the same frames."""
  import numpy as np

  from sgdx_t5x.metrics import JOINT_GOAL, summarise

  frames = next(iter(scores.values()))

  def row(mask: Any) -> dict[str, float]:
    jga = {variant: score.metrics[JOINT_GOAL][mask] for variant, score in scores.items()}
    return {**summarise(jga, zero_mean), "num_frames": int(mask.sum())}

  masks = (np.ones(len(frames), dtype=bool), frames.seen, ~frames.seen)
  rows: dict[str, Any] = {name: row(mask) for name, mask in zip(_ROWS, masks, strict=True)}
  if per_service:
    services = sorted(set(frames.services.tolist()))
    rows["services"] = {name: row(frames.services == name) for name in services}
  return rows


def _partial(scores, corpus: "Corpus", gold, split: str) -> list[str]:
  from sgdx_t5x.corpus import PUBLISHED_DIALOGUES

  warnings = []
  num_dialogues = len({frame.dialogue_id for frame in gold})
  if not corpus.is_complete(split, num_dialogues):
    warnings.append(
      f"the corpus has {num_dialogues:,} of the {PUBLISHED_DIALOGUES[split]:,} dialogues of "
      f"{split}: not comparable with published scores"
    )
  for variant, score in scores.items():
    if len(score) < len(gold):
      missing = len(gold) - len(score)
      warnings.append(f"{missing:,} of {len(gold):,} frames of {variant} have no prediction")
  return warnings


def _signature(
  corpus: "Corpus", args: argparse.Namespace, variants: list[str], num_frames: int, complete: bool
) -> str:
  """Returns what a score depends on, in one line to copy beside it (as sacreBLEU does)."""
  from sgdx_t5x.version import package_version

  return "|".join(
    (
      "sgdx",
      f"corpus:{corpus.name}:{corpus.checksum()}",
      f"split:{args.split}",
      f"variants:{'+'.join(variants)}",
      "services:all+seen+unseen",
      f"fuzzy:{args.fuzzy}",
      "jga:official-per-frame",
      f"zero_mean:{args.zero_mean}",
      f"frames:{num_frames}",
      "complete" if complete else "PARTIAL",
      f"version:{package_version()}",
    )
  )


def _null_for_nan(value: Any) -> Any:
  """JSON has no nan: what cannot be computed is null."""
  if isinstance(value, dict):
    return {key: _null_for_nan(v) for key, v in value.items()}
  return None if isinstance(value, float) and math.isnan(value) else value


# --- output --------------------------------------------------------------------------------


def _write(path: pathlib.Path, text: str) -> None:
  """Writes under a temporary name in the same folder and renames: whole or not at all."""

  temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
  try:
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
  except OSError as e:
    temporary.unlink(missing_ok=True)
    raise SgdxError(
      f"--json {path}: {e.strerror}",
      expected="a file in a folder that exists and can be written",
      fix="make the folder, or name another file",
    ) from None


def _print_table(report: Mapping[str, Any], warnings: Sequence[str]) -> None:
  from rich.console import Console

  console = Console(highlight=False, markup=False, emoji=False)
  console.width = max(console.width, _WIDTH)
  for line in warnings:
    console.print(f"PARTIAL: {line}", style="bold red", soft_wrap=True)
  console.print(_table("predictions", report["sgdx"]))
  console.print()
  console.print(_table("predict nothing", report["predict_nothing"]))
  if report["sgdx"]["all"]["ss_jga"] is None:
    absent = [k for k in _COLUMNS if k.startswith("jga_") and report["sgdx"]["all"][k] is None]
    lacking = ", ".join(_COLUMNS[k] for k in absent if k != "jga_v1_5")
    console.print(f"JGA_v1-5, Diff_rel and SS_JGA need v1 to v5; not given: {lacking}")
  elif report["sgdx"]["all"]["jga_orig"] is None:
    console.print("Diff_rel needs predictions for the original schemas")
  console.print()
  state = "" if report["complete"] else "PARTIAL "
  console.print(f"{state}signature: {report['signature']}", soft_wrap=True)


def _table(title: str, rows: Mapping[str, Any]) -> Any:
  from rich.table import Table

  table = Table(title=f"{title} (%)", title_justify="left", title_style="bold", box=None)
  table.padding = (0, 1, 0, 0)
  table.add_column("")
  for heading in (*_COLUMNS.values(), "frames"):
    table.add_column(heading, justify="right", no_wrap=True)
  for name in _ROWS:
    cells = [_percent(rows[name][key]) for key in _COLUMNS]
    table.add_row(name, *cells, f"{rows[name]['num_frames']:,}")
  return table


def _percent(fraction: float | None) -> str:
  return "-" if fraction is None else f"{100 * fraction:.1f}"
