"""PI: users say the same in other words. Acts, states and values stay; spans move.

Following CheckDST's paraphrases, with three kinds of providers and one filter: `exchange` (another
user's words for the same acts), `templates` (the simulator's) and back-translation. A turn that
says more than its acts ("there", for a value of another service) keeps its words.
"""

import collections
import functools
import pathlib
import random
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.corpus.dialogue import USER
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import UsageError
from sgdx_t5x.papers.checkdst import pi_exchange, pi_templates, pi_translated
from sgdx_t5x.papers.checkdst.answerable import lost_values, stated_values
from sgdx_t5x.papers.checkdst.pi_words import Exchange, NewWords, Provider, refers
from sgdx_t5x.papers.checkdst.split import Line, Perturber, Split
from sgdx_t5x.papers.checkdst.texts import overlap, same_text, span_texts

EXCHANGE, TEMPLATES, TABLE, CHECKPOINT = PROVIDERS = ("exchange", "templates", "table", "hf")
OF_CHECKPOINT = ("pivot", "model", "model_back", "source", "target")
_PIVOT = "zh"


def perturber(
  split: Split,
  seed: int,
  *,
  provider: str = EXCHANGE,
  table: str | None = None,
  pivot: str | None = None,
  **translator: str,
) -> Perturber:
  """Returns the perturber that paraphrases the user turns of a split.

  Args:
    split: what is to be perturbed.
    seed: determines the words of providers that draw them.
    provider: one of PROVIDERS.
    table: the file of provider "table", see `pi_translated.table`.
    pivot: the language of provider "hf"; default "zh".
    translator: further options of it, see `pi_translated.translator`.

  Raises:
    UsageError: no such provider, or options that it does not have.
  """
  options: dict[str, Any] = {"provider": provider}
  needs: tuple[str, ...] = ("spans", "acts")
  _check_options(provider, {"table": table, "pivot": pivot, **translator})
  if provider == EXCHANGE:
    found = pi_exchange.provider(split)
  elif provider == TEMPLATES:
    found = pi_templates.provider(split)
  else:
    needs = ("spans",)
    if table:
      options["table"] = pathlib.Path(table).name
      translate = pi_translated.table(table)
    else:
      options |= {"pivot": pivot or _PIVOT, **translator}
      translate = pi_translated.translator(pivot or _PIVOT, **translator)
    found = pi_translated.provider(split, translate)
  change = functools.partial(_change, found, provider, seed, split.schema)
  return Perturber("pi", options, change, needs, means={"overlap": "turns"})


_OPTIONS = {
  TABLE: ("table",),
  CHECKPOINT: OF_CHECKPOINT,
}


def _check_options(provider: str, options: Mapping[str, Any]) -> None:
  if provider not in PROVIDERS or (provider == TABLE and not options["table"]):
    raise UsageError(
      f"--provider {provider}" + (" without --table FILE" if provider == TABLE else ""),
      expected="a paraphrase provider",
      available=", ".join(PROVIDERS),
      fix="choose one of them; table needs --table FILE",
    )
  for name, value in options.items():
    if value is not None and name not in _OPTIONS.get(provider, ()):
      owners = [other for other, names in _OPTIONS.items() if name in names]
      raise UsageError(
        f"--{name.replace('_', '-')} with --provider {provider}",
        expected=f"--provider {' or '.join(owners)}" if owners else "an option of that provider",
        fix="omit it, or choose the provider that it belongs to",
      )


def _change(
  provider: Provider,
  name: str,
  seed: int,
  schema: Schema,
  data: dict[str, Any],
  counts: collections.Counter,
) -> list[Line]:
  lines, history = [], ""
  exchange = Exchange.of(data)
  stated = stated_values(data, schema)
  for number, turn in enumerate(data["turns"]):
    if turn["speaker"] == USER:
      rng = random.Random(f"{seed}/{data['dialogue_id']}/{number}")
      new = _reworded(provider, exchange, number, rng, stated, history)
      if isinstance(new, str):
        counts["kept", new] += 1
      else:
        share = overlap(turn["utterance"], new.text)
        line = {"dialogue_id": data["dialogue_id"], "turn": number, "provider": name, **new.note}
        lines.append({**line, "overlap": round(share, 4), **put(turn, new)})
        counts["overlap"] += share  # type: ignore[assignment]  # sum for a mean
        counts["turns"] += 1
    history += f"{turn['utterance']}\n"
  return lines


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
  new = provider(exchange, number, rng)
  if isinstance(new, str):
    return new
  before = turn["utterance"]
  if not new.text.strip():
    return "empty"
  if same_text(before, new.text):
    return "same"
  if sorted(span_texts(turn)) != new.span_texts:
    return "lost"
  if lost_values(stated, exchange.data, number, new.text):
    return "lost"  # a value of a state, said outside spans
  lower = before.lower(), new.text.lower(), history.lower()
  if any(v in lower[0] and v not in lower[1] and v not in lower[2] for v in map(str.lower, stated)):
    return "lost"  # one that was only part of a word
  return new


def put(turn: dict[str, Any], new: NewWords) -> dict[str, Any]:
  """Gives a turn other words. Returns the fields that undo it, `utterance` and `spans`."""
  places: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
  for service, slot, start, end in sorted(new.spans, key=lambda span: span[2:]):
    places.setdefault((service, slot, new.text[start:end]), []).append((start, end))
  text, before = turn["utterance"], {}
  for frame in turn["frames"]:
    for span in frame.get("slots") or ():
      old = span["start"], span["exclusive_end"]
      before.setdefault(frame["service"], []).append([*old])
      place = places[frame["service"], span["slot"], text[slice(*old)]].pop(0)
      span["start"], span["exclusive_end"] = place
  turn["utterance"] = new.text
  return {"utterance": text, "spans": before} if before else {"utterance": text}
