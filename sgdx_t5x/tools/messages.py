"""Answers of services and harnesses: the calls and the text of a message, and how it ended.

What a service did is kept apart from what the model did: an error in place of an answer raises
`NoAnswer`, a call of the model that the service could not parse is a malformed call.

  chat completions      "choices": [{"message": {"tool_calls": [{"function": {...}}]}}]
  older ones            "function_call": {"name", "arguments"} in the message
  OpenAI's responses    "output": [{"type": "function_call", "name", "arguments"}]
  Anthropic             "content": [{"type": "tool_use", "name", "input"}]
  Bedrock's Converse    "output": {"message": {"content": [{"toolUse": {"name", "input"}}]}}
  Ollama                "message": {"tool_calls": [{"function": {"name", "arguments": {...}}}]}
  Gemini                "candidates": [{"content": {"parts": [{"functionCall": {...}}]}}]
  LangChain             "tool_calls": [{"name", "args"}], also in the "kwargs" or "data" it saves
  LlamaIndex            "blocks": [{"block_type": "tool_call", "tool_name", "tool_kwargs"}]
  Inspect               "tool_calls": [{"function": NAME, "arguments"}]
  batches               the same in "response": {"status_code", "body"} or "result": {"message"}

Any other form is an error that names it, never an answer without calls.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError, quoted
from sgdx_t5x.tools.call_texts import ARGUMENTS, NAMES, calls_of, text_calls
from sgdx_t5x.tools.unparsed_calls import MALFORMED, malformed_call

_WRAPPERS = ("response", "result", "body", "output", "message", "kwargs", "data")
_ROLES = ("assistant", "ai", "model")
_IN_CALLS = ("function", "custom", "toolUse", "functionCall", "function_call")
_ENDS = frozenset((
  "finish_reason", "native_finish_reason", "finishReason", "stop_reason", "stopReason",
  "done_reason",
))  # fmt: skip
# By number, as google-generativeai's `to_dict` writes Gemini's words.
_NUMBERED_ENDS = (
  "unspecified", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "LANGUAGE", "BLOCKLIST",
  "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL",
)  # fmt: skip
_ERRORS = ("error", "errors", "error_message", "error_msg")
_NOT_ANSWERED = (
  "failed", "cancelled", "canceled", "errored", "expired", "error", "queued", "in_progress",
)  # fmt: skip
_PERMANENT = (400, 403, 413, 422)  # codes of errors that concern one request
_CALLS = ("tool_use", "tool_call", "invalid_tool_call", "function_call", "custom_tool_call")
_TEXTS = ("text", "output_text", "refusal")
_TEXT_KEYS = ("text", "refusal", "content")  # the last is OpenTelemetry's
_SILENT = ("thinking", "redacted_thinking", "reasoning", "reasoningContent", "cachePoint")
_SIGNATURES = ("thoughtSignature", "thought_signature")  # Gemini's, of what it thought
_PLACES = ("content", "parts", "output", "blocks", "items")
_READ = ("tool_calls", "function_call")
_PLAIN = frozenset(("role", "content", "tool_calls", "refusal", "reasoning_content"))
_CALL_KEY = re.compile(r"(tool|function)[_-]?(call|use|invocation)s?", re.I)
# Keys of objects that seem to be calls, in a list of a message that has no others.
_KEY_IN_CALL = re.compile(r"(tool|function)\w*|name|args|arguments|parameters|kwargs", re.I)

_BROKEN_OFF = re.compile(
  r"error|fail|abort|cancel|resource|quota|timed?[ _-]?out|time_limit|deadline|unavailable|busy|"
  r"exception|interrupt|preempt|reject|not_finished|rate.?limit|too.?many.?requests|^other$|"
  r"load|network|server|provider|upstream|connect",  # Ollama only loaded the model
  re.I,
)
_FILTERED = re.compile(
  r"filter|guardrail|safety|sensitive|recitation|prohibited|block|spii|moderat|flagged|violat|"
  r"^refusal$|^language$",
  re.I,
)
# With which a model ends an answer itself. Services have too many other words to list them.
_OWN_END = re.compile(
  r"(finish_reason_)?(stop([ _-]?(sequence|string|str|token|word))?|end([ _-]?(turn|of[ _-]?\w+))?|"
  r"normal|eos([ _-]token)?|completed?|finish(ed)?|success|ok|done|pause_turn|"
  r"(tool|function)([ _-]?(calls?|use))?)",
  re.I,
)
_CUT_OFF = re.compile(
  r"length|max_?\w*tokens|max_output|truncat|token_limit|context_window|incomplete", re.I
)


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
  """What a model answered.

  Attributes:
    calls: [{"name", "arguments": object or its JSON text}]; None if the service could not parse
      them; an item None is malformed.
    text: what it wrote besides.
    cut_off: whether it was ended by a limit of tokens.
  """

  calls: list[Any] | None
  text: str = ""
  cut_off: bool = False

  @property
  def call_in_text(self) -> str:
    """The text of an answer without calls that has one in its text; else ""."""
    return self.text if self.calls == [] and text_calls(self.text) else ""

  def with_calls_of_text(self) -> "Answer":
    """The same answer with the calls of its text, if it has no others."""
    calls = text_calls(self.text) if self.calls == [] else None
    return self if calls is None else dataclasses.replace(self, calls=calls, text="")


class NoAnswer(Exception):
  """A request that the service did not answer. Attributes: asked_again, whether it may, later."""

  def __init__(self, reason: str, asked_again: bool = True):
    super().__init__(reason)
    self.asked_again = asked_again


def read_answer(row: Mapping[str, Any], place: str) -> Answer:
  """Returns the answer in a row or a response, decoded, in any of the forms above.

  Raises:
    NoAnswer: the service did not answer.
    SgdxError: another form.
  """
  level: Mapping[str, Any] = row
  ends: list[str] = []
  for _ in range(len(_WRAPPERS)):
    if (unparsed := _failure(level)) is not None:
      return Answer(None, unparsed)
    ends += _ends(level)
    if level.get("done") is False:  # Ollama's
      raise unknown_form(level, place, "a part of a streamed answer")
    for key in ("choices", "candidates"):
      if isinstance(level.get(key), list) and level[key]:
        return _of_choices(level[key], ends, place)
      if key in level and not level[key]:
        raise NoAnswer(f"no {key}: {quoted(dict(level))[:200]}")
    inside = next((level[key] for key in _WRAPPERS if isinstance(level.get(key), dict)), None)
    if inside is None:
      break
    level = inside
  return _ended(ends, *_of_message(level, place))


def has_plain_calls(body: Mapping[str, Any]) -> bool:
  """Whether a body is a chat completion with calls and nothing unusual: `read_answer` made short.

  Most answers are, and `sgdx tools run` should not be slower than its services.
  """
  try:
    (choice,) = body["choices"]
    message = choice["message"]
    return (
      choice["finish_reason"] in ("tool_calls", "stop")
      and message["role"] == "assistant"
      and not (message["content"] or _error(body) or _error(choice))
      and message.keys() <= _PLAIN
      and "native_finish_reason" not in choice
      and isinstance(message["tool_calls"], list)
      and bool(message["tool_calls"])
      and all(isinstance(call["function"]["name"], str) for call in message["tool_calls"])
    )
  except (LookupError, TypeError, ValueError, AttributeError):
    return False


def _of_choices(choices: Sequence[Any], ends: list[str], place: str) -> Answer:
  """Returns the first answer of several. Some services spread one over choices of one index."""
  calls: list[Any] = []
  texts: list[str] = []
  first_index = min(map(_index, choices))
  for choice in choices:
    if not isinstance(choice, dict):
      raise unknown_form({}, place, "a choice that is no object")
    if _index(choice) != first_index:
      continue
    message = choice.get("message", choice.get("content"))  # the latter in candidates
    for level in (choice, message if isinstance(message, dict) else {}):
      if (unparsed := _failure(level)) is not None:
        return Answer(None, unparsed)
      ends = [*ends, *_ends(level)]
    if isinstance(message, dict):
      in_message, text = _of_message(message, place, in_choice=True)
      calls += in_message
      texts.append(text)
    elif _ended(ends, [], "").calls is not None and not _is_empty(choice):
      if "message" in choice and message is None:
        raise NoAnswer("the message is null")
      raise unknown_form(choice, place, "a choice without a message")
  return _ended(ends, calls, "\n".join(filter(None, texts)))


def _index(choice: Any) -> int:
  index = choice.get("index") if isinstance(choice, dict) else 0
  return index if isinstance(index, int) else 0


def _is_empty(choice: Mapping[str, Any]) -> bool:
  """Whether a choice without a message only says how it ended, as Gemini's candidates may."""
  return "finishReason" in choice and choice.keys().isdisjoint(("delta", "text", "content"))


