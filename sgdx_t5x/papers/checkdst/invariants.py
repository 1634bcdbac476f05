"""Compares a perturbed split with its original: what a perturbation must not change."""

import dataclasses
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.annotation import AnnotationWarning, validate_annotation
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.errors import SgdxError, malformed
from sgdx_t5x.papers.checkdst.answerable import gold_factuality
from sgdx_t5x.papers.checkdst.changes import read_changes
from sgdx_t5x.papers.checkdst.entities import Slots, entity_slots, free_slots
from sgdx_t5x.papers.checkdst.manifest import SCORED_LAST, Manifest, read_manifests
from sgdx_t5x.papers.checkdst.mapping import SHORTEST_MENTION
from sgdx_t5x.papers.checkdst.split import Line, Split
from sgdx_t5x.papers.checkdst.texts import whole_words


@dataclasses.dataclass
class Comparison:
  """Result of a comparison in which all invariants hold; otherwise `compare` raises.

  Attributes:
    manifest: of the perturbed split.
    dialogues: number compared.
    files: number of files of dialogues.
    values: number of values of entity slots in states.
    unsaid: how many of them occur in no utterance, in the original and in the perturbed split.
    leaks: number of replaced strings that still occur in their dialogue.
    remarks: rule -> violations, the same in both.
  """

  manifest: Manifest
  dialogues: int = 0
  files: int = 0
  values: int = 0
  unsaid: tuple[int, int] = (0, 0)
  leaks: int = 0
  remarks: Mapping[str, int] = dataclasses.field(default_factory=dict)


def compare(
  perturbed: Corpus,
  original: Corpus,
  split: str,
  on_dialogue: Callable[[int], None] = lambda done: None,
) -> Comparison:
  """Checks that a perturbation did not touch what it must not.

  Args:
    perturbed: a corpus from `sgdx checkdst perturb`.
    original: the corpus that it was made from.
    split: the perturbed split.
    on_dialogue: called with the number of dialogues compared.

  Raises:
    SgdxError: for a different original, and for the first dialogue that violates an invariant.
  """
  manifest = check_original(perturbed, original, split)
  if manifest.scored == SCORED_LAST:
    return _compare_turns(manifest, perturbed, original, split, on_dialogue)
  found, changes = Comparison(manifest), read_changes(perturbed, split)
  schema = original.schema(split)
  slots = manifest.slots or entity_slots(schema)
  warnings: tuple[dict[str, AnnotationWarning], ...] = ({}, {})
  checks = [validate_annotation(schema, each) for each in warnings]
  pairs = itertools.zip_longest(Split(perturbed, split).files(), Split(original, split).files())
  for new, old in pairs:
    if new is None or old is None or new[0] != old[0] or len(new[2]) != len(old[2]):
      raise _differs(perturbed, (new or old)[0], "the files or their numbers of dialogues differ")
    for data, before in zip(new[2], old[2], strict=True):
      where = f"{new[0]}, dialogue {data.get('dialogue_id')}"
      for check, each in zip(checks, (before, data), strict=True):
        check(Dialogue.from_json(each, where), schema, where)
      lines = changes.pop(data["dialogue_id"], ())
      _compare_dialogue(found, data, before, lines, slots, where)
      on_dialogue(found.dialogues)
    found.files += 1
  _check_all_used(perturbed, changes)
  found.remarks = _same_remarks(perturbed, warnings)
  return found


def _compare_dialogue(
  found: Comparison,
  data: dict[str, Any],
  before: Mapping[str, Any],
  lines: Sequence[Line],
  slots: Slots,
  where: str,
) -> None:
  """Compares one dialogue."""
  values, unsaid_before = gold_factuality(before, slots)
  _, unsaid = gold_factuality(data, slots)
  if len(unsaid) > len(unsaid_before):
    known = {(u.turn, u.service, u.slot) for u in unsaid_before}
    new = (u for u in unsaid if (u.turn, u.service, u.slot) not in known)
    first = next(new, unsaid[0])  # a slot of several values may have had another unsaid one
    raise _broken(
      f"{where}, turn {first.turn}: slot {first.slot!r} of {first.service}: {first.value!r} "
      "does not occur in the dialogue so far",
      "in the perturbed text, every state value that occurs in the original's text",
    )
  for line in lines:
    found.leaks += _leaks(data, line.get("strings", {}))
  if not found.manifest.slots:  # a perturbation of utterances alone
    reworded = {line["turn"] for line in lines}
    for number, (turn, old) in enumerate(zip(data["turns"], before["turns"], strict=True)):
      if number not in reworded and turn["utterance"] != old["utterance"]:
        raise _broken(
          f"{where}, turn {number}: the utterance differs, and changes.jsonl does not say so",
          "the original utterance",
        )
      if _annotation(turn) != _annotation(old):
        raise _broken(
          f"{where}, turn {number}: acts, states, calls or span texts differ",
          "the annotation of the original",
        )
  if not lines and data != before:
    raise _broken(f"{where}: it differs, and changes.jsonl does not say how", "the original")
  found.dialogues += 1
  found.values += values
  found.unsaid = found.unsaid[0] + len(unsaid_before), found.unsaid[1] + len(unsaid)


