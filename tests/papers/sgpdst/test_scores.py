"""The scores of the page are those of the stored files."""

import json
import lzma

import pytest
from places import ROOT
from stored_scores import check_page


def test_the_page_has_the_stored_scores():
  check_page("docs/papers/sgpdst.md", "sgpdst")


@pytest.mark.parametrize("run", ["none-1", "backtrans-0"])
def test_the_page_has_those_of_the_other_runs(run):
  file = ROOT / f"benchmarks/results/sgpdst/{run}.json.xz"
  row = json.loads(lzma.decompress(file.read_bytes()))["sgdx"]["all"]
  numbers = (100 * row[key] for key in ("jga_orig", "jga_v1_5", "ss_jga"))
  scores = "JGA_orig {:.1f}, JGA_v1-5 {:.1f}, SS_JGA {:.1f}".format(*numbers)
  assert scores in (ROOT / "docs/papers/sgpdst.md").read_text("utf-8")
