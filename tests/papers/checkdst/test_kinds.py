"""What holds for every kind of perturbation, on the sample."""

import collections
import copy

import pytest
from perturbed import WAY_NAMES, WAYS, perturbed_sample, sample_dialogues, sample_split
from undo import undo_dialogue

from sgdx_t5x.corpus.annotation import validate_annotation
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.manifest import Manifest
from sgdx_t5x.papers.checkdst import register
from sgdx_t5x.papers.checkdst.answerable import gold_factuality
from sgdx_t5x.papers.checkdst.checks import sets
from sgdx_t5x.papers.checkdst.entities import free_slots
from sgdx_t5x.papers.checkdst.kinds import KINDS
from sgdx_t5x.papers.checkdst.split import changed
from sgdx_t5x.papers.checkdst.write import changed_frames


def test_every_kind_is_known_where_kinds_are_told_apart():
  """Else a check would count no changes, or nothing opens."""
  assert {kind for kind, _ in WAYS} == set(KINDS) == set(register.PERTURBATIONS)
  assert set(KINDS) == {*sets.OF_WORDS, *sets.OF_VALUES}
  assert {name for name in register.RECORDS if "_" not in name} == set(KINDS)


@pytest.fixture(scope="module", params=WAYS, ids=WAY_NAMES)
def way(request):
  kind, options = request.param
  return kind, options, perturbed_sample(kind, options)


def _manifest(perturber) -> Manifest:
  same = {name: getattr(perturber, name) for name in ("kind", "options", "slots")}
  return Manifest(**same, seed=0, split="test", of={"corpus": ""}, counts={"dialogues": 0},
                  files={}, complete=True, version="")  # fmt: skip


def _remarks(dialogues: list[dict]) -> dict[str, int]:
  schema, found = sample_split().schema, {}
  check = validate_annotation(schema, found)
  for data in dialogues:
    check(Dialogue.from_json(data), schema, "test")
  return {rule: warning.count for rule, warning in found.items()}


def test_most_of_the_sample_is_changed(way):
  _, _, (perturber, dialogues, _, _) = way
  frames = sum(len(turn["frames"]) for data in dialogues for turn in data["turns"][::2])
  found = sum(
    len(changed_frames(data, before, bool(perturber.slots)))
    for data, before in zip(dialogues, sample_dialogues(), strict=True)
  )
  assert found > 0.5 * frames


def test_undoing_gives_the_original_exactly(way):
  _, _, (perturber, dialogues, lines, _) = way
  manifest = _manifest(perturber)
  for data, before in zip(dialogues, sample_dialogues(), strict=True):
    found = copy.deepcopy(data)
    assert undo_dialogue(found, lines.get(data["dialogue_id"], ()), manifest) == before


def test_the_annotation_keeps_every_rule_with_as_many_remarks(way):
  _, _, (_, dialogues, _, _) = way
  assert _remarks(dialogues) == _remarks(sample_dialogues())


def test_every_value_of_a_state_is_still_said(way):
  _, _, (_, dialogues, _, _) = way
  slots = free_slots(sample_split().schema)
  for data, before in zip(dialogues, sample_dialogues(), strict=True):
    total, unsaid = gold_factuality(data, slots)
    assert (total, unsaid) == (gold_factuality(before, slots)[0], [])


def test_a_dialogue_alone_gives_what_it_gives_within_the_corpus(way):
  kind, options, (_, dialogues, lines, _) = way
  again = KINDS[kind](sample_split(), 0, **options)
  for i in (0, 77):
    alone = sample_dialogues()[i]
    found = changed(again, alone, collections.Counter())
    assert (alone, found) == (dialogues[i], lines.get(alone["dialogue_id"], []))


def test_another_seed_gives_other_dialogues(way):
  kind, options, (_, dialogues, _, _) = way
  assert perturbed_sample(kind, options, seed=1)[1] != dialogues


def test_ids_turns_intents_and_requested_slots_stay(way):
  _, _, (_, dialogues, _, _) = way

  def untouched(data):
    return data["dialogue_id"], data["services"], [
      (turn["speaker"], frame["service"], frame.get("state") and (
        frame["state"]["active_intent"], frame["state"]["requested_slots"],
        list(frame["state"]["slot_values"])), [a["act"] for a in frame["actions"]])
      for turn in data["turns"] for frame in turn["frames"]
    ]  # fmt: skip

  assert [*map(untouched, dialogues)] == [*map(untouched, sample_dialogues())]
