"""Rules for the annotation of dialogues, beyond what reading a dialogue checks.

All were counted on the real SGD. Rules that it never violates are in `ERRORS`: a file that breaks
one is refused. Rules that it violates in a few places are in `WARNINGS`: violations are counted.
docs/dialogue-checks.md has the counts. A file may lack what the older release lacks: users' acts,
canonical values, service calls.
"""

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sgdx_t5x.corpus.annotation_rules import ERRORS, MAX_RESULTS, WARNINGS
from sgdx_t5x.corpus.dialogue import (
  ACTS,
  NAMED_ACTS,
  SYSTEM,
  USER,
  Dialogue,
  Frame,
  State,
  Turn,
  check_dialogue,
)
from sgdx_t5x.corpus.schema import DONTCARE, NO_INTENT, Schema, Service
from sgdx_t5x.errors import SgdxError, malformed
from sgdx_t5x.files.reading import is_text

_NOTIFY = frozenset({"NOTIFY_SUCCESS", "NOTIFY_FAILURE"})
_EXPECTED_FORM = "slots, actions, service_call and service_results as in SGD's README"


@dataclasses.dataclass
class AnnotationWarning:
  """How often a rule of `WARNINGS` was broken, and where first."""

  count: int
  first: str


class Violation(NamedTuple):
  """A broken rule of `ERRORS` or `WARNINGS`, or "form" where the annotation lacks what they need.

  Attributes:
    rule: its name.
    turn: -1 for the dialogue.
    found: what is there.
    available: what could be there.
  """

  rule: str
  turn: int
  found: str
  available: tuple[str, ...] = ()


def validate_annotation(
  schema: Schema, warnings: dict[str, AnnotationWarning]
) -> Callable[[Dialogue, Schema, str], None]:
  """Returns a check for `Corpus.dialogues`, for a single pass over one split of this schema.

  Args:
    warnings: rule -> its violations; updated with each dialogue.

  Returns:
    A function of dialogue, schema and origin that raises SgdxError for what
    `check_dialogue` refuses and for the first rule of `ERRORS` that is broken.
  """
  violations_of, ids = annotation_violations(schema), set[str]()

  def check(dialogue: Dialogue, schema: Schema, origin: str) -> None:
    check_dialogue(dialogue, schema, origin)
    name = dialogue.dialogue_id
    # One after the other, as the later ones rely on what the earlier ones refuse.
    violations = itertools.chain(
      _id_violations(name, ids), violations_of(dialogue), _ending_violations(dialogue)
    )
    for rule, turn, found, available in violations:
      if rule in WARNINGS:
        place = f"{name}, turn {turn}"
        warnings.setdefault(rule, AnnotationWarning(0, place)).count += 1
        continue
      place = f"{origin}, dialogue {name}" + (f", turn {turn}" if turn >= 0 else "")
      raise SgdxError(
        f"{place}: {found}",
        expected=f"{ERRORS[rule]} (rule {rule})" if rule in ERRORS else _EXPECTED_FORM,
        available=", ".join(available),
        fix="correct the annotation, or write the file again; rules: docs/dialogue-checks.md",
      )
    ids.add(name)

  return check


def annotation_violations(schema: Schema) -> Callable[[Dialogue], list[Violation]]:
  """Returns a function that lists a dialogue's violations of rules, except of its id and ending.

  The rest of a turn is not judged where its annotation lacks what the rules are about. The function
  takes dialogues of the schema, which `check_dialogue` accepts.
  """

  def violations_of(dialogue: Dialogue) -> list[Violation]:
    dialogue = _without_empty_acts(dialogue)
    history = _History(schema)
    _check_services(history, dialogue)
    for history.number, turn in enumerate(dialogue.turns):  # the number is named in reports
      try:
        _check_turn(history, turn)
      except (KeyError, TypeError, AttributeError, IndexError) as e:
        history.report("form", malformed(e))
    return history.violations

  return violations_of


def _without_empty_acts(dialogue: Dialogue) -> Dialogue:
  """Returns a dialogue without acts of the user if all of their lists are empty.

  Corpora that were converted, as MultiWOZ 2.2, have such lists; no user of SGD says nothing.
  """
  if any(frame.actions for turn in dialogue.turns if turn.speaker == USER for frame in turn.frames):
    return dialogue
  turns = []
  for turn in dialogue.turns:
    if turn.speaker == USER:
      frames = tuple(dataclasses.replace(frame, actions=None) for frame in turn.frames)
      turn = dataclasses.replace(turn, frames=frames)
    turns.append(turn)
  return dataclasses.replace(dialogue, turns=tuple(turns))


