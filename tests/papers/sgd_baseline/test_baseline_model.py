"""The SGD baseline's model: its seven losses checked by hand, padding, answers."""

import functools

import jax
import numpy as np
import pytest
import seqio

from sgdx_t5x.papers.sgd_baseline import baseline_model
from sgdx_t5x.papers.sgd_baseline.schema_table import SchemaTable
from sgdx_t5x.spandst import answers as a
from sgdx_t5x.spandst.encoder import BertConfig

CONFIG = BertConfig(64, 16, 2, 1, 32, 64, dropout_rate=0.0)
VECTORS = np.random.default_rng(1).normal(size=(9, 16)).astype(np.float32)
TABLE = SchemaTable(tuple((str(i), "") for i in range(9)), VECTORS)
SPAN_OPEN = a.FILLABLE | a.SPAN_OPEN
LENGTHS = {"inputs": 12, "slots": 4, "values": 5, "intents": 3, "targets": 28}
SAME = {"segments": "inputs", "slot_context": "slots", "value_slots": "values"}
# Slot 1 is free text, slot 2 categorical, slot 3 not tracked; rows of the table are arbitrary.
SERVICE = {
  "slots": [2, 5, 7],
  "slot_context": [SPAN_OPEN, a.FILLABLE, 0],
  "values": [3, 4],
  "value_slots": [2, 2],
  "intents": [1, 9],
}
FRAMES = [
  {  # a span, a value, a question, the second intent
    "inputs": [2, 20, 3, 30, 31, 32, 3],
    "segments": [3, 1, 3, 2, 2, 2, 3],
    **SERVICE,
    "targets": [0, a.INTENT, 2, 0, 1, a.SPAN, 3, 4, 2, a.VALUE, 2, 0, 3, a.REQUESTED, 0, 0],
  },
  {  # dontcare, a span update found in neither utterance, no intent
    "inputs": [2, 3, 33, 3],
    "segments": [3, 3, 2, 3],
    **SERVICE,
    "targets": [0, a.INTENT, 0, 0, 2, a.DONTCARE, 0, 0, 1, a.SPAN, 0, 0],
  },
  {  # a service without slots, no label for the intent
    "inputs": [2, 3, 34, 35, 3],
    "segments": [3, 3, 2, 2, 3],
    **{name: [] for name in ("slots", "slot_context", "values", "value_slots")},
    "intents": [8],
    "targets": [],
  },
]


def batch_of(frames, more=0):
  """Model features of frames, padded with `more` further zeros (targets: 4 * `more`)."""
  found = {}
  for name, source in baseline_model.BaselineFeatureConverter.FEATURES.items():
    length = LENGTHS[SAME.get(source, source)]
    length += 4 * more if source == "targets" else more
    rows = [np.pad(frame[source], (0, length - len(frame[source]))) for frame in frames]
    found[name] = np.array(rows, np.int32)
  return found


@functools.cache
def model():
  return baseline_model.BaselineModel(
    module=baseline_model.BaselineTracker(CONFIG, TABLE),
    input_vocabulary=seqio.PassThroughVocabulary(size=64),
    output_vocabulary=seqio.PassThroughVocabulary(size=64),
    optimizer_def=None,
  )


@functools.cache
def params():
  shapes = {name: array.shape for name, array in batch_of(FRAMES).items()}
  # Avoids compiling each of its steps.
  variables = jax.eval_shape(lambda: model().get_initial_variables(jax.random.key(0), shapes))
  rng = np.random.default_rng(0)  # large enough for answers to differ
  return jax.tree.map(
    lambda x: (rng.normal(size=x.shape) * 0.5).astype(np.float32), variables["params"]
  )


@functools.cache
def scores(more=0):
  return jax.device_get(jax.jit(model().scores)(params(), batch_of(FRAMES, more)))


def losses(more=0):
  loss, metrics = jax.jit(functools.partial(model().loss_fn, dropout_rng=None))(
    params(), batch_of(FRAMES, more)
  )
  return float(loss), {name: float(metric.compute()) for name, metric in metrics.items()}


def test_the_loss_is_the_mean_of_seven_means():
  found, (loss, metrics) = scores(), losses()
  logits = found["requested"]
  asked = np.array([[0, 0, 1], [0, 0, 0]])
  expected = {
    "intent": -np.mean([found["intents"][0, 2], found["intents"][1, 0]]),
    "requested": np.mean(np.logaddexp(0, np.where(asked, -1, 1) * logits[:2, :3])),
    "categorical_status": -np.mean([found["statuses"][0, 1, 2], found["statuses"][1, 1, 1]]),
    "value": -found["values"][0, 1, 1],
    "free_status": -np.mean([found["statuses"][0, 0, 2], found["statuses"][1, 0, 2]]),
    "start": -np.mean([found["starts"][0, 0, 3], found["starts"][1, 0, 0]]),
    "end": -np.mean([found["ends"][0, 0, 4], found["ends"][1, 0, 0]]),
  }
  for name, value in expected.items():
    assert metrics[f"loss_{name}"] == pytest.approx(value, rel=1e-5), name
  assert loss == pytest.approx(np.mean(list(expected.values())), rel=1e-5)
  # Per frame: the summed log-likelihood of its labels; 0 for the last one.
  likelihood = jax.jit(model().score_batch)(params(), batch_of(FRAMES))
  assert likelihood[2] == 0
  assert likelihood[1] == pytest.approx(
    found["intents"][1, 0]
    - np.logaddexp(0, logits[1, :3]).sum()
    + found["statuses"][1, 1, 1]
    + found["statuses"][1, 0, 2]
    + found["starts"][1, 0, 0]
    + found["ends"][1, 0, 0],
    rel=1e-5,
  )


