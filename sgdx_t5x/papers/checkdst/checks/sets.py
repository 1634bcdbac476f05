"""The sets of a check: the original and perturbed test sets, and what was changed in each."""

import dataclasses
import functools
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sgdx_t5x import annexes
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.manifest import Manifest
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.metrics import GoldFrame
from sgdx_t5x.papers.checkdst.changes import Changes, recorded_changes
from sgdx_t5x.papers.checkdst.entities import Slots
from sgdx_t5x.papers.checkdst.register import PERTURBATIONS
from sgdx_t5x.progress import OnProgress
from sgdx_t5x.scoring.gold import gold_frames
from sgdx_t5x.scoring.score import ALL

OF_WORDS = ("pi", "sdi")  # a frame counts as changed if its utterance changed
OF_VALUES = ("ned", "vs")  # a frame counts as changed if its gold state changed
CONTROLS = annexes.table("COUNTERFACTUALS")  # kind of counterfactuals -> kind of their control
OF_GOALS = (*CONTROLS, *CONTROLS.values())  # a frame counts as changed if its goal was edited

_Values = tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class TestSet:
  """A set of a check.

  Attributes:
    name: "original", or the user's name of a perturbed set.
    corpus: its dialogues.
    kind: of perturbation; "" for the original.
    manifest: its perturbation.json; None if there is none.
  """

  name: str
  corpus: Corpus
  kind: str = ""
  manifest: Manifest | None = None

  @property
  def of_goals(self) -> bool:
    """Whether its dialogues end with a counterfactual turn, the only one that is scored."""
    return self.kind in OF_GOALS

  def original_dialogue(self, dialogue_id: str) -> str:
    """Returns the id of the original of one of the set's dialogues."""
    return dialogue_id.rpartition(".t")[0] if self.of_goals else dialogue_id

  @property
  def replaces_names(self) -> bool:
    """Whether values of the gold states were replaced."""
    return self.kind in OF_VALUES

  def replaced(self, entities: Slots) -> Slots:
    """Returns the slots whose values were replaced: the manifest's, or else `entities`."""
    if not self.replaces_names:
      return {}
    return self.manifest.slots if self.manifest else entities


@dataclasses.dataclass(frozen=True)
class Gold:
  """The gold annotation and utterances of a set's dialogues.

  Attributes:
    frames: gold frames, with origins.
    utterances: dialogue id -> utterances of user and system, by turn.
    values: dialogue id -> its values of some slots, in a fixed order: of each slot of a state and
      of each value of an act, its forms.
  """

  frames: Sequence[GoldFrame]
  utterances: Mapping[str, tuple[str, ...]]
  values: Mapping[str, _Values]

  @functools.cached_property
  def by_id(self) -> dict[str, GoldFrame]:
    """Frame id -> frame."""
    return {frame.frame_id: frame for frame in self.frames}


def open_sets(
  corpus: Corpus, split: str, perturbed: Mapping[str, Corpus | str | pathlib.Path]
) -> dict[str, TestSet]:
  """Opens the perturbed sets. Returns name -> set, the original first.

  Args:
    corpus: the original corpus.
    split: the split that was perturbed.
    perturbed: name -> corpus or its path. A corpus without perturbation.json must be named after
      its kind of perturbation.

  Raises:
    SgdxError: no such corpus or split, a perturbation of another original, or an unknown kind.
  """
  sets = {ORIGINAL: TestSet(ORIGINAL, corpus)}
  for name, place in perturbed.items():
    names_in_use = dict.fromkeys((ORIGINAL, *corpus.variants, ALL))  # as labels of predictions
    if name in names_in_use or "+" in name:
      raise UsageError(
        f"a perturbed set named {name!r}",
        expected="an unused name without a +",
        available="names in use: " + ", ".join(names_in_use),
        fix="choose another name, for example ned=DIR",
      )
    set_corpus = place if isinstance(place, Corpus) else open_corpus(place)
    manifest = set_corpus.manifest(split)
    set_corpus.dialogue_files(split)  # refuses a split that it does not have
    if manifest is None and name not in PERTURBATIONS:
      raise SgdxError(
        f"{set_corpus.origin}: no {split}/perturbation.json, and the set is named {name!r}",
        expected="a corpus written by `sgdx checkdst perturb`, or a set named after its kind",
        available=", ".join(PERTURBATIONS),
        fix=f"pass it as KIND={set_corpus.origin}, with one of these kinds",
      )
    if manifest and manifest.of.get("checksum") != corpus.checksum():
      raise SgdxError(
        f"{name}: {set_corpus.origin} was made from {':'.join(manifest.of.values())}",
        expected=f"a perturbation of {corpus.name}:{corpus.checksum()} ({corpus.origin})",
        fix="pass the corpus that was perturbed as --corpus, or perturb this one",
      )
    sets[name] = TestSet(name, set_corpus, manifest.kind if manifest else name, manifest)
  return sets


