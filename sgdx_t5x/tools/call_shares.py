"""What `sgdx tools score` reports besides state scores: tools, arguments, abstention.

All numbers are shares; docs/tools/README.md defines them.
"""

import collections
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import NO_INTENT, Service
from sgdx_t5x.errors import SgdxError, nearest, printable
from sgdx_t5x.metrics.frames import GoldFrame, PredictedFrame
from sgdx_t5x.scoring.predictions.files import Selection
from sgdx_t5x.scoring.rows import GROUPS
from sgdx_t5x.tables import Table, percent
from sgdx_t5x.tools.calls import CalledFrame, CallFacts
from sgdx_t5x.tools.definitions import Tool, all_tools

RATES = {  # name -> label in a table, heading of a narrow column
  "right_call": ("right: the tool and all arguments", "right"),
  "right_tool": ("right tool", "tool"),
  "right_arguments": ("right arguments", "arguments"),
  "intent_accuracy": ("last call is the active intent", "intent"),
  "wrong_tool": ("calls a tool of another service", "wrong"),
  "unknown_tool": ("calls a tool that does not exist", "unknown"),
  "invented_arguments": ("arguments that the tool does not have", "invented"),
  "mistyped_arguments": ("arguments that are not strings", "mistyped"),
  "invalid_json": ("answers that are not valid JSON", "invalid JSON"),
  "abstained": ("no call where no tool fits", "abstained"),
  "missed": ("no call where a tool fits", "missed"),
  "in_text": ("no call but in the text", "in text"),
  "cut_off": ("answers cut off by a limit of tokens", "cut off"),
}
NO_CALL = "no_call"  # answers without any call, right or wrong: counted beside the rates
IN_TEXT = "in_text"


def call_rates(
  predicted: Mapping[str, PredictedFrame],
  variant: str,
  selection: Selection,
  trusted_ids: bool = False,
) -> dict[str, Any] | None:
  """Returns "all", "seen", "unseen" -> rate -> {"value", "of"}; None if there are no tool calls.

  Args:
    predicted: frame id -> prediction of one variant.
    variant: the variant whose tools were shown.
    selection: what the predictions were joined to.
    trusted_ids: whether answers cannot be those to the requests of another variant.

  Raises:
    SgdxError: ids are not trusted, and no call uses a tool of this variant, but one uses a tool
      of another variant.
  """
  facts = [frame.facts for frame in predicted.values() if isinstance(frame, CalledFrame)]
  if not facts:
    return None
  if not trusted_ids:
    _check_names(facts, all_tools(selection.services(variant)), variant, selection)
  seen_services = selection.corpus.seen_services(selection.split)
  numerators: collections.Counter[tuple[str, str]] = collections.Counter()
  denominators: collections.Counter[tuple[str, str]] = collections.Counter()
  for frame, counts in _counted(predicted, variant, selection):
    for group in ("all", "seen" if frame.service in seen_services else "unseen"):
      for name, (numerator, denominator) in counts.items():
        numerators[group, name] += numerator
        denominators[group, name] += denominator
  rates: dict[str, Any] = {group: {} for group in GROUPS}
  for group, name in itertools.product(GROUPS, (*RATES, NO_CALL)):
    total = denominators[group, name]
    share = numerators[group, name] / total if total else None
    rates[group][name] = {"value": share, "of": total}
  if example := next((answer.in_text for answer in facts if answer.in_text), ""):
    rates["all"][IN_TEXT]["example"] = example
  return rates


def frame_metrics(
  predicted: Mapping[str, PredictedFrame], variant: str, selection: Selection, names: Sequence[str]
) -> dict[str, dict[str, float]]:
  """Returns rate -> frame id -> 1.0 or 0.0. Args: as `call_rates`; rates that have all frames."""
  scores: dict[str, dict[str, float]] = {name: {} for name in names}
  for frame, counts in _counted(predicted, variant, selection):
    for name in names:
      scores[name][frame.frame_id] = float(counts[name][0])
  return scores


