"""Test cases for scoring: reproducible predictions with mistakes of every kind.

`tests/fixtures/official/make.py` runs the official scorer on them and records its numbers;
`test_official.py` compares ours. Which mistakes are made depends on a hash of dialogue, turn,
service and slot, so that no other frame, case or Python version affects it. A case that is changed
here must be recorded again.
"""

import dataclasses
import functools
import hashlib
import pathlib
from collections.abc import Callable, Iterator, Mapping

import tiny_corpus

from sgdx_t5x.corpus.conversion import convert_dialogue, renamings
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import USER, Dialogue, Frame, State, Turn, write_dialogues
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import NO_INTENT, Schema, Service

SPLIT = "test"
BACKENDS = ("difflib", "levenshtein", "exact")


@dataclasses.dataclass(frozen=True)
class Case:
  """A set of predictions.

  Attributes:
    corpus: "tiny", "sample", or "sgd" for the real archive.
    variant: the variant whose names the predictions use and whose schemas the official scorer gets.
    salt: a different salt gives different mistakes.
    rate: percentage of values, intents, lists and spans that are wrong.
    untagged: every n-th file of predictions has no spans; 0: all files have spans.
    omit: one dialogue in n is left out; 0: none.
  """

  corpus: str
  variant: str
  salt: str
  rate: int = 15
  untagged: int = 3
  omit: int = 0


# Only the tiny corpus and the real one have turns with two services, and values with two forms.
CASES = {
  "tiny_a": Case("tiny", "original", "a", rate=60),
  "tiny_b": Case("tiny", "original", "b", rate=40, untagged=0),
  "tiny_v3": Case("tiny", "v3", "c", rate=40, untagged=0),
  "sample": Case("sample", "original", "a"),
  "sample_v3": Case("sample", "v3", "b", untagged=1),
  "sample_part": Case("sample", "original", "c", omit=4),
  "sgd": Case("sgd", "original", "a"),
  "sgd_v3": Case("sgd", "v3", "b"),
}


def open_case_corpus(case: Case, folder: pathlib.Path, archive: pathlib.Path | None) -> Corpus:
  """Opens a case's corpus. Args: folder, where to write the tiny one; archive, the real one."""
  if case.corpus == "tiny":
    return open_corpus(tiny_corpus.write_corpus(folder))
  return open_corpus("sample" if case.corpus == "sample" else archive)


