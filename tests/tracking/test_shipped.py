"""The tracker that ships: its size, its card, and what it says on schemas of strangers."""

import re
import shutil
import subprocess
import sys

import pytest
from commands import SGDX
from minilm import minilm
from places import ROOT
from stored_scores import stored

import sgdx_t5x
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.spandst import packed
from sgdx_t5x.tracking.act_training import share_read
from sgdx_t5x.tracking.packed import PackedModel

OWN = ROOT / "benchmarks/own_schemas"
RESULTS = ROOT / "benchmarks/results/shipped"


def test_its_size_and_card():
  assert sum(path.stat().st_size for path in packed.SHIPPED.iterdir()) < 26e6
  config, arrays = packed.read(packed.SHIPPED)
  digest_of_acts, _ = packed.read_acts(packed.SHIPPED, config.digest)
  card = (packed.SHIPPED / "README.md").read_text("utf-8")
  assert config.digest in card
  assert digest_of_acts in card
  assert f"{config.trained_on}'" in card
  assert f"TRAIN_STEPS={config.step}" in card
  assert not any(name.startswith("encoder/token_embedder") for name in arrays)


@pytest.mark.parametrize(("name", "label"), [("acts", "with the acts"), ("text", "**text alone**")])
def test_the_scores_of_its_card_are_those_kept(name, label):
  config, _ = packed.read(packed.SHIPPED)
  digest_of_acts, _ = packed.read_acts(packed.SHIPPED, config.digest)
  page = (RESULTS / "README.md").read_text("utf-8")
  assert config.digest in page
  assert digest_of_acts in page
  report = stored("shipped", name)
  card = (packed.SHIPPED / "README.md").read_text("utf-8")
  (line,) = (line for line in card.splitlines() if line.startswith(f"| {label}"))
  scores = report["sgdx"]["all"]
  kept = [f"{100 * scores[x]:.1f}" for x in ("jga_orig", "jga_v1_5", "ss_jga")]
  assert [cell.split()[0] for cell in line.split(" | ")[1:4]] == kept
  assert report["signature"] in card


@pytest.mark.real
@pytest.mark.long
def test_the_acts_that_it_reads_are_those_of_its_card(real_archive, monkeypatch):
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  share = share_read(PackedModel(packed.SHIPPED), open_corpus(real_archive))
  card = (packed.SHIPPED / "README.md").read_text("utf-8")
  assert f"in {share:.0%} of dev's turns" in card


def test_two_commands_lead_to_a_state(monkeypatch):
  """The second of them: `pip install .` is the first."""
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  command = [*SGDX, "track", "--schema", OWN / "test/schema.json", "--service", "Library_1"]
  done = subprocess.run(
    command,
    input="I want to borrow a book called Dune.\n",
    capture_output=True,
    text=True,
    check=True,
  )
  assert "the one that ships with sgdx_t5x" in done.stderr
  assert re.search(r"^book_title +Dune *$", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.long
@pytest.mark.parametrize("given", ["acts given", "text alone"])
def test_its_scores_on_schemas_of_strangers_are_those_of_the_page(given, monkeypatch, tmp_path):
  """JGA and slot accuracy, within a point: sums round differently elsewhere."""
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  out, corpus, names = tmp_path / "own", OWN, ("original", "renamed")
  if given == "text alone":
    names = names[:1]  # one is enough to see that acts are read
    corpus = tmp_path / "text.zip"
    archive = shutil.make_archive(str(tmp_path / "all"), "zip", OWN.parent, OWN.name)
    command = [sys.executable, ROOT / "benchmarks/text_alone.py", archive, corpus]
    subprocess.run(command, check=True)
  variants = ["original", f"renamed={OWN / 'renamed'}"][: len(names)]
  command = [*SGDX, "track", "--corpus", corpus, "--variant", *variants, "--out", out]
  subprocess.run(command, check=True, capture_output=True)
  predictions = {name: out / name for name in names}
  schemas = {"renamed": OWN / "renamed"}
  report = sgdx_t5x.score(OWN, "test", predictions, schemas=schemas).report
  page = (OWN / "README.md").read_text("utf-8")
  for name in names:
    row = next(x.split("|") for x in page.splitlines() if x.startswith(f"| {name}, {given} "))
    printed = [float(x) for x in row[2:4]]
    scores = report["variants"][name]["#ALL_SERVICES"]
    found = [100 * scores[f"{kind}_goal_accuracy"] for kind in ("joint", "average")]
    assert found == pytest.approx(printed, abs=1)
