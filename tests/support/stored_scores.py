"""Scores that are stored with the project, in the words of the pages that give them."""

import json
import lzma

from places import ROOT


def check_page(page: str, folder: str) -> None:
  """Checks that a page has the scores and the signature of `none-0` in a folder of results."""
  file = ROOT / "benchmarks/results" / folder / "none-0.json.xz"
  report = json.loads(lzma.decompress(file.read_bytes()))
  text = " ".join((ROOT / page).read_text("utf-8").split())
  rows, original = report["sgdx"], report["variants"]["original"]["#ALL_SERVICES"]
  numbers = [rows["all"][key] for key in ("jga_orig", "jga_v1_5", "ss_jga")]
  for group in ("seen", "unseen"):
    numbers += [rows[group]["jga_orig"], rows[group]["jga_v1_5"]]
  numbers += [original["active_intent_accuracy"], report["predict_nothing"]["all"]["jga_orig"]]
  sentence = (
    "JGA_orig {:.1f}, JGA_v1-5 {:.1f}, SS_JGA {:.1f}; seen services {:.1f} and {:.1f}, "
    "unseen {:.1f} and {:.1f}; active intent {:.1f}. Predicting nothing has a JGA of {:.1f}. "
  )
  assert sentence.format(*(100 * number for number in numbers)) in text
  assert f"`{report['signature']}`" in text
