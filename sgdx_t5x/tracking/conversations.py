"""Tracks one dialogue at a time: from Python, and for the prompt in the terminal."""

import dataclasses
import os
import pathlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from sgdx_t5x.arguments import PATH, checked_arguments
from sgdx_t5x.corpus.dialogue import (
  SYSTEM,
  USER,
  Dialogue,
  Frame,
  Turn,
  check_speakers,
  frame_id,
)
from sgdx_t5x.corpus.schema import Schema, Service, check_aligned, load_schema, parse_schema
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.errors import SgdxError, UsageError, nearest, quoted
from sgdx_t5x.files.reading import read_input
from sgdx_t5x.records.turns import SYSTEM_ACTS
from sgdx_t5x.tracking.opening import open_tracker
from sgdx_t5x.tracking.predicting import check_services, without_gold
from sgdx_t5x.tracking.protocol import Shown, TrackedFrame, Tracker

Utterance = str | tuple[str, Sequence[Mapping[str, Any]]]  # with the system's acts in SGD's format
SchemaLike = Schema | str | os.PathLike | Sequence[Mapping[str, Any]]
States = list[dict[str, TrackedFrame]]
_SCHEMA = (Schema, *PATH, Collection)
_SPLIT = "test"  # used in ids only: nothing is read from it


class DialogueTracker:
  """A tracker for single dialogues, `sgdx_t5x.load_tracker`.

  Attributes:
    tracker: the underlying tracker, see `protocol.Tracker`.
  """

  def __init__(self, tracker: Tracker):
    self.tracker = tracker

  def __repr__(self) -> str:
    return f"<{self.tracker.name}>"

  @checked_arguments(schema=_SCHEMA, variant=_SCHEMA, services=Collection)
  def track(
    self,
    dialogue: Dialogue | Sequence[Utterance],
    schema: SchemaLike,
    *,
    variant: SchemaLike | None = None,
    services: Sequence[str] | None = None,
  ) -> States:
    """Tracks a dialogue.

    Args:
      dialogue: in the names of `schema`, its states are not read; or a list of what the user and
        the system said in turn, the user first: texts, or for the system (text, its acts in SGD's
        format). Where none are given, the SpanDST that ships reads them from the text, a checkpoint
        sees none.
      schema: the schema, decoded, or the path of its file.
      variant: a paraphrased schema to show the model instead.
      services: which services to track if `dialogue` is a list; defaults to all.

    Returns:
      For every user turn: service -> its `TrackedFrame`, with `slot_values` (slot -> values), and
      `active_intent` and `requested_slots` if the tracker predicts them. Names are those of
      `schema`. A slot that no intent requires or accepts has no value.

    Raises:
      SgdxError: a schema that the tracker cannot show its model, a variant that does not align, or
        a dialogue that does not fit the schema.
    """
    original = read_schema(schema)
    name = ORIGINAL if variant is None else "variant"
    view = checked_view(self.tracker, original, name, variant, services)
    if isinstance(dialogue, Dialogue):
      check_speakers(dialogue, f"dialogue {dialogue.dialogue_id}")
    else:
      dialogue = from_utterances(dialogue, original, services)
    return states(self.tracker, dialogue, view)


@checked_arguments(folders=PATH, lengths=Mapping, allow_modules=Collection)
def load_tracker(
  *folders: str | os.PathLike,
  lengths: Mapping[str, int] | None = None,
  allow_modules: Sequence[str] = (),
) -> DialogueTracker:
  """Loads a dialogue tracker: the one that the package ships, or one of your own.

  It has one method, `track(dialogue, schema)`. Without folders, nothing but NumPy is imported. For
  a checkpoint of `t5x.train`, TensorFlow and JAX are, and its configuration replaces gin's in this
  process.

  Args:
    folders: none for the shipped tracker; a folder that `sgdx weights pack` wrote; or checkpoint_N
      or its MODEL_DIR, with the config.gin of training; several, or a folder of several MODEL_DIRs,
      for a tracker of several models.
    lengths: of features, overriding those of training: {"inputs": 512}.
    allow_modules: your own modules that its config.gin may import and call, besides this package
      and those that it builds on: ["my_models"]. A config.gin is run.

  Raises:
    SgdxError: there is no tracker, or its config.gin names other modules.
  """
  return DialogueTracker(open_tracker(*folders, lengths=lengths, allow_modules=allow_modules))


