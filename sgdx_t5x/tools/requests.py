"""Requests to a language model with tools: one per frame and variant, as a line of JSON.

The id of a request is that of the frame's example, and says which tools it shows, so that answers
carry all that their scores depend on: "v3/test/1_00000-002-Banks_2/*@retrieved:5,absent".
"""

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping, Sequence

from sgdx_t5x.corpus.dialogue import Dialogue, frame_id
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.tools.calls import ROLES, calls_text, state_calls
from sgdx_t5x.tools.definitions import Tool, openai_tool
from sgdx_t5x.tools.delivery import Deliver, ToolStyle, deliverer

SYSTEM = (
  "Keep track of what the user wants in this conversation. Do not answer the user: call functions. "
  "After the last message, call every function that the user has asked for so far, once each, with "
  "all arguments whose values the user has given or accepted, in the words of the conversation or "
  "as the function lists them. The function that the user wants now comes last. Write dontcare "
  "where the user has no preference. Leave out what has no value yet. If no function fits what the "
  "user wants, call none."
)
_ABSENT = "absent"
_CHARACTERS_PER_TOKEN = 4  # of English text, roughly; only used by `Size`


@dataclasses.dataclass(frozen=True)
class RequestForm:
  """How requests are written.

  Attributes:
    model: its name, in lines of OpenAI's batches; "" for our own row format.
    targets: whether to add the gold calls.
  """

  style: ToolStyle = dataclasses.field(default_factory=ToolStyle)
  model: str = ""
  targets: bool = False


@dataclasses.dataclass
class Size:
  """The number of requests, and the characters of messages and tools, and of the gold calls."""

  requests: int = 0
  input_characters: int = 0
  output_characters: int = 0

  @property
  def tokens(self) -> tuple[int, int]:
    """Tokens read and written, at four characters each: an estimate."""
    num_input, num_output = self.input_characters, self.output_characters
    return num_input // _CHARACTERS_PER_TOKEN, num_output // _CHARACTERS_PER_TOKEN


def request_id(frame: ExampleId, style: ToolStyle, absent: bool = False) -> str:
  """Returns the id of a request. Args: absent, whether no tool of the frame's service is shown."""
  marks = f"{style},{_ABSENT}" if absent else str(style)
  return str(frame) if marks == str(ToolStyle()) else f"{frame}@{marks}"


def parse_request_id(text: str, place: str = "") -> tuple[str, ToolStyle, bool]:
  """Returns the example's id, the style, and whether no tool of the frame's service was shown.

  Args: place, file and line, for errors. Raises SgdxError: what follows "@" is not in the form of
  this version.
  """
  example, mark, suffix = text.rpartition("/*@")
  if not mark:
    return text, ToolStyle(), False
  delivery, *marks = suffix.split(",")
  numbers = dict(mark.split("=", 1) for mark in marks if "=" in mark)
  is_valid = {"seed", "shots"} >= numbers.keys()
  is_valid = is_valid and len(marks) == len(numbers) + marks.count(_ABSENT)
  try:
    style = ToolStyle(delivery, int(numbers.get("seed", 0)), int(numbers.get("shots", 0)))
  except (SgdxError, ValueError):
    is_valid = False
  if not is_valid:
    raise SgdxError(
      f"{place}: id {text!r}: {suffix!r}",
      expected="a delivery, then shots=N, seed=N and the word absent where they apply, as in "
      "@distractors:10,seed=1",
      fix="keep the ids from `sgdx tools requests`",
    )
  return f"{example}/*", style, _ABSENT in marks


class Requests:
  """Writes the requests of dialogues; shared parts are made once."""

  def __init__(
    self,
    split: str,
    services: Mapping[str, Mapping[str, ServicePair]],
    form: RequestForm,
    examples: str = "",
  ):
    """Prepares the tools. Raises SgdxError: see `delivery.deliverer`.

    Args:
      split: named in the ids.
      services: variant -> all services of the split, by original names.
      form: see `RequestForm`.
      examples: what follows the instruction, from `examples.examples_text`.
    """
    self._split, self._services, self._form = split, services, form
    self._system = _message("system", SYSTEM + examples)
    self._deliver: dict[str, Deliver] = {
      variant: deliverer(pairs, form.style) for variant, pairs in services.items()
    }
    self.size = Size()

  def lines(self, dialogue: Dialogue) -> Iterator[tuple[ExampleId, str]]:
    """Yields id and line of JSON per user frame and variant, ordered as by `rows.dialogue_rows`."""
    messages = [self._system]
    turns = tuple((turn.speaker, turn.utterance) for turn in dialogue.turns)
    for speaker, text in turns:
      messages.append(_message(ROLES[speaker], text))
    for turn, frame in dialogue.user_frames():
      name = frame_id(dialogue.dialogue_id, turn, frame.service)
      conversation, history = ", ".join(messages[: turn + 2]), turns[: turn + 1]
      for variant, pairs in self._services.items():
        pair, example = pairs[frame.service], ExampleId(variant, self._split, name)
        tools = self._deliver[variant](example, frame.service, history)
        tools_text = ", ".join(map(_tool_text, tools))
        names = {tool.name for tool in tools}  # what is not shown cannot be called
        gold_calls = state_calls(pair, frame.user_state)
        calls = calls_text(call for call in gold_calls if call["name"] in names)
        self.size.requests += 1
        self.size.input_characters += _characters(conversation) + _characters(tools_text)
        self.size.output_characters += _characters(calls)
        yield example, self._line(example, frame.service, tools, conversation, tools_text, calls)

  def _line(
    self,
    example: ExampleId,
    service: str,
    tools: Sequence[Tool],
    conversation: str,
    tools_text: str,
    calls: str,
  ) -> str:
    form = self._form
    absent = all(tool.service != service for tool in tools)
    name = request_id(example, form.style, absent)
    body = f'"messages": [{conversation}]'
    if tools:  # APIs refuse an empty list
      body += f', "tools": [{tools_text}], "tool_choice": "auto"'
    if form.model:
      body = f'{{"model": {json.dumps(form.model)}, {body}}}'
      start = f'{{"custom_id": {json.dumps(name)}, "method": "POST", "url": "/v1/chat/completions"'
      return f'{start}, "body": {body}}}\n'
    metadata = {
      "frame": example.frame_id,
      "variant": example.variant,
      "service": service,
      **dataclasses.asdict(form.style),
      "absent": absent,
    }
    target = f', "target": {calls}' if form.targets else ""
    return f'{{"id": {json.dumps(name)}, {body}, "metadata": {json.dumps(metadata)}{target}}}\n'


def _characters(text: str) -> int:
  """Length of a JSON text where an escape, such as \\u3042, counts as the character it is."""
  return len(text) - (len(r"\u3042") - 1) * text.count(r"\u")


def _message(role: str, text: str) -> str:
  return json.dumps({"role": role, "content": text})


@functools.lru_cache(maxsize=4096)
def _tool_text(tool: Tool) -> str:
  return json.dumps(openai_tool(tool.for_states))
