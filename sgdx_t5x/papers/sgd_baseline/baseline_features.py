"""The SGD paper's zero-shot baseline: its examples, gold answers and ceiling.

Rastogi et al. 2020 (arXiv:1909.05855, section 5.1) and the code released with it. The baseline
reads the last two utterances and predicts the *state update*: for each slot none, dontcare or
active, and for an active one a possible value, or a span of the utterances. Updates accumulate over
the dialogue. Values in neither utterance cannot be found, and nothing is ever removed, so gold
answers reach a JGA of 64.79 on SGD's dev split.

Slots, values and intents are those of `spandst/README.md`, but each is a row of the table of schema
embeddings instead of an input position; targets and answers are the same.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sgdx_t5x.corpus.schema import DONTCARE, Intent, Schema, Service, Slot
from sgdx_t5x.records.turns import FrameContext, Gold
from sgdx_t5x.spandst import answers, span_features, span_targets
from sgdx_t5x.spandst.answers import DONTCARE as ANY
from sgdx_t5x.spandst.answers import SPAN, VALUE
from sgdx_t5x.spandst.choices import Choices
from sgdx_t5x.spandst.span_features import Example
from sgdx_t5x.spandst.spandst import Choice
from sgdx_t5x.spandst.vocab_file import WordPieceFile
from sgdx_t5x.variants.variant_schemas import VariantSchemas

NOTHING_OFFERED = Choices({}, ())  # the baseline reads nothing but the two utterances
UNFOUND = Choice(SPAN)  # an active slot whose value is in neither utterance, or not a possible one


@dataclasses.dataclass(frozen=True)
class BaselineStyle:
  """Switches of the input.

  Attributes:
    names: show the names of intents and slots with their descriptions, as the code does; the
      paper's Table 3 has descriptions only.
  """

  names: bool = True


def state_update(gold: Gold, previous: Mapping[int, Sequence[str]]) -> dict[int, tuple[str, ...]]:
  """Returns position -> values of slots that were empty or whose first old value is not gold."""
  update: dict[int, tuple[str, ...]] = {}
  for slot, values in gold.values.items():
    if slot not in previous or previous[slot][0] not in values:
      update[slot] = values
  return update


def right_answers(
  service: Service,
  context: FrameContext,
  gold: Gold,
  previous: Mapping[int, Sequence[str]],
) -> dict[int, Choice]:
  """Returns the gold answers for the slots of a frame's state update.

  Args:
    service: the frame's, in the original schema.
    context: of the frame.
    gold: its labels.
    previous: values of the service after its last frame.

  Returns:
    Position of each updated slot that an intent takes -> its answer, `UNFOUND` if none gives its
    value. All other slots keep their values.
  """
  tracked, update = set(service.tracked_slots), state_update(gold, previous)
  return {
    slot: _right(service.slots[slot], slot, context, gold, values)
    for slot, values in update.items()
    if slot in tracked
  }


def _right(
  slot: Slot, position: int, context: FrameContext, gold: Gold, values: Sequence[str]
) -> Choice:
  if values[0] == DONTCARE:
    return Choice(ANY)
  if slot.is_categorical:
    if values[0] not in slot.possible_values:
      return UNFOUND
    return Choice(VALUE, slot.possible_values.index(values[0]))
  for by_user in (True, False):  # the user's words first
    text = context.user if by_user else context.system
    spans: dict[str, Choice] = {}
    for span in gold.spans:
      if span.slot == position and span.by_user == by_user:
        choice = Choice(SPAN, int(by_user), span.start, span.end)
        spans[text[span.start : span.end]] = choice
    for value in values:
      if value in spans:
        return spans[value]
  return UNFOUND


FEATURES = (
  "inputs", "segments", "slots", "slot_context", "values", "value_slots", "intents", "targets",
)  # fmt: skip
LENGTHS = {
  "inputs": 80, "segments": 80, "slots": 24, "slot_context": 24, "values": 64, "value_slots": 64,
  "intents": 8, "targets": 196,
}  # fmt: skip
CORRUPTED = ("corrupt_1", "corrupt_2", "corrupt_3")  # those of the mixtures `..._corrupt`
Pair = tuple[str, str]
Row = Callable[[Pair], int]  # texts of an element -> row: `schema_table.SchemaTable.row`


def intent_texts(service: Service, intent: Intent, style: BaselineStyle) -> Pair:
  """Returns the two texts whose embedding stands for an intent."""
  return service.description, _named(intent, style)


def slot_texts(service: Service, slot: Slot, style: BaselineStyle) -> Pair:
  """Returns the two texts whose embedding stands for a slot."""
  return service.description, _named(slot, style)


def value_texts(slot: Slot, value: str, style: BaselineStyle) -> Pair:
  """Returns the two texts whose embedding stands for a possible value."""
  return _named(slot, style), value


def _named(element: Intent | Slot, style: BaselineStyle) -> str:
  return f"{element.name} {element.description}" if style.names else element.description


def element_texts(schema: Schema, style: BaselineStyle) -> Iterator[Pair]:
  """Yields the texts of all elements of a schema that a frame's example can name."""
  for service in schema:
    yield from (intent_texts(service, intent, style) for intent in service.intents)
    for slot in service.slots:
      yield slot_texts(service, slot, style)
      yield from (value_texts(slot, value, style) for value in slot.possible_values)