# --- how it ended --------------------------------------------------------------------------


def _failure(level: Mapping[str, Any]) -> str | None:
  """Returns what the model wrote if the service could not parse it; None if nothing failed.

  Raises NoAnswer: anything else failed.
  """
  error, status = _error(level), level.get("status_code") or 200
  if error or str(status)[:1] != "2":
    if any(map(MALFORMED.search, _ends(level))):
      return ""
    if (unparsed := malformed_call(error or level.get("body"))) is not None:
      return unparsed
    said = quoted(error) if error else f"status {status}: {quoted(level.get('body'))[:200]}"
    raise NoAnswer(said, asked_again=_code(error, status) not in _PERMANENT)
  feedback = level.get("promptFeedback", level.get("prompt_feedback"))  # Gemini's
  if isinstance(feedback, dict) and (
    reason := feedback.get("blockReason") or feedback.get("block_reason")
  ):
    raise NoAnswer(f"the service blocked the prompt: {reason}", asked_again=False)
  if "error" in level and level.get("response", level) is None:
    raise NoAnswer("no response")
  for key in ("status", "type", "object"):
    if level.get(key) in _NOT_ANSWERED:
      raise NoAnswer(str(level[key]))
  return None


def _error(level: Mapping[str, Any]) -> Any:
  """Returns what says that something failed, under any of its names; None if nothing does."""
  values = filter(None, map(level.get, _ERRORS))
  # An object without any content says nothing.
  return next((x for x in values if not isinstance(x, dict) or any(x.values())), None)


