"""Converts dialogues to a variant's names: the SGD-X conversion, by position.

The rules are those of the official converter (dstc8 repository,
sgd_x/generate_sgdx_dialogues.py as fixed in 2023-08): services, slots and intents are
renamed wherever a dialogue names them; utterances, values and spans stay. Always convert
from the original, never from a variant.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sgdx_t5x import annexes
from sgdx_t5x.corpus.dialogue import Dialogue, Frame, State, Turn
from sgdx_t5x.corpus.schema import Schema, check_aligned

ORIGINAL = "original"
SGDX_VARIANTS = ("v1", "v2", "v3", "v4", "v5")
# Kinds of perturbation of a corpus' dialogues; no variant may have such a name.
PERTURBATIONS = tuple(annexes.table("PERTURBATIONS"))
INTENT_ACTS = ("OFFER_INTENT", "INFORM_INTENT")


def in_order(variants: Iterable[str], own: Iterable[str] = ()) -> list[str]:
  """Sorts names of variants: original, v1 to v5, back-translations, paraphrases, then others.

  Args:
    variants: the names. Others that are not in `own` come last and keep their order.
    own: variants of the user's own, in the order in which the user named them.
  """
  named = dict.fromkeys((*ALL_VARIANTS, *PARAPHRASES, *own))
  places = {variant: i for i, variant in enumerate(named)}
  return sorted(variants, key=lambda variant: places.get(variant, len(places)))


def tagged(kinds: Sequence[str], variant: str) -> str:
  """Returns the name of a perturbed corpus's variant in ids: "ned" for the original, "ned+v3".

  Args:
    kinds: kinds of perturbation, see `Corpus.perturbed`; a corpus without any has plain names.
    variant: of the schema.
  """
  return "+".join([*kinds, *([] if kinds and variant == ORIGINAL else [variant])])


def untagged(name: str) -> tuple[tuple[str, ...], str]:
  """Returns kinds of perturbation and variant of a name that `tagged` made."""
  kinds, rest = [], name.split("+")
  while rest and rest[0] in PERTURBATIONS:
    kinds.append(rest.pop(0))
  return (tuple(kinds), "+".join(rest) or ORIGINAL) if kinds else ((), name)


@dataclasses.dataclass(frozen=True)
class Renaming:
  """Names of one service in one schema -> names in another."""

  service: str
  slots: Mapping[str, str]
  intents: Mapping[str, str]


def renamings(source: Schema, target: Schema) -> dict[str, Renaming]:
  """Returns the renaming of every service of `source`, by its name there.

  Raises:
    SgdxError: the schemas do not align by position.
  """
  check_aligned(source, target)
  return {
    a.name: Renaming(
      b.name,
      {x.name: y.name for x, y in zip(a.slots, b.slots, strict=True)},
      {x.name: y.name for x, y in zip(a.intents, b.intents, strict=True)},
    )
    for a, b in zip(source, target, strict=True)
  }


def convert_dialogue(dialogue: Dialogue, names: Mapping[str, Renaming]) -> Dialogue:
  """Returns the dialogue with all names of `names` replaced; unknown names stay."""
  services = tuple(names[s].service if s in names else s for s in dialogue.services)
  turns = tuple(
    Turn(turn.speaker, turn.utterance, tuple(_frame(f, names) for f in turn.frames))
    for turn in dialogue.turns
  )
  return dataclasses.replace(dialogue, services=services, turns=turns)


def _frame(frame: Frame, names: Mapping[str, Renaming]) -> Frame:
  if frame.service not in names:
    return frame
  to = names[frame.service]
  return Frame(
    service=to.service,
    state=frame.state and _state(frame.state, to),
    slots=frame.slots and [{**s, "slot": to.slots.get(s["slot"], s["slot"])} for s in frame.slots],
    actions=frame.actions and [_action(a, to) for a in frame.actions],
    service_call=frame.service_call
    and {
      **frame.service_call,
      "method": to.intents.get(frame.service_call["method"], frame.service_call["method"]),
      "parameters": _keys(frame.service_call["parameters"], to.slots),
    },
    service_results=frame.service_results and [_keys(r, to.slots) for r in frame.service_results],
  )


def _state(state: State, to: Renaming) -> State:
  return State(
    to.intents.get(state.active_intent, state.active_intent),
    tuple(_names(state.requested_slots, to.slots)),
    _keys(state.slot_values, to.slots),
  )


def _action(action: dict[str, Any], to: Renaming) -> dict[str, Any]:
  if "slot" not in action:
    return action
  # Homes_2 has a real slot called "intent": only in these two acts does it mean an intent.
  if action["slot"] == "intent" and action["act"] in INTENT_ACTS:
    lists: dict[str, list[str]] = {
      k: _names(action[k], to.intents) for k in ("values", "canonical_values") if k in action
    }
    return {**action, **lists}
  return {**action, "slot": to.slots.get(action["slot"], action["slot"])}


def _names(names: Sequence[str], to: Mapping[str, str]) -> list[str]:
  return [to.get(name, name) for name in names]


def _keys(data: Mapping[str, Any], to: Mapping[str, str]) -> dict[str, Any]:
  """Renames keys into a new dict: a new name may equal another original name."""
  return {to.get(key, key): value for key, value in data.items()}


SPLITS = ("train", "dev", "test")


PIVOTS = ("zh", "ja", "ko")


BACK_TRANSLATIONS = tuple(f"bt_{pivot}" for pivot in PIVOTS)


# Shipped for SGD's train services, not part of a corpus. Two sets, of each the nearest first.
FIVE_PARAPHRASES = tuple(f"para_{k}" for k in range(1, 6))  # those of the second study
TEN_PARAPHRASES = tuple(f"para_{k}" for k in range(6, 16))
PARAPHRASES = FIVE_PARAPHRASES + TEN_PARAPHRASES


ALL_VARIANTS = (ORIGINAL, *SGDX_VARIANTS, *BACK_TRANSLATIONS)
