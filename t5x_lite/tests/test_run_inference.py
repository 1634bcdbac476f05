"""Bucketed, deduplicated inference equals the plain path; batches are planned as documented."""

import collections
import functools
import itertools
import json
import time

import gin
import jax
import numpy as np
import pytest
import tensorflow as tf
from run_scripts import EIGHT_DEVICES
from tiny_model import tiny_model

from t5x import decoding, models, partitioning, utils
from t5x import infer as infer_script
from t5x._infer import inference, journal, packed_rows, rows, staged_decode
from t5x._infer import setup as infer_setup
from t5x._infer.overlap import OverlappedCalls
from t5x._process.progress import InferenceProgress
from t5x._process.read_ahead import ReadAhead
from t5x.errors import T5XError

LENGTH, TARGETS = 48, 18


@pytest.fixture(autouse=True)
def few_lengths(monkeypatch):
  """Compiling for many padded lengths takes most of these tests' time."""
  monkeypatch.setitem(rows._COMPILE_COST, "cpu", 1.0)


@pytest.fixture(scope="module")
def setup():
  model = tiny_model(decoding.beam_search)
  partitioner = partitioning.PjitPartitioner(num_partitions=1)
  names = (
    "encoder_input_tokens",
    "decoder_input_tokens",
    "decoder_target_tokens",
    "decoder_loss_weights",
  )
  lengths = (LENGTH, TARGETS, TARGETS, TARGETS)
  initializer = utils.TrainStateInitializer(
    optimizer_def=None,
    init_fn=model.get_initial_variables,
    input_shapes={n: (2, k) for n, k in zip(names, lengths, strict=True)},
    partitioner=partitioner,
  )
  state = initializer.from_scratch(jax.random.PRNGKey(45))  # whose answers end at many lengths
  rng = np.random.default_rng(0)
  examples = []
  for i in range(23):
    inputs = np.zeros(LENGTH, np.int32)
    size = int(rng.integers(1, LENGTH + 1)) if i % 3 else int(rng.integers(1, 12))
    inputs[:size] = rng.integers(3, 200, size)
    targets = np.zeros(TARGETS, np.int32)
    targets[: 1 + i % TARGETS] = rng.integers(3, 200, 1 + i % TARGETS)
    examples.append(
      {
        "encoder_input_tokens": inputs,
        "decoder_input_tokens": np.concatenate([[0], targets[:-1]]).astype(np.int32),
        "decoder_target_tokens": targets,
        "decoder_loss_weights": (targets > 0).astype(np.int32),
      }
    )
  examples[20] = examples[4]
  stacked = {k: np.stack([e[k] for e in examples]) for k in examples[0]}
  ds = tf.data.Dataset.from_tensor_slices(stacked).enumerate()
  infer_fn = functools.partial(
    utils.get_infer_fn, train_state_axes=initializer.train_state_axes, partitioner=partitioner
  )
  return infer_fn, state, ds


DECODES = {
  "greedy": (functools.partial(decoding.temperature_sample, topk=1), {}),
  "packed": (functools.partial(decoding.temperature_sample, topk=1), {}),
  "beam1": (decoding.beam_search, {}),
  "beam3": (decoding.beam_search, {"num_decodes": 3, "return_all_decodes": True}),
}


@pytest.mark.parametrize(
  ("kind", "batch_size"),
  [
    pytest.param("greedy", 4, marks=pytest.mark.long),
    pytest.param("greedy", 32, marks=pytest.mark.long),
    pytest.param("beam1", 8, marks=pytest.mark.long),
    pytest.param("beam3", 4, marks=pytest.mark.long),
    ("packed", 4),
    pytest.param("packed", 32, marks=pytest.mark.long),
    ("score", 8),
  ],
)
def test_equal_to_the_plain_path(setup, monkeypatch, kind, batch_size):
  if kind == "packed":  # inputs of up to 24 tokens in rows of 24, longer ones in 48
    monkeypatch.setattr(models.EncoderDecoderModel, "gains_by_packing", lambda *_: True)
    monkeypatch.setattr(packed_rows, "_LENGTH", 24)
    monkeypatch.setattr(packed_rows, "_TOKENS", 96)
    monkeypatch.setattr(inference, "_BATCHES_PER_WINDOW", 3)  # of 4: the rows come in two windows
    monkeypatch.setattr(models, "_NARROW", 0)  # caches keys and values, as wide networks do
  monkeypatch.setattr(staged_decode, "_SHORT_DECODE", 8)
  monkeypatch.setitem(staged_decode._FIRST_STOP, True, 8)
  infer_fn, state, ds = setup
  decode_fn, kwargs = DECODES.get(kind, (decoding.beam_search, {}))
  model = tiny_model(decode_fn)
  step = model.score_batch if kind == "score" else model.predict_batch_with_aux
  if kwargs:

    def step(params, batch, rng=None, segment=None):
      return model.predict_batch_with_aux(params, batch, rng, segment=segment, **kwargs)

  def run(size, **kwargs):
    fn = infer_fn(step, size, **kwargs)
    return fn(ds, state), fn.inference.stats

  plain, plain_stats = run(23, efficient=False)
  fast, stats = run(batch_size)
  assert (plain_stats["rows_run"], stats["rows_run"]) == (23, 22)  # two examples are equal
  if kind == "score":
    assert [i for i, _ in fast] == list(range(23))
    np.testing.assert_allclose([s for _, s in fast], [s for _, s in plain], rtol=1e-5)
    return
  lengths = collections.Counter(np.argmax(np.asarray(d) == 1, axis=-1).max() for _, d in plain[0])
  assert len(lengths) > 3  # some rows leave early, some late: else this tests nothing
  assert fast[0] == plain[0]
  np.testing.assert_allclose(fast[1]["scores"], plain[1]["scores"], rtol=1e-5)


