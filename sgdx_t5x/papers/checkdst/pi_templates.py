"""Paraphrases by the simulator: its phrases for the acts, with values as the user said them."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import DONTCARE, Service
from sgdx_t5x.papers.checkdst.pi_words import Exchange, NewWords
from sgdx_t5x.papers.checkdst.split import Split
from sgdx_t5x.papers.checkdst.texts import same_text
from sgdx_t5x.papers.simulator.acts import Act, FrameOutline
from sgdx_t5x.papers.simulator.scenarios import Link
from sgdx_t5x.papers.simulator.surface import Surface
from sgdx_t5x.papers.simulator.templates import Templates, read_words

_TRIES = 5  # attempts to differ from the original: "Yes." needs a synonym


def provider(split: Split) -> Callable[..., NewWords | str]:
  """Returns the provider, with words made from the schema's names."""
  schema = split.schema
  services = {service.name: service for service in schema}
  words = read_words(Templates(), schema, services, "no templates")

  def worded(
    exchange: Exchange,
    number: int,
    rng: random.Random,
    carried: Mapping[str, Sequence[str]] | None = None,
  ) -> NewWords | str:
    """Args: carried, service -> slots that are to refer to a value of another service."""
    frames, forms_said = [], {}
    for frame in exchange.data["turns"][number]["frames"]:
      if frame.get("actions") is None:
        return "no-acts"
      service = services[frame["service"]]
      acts = []
      for action in frame["actions"]:
        if action["act"] == "SELECT" and action.get("slot"):
          return "select"  # templates have no phrase for one value among those offered
        acts.append(_act(action, service, forms_said))
      slots = (carried or {}).get(service.name, ())
      if slots and all(act.act != "INFORM_INTENT" for act in acts):
        return "carried"  # only a sentence about an intent goes on with a reference
      links = []
      for slot in slots:
        phrase = f"with the same {words[service.name].slots[slot].noun[0]}"
        links.append(Link((service.name, slot), (service.name, slot), (phrase,)))
      frames.append(FrameOutline(service.name, acts, carried=links))
    requested = [action["slot"] for action in exchange.heard(number) if action["act"] == "REQUEST"]
    utterance = exchange.data["turns"][number]["utterance"]
    for _ in range(_TRIES):
      text, spans = Surface(services, words, rng).user_text(frames, forms_said, requested)
      if not same_text(text, utterance):
        break
    return NewWords(text, spans)

  return worded


def _act(action: Mapping[str, Any], service: Service, forms_said: dict[str, str]) -> Act:
  slot, values = action.get("slot", ""), action.get("values") or []
  canonical = action.get("canonical_values") or values
  if slot in service.noncategorical_slots:
    forms_said |= {c: v for c, v in zip(canonical, values, strict=True) if c != DONTCARE}
  return Act(action["act"], slot, tuple(canonical))