def checked_view(
  tracker: Tracker,
  original: Schema,
  name: str,
  variant: SchemaLike | None = None,
  services: Sequence[str] | None = None,
) -> Shown:
  """Returns a schema as shown to the tracker.

  Args:
    tracker: the tracker.
    original: the schema whose names are used.
    name: of the variant.
    variant: its schema; None for the original itself.
    services: that will be tracked, by their original names; defaults to all.

  Raises:
    SgdxError: the schemas do not align, or a service has no slots or does not fit the tracker.
  """
  schema = original if variant is None else read_schema(variant)
  check_aligned(original, schema)
  view = checked = Shown(_SPLIT, name, original, schema)
  if services is not None:
    # A service that is not tracked may lack slots, or be too long for the model.
    positions = [i for i, service in enumerate(original.names) if service in services]

    def of_tracked(full: Schema) -> Schema:
      return Schema([full.services[i] for i in positions], full.origin)

    checked = Shown(_SPLIT, name, of_tracked(original), of_tracked(schema))
  check_services(checked.schema)
  tracker.check(checked)
  return view


def states(tracker: Tracker, dialogue: Dialogue, shown: Shown) -> States:
  """Returns service -> `TrackedFrame` for every user turn."""
  for turn in dialogue.turns:
    for frame in turn.frames:
      shown.original[frame.service]  # raises if unknown
  frames: dict[str, TrackedFrame] = {}
  # Of a counterfactual only the last turn is scored, but here each is asked for.
  every_turn = dataclasses.replace(without_gold(dialogue), last_only=False)
  for portion in tracker.track([every_turn], shown):
    frames.update(portion)
  states_of_turns: States = []
  for number, turn in enumerate(dialogue.turns):
    if turn.speaker == USER:
      state = {}
      for frame in turn.frames:
        state[frame.service] = frames[frame_id(dialogue.dialogue_id, number, frame.service)]
      states_of_turns.append(state)
  return states_of_turns


def from_utterances(
  utterances: Sequence[Utterance], schema: Schema, services: Sequence[str] | None = None
) -> Dialogue:
  """Returns a dialogue from utterances in turn. Args: see `DialogueTracker.track`."""
  for name in services or ():
    if not isinstance(name, str):
      raise SgdxError(
        f"a service of type {type(name).__name__}: {quoted(name)}",
        expected="the names of services",
        available=", ".join(schema.names),
        fix='pass, for example, services=["Hotels_1"]',
      )
  names = tuple(dict.fromkeys(services if services is not None else schema.names))
  if not names:
    raise SgdxError(
      f"no services to track: {schema.origin} has {', '.join(schema.names) or 'none'}",
      expected="at least one service of the schema",
      fix="name one, or leave the services out to track all",
    )
  if isinstance(utterances, str | Mapping) or not isinstance(utterances, Collection):
    raise SgdxError(
      f"the dialogue is of type {type(utterances).__name__}",
      expected="a list of user and system utterances in turn, or a Dialogue",
      fix="pass [text, text, ...], of a dialogue in SGD's format what its turns say",
    )
  for name in names:
    schema[name]  # raises if unknown
  turns = []
  for number, utterance in enumerate(utterances):
    text, acts = _text_and_acts(utterance, number)
    speaker = SYSTEM if number % 2 else USER
    if acts and speaker == USER:
      raise _unreadable(acts[0], f"utterance {number} is the user's, who has no acts")
    for act in acts or ():
      _check_act(act, schema)
    frames = []
    for name in names:
      # In a system's frame an empty list says that there were no acts, not that they are unknown.
      if acts is None or speaker == USER:
        frames.append(Frame(name))
      else:
        frames.append(Frame(name, actions=_acts_of(acts, name, schema)))
    turns.append(Turn(speaker, text, tuple(frames)))
  return Dialogue("0", names, tuple(turns))


def _text_and_acts(utterance: Any, number: int) -> tuple[str, Sequence[Mapping[str, Any]] | None]:
  """Returns an utterance's text, and its acts if given. Raises SgdxError for another form."""
  if isinstance(utterance, str):
    return utterance, None
  if isinstance(utterance, tuple) and len(utterance) == 2:
    text, acts = utterance
    if isinstance(text, str) and isinstance(acts, list | tuple):
      return text, acts
  raise SgdxError(
    f"utterance {number} is of type {type(utterance).__name__}: {quoted(utterance)}",
    expected="a text, or for the system (text, its acts)",
    fix="pass what the user and the system said in turn: [text, text, ...]",
  )