def _counted(
  predicted: Mapping[str, PredictedFrame], variant: str, selection: Selection
) -> Iterator[tuple[GoldFrame, Mapping[str, tuple[int, int]]]]:
  """Yields the frames that have calls with their `frame_counts`."""
  tools = all_tools(selection.services(variant))
  for frame in selection.gold:
    prediction = predicted.get(frame.frame_id)
    if isinstance(prediction, CalledFrame):
      yield frame, frame_counts(frame, prediction, selection.schema[frame.service], tools)


def frame_counts(
  frame: GoldFrame, predicted: CalledFrame, service: Service, tools: Mapping[str, Tool]
) -> Mapping[str, tuple[int, int]]:
  """Returns rate -> (numerator, denominator) for one frame.

  Args: service, of the frame, in the original schema; tools, all of the variant, by name.
  """
  facts = predicted.facts
  fits = not facts.absent and (frame.active_intent != NO_INTENT or bool(frame.slot_values))
  num_earlier = 0  # calls for services that the dialogue has had: neither right nor wrong here
  unknown_tool = wrong_tool = False
  for name in facts.other_tools:
    if name not in tools:
      unknown_tool = True
    elif tools[name].service in frame.services:
      num_earlier += 1
    else:
      wrong_tool = True
  silent = facts.calls == num_earlier and not facts.invalid
  active = int(frame.active_intent != NO_INTENT)
  right_tool = right_arguments = silent
  if fits:
    # Where no intent is active, calls cannot say so: any tool of the service will do.
    is_called = facts.intent == frame.active_intent if active else facts.intent != NO_INTENT
    right_tool = is_called and not (unknown_tool or wrong_tool)
    right_arguments = facts.fits_schema and _same_values(
      service, frame.slot_values, predicted.slot_values
    )
  return {
    "right_call": (right_tool and right_arguments, 1),
    "right_tool": (right_tool, 1),
    "right_arguments": (right_arguments, 1),
    "intent_accuracy": (active * (facts.intent == frame.active_intent), active),
    "wrong_tool": (wrong_tool, 1),
    "unknown_tool": (unknown_tool, 1),
    "invented_arguments": (facts.invented, facts.arguments),
    "mistyped_arguments": (facts.mistyped, facts.arguments),
    "invalid_json": (facts.invalid, 1),
    "abstained": (silent and not fits, not fits),
    "missed": (silent and fits, fits),
    IN_TEXT: (bool(facts.in_text), 1),
    "cut_off": (facts.cut_off, 1),
    NO_CALL: (facts.calls == 0, 1),
  }


def _same_values(
  service: Service, gold: Mapping[str, Sequence[str]], predicted: Mapping[str, Sequence[str]]
) -> bool:
  """Whether the same slots have a value each, and it is one of the accepted ones.

  Case and white space of text do not matter; there is no fuzzy matching.
  """
  accepted = {slot: values for slot, values in gold.items() if values}
  if accepted.keys() != predicted.keys():
    return False
  for slot, values in predicted.items():
    plain = _plain if slot in service.noncategorical_slots else str
    if len(values) != 1 or plain(values[0]) not in map(plain, accepted[slot]):
      return False
  return True


def _plain(text: str) -> str:
  return " ".join(text.casefold().split())


def _check_names(
  facts: Iterable[CallFacts], tools: Mapping[str, Tool], variant: str, selection: Selection
) -> None:
  """Rejects answers that call no tool of their variant but one of another: ids were mixed up.

  Answers that only call tools that do not exist at all are accepted and scored as wrong.
  """
  unknown: set[str] = set()
  for answer in facts:
    unknown_names = [name for name in answer.other_tools if name not in tools]
    if answer.calls > len(unknown_names):
      return
    unknown.update(unknown_names)
  for actual in selection.schemas.names(selection.split) if unknown else ():
    if names := sorted(unknown & all_tools(selection.services(actual)).keys()):
      name = names[0]
      raise SgdxError(
        f"answers for {variant}: none calls a tool of {variant}; {name!r} is a tool of {actual}",
        expected="tool names as shown in the requests",
        available=nearest(name, tools),
        fix=f"score them as answers to the {actual} requests, with the ids of those requests",
      )