def table_texts(
  schemas: VariantSchemas,
  splits: Iterable[str],
  variants: Sequence[str] = (),
  style: BaselineStyle | None = None,
) -> tuple[Pair, ...]:
  """Returns the texts of all elements that the tasks on a data set use, without duplicates.

  Args:
    schemas: of the data set.
    splits: of the data set.
    variants: as `VariantSchemas` names them, skipped in splits that lack them; defaults to all that
      the registered tasks show.
    style: of the input.
  """
  texts: dict[Pair, None] = {}
  for split in splits:
    for variant in variants or (*schemas.names(split), *CORRUPTED):
      if schemas.has(split, variant):
        texts |= dict.fromkeys(element_texts(schemas.get(split, variant), style or BaselineStyle()))
  return tuple(texts)


@dataclasses.dataclass(frozen=True)
class _Rows:
  """A service as table rows: its slots, the values of tracked ones, its intents."""

  slots: list[int]
  context: list[int]
  values: list[tuple[int, int, int]]  # number of the slot, position of the value, row
  intents: list[int]


class BaselineReader:
  """Makes examples from the frames of a split in one variant; caches repeated parts."""

  def __init__(
    self,
    variant: Schema,
    vocabulary: WordPieceFile,
    row: Row,
    style: BaselineStyle | None = None,
    lengths: Mapping[str, int] | None = None,
  ):
    """Args: variant, the schema shown; vocabulary; row; style; lengths of features."""
    self._services, self._vocabulary, self._row = variant.services, vocabulary, row
    self._style = style or BaselineStyle()
    self._lengths = {**LENGTHS, **(lengths or {})}
    self._cut = functools.lru_cache(maxsize=20_000)(vocabulary.cut)
    self._rows = functools.lru_cache(maxsize=None)(self._service_rows)

  def _service_rows(self, position: int) -> _Rows:
    service, style = self._services[position], self._style
    values = [
      slot.possible_values if i in service.tracked_slots else ()
      for i, slot in enumerate(service.slots)
    ]
    span_features.check_sizes(service.name, self._lengths, service.slots, values, service.intents)
    slot_rows = [self._row(slot_texts(service, slot, style)) for slot in service.slots]
    value_rows: list[tuple[int, int, int]] = []
    for number, slot in enumerate(service.slots, start=1):
      for i, value in enumerate(values[number - 1]):
        value_rows.append((number, i, self._row(value_texts(slot, value, style))))
    context = [0] * len(service.slots)
    for i in service.tracked_slots:
      is_open = 0 if service.slots[i].is_categorical else answers.SPAN_OPEN
      context[i] = answers.FILLABLE | is_open
    intent_rows = [self._row(intent_texts(service, intent, style)) for intent in service.intents]
    return _Rows(slot_rows, context, value_rows, intent_rows)

  def check(self) -> None:
    """Checks all services before any frame.

    Raises:
      SgdxError: a service has more slots, values or intents than the features can hold, or the
        table lacks one of them.
    """
    for position in range(len(self._services)):
      self._rows(position)

  def example(self, context: FrameContext) -> Example:
    """Returns the example of a frame, without targets. Raises SgdxError: see `check`."""
    rows, room = self._rows(context.service), self._lengths["inputs"] - 3
    cut = [self._cut(text) for text in (context.system, context.user)]
    slices = _shown(len(cut[0].ids), len(cut[1].ids), room)
    utterances = list(zip(cut, slices, strict=True))
    system, user = (pieces.ids[part] for pieces, part in utterances)
    cls, sep = self._vocabulary.bos_id, self._vocabulary.eos_id
    segments = [answers.SEPARATOR, *[answers.SYSTEM_UTTERANCE] * len(system), answers.SEPARATOR]
    segments += [*[answers.USER_UTTERANCE] * len(user), answers.SEPARATOR]
    features = {
      "inputs": [cls, *system, sep, *user, sep],
      "segments": segments,
      "slots": rows.slots,
      "slot_context": rows.context,
      "values": [row for _, _, row in rows.values],
      "value_slots": [number for number, _, _ in rows.values],
      "intents": rows.intents,
    }
    places = [(pieces.starts[part], pieces.ends[part]) for pieces, part in utterances]
    return Example(
      features,
      NOTHING_OFFERED,
      range(len(rows.slots)),
      [(number, value) for number, value, _ in rows.values],
      range(len(rows.intents)),
      (*places[0], 1),
      (*places[1], len(system) + 2),
    )


def _shown(system: int, user: int, room: int) -> tuple[slice, slice]:
  """Returns the slices of utterances of `system` and `user` pieces that fit into `room`.

  Beginnings are truncated, the system's first, which keeps the newest words.
  """
  over = max(system + user - room, 0)
  from_system = min(system, over)
  return slice(from_system, None), slice(over - from_system, None)


def targets(
  example: Example,
  gold_answers: Mapping[int, Choice],
  gold: Gold,
  limit: int = LENGTHS["targets"],
) -> list[int]:
  """Returns the rows of `targets`, flattened, as `span_targets.targets` does.

  An active slot whose value is not found, or cut off, has the span (0, 0): [CLS].

  Args:
    example: of the frame.
    gold_answers: from `baseline.right_answers`.
    gold: labels of the frame.
    limit: maximum length.
  """
  alternatives = {slot: [answer] for slot, answer in gold_answers.items()}
  numbers = span_targets.targets(example, alternatives, gold, limit)
  answered = {slot for slot, kind, *_ in answers.target_rows(numbers) if kind <= answers.MEMORY}
  for number, slot in enumerate(example.slots, start=1):
    if slot in gold_answers and number not in answered:
      numbers += (number, answers.SPAN, 0, 0)
  return numbers[:limit]