def test_sampling_takes_the_plain_steps_and_repeats_equal_inputs(setup):
  infer_fn, state, ds = setup
  model = tiny_model(functools.partial(decoding.temperature_sample, topk=0))
  fn = infer_fn(model.predict_batch, 32)
  outputs = dict(fn(ds, state, rng=jax.random.PRNGKey(5)))
  assert fn.inference.stats["rows_run"] == 23
  assert outputs[4] != outputs[20]  # equal inputs, sampled independently
  assert outputs == dict(fn(ds, state, rng=jax.random.PRNGKey(5)))


def test_prompts_that_are_passed_on_are_part_of_the_input(setup):
  """Gin is not the only way to set `prompt_with_targets`."""

  class Prompted(models.EncoderDecoderModel):
    def predict_batch(self, params, batch, rng=None, **kwargs):
      return super().predict_batch(params, batch, rng=rng, prompt_with_targets=True, **kwargs)

  infer_fn, state, ds = setup
  model = tiny_model(functools.partial(decoding.temperature_sample, topk=1))
  assert inference._reads_inputs_alone(model.predict_batch)
  assert not inference._reads_inputs_alone(Prompted.predict_batch.__get__(model))
  prompted = functools.partial(model.predict_batch_with_aux, prompt_with_targets=True)
  examples = [x for _, x in ds.take(4).as_numpy_iterator()]
  for x in examples:
    x["encoder_input_tokens"] = examples[0]["encoder_input_tokens"]
  stacked = {k: np.stack([x[k] for x in examples]) for k in examples[0]}
  alike = tf.data.Dataset.from_tensor_slices(stacked).enumerate()

  def run(efficient):
    return infer_fn(prompted, 4, efficient=efficient)(alike, state)[0]

  assert run(True) == run(False)


class _Stopped(Exception):
  """What a stop request raises between two batches."""


def _stops_at(number):
  """Returns a `check_stop` that raises `_Stopped` at this call, counted from 1."""
  calls = itertools.count(1)

  def check_stop():
    if next(calls) == number:
      raise _Stopped

  return check_stop


def test_samples_after_a_stop_are_not_those_before(setup, tmp_path):
  """Equal inputs, of which half were sampled before the run was stopped."""
  infer_fn, state, ds = setup
  model = tiny_model(functools.partial(decoding.temperature_sample, topk=0))
  example = next(iter(ds))[1]
  equal = tf.data.Dataset.from_tensors(example).repeat(16).enumerate()
  kept = journal.Journal(str(tmp_path / "task"), "0a1b")
  step = model.predict_batch
  stopped = infer_fn(step, 8, check_stop=_stops_at(2))
  with pytest.raises(_Stopped):
    stopped(equal, state, journal=kept)
  assert len(kept.read()) == 8
  outputs = infer_fn(step, 8)(equal, state, journal=kept)
  kept.close(complete=True)
  assert len({str(output) for _, output in outputs}) == 16