def _code(error: Any, status: Any) -> int:
  """Returns the HTTP status that an error names; 0 if it names none."""
  codes = (error.get("code"), error.get("status"), status) if isinstance(error, dict) else (status,)
  return next((int(code) for code in map(str, codes) if re.fullmatch(r"[1-5]\d\d", code)), 0)


def _ends(level: Mapping[str, Any]) -> Iterator[str]:
  """Yields the words with which a service says why an answer ended."""
  for key, reason in level.items():
    # vLLM's stop_reason is the token or the text at which the answer stopped.
    is_place = key == "stop_reason" and isinstance(level.get("finish_reason"), str)
    if key not in _ENDS or is_place:
      continue
    if isinstance(reason, dict):
      reason = reason.get("type")
    # True is an int, too; other services give the number of a token.
    if key == "finish_reason" and type(reason) is int and reason in range(len(_NUMBERED_ENDS)):
      reason = _NUMBERED_ENDS[reason]
    if isinstance(reason, str):
      yield reason
    elif key == "finish_reason" and (reason is None or isinstance(reason, float)):
      yield "null"  # as in parts of an answer that has not ended; 1e999 is written as null
  if level.get("status") == "incomplete":
    details = level.get("incomplete_details")
    yield str(details.get("reason") if isinstance(details, dict) else "length")
  if isinstance(inside := level.get("response_metadata"), dict):  # LangChain's
    yield from _ends(inside)


def _ended(ends: Sequence[str], calls: list[Any], text: str) -> Answer:
  """Returns the answer. Raises NoAnswer if the words say that the service broke it off."""
  if any(map(MALFORMED.search, ends)):
    return Answer(None, text)
  reasons = ", ".join(dict.fromkeys(ends))
  if any(map(_BROKEN_OFF.search, ends)):
    raise NoAnswer(f"the service broke the answer off: {reasons}")
  if any(map(_FILTERED.search, ends)):
    raise NoAnswer(f"the service withheld the answer: {reasons}", asked_again=False)
  is_cut_off = any(map(_CUT_OFF.search, ends))
  if ends and not (calls or text or is_cut_off or any(map(_OWN_END.fullmatch, ends))):
    raise NoAnswer(f"neither an answer nor a known reason: {reasons}")
  return Answer(calls, text, is_cut_off)


# --- messages ------------------------------------------------------------------------------


def _of_message(
  message: Mapping[str, Any], place: str, in_choice: bool = False
) -> tuple[list[Any], str]:
  """Returns calls and text of a message. Raises SgdxError for one of another form."""
  for key, value in message.items():
    if value and key not in _READ and _CALL_KEY.fullmatch(key):
      raise unknown_form(message, place, f"calls in {key}")
  calls = list(_listed_calls(message, place))
  raw = message.get("additional_kwargs")  # where LangChain keeps what the service sent
  if not calls and isinstance(raw, dict):
    calls = list(_listed_calls(raw, place))
  content = next((message[key] for key in _PLACES if message.get(key)), None)
  in_blocks, text = _of_content(content, place)
  role = message.get("role") or (message.get("type") if message.get("type") in _ROLES else None)
  if not (calls or in_blocks):
    _check_lists(message, place, has_text=bool(text))
  has_place = any(isinstance(message.get(key), list) for key in (*_PLACES, "tool_calls"))
  if role not in _ROLES and (role or not (in_choice or has_place or calls)):
    raise unknown_form(message, place, f"a message of {quoted(role)[:40]}" if role else "")
  return calls or in_blocks, text