def tables(rates: Mapping[str, Any]) -> list[Table]:
  """Returns the table of a report's "calls". Args: rates, variant -> group -> rate."""
  rows = []
  for name, (label, _) in RATES.items():
    shares = [rate_value(groups["all"], name) for groups in rates.values()]
    rows.append((label, *map(percent, shares)))
  return [Table("calls, all services (%)", ("", *rates), tuple(rows))]


def rate_value(group: Mapping[str, Any], name: str) -> float | None:
  """The share; None for those that earlier versions did not count."""
  return group.get(name, {}).get("value")


def notes(rates: Mapping[str, Any]) -> list[str]:
  """Returns the lines on answers without a call. Args: as `tables`.

  An answer that was cut off or refused, or whose call the server left in its text, has no call
  either: a score of calls needs these numbers.
  """
  lines = []
  if counts := _counts(rates, NO_CALL):
    lines.append(f"answers without a call: {counts}")
  if any(rate_value(groups["all"], IN_TEXT) for groups in rates.values()):
    texts = (groups["all"].get(IN_TEXT, {}) for groups in rates.values())
    example = next(rate["example"] for rate in texts if "example" in rate)
    lines.append(
      f"answers with a call only in their text, which counts with --calls-from-text: "
      f"{_counts(rates, IN_TEXT)}; the first: {_on_a_line(example)}"
    )
  if any(rate_value(groups["all"], "cut_off") for groups in rates.values()):
    lines.append(f"answers cut off by a limit of tokens: {_counts(rates, 'cut_off')}")
  return lines


def _counts(rates: Mapping[str, Any], name: str) -> str:
  """Returns "3 of 6 (original), ..."."""
  return ", ".join(
    f"{round(rate['value'] * rate['of']):,} of {rate['of']:,} ({variant})"
    for variant, groups in rates.items()
    if (rate := groups["all"].get(name)) and rate["of"]  # versions before did not count them
  )


def _on_a_line(text: str) -> str:
  return printable(" ".join(text.split()))


def problem(rates: Mapping[str, Any]) -> SgdxError | None:
  """Returns the error if no answer has a call although tools fit. Args: as `tables`."""
  answers = in_text = 0
  missed, example = False, ""
  for groups in rates.values():
    all_rates = groups["all"]
    if all_rates[NO_CALL]["value"] != 1:
      return None
    answers += all_rates[NO_CALL]["of"]
    in_text += round((all_rates[IN_TEXT]["value"] or 0) * all_rates[IN_TEXT]["of"])
    missed = missed or bool(all_rates["missed"]["value"])
    example = example or all_rates[IN_TEXT].get("example", "")
  return no_calls(answers, in_text, example) if missed else None


def no_calls(answers: int, in_text: int, example: str) -> SgdxError:
  """Returns the error for answers of which none has a call.

  Args: in_text, how many of them have a call in their text; example, such a text.
  """
  if in_text:
    return SgdxError(
      f"none of {answers:,} answers has a call, but the text of {in_text:,} has one",
      expected="calls in tool_calls, where a server's parser of the model's calls puts them",
      available=f"for example the text: {_on_a_line(example)}",
      fix="count the calls in texts: --calls-from-text; or start the server with a parser (vLLM: "
      "--enable-auto-tool-choice --tool-call-parser) and ask again",
    )
  return SgdxError(
    f"none of {answers:,} answers has a call, not even in its text",
    expected="calls of tools, from a model and a server that support them",
    fix="read some of the answers; try a model that supports tools, or a higher limit of tokens",
  )
