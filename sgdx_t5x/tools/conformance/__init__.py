"""Small test cases for scorers of tool calls, and our scorer's verdicts. See README.md."""

import gzip
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, NO_INTENT, Service, parse_schema
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
  schema = parse_schema(_services(case["tools"]), "case")
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


def _services(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
  """Returns tools named SERVICE__INTENT as services of a schema."""
  services: dict[str, dict[str, Any]] = {}
  for tool in tools:
    name, _, intent = tool["function"]["name"].partition("__")
    empty = {"service_name": name, "description": name, "slots": [], "intents": []}
    service = services.setdefault(name, empty)
    properties = tool["function"]["parameters"]["properties"]
    slot_names = {slot["name"] for slot in service["slots"]}
    for slot, described in properties.items():
      values = [value for value in described.get("enum", ()) if value != DONTCARE]
      slot_row = {"name": slot, "description": described["description"]}
      slot_row |= {"is_categorical": bool(values), "possible_values": values}
      service["slots"] += [slot_row] if slot not in slot_names else []
    intent_row = {"name": intent, "description": tool["function"]["description"]}
    intent_row |= {"required_slots": [], "optional_slots": dict.fromkeys(properties, DONTCARE)}
    service["intents"].append({**intent_row, "is_transactional": False, "result_slots": []})
  return list(services.values())