@dataclasses.dataclass
class _History:
  """The history of a dialogue, up to the turn being checked."""

  schema: Schema
  number: int = -1  # of the turn
  text: str = ""  # all utterances
  act_values: set[str] = dataclasses.field(default_factory=set)
  has_all_acts: bool = True  # no frame lacked its actions
  states: dict[str, State] = dataclasses.field(default_factory=dict)  # service -> the newest
  results: dict[str, list[dict]] = dataclasses.field(default_factory=dict)  # of all calls
  user_frames: Mapping[str, Frame] = dataclasses.field(default_factory=dict)  # of the last turn
  violations: list[Violation] = dataclasses.field(default_factory=list)

  def report(self, rule: str, problem: str, available: Iterable[str] = ()) -> None:
    """Notes a violation in this turn."""
    self.violations.append(Violation(rule, self.number, problem, tuple(available)))


def _id_violations(name: str, earlier_ids: Collection[str]) -> Iterator[Violation]:
  if name in earlier_ids:
    yield Violation("id", -1, "duplicate id")
  if "/" in name:
    yield Violation("id", -1, "a / in the id")
  if not is_text(name):
    yield Violation("id", -1, f"half a character in the id {name!r}")


def _ending_violations(dialogue: Dialogue) -> Iterator[Violation]:
  turns = dialogue.turns
  if dialogue.last_only:  # it stops at the turn that is scored
    return
  goodbyes = []
  for i, turn in enumerate(turns):
    if turn.speaker == SYSTEM and "GOODBYE" in _acts(turn.frames[0]):
      goodbyes.append(i)
  if not turns or goodbyes != [len(turns) - 1]:
    last, found = len(turns) - 1, f"{len(turns)} turns, system GOODBYE in {goodbyes or 'none'}"
    yield Violation("ending", last, found)


def _check_services(history: _History, dialogue: Dialogue) -> None:
  services_of_frames: set[str] = set()
  for turn in dialogue.turns:
    services_of_frames |= {frame.service for frame in turn.frames}
  if sorted(dialogue.services) != sorted(services_of_frames):  # each is listed, and only once
    found = f"services {', '.join(dialogue.services)}"
    history.report("services", found, sorted(services_of_frames))


def _check_turn(history: _History, turn: Turn) -> None:
  """Checks a turn against the dialogue so far, of which it then is a part."""
  services = [frame.service for frame in turn.frames]
  if not services or len(set(services)) != len(services):
    history.report("frames", f"frames of {', '.join(services) or 'no service'}")
  if not turn.utterance.strip():
    history.report("empty-utterance", "")
  history.text += f"{turn.utterance}\n"
  if turn.speaker == USER:
    history.user_frames = dict(zip(services, turn.frames, strict=True))
  elif len(services) != 1 or services[0] not in history.user_frames:
    history.report("system-frame", f"frames of {', '.join(services)}")
  spans: list[tuple[int, int]] = []
  for frame in turn.frames:
    spans += _check_frame(history, turn, frame)
  # Spans of two services may overlap as well, so only all of the turn's tell.
  spans.sort()
  if any(next_start < end for (_, end), (next_start, _) in itertools.pairwise(spans)):
    history.report("overlap", "")


def _check_frame(history: _History, turn: Turn, frame: Frame) -> Sequence[tuple[int, int]]:
  """Checks a frame and returns its spans."""
  service, by_user = history.schema[frame.service], turn.speaker == USER
  has_state = frame.state is not None
  has_call = (frame.service_call, frame.service_results) != (None, None)
  if frame.slots is None or has_state != by_user or (by_user and has_call):
    history.report("keys", f"service {frame.service}: {', '.join(frame.to_json())}")
  spans = _check_spans(history, turn, frame, service)
  if frame.actions is None:
    history.has_all_acts = False  # values of states may have been said in acts that are not here
  _check_actions(history, turn, frame, service)
  if by_user:
    _check_state(history, frame, service)
  else:
    _check_call(history, frame, service)
  return spans