def write_predictions(folder: pathlib.Path, corpus: Corpus, case: Case) -> pathlib.Path:
  """Writes a case's predictions as DSTC8 dialogues, one file per dialogue file of the split.

  A split of one file is divided into four, so that some have spans and some do not.
  """
  folder.mkdir(parents=True)
  schema = corpus.schema(SPLIT)
  names = renamings(schema, corpus.schema(SPLIT, case.variant))
  dialogues = list(corpus.dialogues(SPLIT))
  per_file = -(-len(dialogues) // max(4, len(corpus.dialogue_files(SPLIT))))
  for number, start in enumerate(range(0, len(dialogues), per_file), start=1):
    tagged = not case.untagged or number % case.untagged != 0
    predicted = (
      _dialogue(dialogue, schema, case, tagged)
      for dialogue in dialogues[start : start + per_file]
      if not case.omit or _draw(case.salt, case.omit, dialogue.dialogue_id)
    )
    text = write_dialogues(convert_dialogue(dialogue, names) for dialogue in predicted)
    (folder / f"dialogues_{number:03d}.json").write_text(text)
  return folder


def _draw(prefix: str, count: int, *key: object) -> int:
  """A number in [0, count) that depends only on prefix and key."""
  digest = hashlib.blake2b("/".join(map(str, (prefix, *key))).encode(), digest_size=8).digest()
  return int.from_bytes(digest, "big") % count


_Draw = Callable[..., int]  # `_draw` with the prefix of a frame


def _dialogue(dialogue: Dialogue, schema: Schema, case: Case, tagged: bool) -> Dialogue:
  turns = []
  for i, turn in enumerate(dialogue.turns):
    frames = []
    for frame in turn.frames if turn.speaker == USER else ():
      prefix = f"{case.salt}/{dialogue.dialogue_id}/{i}/{frame.service}"
      draw, service = functools.partial(_draw, prefix), schema[frame.service]
      frames.append(_frame(frame, service, turn.utterance, draw, case.rate, tagged))
    turns.append(Turn(turn.speaker, turn.utterance, tuple(frames)))
  return Dialogue(dialogue.dialogue_id, dialogue.services, tuple(turns))


def _frame(
  frame: Frame, service: Service, said: str, draw: _Draw, rate: int, tagged: bool
) -> Frame:
  state = State(
    _intent(frame.state.active_intent, service, draw, rate),
    _requested(frame.state.requested_slots, service, draw, rate),
    dict(_values(frame.state.slot_values, service, draw, rate)),
  )
  spans = list(_spans(frame.slots or [], service, said, draw, rate)) if tagged else None
  return Frame(frame.service, state, spans)


def _intent(gold: str, service: Service, draw: _Draw, rate: int) -> str:
  names = (NO_INTENT, *(intent.name for intent in service.intents))
  return names[draw(len(names), "which intent")] if draw(100, "intent") < rate else gold


def _requested(gold: tuple[str, ...], service: Service, draw: _Draw, rate: int) -> tuple[str, ...]:
  if draw(100, "requested") >= rate:
    return gold
  extra = service.slots[draw(len(service.slots), "extra")].name
  return (gold[1:], (*gold, extra), (*gold, *gold), (extra, extra))[draw(4, "how requested")]


# --- values --------------------------------------------------------------------------------

_NEAR_MISSES = (
  lambda value: value[: len(value) // 2 + 1],  # truncated
  lambda value: " ".join(reversed(value.split())),
  lambda value: f"the {value} please",
  lambda value: value[:1] + value[2:],
  str.upper,
  str.lower,
  lambda value: value.replace(" ", "-") + ".",
  lambda value: value.replace("e", "é"),  # fuzzywuzzy drops the é ...
  lambda value: f"{value} 東京",  # ... and keeps these
  lambda value: "?!",  # nothing is left of it
  lambda value: "dontcare",
  lambda value: "something else",
)


def _values(
  gold: Mapping[str, tuple[str, ...]], service: Service, draw: _Draw, rate: int
) -> Iterator[tuple[str, tuple[str, ...]]]:
  for slot in service.slots:
    wrong = draw(100, slot.name) < rate
    choices = slot.possible_values or ("2", "something else", "dontcare")
    other = choices[draw(len(choices), slot.name, "other")]
    if slot.name not in gold:
      if wrong and not draw(10, slot.name, "extra"):  # most slots are empty
        yield slot.name, (other,)
      continue
    right = gold[slot.name][draw(len(gold[slot.name]), slot.name, "form")]
    near = _NEAR_MISSES[draw(len(_NEAR_MISSES), slot.name, "near")](right)
    if not wrong:
      yield slot.name, (right,)
    elif kind := draw(6, slot.name, "kind"):  # 0: the slot is missing
      yield slot.name, ((right, near), (near, right), (other,), (near,), (near,))[kind - 1]


# --- spans ---------------------------------------------------------------------------------


def _spans(gold: list[dict], service: Service, said: str, draw: _Draw, rate: int) -> Iterator[dict]:
  some = service.slots[draw(len(service.slots), "span slot")].name  # categorical ones too
  for i, span in enumerate(gold):
    slot, start, end = span["slot"], span["start"], span["exclusive_end"]
    right = (slot, start, end)
    again = said.rfind(said[start:end])  # the same text, maybe at another position: correct
    kinds = (
      (),
      ((slot, start + 1, end + 1),),
      ((slot, start, end - 1),),
      ((slot, again, again + end - start),),
      (right, right),
      ((some, start, end),),
      (right, (slot, start, len(said) + 9), (slot, len(said) + 5, len(said) + 9)),
    )
    wrong = draw(100, "span", i) < rate
    for found in kinds[draw(len(kinds), "span kind", i)] if wrong else (right,):
      yield _span(*found)
  if draw(300, "extra span") < rate:
    start = draw(len(said), "extra start")
    yield _span(some, start, start + 8)


def _span(slot: str, start: int, end: int) -> dict:
  return {"slot": slot, "start": start, "exclusive_end": end}
