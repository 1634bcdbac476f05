"""The sets of a check: the original and perturbed test sets, and what was changed in each."""

import dataclasses
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.metrics import GoldFrame
from sgdx_t5x.papers.checkdst.changes import Changes, recorded_changes
from sgdx_t5x.papers.checkdst.entities import Slots
from sgdx_t5x.papers.checkdst.manifest import Manifest, read_manifests
from sgdx_t5x.progress import OnProgress
from sgdx_t5x.scoring.gold import gold_frames

OF_WORDS = ("pi", "sdi")  # a frame counts as changed if its utterance changed
OF_VALUES = ("ned", "vs")  # a frame counts as changed if its gold state changed
OF_GOALS = ("coco", "coco_ori")  # a frame counts as changed if its goal was edited
KINDS = ("ned", "pi", "sdi", "vs")

_Values = tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class TestSet:
  """A set of a check.

  Attributes:
    name: "original", or the user's name of a perturbed set.
    corpus: its dialogues.
    kinds: kinds of perturbation in the order of the steps; () for the original.
    manifests: the steps in perturbation.json; () if there is none.
  """

  name: str
  corpus: Corpus
  kinds: tuple[str, ...] = ()
  manifests: tuple[Manifest, ...] = ()

  @property
  def of_goals(self) -> bool:
    """Whether its dialogues end with a counterfactual turn, the only one that is scored."""
    return is_of_goals(self.kinds)

  def original_dialogue(self, dialogue_id: str) -> str:
    """Returns the id of the original of one of the set's dialogues."""
    return dialogue_id.rpartition(".t")[0] if self.of_goals else dialogue_id

  @property
  def replaces_names(self) -> bool:
    """Whether values of the gold states were replaced."""
    return any(kind in OF_VALUES for kind in self.kinds)

  def replaced(self, entities: Slots) -> Slots:
    """Returns the slots whose values were replaced: the manifests', or else `entities`."""
    if not self.replaces_names:
      return {}
    named = [manifest.slots for manifest in self.manifests if manifest.slots]
    services = {service for slots in named for service in slots}
    if not named:
      return entities
    return {s: frozenset().union(*(x.get(s, ()) for x in named)) for s in services}


@dataclasses.dataclass(frozen=True)
class Gold:
  """The gold annotation and utterances of a set's dialogues.

  Attributes:
    frames: gold frames, with origins.
    utterances: dialogue id -> utterances of user and system, by turn.
    values: dialogue id -> its values of some slots, in a fixed order: of each slot of a state and
      of each value of an act, its forms. Empty unless requested.
  """

  frames: Sequence[GoldFrame]
  utterances: Mapping[str, tuple[str, ...]]
  values: Mapping[str, _Values]


@dataclasses.dataclass(frozen=True)
class Original:
  """What is kept of the original dialogues for comparison with perturbed sets.

  Attributes:
    frames: frame id -> (CRC-32 of the utterance, gold state).
    values: see `Gold`.
  """

  frames: Mapping[str, tuple[int, Mapping[str, tuple[str, ...]]]]
  values: Mapping[str, _Values]

  @classmethod
  def of(cls, gold: Gold) -> "Original":
    """Keeps what is needed, without utterances and origins."""
    frames = {x.frame_id: (x.utterance_crc, x.slot_values) for x in gold.frames}
    return cls(frames, gold.values)


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
    if name == ORIGINAL or name in corpus.variants or "+" in name:
      raise UsageError(
        f"a perturbed set named {name!r}",
        expected="an unused name without a +",
        available="names in use: " + ", ".join(corpus.variants),
        fix="choose another name, for example ned=DIR",
      )
    found = place if isinstance(place, Corpus) else open_corpus(place)
    manifests = read_manifests(found, split)
    found.dialogue_files(split)  # refuses a split that it does not have
    kinds = tuple(manifest.kind for manifest in manifests)
    if not kinds and name not in KINDS:
      raise SgdxError(
        f"{found.origin}: no {split}/perturbation.json, and the set is named {name!r}",
        expected="a corpus written by `sgdx checkdst perturb`, or a set named after its kind",
        available=", ".join(KINDS),
        fix=f"pass it as one of {', '.join(f'{kind}={found.origin}' for kind in KINDS)}",
      )
    _check_original(name, found, manifests, corpus)
    sets[name] = TestSet(name, found, kinds or (name,), manifests)
  return sets