def _check_spans(
  history: _History, turn: Turn, frame: Frame, service: Service
) -> Sequence[tuple[int, int]]:
  """Checks the spans of a frame and returns them."""
  spans, texts = [], set()
  for span in frame.slots or ():
    slot, start, end = span["slot"], span["start"], span["exclusive_end"]
    if slot not in service.noncategorical_slots:
      history.report("span-slot", f"a span of slot {slot!r} of service {frame.service}")
    if not 0 <= start < end <= len(turn.utterance):
      span_text = f"slot {slot!r}: span {start}..{end} in {len(turn.utterance)} characters"
      history.report("span-offsets", span_text)
    text = turn.utterance[start:end]
    if turn.speaker == USER:
      values = frame.user_state.slot_values.get(slot)
      if values is None:
        history.report("span-slot-state", f"a span of slot {slot!r} of {frame.service}")
      elif text not in values:
        history.report("span-state", f"slot {slot!r}: span text {text!r}", values)
    spans.append((start, end))
    texts.add((slot, text))
  if frame.actions is not None:
    # What the acts say must be marked in the utterance, and the reverse; nobody says "dontcare".
    act_values = set()
    for action in frame.actions:
      if action["slot"] in service.noncategorical_slots and action["act"] not in NAMED_ACTS:
        for value in action["values"]:
          if value != DONTCARE:
            act_values.add((action["slot"], value))
    for slot, text in sorted(texts ^ act_values):
      has, lacks = ("span", "act") if (slot, text) in texts else ("act", "span")
      history.report(
        "span-act", f"slot {slot!r}: {text!r} of service {frame.service}: {has} without {lacks}"
      )
  return spans


def _check_actions(history: _History, turn: Turn, frame: Frame, service: Service) -> None:
  state = frame.user_state if turn.speaker == USER else None
  for action in frame.actions or ():
    act, slot, values = action["act"], action["slot"], action["values"]
    forms = ACTS[turn.speaker].get(act, frozenset())
    if act not in ACTS[turn.speaker]:
      history.report("act", f"{turn.speaker}'s act {act!r}", ACTS[turn.speaker])
    kind = "slot" if slot in service.slot_index else "unknown"
    if not slot or act in NAMED_ACTS:
      kind = slot
    if (kind, min(len(values), 2)) not in forms:  # 2 stands for more, too
      history.report("act-form", f"{act}, slot {slot!r} of {frame.service}, {len(values)} values")
    canonical = action.get("canonical_values", values)
    if len(canonical) != len(values):
      history.report(
        "canonical",
        f"{act}, slot {slot!r}: {len(canonical)} canonical_values for {len(values)} values",
      )
    history.act_values.update(canonical)  # as states have them, whatever words were said
    if kind == "intent":
      is_unknown = values[0] not in service.intent_index
      if is_unknown or (state is not None and values[0] != state.active_intent):
        expected_intents = [state.active_intent] if state else service.intent_index
        problem = f"{act} {values[0]!r}, service {frame.service}"
        history.report("act-intent", problem, expected_intents)
    elif kind == "slot":
      if slot in service.categorical_values:
        if set(canonical) - service.categorical_values[slot] - {DONTCARE}:
          history.report("act-value", f"{act}, slot {slot!r}: {', '.join(canonical)}")
        values = canonical  # as states have them
      if act in ("INFORM", "SELECT") and state is not None:
        has = state.slot_values.get(slot, ())
        if values[0] not in has:
          history.report("act-state", f"{act}, slot {slot!r}: {values[0]!r}", has)


def _check_state(history: _History, frame: Frame, service: Service) -> None:
  state, earlier = frame.user_state, history.states.get(frame.service)
  requested = list(state.requested_slots)
  slots_of_acts = {a["slot"] for a in frame.actions or () if a["act"] == "REQUEST"}
  if len(set(requested)) != len(requested) or (
    frame.actions is not None and set(requested) != slots_of_acts
  ):
    history.report("requested", f"requested_slots {requested}", sorted(slots_of_acts))
  intent = NO_INTENT if earlier is None else earlier.active_intent
  if frame.actions is not None and state.active_intent not in (NO_INTENT, intent):
    acts = _acts(frame)
    if "INFORM_INTENT" not in acts and "AFFIRM_INTENT" not in acts:
      history.report("intent-change", f"intent {state.active_intent!r} after {intent!r}", acts)
  earlier_values = {} if earlier is None else earlier.slot_values
  if earlier_values.keys() - state.slot_values.keys():
    history.report("state-keeps", "")
  for slot, values in state.slot_values.items():
    if earlier_values.get(slot) != values:  # unchanged values were checked before
      _check_values(history, slot, values, service)
  history.states[frame.service] = state


def _check_values(history: _History, slot: str, values: tuple[str, ...], service: Service) -> None:
  tracked = [service.slots[i].name for i in service.tracked_slots]
  if slot not in tracked:
    history.report("state-slot", f"slot {slot!r} in the state", sorted(tracked))
  if values == (DONTCARE,):
    return
  description = f"slot {slot!r}: {', '.join(values)}"
  if slot in service.noncategorical_slots:
    if not all(value in history.text for value in values):
      history.report("state-free", description)
  elif len(values) != 1 or values[0] not in service.categorical_values[slot]:
    history.report("state-categorical", description, sorted(service.categorical_values[slot]))
  elif history.has_all_acts and values[0] not in history.act_values:
    history.report("state-said", description)