def read_gold(test_set: TestSet, split: str, slots: Slots, on_progress: OnProgress) -> Gold:
  """Reads the dialogues of a set.

  Args:
    test_set: the set.
    split: the split of its corpus.
    slots: slots whose values to list in `Gold.values`.
    on_progress: see `score.score_predictions`.
  """
  utterances: dict[str, tuple[str, ...]] = {}
  values: dict[str, _Values] = {}

  def noted(dialogue: Dialogue) -> Dialogue:
    utterances[dialogue.dialogue_id] = tuple(turn.utterance for turn in dialogue.turns)
    values[dialogue.dialogue_id] = tuple(_values(dialogue, slots))
    return dialogue

  frames = gold_frames(test_set.corpus, split, test_set.name, True, on_progress, noted)
  return Gold(frames, utterances, values)


def changes_of(test_set: TestSet, split: str, original: Gold, gold: Gold) -> Changes:
  """Returns what was changed, from changes.jsonl or else from how the dialogues differ."""
  if test_set.manifest:
    return recorded_changes(test_set.corpus, split, gold.utterances if test_set.of_goals else ())
  names: dict[str, Mapping[str, str]] = {}
  for dialogue_id, new_values in gold.values.items() if test_set.replaces_names else ():
    old_values = original.values.get(dialogue_id, ())
    if len(old_values) == len(new_values):
      names[dialogue_id] = _replacements(zip(old_values, new_values, strict=True))
  return Changes(names, {}, {}, {})


def _replacements(pairs: Iterable[tuple[tuple[str, ...], tuple[str, ...]]]) -> dict[str, str]:
  """Returns old string -> new string, from the forms of values before and after."""
  replacements: dict[str, str] = {}
  # Several forms may stand in another order, so what acts and single forms tell goes first.
  for old_forms, new_forms in sorted(pairs, key=lambda pair: len(pair[0])):
    assigned = {replacements[form] for form in old_forms if form in replacements}
    replaced = [form for form in old_forms if form not in replacements and form not in new_forms]
    added = [form for form in new_forms if form not in assigned and form not in old_forms]
    if len(replaced) == len(added):
      replacements.update(zip(replaced, added, strict=True))
  return replacements


def _values(dialogue: Dialogue, slots: Slots) -> Iterator[tuple[str, ...]]:
  """Yields the forms of all values of some slots in a dialogue, in a fixed order."""
  text = "\n".join(turn.utterance for turn in dialogue.turns)

  def first_said(form: str) -> int:
    return text.find(form) % (len(text) + 1)  # those never said come last

  for turn in dialogue.turns:
    for frame in turn.frames:
      names = slots.get(frame.service, frozenset())
      for action in frame.actions or ():
        if action.get("slot") in names:
          values = (*action.get("values", ()), *action.get("canonical_values", ()))
          yield from ((value,) for value in values)
      for slot, forms in sorted(frame.state.slot_values.items()) if frame.state else ():
        if slot in names:  # replacing sorted them anew
          yield tuple(sorted(forms, key=first_said) if len(forms) > 1 else forms)
