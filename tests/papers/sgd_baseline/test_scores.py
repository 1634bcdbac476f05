"""The scores of the page are those of the stored files."""

import json
import lzma

from places import ROOT

FILE = ROOT / "benchmarks/results/sgd_baseline/none-0.json.xz"


def test_the_page_has_the_stored_scores():
  report = json.loads(lzma.decompress(FILE.read_bytes()))
  page = " ".join((ROOT / "docs/papers/sgd_baseline.md").read_text("utf-8").split())
  rows, original = report["sgdx"], report["variants"]["original"]["#ALL_SERVICES"]
  numbers = [rows["all"][key] for key in ("jga_orig", "jga_v1_5", "ss_jga")]
  for group in ("seen", "unseen"):
    numbers += [rows[group]["jga_orig"], rows[group]["jga_v1_5"]]
  numbers += [original["active_intent_accuracy"], report["predict_nothing"]["all"]["jga_orig"]]
  sentence = (
    "JGA_orig {:.1f}, JGA_v1-5 {:.1f}, SS_JGA {:.1f}; seen services {:.1f} and {:.1f}, "
    "unseen {:.1f} and {:.1f}; active intent {:.1f}. Predicting nothing has a JGA of {:.1f}. "
  )
  assert sentence.format(*(100 * number for number in numbers)) in page
  assert f"`{report['signature']}`" in page
