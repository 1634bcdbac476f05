"""The span tracker's model: its loss by hand, packed rows, and answers."""

import functools

import jax
import numpy as np
import pytest
import span_frames
import tensorflow as tf
from span_models import batch_of, model, params

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst import answers as a
from sgdx_t5x.spandst import features, heads

PACKED = {**{name: 3 * n for name, n in span_frames.LENGTHS.items()}, "inputs": 96, "segments": 96}


@functools.cache
def scores_of(pack):
  batch = batch_of(span_frames.frames(7), pack, PACKED if pack else None)
  run = jax.jit(lambda batch: model().module.apply({"params": params()}, batch))
  return jax.device_get(run(batch)), batch


@functools.cache
def compiled(method):
  return jax.jit(getattr(model(), method))


def loss_by_hand(frame, scores, row):
  """The negative log-likelihood of a frame's targets, computed row by row."""
  choices, starts, ends = (scores[name][row] for name in ("choices", "starts", "ends"))
  right = {slot: [] for slot in range(1, 1 + len(frame["slots"]))}
  asked, total = set(), 0.0
  for slot, kind, first, last in frame["targets"].reshape(-1, 4).tolist():
    if kind == a.SPAN:
      value = choices[slot - 1, 4] + starts[slot - 1, first] + ends[slot - 1, last]
    elif kind == a.VALUE:
      value = choices[slot - 1, 5 + first - 1]
    elif kind == a.REQUESTED:
      asked.add(slot)
      continue
    elif kind == a.INTENT:
      total -= scores["intents"][row, 0, first]
      continue
    right[slot].append(value)
  for slot, values in right.items():
    total -= np.logaddexp.reduce(values) if values else choices[slot - 1, 0]
    logit = scores["requested"][row, slot - 1]
    total += np.log1p(np.exp(-logit if slot in asked else logit))
  return total


def test_loss_is_the_marginal_likelihood():
  frames = span_frames.frames(7)
  # One slot with two correct spans.
  first = frames[0]
  first["targets"] = np.array(
    [[1, a.SPAN, 1, 2], [1, a.SPAN, 4, 4], [0, a.INTENT, 1, 0]], np.int32
  ).reshape(-1)
  batch = batch_of(frames)
  scores, _ = scores_of(False)
  expected = np.mean([loss_by_hand(frame, scores, i) for i, frame in enumerate(frames)])
  loss, metrics = jax.jit(functools.partial(model().loss_fn, dropout_rng=None))(params(), batch)
  np.testing.assert_allclose(loss, expected, rtol=1e-5)
  assert metrics["loss"].compute() == loss
  likelihood = compiled("score_batch")(params(), batch)
  np.testing.assert_allclose(likelihood.mean(), -expected, rtol=1e-5)


def test_probabilities_sum_to_one_and_closed_answers_have_none():
  scores, batch = scores_of(False)
  for name in ("choices", "starts", "ends"):
    total = np.exp(scores[name]).sum(axis=-1)[batch["slots"] > 0]
    np.testing.assert_allclose(total, 1.0, rtol=1e-5)
  choices = scores["choices"]
  closed = heads.CLOSED
  assert (choices[:, 3, 1:] == closed).all()  # not fillable
  assert (choices[:, 0, 2] == closed).all()  # CLEAR for an empty slot
  assert (choices[:, 1, 2] > closed).all()
  assert (choices[:, 2, 4] == closed).all()  # SPAN for a categorical slot
  assert (choices[:, 0, 5:11] == closed).all()  # values of another slot
  assert (choices[:, 0, 11] > closed).all()  # memory
  outside = ~np.isin(batch["encoder_segments"], [a.SYSTEM_UTTERANCE, a.USER_UTTERANCE])
  assert (scores["starts"][:, 0][outside] == closed).all()


def test_rows_that_cannot_be_answered_count_for_nothing():
  frames = span_frames.frames(7)
  plain = [[1, a.SPAN, 1, 2], [0, a.INTENT, 1, 0]]
  wrong = [[4, a.DONTCARE, 0, 0], [1, a.SPAN, 1, 900], [3, a.VALUE, 5, 0], [9, a.KEEP, 0, 0]]
  losses = []
  for rows in (plain, [*wrong, *plain]):
    frames[0]["targets"] = np.array(rows, np.int32).reshape(-1)
    losses.append(compiled("score_batch")(params(), batch_of(frames)))
  np.testing.assert_allclose(*losses, rtol=1e-6)


@pytest.mark.parametrize("worded", [pytest.param(False, marks=pytest.mark.long), True])
def test_packed_frames_have_the_loss_they_have_alone(worded):
  frames = span_frames.frames(7)
  alone, packed = batch_of(frames), batch_of(frames, True, PACKED)
  assert len(packed["slots"]) < len(alone["slots"])
  assert packed["encoder_frames"].max() == 3
  score = jax.jit(
    lambda batch: sum(
      v.sum()
      for v in model(worded)
      .likelihoods(model(worded).module.apply({"params": params(worded)}, batch), batch)
      .values()
    )
  )
  np.testing.assert_allclose(score(packed), score(alone), rtol=1e-5)


