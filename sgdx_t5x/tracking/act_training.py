"""Trains an `ActReader` on a packed SpanDST, which stays as it is. JAX is needed for this.

The system's turns of SGD's train split teach it, in the original words and in all paraphrases that
ship. Hidden states are computed once; only the small network sees them again and again.
"""

from __future__ import annotations

import math
import operator
import pathlib
import random
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import SYSTEM, Frame
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.corpus.subset import Subset
from sgdx_t5x.corpus.variants import PARAPHRASES
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.records import turns
from sgdx_t5x.records.turns import SYSTEM_ACTS, FrameContext, Gold
from sgdx_t5x.spandst import answers, packed
from sgdx_t5x.spandst.act_reader import ACTS, SlotAct
from sgdx_t5x.spandst.numpy_network import FrameStates
from sgdx_t5x.spandst.span_features import Example, SpanReader
from sgdx_t5x.spandst.span_targets import targets
from sgdx_t5x.spandst.spandst import Choice, value_spans
from sgdx_t5x.spandst.system_turns import system_context, system_example
from sgdx_t5x.tracking.packed import PackedModel
from sgdx_t5x.variants.shipped import shipped_schema

Arrays = dict[str, np.ndarray]
_TRAIN_DIALOGUES, _DEV_DIALOGUES = 4000, 60
_KINDS = {SYSTEM_ACTS[act]: act for act in ACTS if act != turns.NONE}  # by name
_AT_ONCE = 512  # frames between two updates of the progress
_ALL_ROWS = 10_000  # more than a frame's targets have
_HIDDEN, _EPOCHS, _BATCH, _LEARNING_RATE = 256, 10, 32, 1e-3
_NOTHING = -1  # the place of a value that a slot does not have: it does not count in the loss


def train_acts(folder: pathlib.Path, corpus: Corpus, update: Callable[..., None]) -> float:
  """Writes acts.npz into a packed folder.

  Args:
    folder: config.json and weights.npz, as `packed.write` wrote them.
    corpus: SGD, or one like it: with train, dev, and the system's acts.
    update: of `cli.progress`.

  Returns:
    What `share_read` then returns.

  Raises:
    SgdxError: the corpus has no train, no dev, or no system turns with acts in one of them.
  """
  config, tracker = packed.read(folder)
  model = PackedModel(folder)
  _system_turns(model, corpus, "dev", _DEV_DIALOGUES)  # raises before half an hour of training
  examples, right = _system_turns(model, corpus, "train", _TRAIN_DIALOGUES)
  states: list[FrameStates] = []
  for start in range(0, len(examples), _AT_ONCE):
    features = [example.features for example in examples[start : start + _AT_ONCE]]
    for state in model.network.states(features):
      states.append(FrameStates(*(x.astype(np.float16) for x in state)))
    update("reading system turns of train", len(states), len(examples))
  arrays = _fit(states, right, tracker)
  packed.write_acts(folder, config.digest, arrays)
  return share_read(PackedModel(folder), corpus)


def share_read(model: PackedModel, corpus: Corpus) -> float:
  """Returns in which share of dev's system turns all acts are read rightly and no other, in [0, 1].

  Args:
    model: with an `ActReader`.
    corpus: with dev, and the system's acts; a random sample of 60 dialogues is read.
  """
  assert model.act_reader is not None
  examples, right = _system_turns(model, corpus, "dev", _DEV_DIALOGUES)
  acts_read = model.act_reader([example.features for example in examples])
  return sum(map(operator.eq, acts_read, right)) / len(right)


