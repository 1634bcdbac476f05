"""Compares a perturbed split with its original: what a perturbation must not change."""

import collections
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.manifest import Manifest
from sgdx_t5x.errors import SgdxError, malformed
from sgdx_t5x.papers.checkdst import vs
from sgdx_t5x.papers.checkdst.answerable import gold_factuality
from sgdx_t5x.papers.checkdst.changes import exchanged_values, read_changes
from sgdx_t5x.papers.checkdst.contract import Contract
from sgdx_t5x.papers.checkdst.entities import entity_slots
from sgdx_t5x.papers.checkdst.mapping import apply_mapping
from sgdx_t5x.papers.checkdst.metrics_counterfactual import GoalEdit
from sgdx_t5x.papers.checkdst.split import Line, Split


def compare(
  perturbed: Corpus,
  original: Corpus,
  split: str,
  on_dialogue: Callable[[int], None] = lambda dialogues_done: None,
) -> tuple[Manifest, collections.Counter]:
  """Checks that a perturbation did not touch what it must not.

  Args:
    perturbed: a corpus from `sgdx checkdst perturb`.
    original: the corpus that it was made from.
    split: the perturbed split.
    on_dialogue: called with the number of dialogues compared.

  Returns:
    The manifest of the perturbed split, and the numbers of "dialogues", of "values" of entity slots
    in states, and of those that are "unsaid".

  Raises:
    SgdxError: for a different original, and for the first dialogue that violates an invariant.
  """
  manifest, changes = _manifest_of(perturbed, original, split), read_changes(perturbed, split)
  is_cut, schema = manifest.scores_last_turns, original.schema(split)
  contract, slots = Contract(schema, is_cut), manifest.slots or entity_slots(schema)
  counts: collections.Counter = collections.Counter()
  if perturbed.dialogue_files(split) != original.dialogue_files(split):
    raise _broken(f"{perturbed.origin}: the files of {split} differ", "those of the original")
  files = zip(Split(perturbed, split).files(), Split(original, split).files(), strict=True)
  for (name, _, dialogues), (_, _, originals) in files:
    by_id = {data["dialogue_id"]: data for data in originals}
    for data in dialogues:
      location = f"{name}, dialogue {data['dialogue_id']}"
      lines = changes.pop(data["dialogue_id"], [])
      try:
        # CoCo's dialogues end with the turn that it changed, and one original may have several.
        if is_cut:
          original_data = by_id[lines[0]["of"]]
          turns = original_data["turns"][: lines[0]["turn"] + 1]
          original_data = {**original_data, "turns": turns}
        else:
          original_data = by_id.pop(data["dialogue_id"])
        problem = _unrecorded(data, original_data, lines, manifest)
      except (KeyError, TypeError, AttributeError, IndexError, ValueError) as e:
        problem = f"it cannot be compared: {malformed(e)}"
      if problem:
        raise _broken(f"{location}: {problem}", "the original, but for what changes.jsonl records")
      contract.check(data, original_data, name)
      values, unsaid = gold_factuality(data, slots)
      counts.update(dialogues=1, values=values, unsaid=len(unsaid))
      on_dialogue(counts["dialogues"])
    if by_id and not is_cut:
      raise _broken(f"{name}: dialogue {min(by_id)} is missing", "the dialogues of the original")
  if changes:
    raise _broken(
      f"{perturbed.origin}: changes to dialogue {min(changes)}, which does not exist",
      "a dialogue for each change",
    )
  return manifest, counts


def _unrecorded(
  data: Mapping[str, Any], original: Mapping[str, Any], lines: Sequence[Line], manifest: Manifest
) -> str:
  """Returns what changed although changes.jsonl does not record it; "" for nothing."""
  if not lines and data != original:
    return "it differs"
  if manifest.slots:
    expected = copy.deepcopy(dict(original))
    for line in lines:  # one, if any
      vs.exchange(expected, exchanged_values(line))
      apply_mapping(expected, manifest.slots, line["strings"])
    return "" if data == expected else "it differs in more than the replaced values"
  recorded, is_cut = {line["turn"] for line in lines}, manifest.scores_last_turns
  pairs = zip(data["turns"], original["turns"], strict=True)
  for number, (turn, original_turn) in enumerate(pairs):
    if number not in recorded:
      is_same = turn == original_turn
    elif is_cut:
      is_same = _other_goals(turn, lines[0]) == _other_goals(original_turn, lines[0])
    else:
      is_same = _annotation(turn) == _annotation(original_turn)
    if not is_same:
      return f"turn {number} differs"
  return ""


def _annotation(turn: Mapping[str, Any]) -> list[Any]:
  """Returns all of a turn but its words: acts, states, calls, texts of spans."""
  text, annotation = turn["utterance"], []
  for frame in turn["frames"]:
    spans = [(s["slot"], text[s["start"] : s["exclusive_end"]]) for s in frame.get("slots") or ()]
    annotation.append(({key: value for key, value in frame.items() if key != "slots"}, spans))
  return annotation


def _other_goals(turn: Mapping[str, Any], line: Line) -> list[Any]:
  """Returns the parts of a user turn that a counterfactual goal leaves unchanged."""
  edit, parts_of_frames = GoalEdit.of(line), []
  for frame in turn["frames"]:
    slots = {*edit.dropped, *edit.changed, *edit.added} if frame["service"] == edit.service else ()
    acts = [a for a in frame["actions"] if a["act"] != "INFORM" or a["slot"] not in slots]
    state = frame["state"]
    values = {slot: x for slot, x in state["slot_values"].items() if slot not in slots}
    intent, requested = state["active_intent"], state["requested_slots"]
    parts_of_frames.append((frame["service"], acts, values, intent, requested))
  return parts_of_frames


def _manifest_of(perturbed: Corpus, original: Corpus, split: str) -> Manifest:
  """Returns the manifest of a perturbed split. Raises SgdxError if the original is another one."""
  manifest = perturbed.manifest(split)
  if manifest is None:
    raise SgdxError(
      f"{perturbed.origin}: {split} was not perturbed",
      expected="a folder that `sgdx checkdst perturb` wrote",
      fix="pass the perturbed corpus as --corpus",
    )
  if manifest.of.get("checksum") != original.checksum():
    raise SgdxError(
      f"{original.origin} has checksum {original.checksum()}",
      expected=f"the corpus that was perturbed, checksum {manifest.of.get('checksum')}",
      fix="pass that corpus to --against, or perturb this one again",
    )
  return manifest


def _broken(problem: str, expected: str) -> SgdxError:
  return SgdxError(problem, expected=expected, fix="perturb the original again with this version")