def test_rows_alone_are_as_many_as_examples_before_they_are_read():
  """Google's T5X calls `len` on a dataset whose examples SeqIO has cached."""
  frames = [
    {name: np.asarray(frame[name], np.int32) for name in features.TASK_FEATURES}
    for frame in span_frames.frames(3)
  ]
  ragged = {name: tf.ragged.constant([f[name].tolist() for f in frames]) for name in frames[0]}
  ds = tf.data.Dataset.from_tensor_slices(ragged)
  converter = features.SpanFeatureConverter(pack=False)
  assert len(converter(ds, span_frames.LENGTHS)) == 3
  assert converter(ds.repeat(), span_frames.LENGTHS).cardinality() == tf.data.INFINITE_CARDINALITY


def test_packing_keeps_every_frame_and_no_row_overflows():
  frames = span_frames.frames(300, seed=3)
  packed = batch_of(frames, True, PACKED)
  tokens = sorted(np.concatenate([frame["inputs"] for frame in frames]).tolist())
  found = packed["encoder_input_tokens"]
  assert sorted(found[packed["encoder_frames"] > 0].tolist()) == tokens
  assert (packed["slots"] > 0).sum() == 4 * len(frames)
  # Slot positions point to slot markers, also in rows that pack several frames.
  at = np.take_along_axis(found, packed["slots"], axis=1)[packed["slots"] > 0]
  assert (at == span_frames.MARK_SLOT).all()
  assert (packed["encoder_frames"] > 0).mean() > 0.8


def brute_force_span(starts, ends, segments, longest):
  best, found = -np.inf, None
  for i in range(len(starts)):
    for j in range(i, min(i + longest, len(starts))):
      if segments[i] == segments[j] and starts[i] + ends[j] > best:
        best, found = starts[i] + ends[j], (i, j)
  return found, best


def test_answers_are_the_best_choices():
  scores, batch = scores_of(False)
  vectors = jax.device_get(compiled("predict_batch")(params(), batch))
  assert vectors.dtype == np.int32
  assert vectors.shape == (7, 2 + 6 * 4)
  kinds = set()
  for row, vector in enumerate(vectors):
    found = a.read_answer(vector)
    assert len(found.slots) == 4
    assert found.intent == scores["intents"][row, 0].argmax()
    for slot, answer in enumerate(found.slots):
      choices = scores["choices"][row, slot]
      best, probability = choices.argmax(), choices.max()
      kinds.add(answer.kind)
      assert answer.keep == pytest.approx(np.exp(choices[0]), abs=1e-6)
      logit = scores["requested"][row, slot]
      assert answer.requested == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-6)
      if best == 4:
        (first, last), of_span = brute_force_span(
          scores["starts"][row, slot], scores["ends"][row, slot], batch["encoder_segments"][row], 14
        )
        assert (answer.kind, answer.first, answer.last) == (a.SPAN, first, last)
        probability = probability + of_span
      elif best >= 5:
        kind, first = (a.VALUE, best - 4) if best < 11 else (a.MEMORY, best - 10)
        assert (answer.kind, answer.first) == (kind, first)
      else:
        assert answer.kind == best + 1
      assert answer.probability == pytest.approx(np.exp(probability), abs=1e-6)
  assert len(kinds) > 2


def test_spans_of_at_most_some_tokens():
  rng = np.random.default_rng(1)
  starts, ends = (np.log(rng.random((2, 3, 9))).astype(np.float32) for _ in range(2))
  segments = np.array([[3, 1, 1, 1, 3, 2, 2, 2, 2], [1, 1, 1, 1, 1, 1, 1, 1, 1]])
  for longest in (1, 2, 20):
    first, last, best = jax.device_get(heads.best_spans(starts, ends, segments, longest))
    for i in range(2):
      for j in range(3):
        found, score = brute_force_span(starts[i, j], ends[i, j], segments[i], longest)
        assert (first[i, j], last[i, j]) == found
        assert best[i, j] == pytest.approx(score)


def test_padding_slots_have_no_answer():
  frames = span_frames.frames(7)
  frames[0]["slots"], frames[0]["slot_context"] = frames[0]["slots"][:2], np.zeros(2, np.int32)
  vector = compiled("predict_batch")(params(), batch_of(frames))[0]
  assert [answer.kind for answer in a.read_answer(vector).slots] == [a.KEEP, a.KEEP]


def test_inputs_longer_than_the_positions():
  shapes = {name: (2, 80) for name in features.MODEL_FEATURES}
  with pytest.raises(SgdxError, match="of 80 tokens, 16 more"):
    model().get_initial_variables(jax.random.key(0), shapes)