def _system_turns(
  model: PackedModel, corpus: Corpus, split: str, number: int
) -> tuple[list[Example], list[list[SlotAct]]]:
  """Returns the system's turns in a random sample of dialogues, each in one wording at random.

  Args:
    model: what they are read with.
    corpus: with the system's acts.
    split: of the corpus.
    number: of dialogues; all if the split has fewer.

  Returns:
    The turns' examples, and the right act of each of their slots.

  Raises:
    SgdxError: there is no such turn, or its acts are not annotated.
  """
  schema = corpus.schema(split)
  wordings = [schema]
  for name in PARAPHRASES:  # of SGD's train split only
    if reworded := shipped_schema(schema, name):
      wordings.append(reworded)
  readers = [SpanReader(x, model.vocabulary, model.style, model.lengths) for x in wordings]
  rng, examples, right = random.Random(0), [], []
  number = min(number, sum(1 for _ in corpus.dialogues(split)))
  for dialogue in Subset(corpus, {split: number}).dialogues(split):
    turns.check_acts(dialogue, f"{corpus.source}: {split}", "an ActReader")
    for i, turn in enumerate(dialogue.turns):
      for frame in turn.frames if turn.speaker == SYSTEM else ():
        context = system_context(dialogue, i, frame.service, schema)
        example = system_example(rng.choice(readers), context)
        examples.append(example)
        right.append(right_acts(frame, schema[frame.service], context, example))
  if not examples:
    raise SgdxError(
      f"{corpus.source}: {split} has no system turns",
      expected="dialogues of train and dev in which the system answers",
      fix="pass such a corpus, SGD for example; or leave it out to pack the tracker alone",
    )
  return examples, right


def right_acts(
  frame: Frame, service: Service, context: FrameContext, example: Example
) -> list[SlotAct]:
  """Returns the right act of each slot shown.

  A slot with several values, or with one that is not said, has none: it could not be read.

  Args:
    frame: of the system's turn, with acts and spans.
    service: in the original schema.
    context, example: of `system_turns`.
  """
  # By the user: the example has the system's utterance in the user's place.
  gold = Gold(turns.NONE, (), {}, tuple(turns.spans_of(frame, service, by_user=True)))
  kinds: dict[int, int] = {}  # position of a slot -> act
  labels: dict[int, Sequence[Choice]] = {}
  for act in frame.actions or ():
    kind, position = _KINDS.get(act.get("act", "")), service.slot_index.get(act.get("slot", ""))
    if position is None or kind is None:  # such as a corpus' own act
      continue
    kinds[position] = kind
    values = act.get("values", ())
    if kind != turns.REQUEST and len(values) == 1:
      labels[position] = _choices(service, position, context, gold, values)
  places = {}  # number of a slot -> where its value is
  _, _, start = example.user
  rows = answers.target_rows(targets(example, labels, gold, limit=_ALL_ROWS))
  for number, kind, first, last in rows:
    if kind == answers.VALUE:
      places.setdefault(number, {"value": first})
    elif kind == answers.SPAN:
      places.setdefault(number, {"first": first - start, "last": last - start})
  acts_of_slots = []
  for number, position in enumerate(example.slots, start=1):
    act = kinds.get(position, turns.NONE)
    if act == turns.REQUEST:
      acts_of_slots.append(SlotAct(act))
    elif number in places:
      acts_of_slots.append(SlotAct(act, **places[number]))
    else:
      acts_of_slots.append(SlotAct(turns.NONE))
  return acts_of_slots


def _choices(
  service: Service, position: int, context: FrameContext, gold: Gold, values: Sequence[str]
) -> list[Choice]:
  """Returns where a value of the system is: a possible value, or spans of its utterance."""
  slot = service.slots[position]
  if not slot.is_categorical:
    return value_spans(position, context, gold, values, by_user=True)
  possible = [value.casefold() for value in slot.possible_values]
  value = values[0].casefold()
  return [Choice(answers.VALUE, possible.index(value))] if value in possible else []