def _check_lists(message: Mapping[str, Any], place: str, has_text: bool) -> None:
  """Raises SgdxError if a message without calls has objects in another place that seem to be some.

  In an empty message, one key of a call is enough; beside a text, the object has to be a call.
  """
  for key, value in message.items():
    items = value if isinstance(value, list) and key not in (*_PLACES, "tools") else []
    keys = (str(key) for item in items if isinstance(item, dict) for key in item)
    if any(calls_of(items)) or (not has_text and any(map(_KEY_IN_CALL.fullmatch, keys))):
      raise unknown_form(message, place, f"calls in {key}")


def _listed_calls(message: Mapping[str, Any], place: str) -> Iterator[dict[str, Any]]:
  calls: list[Any] = []
  for key in ("tool_calls", "invalid_tool_calls"):
    listed = message.get(key) or []
    if not isinstance(listed, list):
      raise unknown_form(message, place, f"{key} that are no list")
    calls += listed
  if not calls and message.get("function_call"):
    calls = [message["function_call"]]
  return (read_call(call, place) for call in calls)


def _of_content(content: Any, place: str) -> tuple[list[Any], str]:
  """Returns calls and text of a message's content: text, or a list of blocks."""
  if content is None or isinstance(content, str):
    return [], content or ""
  calls: list[Any] = []
  texts: list[str] = []
  for block in content if isinstance(content, list) else [content]:
    if isinstance(block, str):
      texts.append(block)
      continue
    if not isinstance(block, dict):
      raise unknown_form({}, place, f"a block of content {quoted(block)[:40]}")
    kind = block.get("type") or block.get("block_type")  # the latter is LlamaIndex'
    kind = kind or next((key for key, x in block.items() if x and key not in _SIGNATURES), None)
    if kind is None or block.get("thought") is True:  # Gemini's
      continue
    if kind == "message":
      inside, text = _of_content(block.get("content"), place)
      calls += inside
      texts.append(text)
    elif kind in _CALLS or any(isinstance(block.get(key), dict) for key in _IN_CALLS):
      calls.append(read_call(block, place))
    elif kind in _TEXTS or isinstance(block.get("text"), str):
      texts.append(str(next((block[key] for key in _TEXT_KEYS if block.get(key)), "")))
    elif kind not in _SILENT:
      raise unknown_form(block, place, f"a block of content of type {quoted(kind)[:40]}")
  return calls, "\n".join(filter(None, texts))


def read_call(call: Any, place: str) -> dict[str, Any]:
  """Returns {"name", "arguments"} of a call in any of the forms above.

  Raises SgdxError: no object, or one that has neither a name nor arguments under a known key.
  """
  if not isinstance(call, dict):
    raise unknown_form({}, place, f"a call {quoted(call)[:40]}, which is no object")
  inside = next((call[key] for key in _IN_CALLS if isinstance(call.get(key), dict)), call)
  name_key = next((key for key in NAMES if key in inside), None)
  key = next((key for key in ARGUMENTS if key in inside), None)
  if name_key is None and inside is call:
    raise unknown_form(call, place, "a call without a name")
  if key is None and (nested_keys := [k for k, v in inside.items() if isinstance(v, dict | list)]):
    raise unknown_form(call, place, f"arguments in {nested_keys[0]}")
  # Inspect's: what it made of arguments that are not JSON is not what the model wrote.
  arguments = call.get("parse_error") or (inside[key] if key else None)
  return {"name": inside[name_key] if name_key else "", "arguments": arguments}


def unknown_form(part: Mapping[str, Any], place: str, fault: str) -> SgdxError:
  """Returns the error for a form that is not read. Args: part of the row; what was found there."""
  return SgdxError(
    f"{place}: no tool calls found{fault and ': '}{fault}",
    expected="an answer of chat completions, responses, Anthropic, Bedrock Converse, Ollama, "
    'Gemini, LangChain, LlamaIndex, Inspect or BFCL, or {"id", "calls": [{"name", "arguments"}]}',
    available=", ".join(map(str, part))[:200],
    fix="use one of the formats in docs/tools/README.md; an answer without calls has an empty list",
  )
