"""Which tools a request shows: those of the frame's service alone, or others too.

  gold           the tools of the frame's service
  all            every tool of the split
  distractors:N  the tools of the frame's service and N of other services, drawn by seed and frame
  retrieved:K    the K tools whose words are nearest to what the user has said, by BM25

Distractors and their order are the same in every variant, so that only words differ.
"""

import dataclasses
import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.errors import UsageError, require
from sgdx_t5x.prompts.protocol import History, ServicePair
from sgdx_t5x.prompts.values import checked_fields
from sgdx_t5x.tools.definitions import Tool, all_tools

GOLD, ALL = "gold", "all"
_COUNTED = re.compile(r"(retrieved|distractors):([1-9][0-9]{0,3})")
_NEXT_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
Deliver = Callable[[ExampleId, str, History], Sequence[Tool]]


@checked_fields
@dataclasses.dataclass(frozen=True)
class ToolStyle:
  """What requests show besides the conversation.

  Attributes:
    delivery: see the module.
    seed: of distractors and of examples.
    shots: number of train examples that every request shows first, see `examples`.
  """

  delivery: str = dataclasses.field(default=GOLD, metadata={"provenance": True})
  seed: int = dataclasses.field(default=0, metadata={"provenance": True})
  shots: int = dataclasses.field(default=0, metadata={"provenance": True})

  def __post_init__(self):
    if self.delivery not in (GOLD, ALL) and not _COUNTED.fullmatch(self.delivery):
      raise UsageError(
        f"delivery {self.delivery!r}",
        expected="a choice of the tools that a request shows",
        available="gold, all, retrieved:K, distractors:N; K and N from 1 to 9999",
        fix="use --delivery distractors:10, for example",
      )

  def __str__(self) -> str:
    shots = f",shots={self.shots}" if self.shots else ""
    return self.delivery + shots + (f",seed={self.seed}" if self.seed else "")

  @property
  def kind(self) -> str:
    """The delivery without its number."""
    return self.delivery.partition(":")[0]

  @property
  def number(self) -> int:
    """How many tools are retrieved or added; 0 for gold and all."""
    return int(self.delivery.partition(":")[2] or 0)


def deliverer(pairs: Mapping[str, ServicePair], style: ToolStyle) -> Deliver:
  """Returns a function (frame, service, history) -> the tools that its request shows.

  Args: pairs, all services of the split in one variant, by original names. Raises SgdxError: two
  tools with the same name; for retrieved:K, a package that is not installed.
  """
  tools = tuple(all_tools(pairs).values())
  by_service: dict[str, list[Tool]] = {name: [] for name in pairs}
  for tool in tools:
    by_service[tool.service].append(tool)
  if style.kind == "retrieved":
    return _retriever(tools, style.number)
  if style.kind == "distractors":
    # Keys are drawn, not tools: they are the same in every variant.
    by_key = {(tool.service, tool.intent): tool for tool in tools}
    keys = tuple(by_key)

    def drawn(frame: ExampleId, service: str, history: History) -> Sequence[Tool]:
      return [by_key[key] for key in _draw(keys, frame.frame_id, service, style)]

    return drawn
  if style.kind == ALL:
    return lambda frame, service, history: tools
  return lambda frame, service, history: by_service[service]


@functools.lru_cache(maxsize=64)  # the variants of a frame get the same
def _draw(
  keys: tuple[tuple[str, str], ...], frame_id: str, service: str, style: ToolStyle
) -> list[tuple[str, str]]:
  """Returns (service, intent) of the service's tools and of distractors, in the order shown."""

  def shuffled(ordered: Iterable[tuple[str, str]], draw: str) -> list[tuple[str, str]]:
    return sorted(ordered, key=lambda key: (_rank(f"{draw} {style.seed} {frame_id} {key}"), key))

  service_keys = [key for key in keys if key[0] == service]
  distractors = shuffled((key for key in keys if key[0] != service), "draw")[: style.number]
  # A new draw: else the frame's tools come last.
  return shuffled((*service_keys, *distractors), "order")


def _rank(text: str) -> bytes:
  return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


# --- retrieval -----------------------------------------------------------------------------


def _retriever(tools: Sequence[Tool], number: int) -> Deliver:
  """Returns the deliverer of the tools that BM25 ranks first for all that the user has said."""
  bm25s = require("bm25s", extra="retrieve", why="--delivery retrieved:K")
  index = bm25s.BM25()
  index.index([words(document(tool)) for tool in tools], show_progress=False)

  def retrieved(frame: ExampleId, service: str, history: History) -> Sequence[Tool]:
    query: list[str] = []
    for speaker, text in history:
      query += words(text) if speaker == "USER" else ()
    scores: Any = index.get_scores(query) if query else [0.0] * len(tools)
    order = sorted(range(len(tools)), key=lambda i: (-scores[i], i))
    return [tools[i] for i in order[:number]]

  return retrieved


@functools.lru_cache(maxsize=50_000)
def words(text: str) -> tuple[str, ...]:
  """Returns the words of a text in lower case; FindBus and find_bus are two words each."""
  return tuple(re.findall(r"\w+", _NEXT_WORD.sub(" ", text).lower()))


def document(tool: Tool) -> str:
  """Returns all words of a tool: names and descriptions, of its arguments too."""
  described = (f"{name} {x['description']}" for name, x in tool.properties.items())
  return " ".join((tool.name, tool.description, *described))
