"""SpanDST's network in NumPy answers as the Flax network does."""

import concurrent.futures
import math

import jax
import numpy as np
import pytest
import span_frames
import threadpoolctl
from flax import traverse_util
from span_models import CONFIG, batch_of, model, params

from sgdx_t5x.spandst import answers as a
from sgdx_t5x.spandst import numpy_network
from sgdx_t5x.spandst.numpy_network import SpanNetwork, _gelu


def open_frames():
  """Frames in half of which every choice is open, so that random weights take any of them."""
  frames = span_frames.frames(40)
  for frame in frames[::2]:
    frame["slot_context"] = np.full(len(frame["slots"]), 31, np.int32)
  return frames


def network(weights, worded):
  arrays = traverse_util.flatten_dict(jax.device_get(weights), sep="/")
  return SpanNetwork(arrays, CONFIG.num_heads, CONFIG.epsilon, worded, worded)


def is_probability(place):
  return place == 1 or (place >= a.HEAD and (place - a.HEAD) % a.PER_SLOT >= 3)


@pytest.mark.parametrize("worded", [False, True])
def test_answers_are_those_of_flax(worded):
  frames, kinds = open_frames(), set()
  batch, by_flax = batch_of(frames), jax.jit(model(worded).predict_batch_with_aux)
  for seed in range(6):
    weights = params(worded, seed)
    expected, _ = by_flax(weights, batch)
    found = network(weights, worded).answer(frames)
    for vector, row in zip(found, np.asarray(expected).tolist(), strict=True):
      kinds |= set(vector[a.HEAD :: a.PER_SLOT])
      # The row is padded to the longest list of slots.
      for place, (ours, theirs) in enumerate(zip(vector, row, strict=False)):
        assert abs(ours - theirs) <= (20 if is_probability(place) else 0), (seed, place)
  assert {a.SYSTEM, a.SPAN, a.VALUE, a.MEMORY} <= kinds  # otherwise little was compared


def test_frames_do_not_see_each_other():
  frames = open_frames()[:6]
  one = network(params(True), True)
  together, alone = one.answer(frames), [one.answer([frame])[0] for frame in frames]
  np.testing.assert_allclose(np.concatenate(together), np.concatenate(alone), atol=20)


def test_answers_do_not_depend_on_the_number_of_cores(monkeypatch):
  """Frames are batched alike, whatever it is; BLAS has its threads again afterwards."""
  frames, one = open_frames() * 4, network(params(True), True)
  before = threadpoolctl.threadpool_info()
  answers = []
  for number in (1, 4):
    monkeypatch.setattr(numpy_network, "_num_cores", lambda number=number: number)
    answers.append(one.answer(frames))
  assert answers[0] == answers[1]
  assert len(list(numpy_network._batches(frames))) > 4
  assert threadpoolctl.threadpool_info() == before


def test_several_threads_leave_blas_its_threads():
  frames, one = open_frames()[:4], network(params(True), True)
  before = threadpoolctl.threadpool_info()
  with concurrent.futures.ThreadPoolExecutor(4) as threads:
    answers = list(threads.map(one.answer, [frames] * 40))
  assert threadpoolctl.threadpool_info() == before
  assert answers == [answers[0]] * 40


def test_gelu():
  x = np.linspace(-6, 6, 1001, dtype=np.float32)
  expected = [0.5 * v * (1 + math.erf(v / math.sqrt(2))) for v in x.tolist()]
  np.testing.assert_allclose(_gelu(x.copy()), expected, atol=1e-6)
