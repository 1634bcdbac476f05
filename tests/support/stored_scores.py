"""Scores that are stored with the project, in the words of the pages that give them."""

import json
import lzma
from typing import Any

from places import ROOT


def stored(folder: str, run: str) -> dict[str, Any]:
  """Returns the report of a run in a folder of results."""
  file = ROOT / "benchmarks/results" / folder / f"{run}.json.xz"
  return json.loads(lzma.decompress(file.read_bytes()))


def scores_in_words(report: dict[str, Any]) -> str:
  """Returns a report's scores over all services as pages give them."""
  row = report["sgdx"]["all"]
  numbers = (100 * row[key] for key in ("jga_orig", "jga_v1_5", "ss_jga"))
  return "JGA_orig {:.1f}, JGA_v1-5 {:.1f}, SS_JGA {:.1f}".format(*numbers)


def check_page(page: str, folder: str) -> None:
  """Checks that a page has the scores and the signature of `none-0` in a folder of results."""
  report = stored(folder, "none-0")
  text = " ".join((ROOT / page).read_text("utf-8").split())
  rows, original = report["sgdx"], report["variants"]["original"]["#ALL_SERVICES"]
  numbers = []
  for group in ("seen", "unseen"):
    numbers += [rows[group]["jga_orig"], rows[group]["jga_v1_5"]]
  numbers += [original["active_intent_accuracy"], report["predict_nothing"]["all"]["jga_orig"]]
  sentence = (
    "; seen services {:.1f} and {:.1f}, unseen {:.1f} and {:.1f}; active intent {:.1f}. "
    "Predicting nothing has a JGA of {:.1f}. "
  )
  assert scores_in_words(report) + sentence.format(*(100 * x for x in numbers)) in text
  assert f"`{report['signature']}`" in text
