"""PI: users say the same in other words. Acts, states and values stay; spans move.

Following CheckDST's paraphrases, with two providers and one filter: `exchange` (another user's
words for the same acts) and `templates` (the simulator's). A turn that says more than its acts
("there", for a value of another service) keeps its words.
"""

import collections
import random
from collections.abc import Callable, Mapping
from typing import Any

from sgdx_t5x.corpus.dialogue import USER
from sgdx_t5x.papers.checkdst import pi_exchange, pi_templates
from sgdx_t5x.papers.checkdst.answerable import lost_values, stated_values
from sgdx_t5x.papers.checkdst.pi_words import Exchange, NewWords, Provider, refers
from sgdx_t5x.papers.checkdst.split import Line, Perturber, Split
from sgdx_t5x.papers.checkdst.texts import overlap, same_text, span_texts, words

PROVIDERS: Mapping[str, Callable[[Split], Provider]] = {
  "exchange": pi_exchange.provider,
  "templates": pi_templates.provider,
}


def perturber(split: Split, seed: int, *, provider: str = "exchange") -> Perturber:
  """Returns the perturber that paraphrases the user turns of a split.

  Args:
    split: what is to be perturbed.
    seed: determines the words that are drawn.
    provider: key of PROVIDERS.
  """
  schema, provide = split.schema, PROVIDERS[provider](split)

  def change(data: dict[str, Any], counts: collections.Counter) -> list[Line]:
    lines, history, dialogue_id = [], "", data["dialogue_id"]
    exchange, stated = Exchange.of(data), stated_values(data, schema)
    for number, turn in enumerate(data["turns"]):
      if turn["speaker"] == USER:
        rng = random.Random(f"{seed}/{dialogue_id}/{number}")
        wording = _reworded(provide, exchange, number, rng, stated, history)
        if isinstance(wording, str):
          counts["kept", wording] += 1
        else:
          share = overlap(words(turn["utterance"]), words(wording.text))
          line = {"dialogue_id": dialogue_id, "turn": number, "provider": provider, **wording.note}
          lines.append({**line, "overlap": round(share, 4), **put(turn, wording)})
          counts["overlap"] += share  # type: ignore[assignment]  # sum for a mean
      history += f"{turn['utterance']}\n"
    return lines

  return Perturber("pi", {"provider": provider}, change, needs_acts=True)


def _reworded(
  provider: Provider,
  exchange: Exchange,
  number: int,
  rng: random.Random,
  stated: Mapping[str, int],
  history: str,
) -> NewWords | str:
  """Returns other words for a turn, or why it keeps its own."""
  turn = exchange.data["turns"][number]
  if not turn["utterance"].strip():
    return "empty"
  if refers(exchange, number):
    return "carried"
  wording = provider(exchange, number, rng)
  if isinstance(wording, str):
    return wording
  if not wording.text.strip():
    return "empty"
  if same_text(turn["utterance"], wording.text):
    return "same"
  text_before, text_after = turn["utterance"].lower(), f"{history}{wording.text}".lower()
  is_lost = (
    sorted(span_texts(turn)) != wording.span_texts
    # A value of a state that is said outside spans, or as a part of a word.
    or lost_values(stated, exchange.data, number, wording.text)
    or any(value in text_before and value not in text_after for value in map(str.lower, stated))
  )
  return "lost" if is_lost else wording


def put(turn: dict[str, Any], wording: NewWords) -> dict[str, Any]:
  """Gives a turn other words. Returns the fields that undo it, `utterance` and `spans`."""
  places: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
  for service, slot, start, end in sorted(wording.spans, key=lambda span: span[2:]):
    places.setdefault((service, slot, wording.text[start:end]), []).append((start, end))
  text, old_spans = turn["utterance"], {}
  for frame in turn["frames"]:
    for span in frame.get("slots") or ():
      place_before = span["start"], span["exclusive_end"]
      old_spans.setdefault(frame["service"], []).append([*place_before])
      place = places[frame["service"], span["slot"], text[slice(*place_before)]].pop(0)
      span["start"], span["exclusive_end"] = place
  turn["utterance"] = wording.text
  return {"utterance": text, "spans": old_spans} if old_spans else {"utterance": text}