def _check_original(
  name: str, found: Corpus, manifests: Sequence[Manifest], corpus: Corpus
) -> None:
  if not manifests:
    return
  of = manifests[0].of
  if of.get("checksum") != corpus.checksum():
    raise SgdxError(
      f"{name}: {found.origin} was made from {of.get('corpus')}:{of.get('checksum')}",
      expected=f"a perturbation of {corpus.name}:{corpus.checksum()} ({corpus.origin})",
      fix="pass the corpus that was perturbed as --corpus, or perturb this one",
    )


def read_gold(test_set: TestSet, split: str, slots: Slots | None, on_progress: OnProgress) -> Gold:
  """Reads the dialogues of a set.

  Args:
    test_set: the set.
    split: the split of its corpus.
    slots: slots whose values to list in `Gold.values`; None for no values.
    on_progress: see `score.score_predictions`.
  """
  utterances: dict[str, tuple[str, ...]] = {}
  values: dict[str, _Values] = {}

  def look(dialogue: Dialogue) -> None:
    utterances[dialogue.dialogue_id] = tuple(turn.utterance for turn in dialogue.turns)
    if slots is not None:
      values[dialogue.dialogue_id] = tuple(_values(dialogue, slots))

  frames = gold_frames(test_set.corpus, split, test_set.name, True, on_progress, look)
  return Gold(frames, utterances, values)


def changes_of(test_set: TestSet, split: str, original: Original, gold: Gold) -> Changes:
  """Returns what was changed, from changes.jsonl or else from how the dialogues differ."""
  if test_set.manifests:
    return recorded_changes(test_set.corpus, split, test_set.manifests)
  names: dict[str, dict[str, str]] = {}
  for dialogue_id, new in gold.values.items() if test_set.replaces_names else ():
    old = original.values.get(dialogue_id, ())
    if len(old) == len(new):
      names[dialogue_id] = _replacements(zip(old, new, strict=True))
  return Changes(names)


def _replacements(pairs: Iterable[tuple[tuple[str, ...], tuple[str, ...]]]) -> dict[str, str]:
  """Returns old string -> new string, from the forms of values before and after."""
  found: dict[str, str] = {}
  # Several forms may stand in another order, so what acts and single forms tell goes first.
  for before, after in sorted(pairs, key=lambda pair: len(pair[0])):
    known = {found[form] for form in before if form in found}
    old = [form for form in before if form not in found and form not in after]
    new = [form for form in after if form not in known and form not in before]
    if len(old) == len(new):
      found.update(zip(old, new, strict=True))
  return found


def is_of_goals(kinds: Sequence[str]) -> bool:
  """Whether the last of a set's perturbations edited user goals."""
  return bool(kinds) and kinds[-1] in OF_GOALS


def is_changed(
  kinds: Sequence[str], before: tuple[int, Mapping[str, tuple[str, ...]]], after: GoldFrame
) -> bool:
  """Whether perturbations of these kinds changed a frame's utterance or gold state.

  Args:
    kinds: kinds of perturbation of the set.
    before: CRC-32 of the original utterance, and the original gold state.
    after: the frame in the set.
  """
  said = before[0] != after.utterance_crc
  state = before[1] != after.slot_values
  return any(
    (said and kind not in OF_VALUES) or (state and kind not in OF_WORDS)
    for kind in kinds
    if kind not in OF_GOALS
  )


def _values(dialogue: Dialogue, slots: Slots) -> Iterator[tuple[str, ...]]:
  """Yields the forms of all values of some slots in a dialogue, in a fixed order."""
  text = "\n".join(turn.utterance for turn in dialogue.turns)

  def first_said(form: str) -> int:
    return text.find(form) % (len(text) + 1)  # those never said come last

  for turn in dialogue.turns:
    for frame in turn.frames:
      kept = slots.get(frame.service, frozenset())
      for action in frame.actions or ():
        if action.get("slot") in kept:
          said = (*action.get("values", ()), *action.get("canonical_values", ()))
          yield from ((value,) for value in said)
      for slot, forms in sorted(frame.state.slot_values.items()) if frame.state else ():
        if slot in kept:  # replacing sorted them anew
          yield tuple(sorted(forms, key=first_said) if len(forms) > 1 else forms)
