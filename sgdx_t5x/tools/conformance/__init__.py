"""Small test cases for scorers of tool calls, and our scorer's verdicts. See README.md."""

import collections
import gzip
import importlib.resources
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, NO_INTENT, Intent, Schema, Service, Slot
from sgdx_t5x.metrics import GoldFrame, slot_failures
from sgdx_t5x.metrics.failures import MISSED, SPURIOUS
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.tools.call_shares import frame_counts
from sgdx_t5x.tools.calls import CalledFrame, read_calls
from sgdx_t5x.tools.definitions import all_tools
from sgdx_t5x.tools.messages import read_answer

RIGHT, WRONG = "right", "wrong"
NONE, MISTYPED = "none", "mistyped"
# What makes an answer wrong, by `calls.frame_counts`; the first that applies is reported.
_WRONG = ("invalid_json", "unknown_tool", "wrong_tool", "missed", "invented_arguments")


def cases() -> Iterator[dict[str, Any]]:
  """Yields the cases described in the README."""
  file = importlib.resources.files(__package__) / "cases.jsonl.gz"
  yield from map(json.loads, gzip.decompress(file.read_bytes()).splitlines())


def judge(case: Mapping[str, Any]) -> tuple[str, str]:
  """Returns the verdict and the finding of our scorer, as `sgdx tools score` counts them.

  An answer is right if the state of its calls is right (JGA 1), its last call has the expected
  intent, and there is no wrong or unknown tool, no invented argument and no invalid JSON.

  Args:
    case: has "tools", "expected" and "answer".
  """
  frame, predicted, service, counts = _scored(case)
  if not case["expected"]:
    is_right = bool(counts["abstained"][0])
    return (RIGHT, NONE) if is_right else (WRONG, "called")
  # The finding is the first thing wrong: the form of the calls, the tool, then the arguments.
  for name in _WRONG:
    if counts[name][0]:
      return WRONG, name
  if not counts["intent_accuracy"][0]:
    return WRONG, "wrong_tool"
  gold = frame.slot_values
  if failures := slot_failures(service, gold, {"answer": predicted.slot_values}):
    kinds = {kind for failure in failures for kind in failure.kinds.values()}
    spurious = all(not failure.gold for failure in failures)
    if kinds == {MISSED}:
      return WRONG, "missing_argument"
    return WRONG, "extra_argument" if spurious or kinds == {SPURIOUS} else "wrong_value"
  return RIGHT, MISTYPED if counts["mistyped_arguments"][0] else NONE


def judge_strictly(case: Mapping[str, Any]) -> str:
  """Returns the verdict of `right_call`: also valid by the schema. Args: as `judge`."""
  return RIGHT if _scored(case)[-1]["right_call"][0] else WRONG


def _scored(
  case: Mapping[str, Any],
) -> tuple[GoldFrame, CalledFrame, Service, Mapping[str, tuple[int, int]]]:
  """Returns the case as a frame, the answer read, the frame's service, and counts of the answer."""
  schema = _schema(case["tools"])
  pairs = service_pairs(schema, schema)
  last = case["expected"][-1]["name"] if case["expected"] else ""
  name, _, intent = (last or case["tools"][0]["function"]["name"]).partition("__")
  gold: dict[str, tuple[str, ...]] = {}
  for call in case["expected"]:
    gold |= {slot: tuple(values) for slot, values in call["arguments"].items()}
  active = intent if last else NO_INTENT
  frame = GoldFrame("", "", 0, name, gold, 0, active, services=frozenset([name]))
  predicted = read_calls(read_answer(case["answer"], "case").calls, pairs[name])
  service = pairs[name].original
  return frame, predicted, service, frame_counts(frame, predicted, service, all_tools(pairs))


def _schema(tools: Sequence[Mapping[str, Any]]) -> Schema:
  """Returns tools named SERVICE__INTENT as services."""
  slots_of: dict[str, dict[str, Slot]] = {}  # service -> name of a slot ->
  intents_of: dict[str, list[Intent]] = collections.defaultdict(list)
  for function in (tool["function"] for tool in tools):
    service, _, intent = function["name"].partition("__")
    properties, slots = function["parameters"]["properties"], slots_of.setdefault(service, {})
    for name, described in properties.items():
      values = tuple(value for value in described.get("enum", ()) if value != DONTCARE)
      slots.setdefault(name, Slot(name, described["description"], bool(values), values))
    optional = dict.fromkeys(properties, DONTCARE)
    intents_of[service].append(Intent(intent, function["description"], False, (), optional))
  services = []
  for name, slots in slots_of.items():
    services.append(Service(name, name, tuple(slots.values()), tuple(intents_of[name])))
  return Schema(tuple(services))