def _compare_turns(
  manifest: Manifest,
  perturbed: Corpus,
  original: Corpus,
  split: str,
  on_dialogue: Callable[[int], None],
) -> Comparison:
  """Checks that counterfactuals differ from their dialogues only in the last turn and its goal."""
  found, changes = Comparison(manifest), read_changes(perturbed, split)
  schema = original.schema(split)
  warnings: dict[str, AnnotationWarning] = {}
  check, slots = validate_annotation(schema, warnings), free_slots(schema)
  pairs = itertools.zip_longest(Split(perturbed, split).files(), Split(original, split).files())
  for new, old in pairs:
    if new is None or old is None or new[0] != old[0]:
      raise _differs(perturbed, (new or old)[0], "files differ")
    dialogues = {data["dialogue_id"]: data for data in old[2]}
    for data in new[2]:
      where = f"{new[0]}, dialogue {data.get('dialogue_id')}"
      check(dataclasses.replace(Dialogue.from_json(data, where), last_only=True), schema, where)
      lines = changes.pop(data["dialogue_id"], ())
      try:
        _compare_last_turn(data, dialogues, lines, where)
      except (KeyError, TypeError, AttributeError, IndexError, ValueError) as e:
        raise _broken(
          f"{where}: its change cannot be compared: {malformed(e)}", "its line in changes.jsonl"
        ) from e
      values, unsaid = gold_factuality(data, slots)
      found.dialogues, found.values = found.dialogues + 1, found.values + values
      found.unsaid = found.unsaid[0], found.unsaid[1] + len(unsaid)
      on_dialogue(found.dialogues)
    found.files += 1
  _check_all_used(perturbed, changes)
  found.remarks = {rule: warning.count for rule, warning in warnings.items()}
  return found


def _compare_last_turn(
  data: Mapping[str, Any], dialogues: Mapping[str, Any], lines: Sequence[Line], where: str
) -> None:
  """Compares a counterfactual with the dialogue that it was made from."""
  if len(lines) != 1 or lines[0].get("of") not in dialogues:
    raise _broken(
      f"{where}: changes.jsonl does not link it to one original dialogue",
      "its line in changes.jsonl",
    )
  line = lines[0]
  turns, last = data["turns"][:-1], data["turns"][-1]
  before = dialogues[line["of"]]["turns"]
  if turns != before[: line["turn"]] or line["utterance"] != before[line["turn"]]["utterance"]:
    raise _broken(f"{where}: the turns before the last one differ", "those of the original")
  edited = {*line["dropped"], *line["changed"], *line["added"]}
  for frame, old in itertools.zip_longest(last["frames"], before[line["turn"]]["frames"]):
    own = edited if frame and frame["service"] == line["service"] else set()
    if not (frame and old) or _kept(frame, own) != _kept(old, own):
      raise _broken(f"{where}: the last turn differs in more than its goal", "the original's")


def _kept(frame: Mapping[str, Any], edited: Collection[str]) -> list[Any]:
  """The parts of a user frame that a counterfactual goal leaves unchanged."""
  acts = [a for a in frame["actions"] if a["act"] != "INFORM" or a["slot"] not in edited]
  state = frame["state"]
  values = {s: v for s, v in state["slot_values"].items() if s not in edited}
  return [frame["service"], acts, values, state["active_intent"], state["requested_slots"]]


def _annotation(turn: Mapping[str, Any]) -> list[Any]:
  text, found = turn["utterance"], []
  for frame in turn["frames"]:
    spans = [(s["slot"], text[s["start"] : s["exclusive_end"]]) for s in frame.get("slots") or ()]
    found.append(({key: value for key, value in frame.items() if key != "slots"}, spans))
  return found


def _leaks(data: Mapping[str, Any], strings: Mapping[str, str]) -> int:
  """Counts strings of SHORTEST_MENTION characters or more that still occur in a dialogue."""
  pattern = whole_words(text for text in strings if len(text) >= SHORTEST_MENTION)
  if pattern is None:
    return 0
  return len({match for turn in data["turns"] for match in pattern.findall(turn["utterance"])})


def check_original(perturbed: Corpus, original: Corpus, split: str) -> Manifest:
  """Returns the manifest of a perturbed split. Raises SgdxError if the original is another one."""
  manifests = read_manifests(perturbed, split)
  if not manifests:
    raise SgdxError(
      f"{perturbed.origin}: {split} was not perturbed",
      expected="a folder that `sgdx checkdst perturb` wrote",
      fix="omit --against, or pass the perturbed corpus as --corpus",
    )
  of = manifests[-1].of.get("checksum")
  if not isinstance(of, str):
    raise _broken(f"{perturbed.origin}: the manifest of {split} has no checksum", "the original's")
  if of != original.checksum():
    raise SgdxError(
      f"{original.origin} has checksum {original.checksum()}",
      expected=f"the corpus that was perturbed, checksum {of}",
      fix="pass that corpus to --against, or perturb this one again",
    )
  return manifests[-1]


def _same_remarks(
  perturbed: Corpus, warnings: Sequence[Mapping[str, AnnotationWarning]]
) -> dict[str, int]:
  before, after = ({rule: w.count for rule, w in found.items()} for found in warnings)
  if before != after:
    rule = next(rule for rule in (*before, *after) if before.get(rule) != after.get(rule))
    raise _broken(
      f"{perturbed.origin}: {after.get(rule, 0)} annotation warnings of rule {rule}",
      f"{before.get(rule, 0)}, as many as in the original",
    )
  return after


def _check_all_used(perturbed: Corpus, changes: Mapping[str, Any]) -> None:
  if changes:
    raise _broken(
      f"{perturbed.origin}: changes to dialogue {next(iter(changes))}, which does not exist",
      "a dialogue for each change",
    )


def _differs(perturbed: Corpus, name: str, what: str) -> SgdxError:
  return _broken(f"{perturbed.origin}: {name}: {what}", "the files of the original")


def _broken(found: str, expected: str) -> SgdxError:
  return SgdxError(found, expected=expected, fix="perturb the original again with this version")