@pytest.mark.parametrize(
  "kind",
  [
    pytest.param("predict_batch", marks=pytest.mark.long),
    pytest.param("predict_batch_with_aux", marks=pytest.mark.long),
    "score_batch",
  ],
)
def test_a_run_that_was_stopped_goes_on_where_it_was(setup, tmp_path, kind):
  infer_fn, state, ds = setup
  model = tiny_model(functools.partial(decoding.temperature_sample, topk=1))

  def run(folder, **kwargs):
    step = getattr(model, kind)
    fn = infer_fn(step, 4, **kwargs)
    kept = journal.Journal(str(tmp_path / folder / "task"), "0a1b")
    try:
      return fn(ds, state, journal=kept), fn.inference.stats["rows_run"], kept
    finally:
      kept.close(complete=False)

  expected, num_rows, kept = run("whole")
  assert len(kept.read()) == num_rows == 22
  with pytest.raises(_Stopped):
    run("stopped", check_stop=_stops_at(4))
  file = tmp_path / "stopped" / "task-0a1b.jsonl"
  file.write_text(file.read_text()[:-20])  # killed while writing a line
  known = len(file.read_text().splitlines()) - 2  # an empty line, and the one cut off
  assert known >= 4
  again, num_rows, kept = run("stopped")
  assert num_rows == 22 - known
  if kind == "score_batch":  # batches of other lengths: the same up to rounding
    again, expected = dict(again), dict(expected)
    assert again == pytest.approx(expected)
  else:
    assert (again[0] if isinstance(again, tuple) else again) == (
      expected[0] if isinstance(expected, tuple) else expected
    )
  assert len(kept.read()) == 22
  kept.close(complete=True)
  assert not file.parent.exists()


def test_a_journal_keeps_texts_with_any_line_separator(tmp_path):
  rows = {"a": ["one\u2028two\x85three\x0c"], "b": ["four\nfive"]}
  kept = journal.Journal(str(tmp_path / "partial/task"), "0a1b")
  kept.write([*rows], [*rows.values()])
  kept.close(complete=False)
  assert kept.read() == rows


def test_the_hash_stands_for_weights_and_settings(setup):
  params = setup[1].params
  gin.clear_config()
  try:
    one = journal.config_hash(params, {"mode": "predict"})
    assert one == journal.config_hash(params, {"mode": "predict"})
    assert one != journal.config_hash(params, {"mode": "score"})
    changed = jax.tree.map(lambda x: x, params)
    kernel = changed["encoder"]["layers_0"]["mlp"]["wo"]["kernel"]
    # Reversed rows: the sum of the weights stays the same, the checksum does not.
    changed["encoder"]["layers_0"]["mlp"]["wo"]["kernel"] = kernel[::-1]
    assert one != journal.config_hash(changed, {"mode": "predict"})
    gin.parse_config("BATCH_SIZE = 3\nEVAL_OUTPUT_DIR = 'elsewhere'")
    assert one == journal.config_hash(params, {"mode": "predict"})
    gin.parse_config("BEAM_SIZE = 3")
    assert one != journal.config_hash(params, {"mode": "predict"})
  finally:
    gin.clear_config()


class _Scripted:
  """Stands in for a model: row `i` ends after `ends[i]` tokens; its output is `i`."""

  def __init__(self, ends):
    self.ends, self.calls = ends, []

  def decode(self, params, batch, rng, segment):
    row = batch["row"] if segment.rows is None else segment.rows["decoder"]["row"]
    size = len(row)
    self.calls.append((segment.start, segment.stop, size, int(segment.active.sum())))
    done = np.asarray([self.ends[int(r)] <= segment.stop for r in row])
    carried = {"decoder": {"row": row}, "encoder": {"tokens": np.zeros((size, 4), np.int32)}}
    return decoding.Paused(np.asarray(row), done, jax.tree.map(jax.numpy.asarray, carried))


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_rows_that_are_done_leave_and_the_others_fill_batches(at_a_time):
  rng = np.random.default_rng(1)
  ends = [int(n) for n in rng.choice([3, 9, 17, 100], 64, p=[0.5, 0.25, 0.15, 0.1])]
  scripted, got = _Scripted(ends), {}

  def deliver(numbers, positions, outputs):
    for number, position in zip(numbers, positions, strict=True):
      assert number not in got
      got[number] = int(outputs[position])

  with OverlappedCalls(at_a_time) as calls:
    stages = staged_decode.StagedDecode(
      scripted.decode, calls, None, None, 100, 4, 8, 1, jax.device_get, deliver, dict
    )
    for i in range(0, 64, 8):
      stages.start(range(i, i + 8), {"row": np.arange(i, i + 8)}, 4)
    stages.finish(lambda: None)
  assert got == {i: i for i in range(64)}
  for start, stop in ((8, 16), (16, 32), (32, 64), (64, 100)):
    left = sum(n > start for n in ends)
    runs = [call for call in scripted.calls if call[:2] == (start, stop)]
    runs.sort(key=lambda call: -call[3])  # threads finish in any order
    assert sum(active for *_, active in runs) == left
    assert [active for *_, active in runs[:-1]] == [8] * (len(runs) - 1)  # full but for the last
    assert runs[-1][2] < 2 * runs[-1][3]


