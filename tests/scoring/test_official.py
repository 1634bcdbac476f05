"""Our official metrics against numbers recorded from the official scorer itself.

`tests/fixtures/official/scores.json` says how they were made; `official_case.py` recreates the
predictions. The means sum up to 27,000 numbers in any order: hence the tolerance of 1e-12.
"""

import json
import math
import runpy

import official_case
import pytest
from places import FIXTURES

from sgdx_t5x import metrics
from sgdx_t5x.corpus.conversion import renamings
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.scoring.score import score_predictions

RECORDED = json.loads((FIXTURES / "official/scores.json").read_text())
SMALL = [name for name, case in official_case.CASES.items() if case.corpus != "sgd"]
REAL = [name for name in official_case.CASES if name not in SMALL]


def official_numbers(entry, mode):
  """Returns {(group, metric): number} of a mode, without those that are None."""
  backend = mode.removesuffix("+turn")
  columns = {}
  for part in ("difflib", backend, mode):  # later parts hold what differs from earlier ones
    columns |= entry["scores"][part]
  return {
    (group, key): number
    for key, column in columns.items()
    for group, number in zip(entry["groups"], column, strict=True)
    if number is not None
  }


def our_numbers(frames, across_turn, names):
  """Returns the same for our scores; services have the variant's names, as in the official ones."""
  groups = metrics.official_scores(frames, across_turn=across_turn)
  return {
    (names[group].service if group in names else group, key): number
    for group, scores in groups.items()
    for key, number in scores.items()
    if not math.isnan(number)
  }


def check(name, corpus, folder):
  case, entry = official_case.CASES[name], RECORDED["cases"][name]
  assert corpus.checksum() == entry["corpus"], "recorded for another corpus: run make.py"
  predictions = official_case.write_predictions(folder / "predictions", corpus, case)
  schemas = [corpus.schema(official_case.SPLIT, v) for v in ("original", case.variant)]
  for backend in official_case.BACKENDS:
    scored = score_predictions(
      corpus,
      official_case.SPLIT,
      {case.variant: predictions},
      fuzzy=backend,
      allow_missing=bool(case.omit),
    )
    frames = scored.frames[case.variant]
    for turn in ("", "+turn"):
      expected = official_numbers(entry, backend + turn)
      found = our_numbers(frames, bool(turn), renamings(*schemas))
      assert found == pytest.approx(expected, rel=0, abs=1e-12), backend + turn
    assert len(set(frames.dialogue_ids.tolist())) == entry["num_dialogues"]


@pytest.mark.parametrize("name", SMALL)
def test_small_corpora(name, tmp_path):
  corpus = official_case.open_case_corpus(official_case.CASES[name], tmp_path / "tiny", None)
  check(name, corpus, tmp_path)


@pytest.fixture(scope="module")
def real_corpus(real_archive):
  """The real corpus, with its test split cached: each score of each case would read it again."""
  corpus = open_corpus(real_archive)
  dialogues = {official_case.SPLIT: list(corpus.dialogues(official_case.SPLIT))}
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(corpus, "dialogues", lambda split, check=None: iter(dialogues[split]))
    yield corpus


@pytest.mark.real
@pytest.mark.long
@pytest.mark.parametrize("name", REAL)
def test_real_corpus(name, tmp_path, real_corpus):
  check(name, real_corpus, tmp_path)


def test_recorded_numbers_can_tell_rules_apart():
  """A wrong rule would show in the numbers: modes differ, and no metric is 1 everywhere."""
  for name, entry in RECORDED["cases"].items():
    modes = {mode: official_numbers(entry, mode) for mode in entry["scores"]}
    overall = ("#ALL_SERVICES", "joint_goal_accuracy")
    if official_case.CASES[name].corpus != "tiny":  # its six frames need not differ
      assert len({modes[backend][overall] for backend in official_case.BACKENDS}) == 3
    if official_case.CASES[name].corpus != "sample":  # it has no turns of two services
      assert modes["difflib+turn"][overall] < modes["difflib"][overall]
  sample = official_numbers(RECORDED["cases"]["sample"], "difflib")
  for key in metrics.OFFICIAL_METRICS:
    assert 0.5 < sample["#ALL_SERVICES", key] < 0.999, key
  assert not any(
    key.startswith("slot_tagging")
    for _, key in official_numbers(RECORDED["cases"]["sample_v3"], "difflib")
  )


def test_the_script_that_records_them_still_imports():
  assert runpy.run_path(str(FIXTURES / "official/make.py"))["record"]
