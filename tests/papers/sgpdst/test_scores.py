"""The scores of the page are those of the stored files."""

import json
import lzma

from places import ROOT
from stored_scores import check_page


def test_the_page_has_the_stored_scores():
  check_page("docs/papers/sgpdst.md", "sgpdst")


def test_the_page_has_those_with_back_translations():
  file = ROOT / "benchmarks/results/sgpdst/backtrans-0.json.xz"
  row = json.loads(lzma.decompress(file.read_bytes()))["sgdx"]["all"]
  numbers = (100 * row[key] for key in ("jga_orig", "jga_v1_5", "ss_jga"))
  scores = "JGA_orig {:.1f}, JGA_v1-5 {:.1f}, SS_JGA {:.1f} (".format(*numbers)
  assert scores in (ROOT / "docs/papers/sgpdst.md").read_text("utf-8")