def test_a_compilation_costs_a_small_network_more_of_its_batches(monkeypatch):
  """At most as much as one batch; programs are then few, and shared by the tasks of a run."""
  monkeypatch.setitem(rows._COMPILE_COST, "cpu", 0.1)
  sizes = (60_000_000, 20_000_000, 330_000, 1_000_000_000)
  params = [{"kernel": jax.ShapeDtypeStruct((size,), np.float32)} for size in sizes]
  found = [rows.compile_cost(x) for x in params]
  np.testing.assert_allclose(found, [0.1, 0.3, 1.0, 0.1])


def test_later_tasks_are_padded_as_earlier_ones_where_that_saves_a_program(setup):
  infer_fn, state, ds = setup
  model = tiny_model(functools.partial(decoding.temperature_sample, topk=1))
  fn = infer_fn(model.score_batch, 4)
  run, inference_of = fn.inference, lambda ds: fn(ds, state)
  inference_of(ds.filter(lambda i, _: i >= 8))
  known = {size: set(lengths) for size, lengths in run._lengths.items()}
  inference_of(ds.filter(lambda i, _: i < 8))  # alone, these would be padded differently
  assert known
  assert run._lengths == known


def test_plan_batches():
  lengths = np.array([5, 60, 7, 33, 20, 18, 3, 64, 40, 9])
  planned = rows.plan_batches(lengths, 64, 2, compile_cost=0.0)
  assert [list(map(int, lengths[positions])) for positions, _ in planned] == [
    [64, 60],
    [40, 33],
    [20, 18],
    [9, 7],
    [5, 3],
  ]
  assert [bucket for _, bucket in planned] == [64, 48, 32, 16, 16]
  # A compilation that costs as much as all batches together is not worth it.
  assert {bucket for _, bucket in rows.plan_batches(lengths, 64, 2, 5.0)} == {64}


def test_plans_use_lengths_that_are_compiled():
  lengths = np.array([5, 60, 7, 33, 20, 18, 3, 64, 40, 9])
  planned = rows.plan_batches(lengths, 64, 2, compile_cost=5.0, compiled={64, 48, 16})
  assert [length for _, length in planned] == [64, 48, 48, 16, 16]


@pytest.mark.long
def test_windows_change_nothing(setup, monkeypatch):
  infer_fn, state, ds = setup
  model = tiny_model(functools.partial(decoding.temperature_sample, topk=1))
  fn = infer_fn(model.predict_batch, 2)
  outputs = []
  for window in (1, 5, 64):
    monkeypatch.setattr(inference, "_BATCHES_PER_WINDOW", window)
    outputs.append(fn(ds, state))
    assert fn.inference.stats["rows_run"] == 22
  assert outputs[0] == outputs[1] == outputs[2]


def test_plans_are_the_cheapest():
  rng = np.random.default_rng(0)
  for _ in range(20):
    lengths, cost = rng.integers(1, 100, 12), float(rng.uniform(0, 2))
    padded = [b for _, b in rows.plan_batches(lengths, 100, 2, cost)]
    best = [rows.round_length(n, 100) for n in sorted(lengths, reverse=True)[::2]]

    def price(plan, cost=cost):
      return sum(plan) + cost * 100 * len(set(plan))

    # All other plans: each batch starts a new length, or keeps the previous one.
    others = [[]]
    for n in best:
      others = [[*o, n] for o in others] + [[*o, o[-1]] for o in others if o]
    assert price(padded) == pytest.approx(min(map(price, others)))


def test_padded_lengths_never_exceed_the_full_length():
  for length in range(0, 41):
    planned = rows.plan_batches(np.array([length] * 4), 40, 1, 0.5)
    assert all(length <= padded <= 40 for _, padded in planned)


def test_reading_ahead_is_bounded_and_hands_errors_over():
  made = []

  def items():
    for i in range(10):
      made.append(i)
      yield i
    raise ValueError("the eleventh")

  items_read = ReadAhead(items(), ahead=2)
  while len(made) < 3:  # before any item is requested
    time.sleep(0.001)
  time.sleep(0.05)
  assert len(made) == 3  # two wait, one is about to
  assert [next(items_read) for _ in range(10)] == list(range(10))
  with pytest.raises(ValueError, match="eleventh"):
    next(items_read)