def _fit(states: Sequence[FrameStates], right: Sequence[list[SlotAct]], tracker: Arrays) -> Arrays:
  """Returns the arrays of an `ActReader`, trained with Adam. Args: tracker, its arrays."""
  slots = np.concatenate([state.slots for state in states]).astype(np.float32)
  mean, deviation = slots.mean(axis=0), slots.std(axis=0) + 1e-3
  width = len(mean)
  rng = np.random.default_rng(0)
  params = {
    "hidden/kernel": rng.normal(0, width**-0.5, (width, _HIDDEN)).astype(np.float32),
    "hidden/bias": np.zeros(_HIDDEN, np.float32),
    "logits/kernel": np.zeros((_HIDDEN, len(ACTS)), np.float32),
    "logits/bias": np.zeros(len(ACTS), np.float32),
  }
  for name in ("starts", "ends"):  # from where the tracker looks for the user's values
    for part in ("kernel", "bias"):
      params[f"{name}/{part}"] = tracker[f"{name}/query/{part}"]
  num_steps = _EPOCHS * math.ceil(len(states) / _BATCH)
  rate = optax.warmup_cosine_decay_schedule(0, _LEARNING_RATE, num_steps // 20, num_steps)
  optimizer = optax.adam(rate)
  state = optimizer.init(params)

  @jax.jit
  def step(params: Any, state: Any, batch: Any) -> Any:
    updates, state = optimizer.update(jax.grad(_loss)(params, batch), state, params)
    return optax.apply_updates(params, updates), state

  sizes = max(map(len, right)), max(len(state.user) for state in states)
  for _ in range(_EPOCHS):
    order = rng.permutation(len(states))
    for start in range(0, len(order), _BATCH):
      rows = order[start : start + _BATCH]
      batch = _batch([states[row] for row in rows], [right[row] for row in rows], *sizes)
      batch["normed"] = (batch["slots"] - mean) / deviation
      params, state = step(params, state, batch)
  arrays = {name: np.asarray(array) for name, array in params.items()}
  # The reader gets states as they are: their mean and deviation go into the first layer.
  kernel = arrays["hidden/kernel"] / deviation[:, None]
  arrays["hidden/bias"] = arrays["hidden/bias"] - mean @ kernel
  return arrays | {"hidden/kernel": kernel}


def _batch(
  states: Sequence[FrameStates], right: Sequence[list[SlotAct]], num_slots: int, num_pieces: int
) -> Arrays:
  """Returns turns as padded arrays: B turns, S slots, L pieces, E width."""
  width = states[0].slots.shape[-1]
  batch: Arrays = {
    "slots": np.zeros((_BATCH, num_slots, width), np.float32),
    "pieces": np.zeros((_BATCH, num_pieces, width), np.float32),
    "is_piece": np.zeros((_BATCH, 1, num_pieces), bool),
  }
  for name in ("kinds", "firsts", "lasts"):
    batch[name] = np.full((_BATCH, num_slots), _NOTHING)
  for row, (state, acts) in enumerate(zip(states, right, strict=True)):
    batch["slots"][row, : len(acts)] = state.slots
    batch["pieces"][row, : len(state.user)] = state.user
    batch["is_piece"][row, 0, : len(state.user)] = True
    batch["kinds"][row, : len(acts)] = [ACTS.index(act.act) for act in acts]
    batch["firsts"][row, : len(acts)] = [act.first for act in acts]
    batch["lasts"][row, : len(acts)] = [act.last for act in acts]
  return batch


def _loss(params: Any, batch: Any) -> jax.Array:
  """Negative log likelihood of a turn: of its slots' acts, and of their first and last pieces."""

  def dense(name: str, x: Any) -> jax.Array:
    return x @ params[f"{name}/kernel"] + params[f"{name}/bias"]

  logits = {"kinds": dense("logits", jax.nn.relu(dense("hidden", batch["normed"])))}
  root = batch["slots"].shape[-1] ** 0.5
  for label, name in (("firsts", "starts"), ("lasts", "ends")):
    scores = dense(name, batch["slots"]) @ batch["pieces"].swapaxes(1, 2) / root
    logits[label] = jnp.where(batch["is_piece"], scores, -1e9)
  total = jnp.float32(0)
  for label, scores in logits.items():
    places = batch[label][..., None]
    right = jnp.take_along_axis(jax.nn.log_softmax(scores), places, axis=-1)
    total -= (right * (places != _NOTHING)).sum()
  return total / len(batch["slots"])
