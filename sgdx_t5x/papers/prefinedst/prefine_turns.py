"""Texts of the pre-finetuning tasks that look at whole dialogues: paraphrase and coreference.

They need users' acts, which the records do not hold, so they are built from a corpus.
"""

import itertools
import random
from collections.abc import Iterator, Mapping

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import USER, Dialogue, Frame, example_pick, frame_id
from sgdx_t5x.corpus.provenance import CARRIED, INFORMED, trace
from sgdx_t5x.corpus.schema import DONTCARE, Service
from sgdx_t5x.papers.checkdst import pi_exchange
from sgdx_t5x.papers.checkdst.pi_words import Exchange, NewWords
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.coco.turn_examples import turn_id
from sgdx_t5x.papers.prefinedst.prefine import Text, history, wording
from sgdx_t5x.prompts.t5dst.text import PromptStyle, base_name, slot_text, utterance_text
from sgdx_t5x.prompts.values import NONE

_STYLE = PromptStyle(values="absent")
_SEED = 1  # for the borrowed wordings; test sets use 0
YES, NO = "yes", "no"
Examples = Iterator[tuple[str, Text]]  # with their ids


def same_meaning(corpus: Corpus, split: str) -> Examples:
  """Yields two user turns -> yes or no.

  Yes: another user's wording of the same acts, with this turn's values, as in the kind `pi`. No:
  another user's wording of all acts but one. Turns without a donor of such a wording are left out.
  """
  perturbable = Split(corpus, split)
  donors = pi_exchange.lenders(perturbable)
  for data in perturbable.dialogues():
    exchange = Exchange.of(data)
    for number, turn in enumerate(data["turns"]):
      if turn["speaker"] != USER:
        continue
      key = turn_id(data["dialogue_id"], number)
      rng = random.Random(f"{_SEED}/{key}")
      paraphrase = pi_exchange.exchanged(perturbable.schema, donors, exchange, number, rng)
      contrast = _less(perturbable, donors, exchange, number, rng)
      for answer, reworded in ((YES, paraphrase), (NO, contrast)):
        if isinstance(reworded, NewWords):
          pair = (utterance_text(USER, text, _STYLE) for text in (turn["utterance"], reworded.text))
          question = f"{' '.join(pair)} {wording('same_meaning', f'{key}/{answer}')}"
          yield key, Text("", question, answer, answer)


def _less(
  split: Split,
  donors: Mapping[tuple, list[pi_exchange.Donor]],
  exchange: Exchange,
  number: int,
  rng: random.Random,
) -> NewWords | None:
  """Returns another user's wording of all but one of a turn's acts, or None if there is none."""
  key = pi_exchange.signature(exchange, number, split.schema)
  borrower = pi_exchange.cut(exchange.data, number)
  if key is None or borrower is None:
    return None
  lenders: list[pi_exchange.Donor] = []
  for fewer_acts in _one_act_less(key):
    donors_of_acts = donors.get(fewer_acts, ())
    lenders += (donor for donor in donors_of_acts if donor.dialogue_id != borrower.dialogue_id)
  turn = exchange.data["turns"][number]
  return pi_exchange.filled(rng.choice(lenders), borrower, turn) if lenders else None


def _one_act_less(key: tuple) -> Iterator[tuple]:
  frames, *heard = key
  for i, (service, acts, spans) in enumerate(frames):
    for j, (_, slot, _) in enumerate(acts):
      remaining_acts = acts[:j] + acts[j + 1 :]
      if not remaining_acts:
        continue
      remaining_slots = {remaining_slot for _, remaining_slot, _ in remaining_acts}
      remaining_spans = tuple(s for s in spans if s != slot or s in remaining_slots)
      yield (*frames[:i], (service, remaining_acts, remaining_spans), *frames[i + 1 :]), *heard


def refers(dialogue: Dialogue, services: Mapping[str, Service]) -> Examples:
  """Yields history + slot -> the earlier slot whose value is meant, as "Hotels city"; or none.

  For each value that a turn carries over from another service (`corpus.provenance`), and for one
  that the user states although another service was talked about before.

  Args:
    dialogue: with users' acts.
    services: of its schema, by name.
  """
  for turn, frame, origins in trace(dialogue):
    name, state = frame_id(dialogue.dialogue_id, turn, frame.service), frame.state
    earlier_frames = itertools.chain.from_iterable(t.frames for t in dialogue.turns[:turn])
    after_others = any(f.service != frame.service for f in earlier_frames)
    entering = {slot: x.source for slot, x in origins.items() if x.turn == turn}
    informed = sorted(s for s, source in entering.items() if source == INFORMED)
    # A value that is stated here, where another service's could be meant: the answer is "none".
    contrast = informed[example_pick(name) % len(informed)] if informed and after_others else None
    for slot, source in entering.items():
      answer = NONE if slot == contrast else None
      if source == CARRIED and state is not None:
        answer = _source(dialogue, turn, frame.service, set(state.slot_values[slot]))
      if answer is not None:
        service = services[frame.service]
        shown_slot = slot_text(service, service.slots[service.slot_index[slot]], _STYLE)
        question = f"{shown_slot} {wording('refers', f'{name}/{slot}')}"
        utterances = [t.utterance for t in dialogue.turns[: turn + 1]]
        yield name, Text(history(utterances), question, answer, slot)


def _source(dialogue: Dialogue, turn: int, service: str, forms: set[str]) -> str | None:
  """Returns the slot of another service with one of these values: in a state, else in an act."""
  if forms == {DONTCARE}:
    return None
  # The latest mention is the one meant; a state says more surely than an act whose value it is.
  frames: list[Frame] = []
  for earlier_turn in reversed(dialogue.turns[: turn + 1]):
    frames += (frame for frame in earlier_turn.frames if frame.service != service)
  for frame in frames:
    for slot, values in frame.state.slot_values.items() if frame.state else ():
      if not forms.isdisjoint(values):
        return f"{base_name(frame.service)} {slot}"
  for frame in frames:
    for action in frame.actions or () if frame.state is None else ():
      values = (*action.get("values", ()), *action.get("canonical_values", ()))
      if action.get("slot") and not forms.isdisjoint(values):
        return f"{base_name(frame.service)} {action['slot']}"
  return None