def test_a_dataset_is_read_ahead():
  ds = tf.data.Dataset.range(5).map(lambda x: {"row": x}).enumerate()
  ahead = infer_setup._Rows(ds)
  assert ahead.element_spec == ds.element_spec
  read = rows.Rows()
  assert list(rows.read_rows(ahead, read)) == [(5, True)]
  assert read.indices == [0, 1, 2, 3, 4]


def test_rows_may_have_a_number():
  """Of a feature of rank 0, which training accepts."""
  ds = tf.data.Dataset.range(3).map(lambda x: {"n": x}).enumerate()
  read = rows.Rows()
  list(rows.read_rows(ds, read))
  assert read.stack([2, 0], read.full_shapes)["n"].tolist() == [2, 0]


def test_a_journal_cut_within_a_character_is_read(tmp_path):
  kept = journal.Journal(str(tmp_path / "task"), "0a1b", lambda output: "日本")
  kept.write(["a", "b"], [1, 2])
  kept.close(complete=False)
  [file] = tmp_path.glob("task*")
  file.write_bytes(file.read_bytes()[:-4])  # within the last character
  assert kept.read() == {"a": 1}


def test_small_sets_run_in_small_batches():
  assert rows.rows_per_batch(50, 128, 1) == 64
  assert rows.rows_per_batch(500, 128, 1) == 128
  assert rows.rows_per_batch(3, 128, 8) == 8


def test_small_sets_share_programs_where_compiling_takes_longest(setup, monkeypatch):
  """On a GPU, the turns of dialogues, fewer and longer rows from turn to turn, took 12 programs."""
  monkeypatch.setitem(rows._COMPILE_COST, "cpu", 100.0)
  infer_fn, state, ds = setup
  model = tiny_model(functools.partial(decoding.temperature_sample, topk=1))

  def make():
    return infer_fn(model.score_batch, 8)

  fn, whole = make(), dict(make()(ds, state))
  shapes, run = set(), fn.inference._fn

  def noted(params, batch, *rest):
    shapes.add(batch["encoder_input_tokens"].shape)
    return run(params, batch, *rest)

  monkeypatch.setattr(fn.inference, "_fn", noted)
  lengths = [np.count_nonzero(x["encoder_input_tokens"]) for _, x in ds.as_numpy_iterator()]
  scores = []
  for number in (7, 5, 3, 2, 1):
    some = [int(i) for i in np.argsort(lengths) if i not in dict(scores)][:number]
    scores += fn(ds.filter(lambda i, _, some=some: tf.reduce_any(i == some)), state)
  assert len(scores) == 18
  np.testing.assert_allclose([x for _, x in scores], [whole[i] for i, _ in scores], rtol=1e-5)
  assert shapes == {(8, LENGTH), (8, LENGTH // 2)}


@pytest.mark.long
def test_stages_on_a_mesh_of_devices(server):
  out = server.run_file("run_sharded_inference.py", env=EIGHT_DEVICES)
  assert out.split() == ["same"]


def test_the_progress_line_before_the_first_rows_are_done(monkeypatch, capsys):
  """A rate of 0 rows/s has no ETA: this divided by zero when the first rows took 30 s."""
  now = [100.0]
  monkeypatch.setattr("t5x._process.progress.time.time", lambda: now[0])
  progress = InferenceProgress("eval sgd")
  now[0] += 31
  progress.advance(0, total=100)
  now[0] += 31
  progress.advance(62, total=100)
  assert capsys.readouterr().err.splitlines() == [
    "t5x: eval sgd: 0/100 rows",
    "t5x: eval sgd: 62/100 rows | 1 rows/s | ETA 0:38",
  ]
  assert progress._line(100, 40) == "eval sgd: 62/100 rows | ETA 0:38"


def test_the_fields_of_a_file(tmp_path):
  """As in T5X, a feature comes with its text, and one that examples lack is left out."""
  examples = tf.data.Dataset.from_tensors({"inputs": [5, 1], "inputs_pretokenized": b"a", "n": 3})
  path = tmp_path / "x.jsonl"
  write = functools.partial(infer_script.write_inferences_to_file, str(path), ([7.0], {}))
  for fields, expected in (
    (["inputs", "id"], {"inputs": [5, 1], "inputs_pretokenized": "a"}),
    (["n"], {"n": 3}),
    (None, {"inputs_pretokenized": "a"}),
  ):
    write(examples, "score", input_fields_to_include=fields)
    assert json.loads(path.read_text()) == {"inputs": expected, "score": 7.0}
  with pytest.raises(T5XError, match="include_all_inputs"):
    write(examples, "score", input_fields_to_include=["n"], include_all_inputs=True)