def test_a_projection_by_hand():
  """F in equations 1 to 3 of the paper, for the requested slots."""
  tree = params()["requested"]
  bert = params()["encoder"]
  encode = jax.jit(baseline_model.Bert(CONFIG).apply)
  types = np.array([[0, 0, 0, 1, 1, 1, 1]])
  hidden = encode({"params": bert}, np.array([FRAMES[0]["inputs"]]), types=types)
  pooled = np.tanh(np.asarray(hidden[:, 0]) @ bert["pooler"]["kernel"] + bert["pooler"]["bias"])

  def layer(name, x):
    return x @ tree[name]["kernel"] + tree[name]["bias"]

  first = jax.nn.gelu(layer("utterance", pooled[0]))
  both = np.concatenate([VECTORS[5 - 1], first])  # the second slot's row
  expected = layer("logits", jax.nn.gelu(layer("element", both)))
  assert scores()["requested"][0, 1] == pytest.approx(float(expected[0]), rel=1e-3)


@pytest.mark.long
def test_gradients_are_those_of_small_steps_and_schema_embeddings_have_none():
  """Along a random direction, in float32, by central differences."""
  batch = batch_of(FRAMES)
  small = jax.tree.map(lambda x: 0.2 * x, params())
  loss = jax.jit(lambda p: model().loss_fn(p, batch, None)[0])
  gradient = jax.grad(loss)(small)
  rng, step = np.random.default_rng(2), 1e-2
  direction = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(np.float32), small)
  norm = np.sqrt(sum(np.sum(np.square(x)) for x in jax.tree.leaves(direction)))

  def moved(by):
    return loss(jax.tree.map(lambda x, d: x + by * d / norm, small, direction))

  slope = (float(moved(step)) - float(moved(-step))) / (2 * step)
  products = jax.tree.map(lambda g, d: np.vdot(g, d / norm), gradient, direction)
  assert slope == pytest.approx(float(sum(jax.tree.leaves(products))), rel=2e-2)
  assert not any("table" in str(path) for path, _ in jax.tree_util.tree_leaves_with_path(small))
  assert np.abs(gradient["no_intent"]).max() > 0


@pytest.mark.long
def test_padding_changes_nothing():
  loss, longer = losses()[0], losses(more=3)[0]
  assert longer == pytest.approx(loss, rel=1e-5)
  short, long = (
    jax.device_get(jax.jit(model().predict_batch)(params(), batch_of(FRAMES, more)))
    for more in (0, 3)
  )
  size = a.HEAD + a.PER_SLOT * LENGTHS["slots"]
  np.testing.assert_allclose(long[:, :size], short, atol=2)  # in millionths
  assert not long[:, size:].any()
  alone = jax.device_get(jax.jit(model().predict_batch)(params(), batch_of(FRAMES[1:2])))
  np.testing.assert_allclose(alone[0], short[1], atol=2)


def test_answers_are_the_best_choices():
  found, batch = scores(), batch_of(FRAMES)
  vectors = jax.device_get(jax.jit(model().predict_batch)(params(), batch))
  assert vectors.dtype == np.int32
  for i, vector in enumerate(vectors):
    answer = a.read_answer(vector)
    assert answer.intent == found["intents"][i].argmax()
    assert len(answer.slots) == len(FRAMES[i]["slots"])
    for j, slot in enumerate(answer.slots):
      status = found["statuses"][i, j].argmax() if j < 2 else 0
      probability = np.exp(found["statuses"][i, j, status]) if j < 2 else 1
      kinds = {0: a.KEEP, 1: a.DONTCARE, 2: a.SPAN if j == 0 else a.VALUE}
      assert slot.kind == kinds[status]
      logit = found["requested"][i, j]
      assert slot.requested == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-6)
      if slot.kind == a.VALUE:
        assert slot.first == found["values"][i, j].argmax() + 1
        probability *= np.exp(found["values"][i, j].max())
      elif slot.kind == a.SPAN:
        assert FRAMES[i]["segments"][slot.first] == FRAMES[i]["segments"][slot.last]
        probability *= np.exp(found["starts"][i, j, slot.first] + found["ends"][i, j, slot.last])
      assert slot.probability == pytest.approx(probability, abs=2e-6)


def test_token_types_are_berts():
  assert baseline_model.token_types(batch_of(FRAMES)["encoder_segments"]).tolist() == [
    [0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0],
    [0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0],
    [0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0],
  ]
