"""The protocol of prompt formats: the only interface that predictions, tasks and commands use.

A format defines how a frame becomes prompts, what their targets are, and how an answer is parsed
into a state. It is pure Python; only `examples` may import TensorFlow, when it is called.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from sgdx_t5x.corpus.dialogue import State, frame_id
from sgdx_t5x.corpus.example_id import ExampleId, Unit
from sgdx_t5x.corpus.schema import Schema, Service

if TYPE_CHECKING:
  import seqio
  import tensorflow as tf

  from sgdx_t5x.metrics.predicted_frame import PredictedFrame

History = tuple[tuple[str, str], ...]  # (speaker, utterance) from the first turn to the user's last

_NO_KEYS: Mapping[str, Any] = {}


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class ServicePair:
  """One service in two schemas, whose slots and intents align by position.

  Compared by identity, so that a format can cache what it makes of a pair (`functools.lru_cache`).

  Attributes:
    original: in the original schema, whose names states, ids and predictions use.
    variant: in the schema of a variant, which prompts show.
  """

  original: Service
  variant: Service


@functools.lru_cache(maxsize=256)
def service_pairs(original: Schema, variant: Schema) -> Mapping[str, ServicePair]:
  """Returns the services of two aligned schemas, by their original names."""
  return {a.name: ServicePair(a, b) for a, b in zip(original, variant, strict=True)}


@functools.lru_cache(maxsize=64)
def turn_writer(
  write: Callable[[str, str, Any], str], style: Any
) -> Callable[[History], tuple[str, ...]]:
  """Returns a function from a history to its turns as a format writes them, with a cache.

  A dialogue's next frame repeats its turns. Args: write, (speaker, utterance, style) -> the turn.
  """

  @functools.lru_cache(maxsize=100_000)
  def written_turn(speaker: str, text: str) -> str:
    return write(speaker, text, style)

  # The variants of a frame share a history, and ask one after the other.
  @functools.lru_cache(maxsize=64)
  def written(history: History) -> tuple[str, ...]:
    return tuple(written_turn(speaker, text) for speaker, text in history)

  return written


class Prompt(NamedTuple):
  """The input of one example; its parts are joined by spaces.

  The parts are separate because the oldest turns are cut from an input that is too long, and
  because each is tokenised once. None begins or ends with white space.

  Attributes:
    turns: the history as the format writes it, from the oldest turn.
    before: what precedes the history, in parts that recur in other prompts.
    after: what follows it.
    row: further keys of the row that `sgdx prompts` writes, for instance possible answers.
  """

  turns: tuple[str, ...]
  before: tuple[str, ...] = ()
  after: str = ""
  row: Mapping[str, Any] = _NO_KEYS

  @property
  def text(self) -> str:
    """The whole input."""
    texts = self.before + self.turns
    return " ".join((*texts, self.after) if self.after else texts)


@dataclasses.dataclass(frozen=True, slots=True)
class Provenance:
  """What a score records of the files that its prompts were made from.

  Attributes:
    fields: signature fields.
    notes: lines below the score's tables.
  """

  fields: Mapping[str, str] = dataclasses.field(default_factory=dict)
  notes: tuple[str, ...] = ()


class Schemas(Protocol):
  """The schemas of all variants, which `variant_schemas.VariantSchemas` has."""

  def get(self, split: str, variant: str = ...) -> Schema:
    """Returns a variant's schema for a split; the original if no variant is named."""


class PromptFormat(Protocol):
  """A prompt format: a frozen dataclass whose only field is `style`.

  Attributes:
    name: prefix of its tasks' names ("t5dst_sgd") and key in `prompts.FORMATS`.
    unit: what one example asks for: "slot" (one slot of a frame) or "frame" (its whole state).
    answer: description of an answer, to complete the sentence "prediction is ...".
    style: the format's switches: a frozen dataclass whose fields are bool, int, float or str, each
      with a default. Scores with another style have it in their signature.
  """

  name: ClassVar[str]
  unit: ClassVar[Unit]
  answer: ClassVar[str]

  @property
  def style(self) -> Any:
    """See the class."""

  def asked(self, service: Service) -> Sequence[str | None]:
    """Returns what the examples of a frame ask for, one entry per example, in their order.

    Args:
      service: the frame's service in the original schema.

    Returns:
      Names of slots if the unit is "slot"; (None,) if it is "frame".
    """

  def prompts(self, frame: ExampleId, service: ServicePair, history: History) -> Sequence[Prompt]:
    """Returns the inputs of a frame's examples, one per entry of `asked`.

    Args:
      frame: id of the frame in the variant, without a slot.
      service: the frame's service.
      history: the dialogue so far.
    """

  def targets(self, frame: ExampleId, service: ServicePair, state: State) -> Sequence[str]:
    """Returns the target texts, one per entry of `asked`.

    Args:
      frame, service: as for `prompts`; random choices must depend on the frame's id alone.
      state: the gold state, in original names.
    """

  def read(
    self, text: str, example: ExampleId, service: ServicePair
  ) -> "str | PredictedFrame | None":
    """Reads an answer. It never raises: text that makes no sense is a wrong answer.

    Args:
      text: what a model generated.
      example, service: id of the example that is answered, and its service.

    Returns:
      If the unit is "slot", the slot's value, or None where the slot is not in the state. If
      it is "frame", the frame that the answer describes, in original names: None for what the
      format does not ask for, such as intent or requested slots.
    """

  def examples(
    self,
    batches: "tf.data.Dataset",
    sequence_length: Mapping[str, int] | None,
    output_features: "Mapping[str, seqio.Feature]",
    *,
    schemas: Schemas,
    variants: Sequence[str],
  ) -> "tf.data.Dataset":
    """Turns batches of records into batches of examples; it may import TensorFlow.

    `text_examples.text_examples(self, ...)` works for any format with the methods above, and
    documents what an example holds.

    Args:
      batches: of `sgd` records of one split, as `tf.data.Dataset.ragged_batch` makes them.
      sequence_length: maximum lengths of inputs and targets with EOS; None truncates nothing.
      output_features: features whose vocabularies tokenise the texts.
      schemas: schemas of all variants.
      variants: names; every record gives examples for each.
    """


def prompts_without_history(
  prompt_format: PromptFormat, split: str, variant: str, pairs: Mapping[str, ServicePair]
) -> Iterator[Prompt]:
  """Yields the prompts of every service of a variant, with an empty history.

  Used to find, before the first real prompt, what a style cannot show or what is too long.
  """
  for name, pair in pairs.items():
    frame = ExampleId(variant, split, frame_id("0", 0, name))
    yield from prompt_format.prompts(frame, pair, ())