def _check_act(act: Any, schema: Schema) -> None:
  """Raises SgdxError for an act that no service would be told about."""
  if not isinstance(act, Mapping):
    raise _unreadable(act, f"a {type(act).__name__}, not a dictionary")
  services = [service for service in schema if act.get("service", service.name) == service.name]
  slots, intents = _slots_and_intents(act.get("act"), services)
  slot, values = act.get("slot") or "", act.get("values", [])
  if not services:
    close = nearest(str(act["service"]), schema.names)
  elif act.get("act") not in SYSTEM_ACTS:
    close = nearest(str(act.get("act")), SYSTEM_ACTS, limit=20)
  elif not isinstance(slot, str):
    close = f"slot={slot!r}, which is not a string"
  elif slot not in ("", "intent", *slots):  # an act may be about no slot, or about an intent
    close = nearest(slot, sorted({"intent", *slots}), limit=20)
  elif not isinstance(values, list | tuple) or not all(isinstance(x, str) for x in values):
    close = f"values={values!r}, which is not a list of strings"
  elif act["act"] == "OFFER_INTENT" and (unknown := [x for x in values if x not in intents]):
    close = nearest(unknown[0], intents, limit=20)
  else:
    return
  raise _unreadable(act, close)


def _slots_and_intents(act: Any, services: Iterable[Service]) -> tuple[list[str], list[str]]:
  """Returns the names of slots and intents that an act about some services may have."""
  slots: list[str] = ["count"] if act == "INFORM_COUNT" else []
  intents: list[str] = []
  for service in services:
    slots += service.slot_index
    intents += service.intent_index
  return slots, intents


def _unreadable(act: Any, available: str) -> SgdxError:
  return SgdxError(
    f"a system act that cannot be read: {act}",
    expected="an act in SGD's format, about a slot of the schema",
    available=available,
    fix='pass, for example, {"act": "OFFER", "slot": "city", "values": ["Fresno"]}',
  )


def _acts_of(acts: Sequence[Mapping[str, Any]], service: str, schema: Schema) -> list[dict]:
  """Returns the acts about a service: those that name no other service, nor a slot it lacks."""
  slots = {*schema[service].slot_index, "", "intent"}
  acts_of_service = []
  for act in acts:
    if act.get("service", service) == service and (act.get("slot") or "") in slots:
      acts_of_service.append({key: value for key, value in act.items() if key != "service"})
  return acts_of_service


def read_schema(schema: SchemaLike) -> Schema:
  """Returns a schema. Args: schema, a Schema, decoded JSON, or the path of its file.

  Raises:
    SgdxError: there is no such file, or no service in it, or they are not in SGD's form.
  """
  if isinstance(schema, Schema):
    return schema
  if isinstance(schema, str | os.PathLike):
    path = pathlib.Path(schema)
    parsed = load_schema(read_input(path, "a schema file like SGD's schema.json"), str(path))
  else:
    parsed = parse_schema(dict(schema) if isinstance(schema, Mapping) else list(schema), "schema")
  if not parsed.services:
    raise SgdxError(
      f"{parsed.origin}: no services",
      expected="a list of services in SGD's form",
      fix="add one, docs/first-hour.md shows its form",
    )
  return parsed


def read_acts(text: str, schema: Schema, services: Sequence[str]) -> list[dict[str, Any]]:
  """Parses system acts: "OFFER city=Fresno; REQUEST date; NOTIFY_SUCCESS".

  Args:
    text: acts, separated by semicolons; a value follows "=".
    schema: whose slots are named.
    services: to look for slots in.

  Raises:
    UsageError: an unknown act or slot.
  """
  acts = []
  for part in filter(None, map(str.strip, text.split(";"))):
    act, _, argument = part.partition(" ")
    slot, sign, value = map(str.strip, argument.partition("="))
    slots, intents = _slots_and_intents(act, [schema[name] for name in services])
    # What the act names, to look it up and, if it is unknown, to say what there is.
    kind, name, available = "slot", slot, [*slots, ""]
    if act not in SYSTEM_ACTS:
      kind, name, available = "act", act, list(SYSTEM_ACTS)
    elif act == "OFFER_INTENT":  # intent=NAME or NAME
      slot, sign, value = "intent", "=", value or slot
      kind, name, available = "intent", value, intents
    if name not in available:
      raise UsageError(
        f"{{{part}}}: unknown {kind} {name!r}",
        expected="ACT slot=value; ACT slot; ACT; OFFER_INTENT intent",
        available=nearest(name, filter(None, available), limit=20),
        fix="write, for example, {OFFER city=Fresno; REQUEST date}",
      )
    acts.append({"act": act, "slot": slot, "values": [value] if sign else []})
  return acts