def _check_call(history: _History, frame: Frame, service: Service) -> None:
  call, results = frame.service_call, frame.service_results
  acts = _acts(frame)
  if (call is None) != (results is None):
    history.report(
      "results", f"service {frame.service}: a call without results, or results without a call"
    )
  if call is not None:
    _check_parameters(history, service, call)
    results = results or []
    _check_results(history, call["method"], call["parameters"], results, service)
    history.results.setdefault(frame.service, []).extend(results)
    if not results and ("NOTIFY_SUCCESS" in acts or "NOTIFY_FAILURE" not in acts):
      history.report("notify", f"{len(results)} results and acts {', '.join(acts)}")
  # Older files have no calls either, so that there is nothing to compare acts with.
  is_older = any("canonical_values" not in action for action in frame.actions or ())
  if not is_older:
    notifies = not _NOTIFY.isdisjoint(acts)
    if call is None and notifies:
      history.report("transaction", f"acts {', '.join(acts)}, no service call")
    if (
      call is not None
      and not notifies
      and service.intents[service.intent_index[call["method"]]].is_transactional
    ):
      history.report("transaction", f"acts {', '.join(acts)}, service call")
  # A system may offer, or tell more about, what an earlier call of the service returned.
  results_so_far = history.results.get(frame.service, ())
  for action in frame.actions or ():
    act = action["act"]
    if act in ("OFFER", "INFORM") and not is_older:
      result_values = {result.get(action["slot"]) for result in results_so_far}
      if not result_values.issuperset(action["canonical_values"]):
        history.report("result-source", f"{act}, slot {action['slot']!r}: {action['values']}")
    elif act == "INFORM_COUNT" and results is not None and action["values"] != [str(len(results))]:
      history.report("count", f"INFORM_COUNT {action['values']}, {len(results)} results")


def _check_parameters(history: _History, service: Service, call: Mapping[str, Any]) -> None:
  method, parameters = call["method"], call["parameters"]
  state = history.states[service.name]
  if method != state.active_intent or method not in service.intent_index:
    history.report("call-intent", f"a call to {method!r}", [state.active_intent])
  intent = service.intents[service.intent_index[method]]
  expected_slots = []
  for slot, values in state.slot_values.items():
    is_taken = slot in intent.required_slots or slot in intent.optional_slots
    if is_taken and values != (DONTCARE,):  # any value will do, so none is passed
      expected_slots.append(slot)
  if parameters.keys() != set(expected_slots):
    description = f"{method} called with {', '.join(parameters)}"
    history.report("call-slots", description, sorted(expected_slots))
  if not parameters.keys() >= set(intent.required_slots):
    history.report("call-required", "")
  for slot, value in parameters.items():
    if not isinstance(value, str):
      raise TypeError(f"parameter {slot!r}: {value!r} is not a string")
    if slot in service.categorical_values and (value,) != state.slot_values[slot]:
      description = f"{method} called with slot {slot!r}: {value!r}"
      history.report("call-values", description, state.slot_values[slot])
  if intent.is_transactional:
    user = history.user_frames[service.name]
    if user.actions is not None and "AFFIRM" not in _acts(user):
      history.report("call-affirmed", f"a call to {method!r}", _acts(user))


def _check_results(
  history: _History,
  method: str,
  parameters: Mapping[str, str],
  results: list[dict],
  service: Service,
) -> None:
  intent = service.intents[service.intent_index[method]]
  if len(results) > (1 if intent.is_transactional else MAX_RESULTS):
    history.report("results", f"{len(results)} results of {method}")
  slots = set(intent.result_slots)
  for result in results:
    if result.keys() != slots:
      if unknown_slots := result.keys() - slots:
        description = f"slots {', '.join(sorted(unknown_slots))} in a result of {method}"
        history.report("result-slots", description, sorted(slots))
      history.report("result-all-slots", "")
    for slot, value in result.items():
      if not isinstance(value, str):
        raise TypeError(f"result {slot!r}: {value!r} is not a string")
      description = f"slot {slot!r}: {value!r} in a result of {method}"
      is_categorical = slot in service.categorical_values
      if is_categorical and value not in service.categorical_values[slot]:
        history.report("result-value", description)
      # A free value may be written differently in call and result, which is a rule of its own.
      if parameters.get(slot, value) != value:
        rule = "result-match" if is_categorical else "result-free"
        history.report(rule, description, [parameters[slot]])


def _acts(frame: Frame) -> list[str]:
  return [action["act"] for action in frame.actions or ()]
