"""The trainer: accumulation, donation, watching the loss, weight metrics, the progress line."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from clu import metrics as clu_metrics
from jax.sharding import PartitionSpec

from t5x import adafactor, metrics, optimizers, partitioning, train_state, trainer
from t5x._step.actions import Actions
from t5x._train import loop
from t5x._train.setup import Periods
from t5x.errors import Interrupted, T5XError


class Model:
  """loss = sum(w * x); 3 of 4 tokens of each row are real."""

  _loss_normalizing_factor = 1.0

  def __init__(self, optimizer_def=None):
    self.optimizer_def = optimizer_def or optimizers.sgd(0.5)

  def loss_fn(self, params, batch, rng):
    del rng
    loss = jnp.sum(params["w"] * batch["x"]).astype(jnp.float32)
    rows = batch["x"].shape[0]
    return loss, {
      "loss": metrics.AveragePerStep.from_model_output(loss),
      "timing/steps_per_second": metrics.StepsPerTime(),
      "non_padding_fraction/overall": clu_metrics.Average(
        total=jnp.float32(3 * rows), count=jnp.int32(4 * rows)
      ),
    }

  def eval_fn(self, params, batch):
    return self.loss_fn(params, batch, None)


def _trainer(model=None, w=2.0, **kwargs):
  model = model or Model()
  params = {"w": jnp.full((4,), w)}
  state = train_state.FlaxOptimTrainState.create(model.optimizer_def, {"params": params})
  return trainer.Trainer(
    model,
    state,
    partitioning.PjitPartitioner(num_partitions=1),
    train_state_axes=jax.tree.map(lambda _: PartitionSpec(), state),
    **kwargs,
  )


def _batch(value=1.0, rows=8):
  return {"x": jnp.full((rows, 4), value)}


@pytest.mark.parametrize("number", [-2, 2.0, "a"])
def test_a_number_of_microbatches(number):
  with pytest.raises(T5XError, match="num_microbatches"):
    _trainer(num_microbatches=number)


def test_a_learning_rate_is_a_function_of_the_step():
  """A number was called like one when the first step was traced."""
  with pytest.raises(T5XError) as e:
    _trainer(learning_rate_fn=0.001)
  assert e.value.found == "0.001"
  assert "create_learning_rate_scheduler" in e.value.fix


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_microbatches_add_up_in_float32(dtype):
  """256 + 1 + ... + 1 (8 times) is 264, exact in bfloat16; adding up in bfloat16 stays at 256."""
  x = jnp.asarray([256.0] + [1.0] * 8, dtype)[:, None]
  params = {"w": jnp.zeros((1,), dtype)}
  state = train_state.FlaxOptimTrainState.create(optimizers.sgd(), {"params": params})
  grads, _, _ = jax.jit(trainer.accumulate_grads_microbatched, static_argnums=(0, 4))(
    Model(), state, {"x": x}, jax.random.PRNGKey(0), 9
  )
  assert grads["w"].dtype == dtype
  assert float(grads["w"][0]) == 264.0


def test_train_step_donates_its_state():
  t = _trainer()
  old = t.train_state
  t.step(_batch())
  assert old.params["w"].is_deleted()
  assert old.step.is_deleted()
  assert not t.train_state.params["w"].is_deleted()


def test_rates_leave_the_compiled_step_out():
  t = _trainer(learning_rate_fn=lambda step: 0.1 * step)
  for _ in range(5):
    t.step(_batch())
  values = t.summarize(5, seconds=2.0)
  assert values["timing/steps_per_second"] == 4 / 2.0  # the first step was compiled
  assert values["learning_rate"] == pytest.approx(0.2)  # the mean of 0 to 0.4
  assert values["learning_rate/current"] == pytest.approx(0.4)
  for _ in range(3):
    t.step(_batch())
  assert t.summarize(8, seconds=2.0)["timing/steps_per_second"] == 3 / 2.0


def test_metrics_are_not_fetched_every_step(monkeypatch):
  t = _trainer()
  fetched = []
  device_get = jax.device_get
  monkeypatch.setattr(jax, "device_get", lambda x: fetched.append(x) or device_get(x))
  for _ in range(49):
    t.step(_batch())
  assert fetched == []
  t.step(_batch())
  assert [len(x) for x in fetched] == [48]  # the last two may still be running
  assert t.check_losses().last_seen == 50
  assert t.last_metrics()["tokens_per_step"] == 24


def test_weight_metrics():
  """Gradient of w is 8 per entry; plain SGD with rate 0.5 subtracts 4 from 3."""
  t = _trainer(w=3.0, weight_metrics_computer=trainer.WeightMetricsComputer())
  t.step(_batch())
  values = t.summarize(1, 1.0)
  assert values["weight_rms/w"] == values["weight_max/w"] == 1.0  # as in T5X, after the step
  assert values["weight_update_divided_by_weight_rms/w"] == pytest.approx(4 / 3)
  assert values["weight_gradient_rms/w"] == 8.0
  assert values["weight_update_rms/w"] == 4.0
  assert values["weight_gradient_norm"] == 16.0  # sqrt(4 * 8 * 8)


# ------------------------------------------------------------------- losses not finite


class Checkpointer:
  def __init__(self):
    self.saved = []

  def save(self, state, transform):
    del transform
    self.saved.append(int(state.step))

  def wait(self):
    pass


def _saver(t, model, tmp_path, actions=None):
  checkpointer = Checkpointer()
  saver = loop.Saver(str(tmp_path), checkpointer, None, t, model, Actions(actions))
  return saver, checkpointer.saved


def test_a_bad_loss_ends_the_run_and_is_not_saved(tmp_path):
  t = _trainer(model := Model())
  saver, saved = _saver(t, model, tmp_path)
  saver.save(0)
  for value in (1.0, 1.0, np.nan, 1.0):
    t.step(_batch(value))
  with pytest.raises(T5XError) as e:
    saver.save(4)
  text = str(e.value)
  assert "The training loss is nan at step 3." in text
  assert "2 such losses in steps 3 to 4" in text  # the parameters are NaN after step 3
  assert "the last finite loss is -64 at step 2" in text  # 8 rows x 4 x (2 - 4)
  assert "base_learning_rate" in text
  assert saved == [0]


def test_bad_parameters_behind_a_good_loss_are_not_saved(tmp_path):
  t = _trainer(model := Model(optimizers.sgd(1e10)), w=0.0)
  saver, saved = _saver(t, model, tmp_path)
  t.step(_batch(1e30))  # the loss is 0, the update 1e10 * 8e30: infinite
  assert np.isfinite(t.last_metrics()["loss"])
  with pytest.raises(T5XError, match=r"Parameters are not finite .* after step 1"):
    saver.save(1)
  assert saved == []


def test_a_starting_state_that_is_not_finite(tmp_path):
  t = _trainer(model := Model(), w=np.nan)
  saver, saved = _saver(t, model, tmp_path)
  with pytest.raises(T5XError, match="start from another checkpoint") as e:
    saver.save(0)
  assert "before training, at step 0" in str(e.value)
  assert saved == []


@pytest.mark.parametrize("interrupted", [True, False])
def test_metrics_are_awaited_before_a_save_that_compares_them(tmp_path, monkeypatch, interrupted):
  """Regression: the best checkpoint, still without its metrics, was deleted."""
  t = _trainer(model := Model())
  saver, _ = _saver(t, model, tmp_path)
  monkeypatch.setattr(loop.Saver, "compares_metrics", True)
  order = []
  monkeypatch.setattr(saver, "save", lambda step: order.append("save"))

  class Evaluations:
    def wait(self):
      order.append("wait")

  class Stop:
    def listening(self):
      return contextlib.nullcontext()

    def check(self):
      if interrupted:
        raise Interrupted(2)

  class End:  # an action that ends training
    handle_nan = False

    def run(self, *_):
      return True

  periods = Periods(0, 1, None, 0, ())
  run = loop.Loop(t, iter([_batch()] * 3), 3, periods, saver, Evaluations(), End(), Stop())
  with pytest.raises(Interrupted) if interrupted else contextlib.nullcontext():
    run.run(eval_first=False)
  assert order[:3] == ["save", "wait", "save"]


def test_terminate_on_nan_ends_without_an_error(tmp_path):
  t = _trainer(model := Model())
  actions = {"TRAIN": [trainer.TerminateOnNanAction("train")]}
  saver, saved = _saver(t, model, tmp_path, actions)
  t.step(_batch(np.nan))
  saver.save(1)
  assert saver.diverged
  assert saved == []


def test_skip_nan_updates_tolerates_a_bad_loss(tmp_path):
  model = Model(adafactor.Adafactor(learning_rate=0.1, skip_nan_updates=True))
  t = _trainer(model)
  saver, saved = _saver(t, model, tmp_path)
  for value in (1.0, np.nan, 1.0):
    t.step(_batch(value))
    saver.check_losses(1)
  saver.save(3)
  assert saved == [3]
  assert t.check_losses().num_bad == 1
  assert bool(jnp.isfinite(t.train_state.params["w"]).all())


def test_step_offset_is_named(tmp_path):
  model = Model(adafactor.Adafactor(learning_rate=0.1, step_offset=1000))
  t = _trainer(model)
  saver, _ = _saver(t, model, tmp_path)
  t.step(_batch())
  with pytest.raises(T5XError) as e:
    saver.save(1)
  assert "step_offset (now 1000)" in str(e.value)
  assert "skip_nan_updates" in str(e.value)


# --------------------------------------------------------------------------- evaluations


class Evaluator:
  """Returns the losses 3, 2 and 2 as the metric of task `task`."""

  def __init__(self):
    self.losses = iter([3.0, 2.0, 2.0])

  def evaluate(self, state):
    return next(self.losses)

  def finish(self, loss):
    return {"task": {"loss": loss}}


def test_actions_see_the_metrics_of_their_own_evaluation():
  """With concurrent metrics they would be those of the previous evaluation."""
  t = _trainer(model := Model())
  action = trainer.EarlyStoppingAction(("task", "loss"), "min", patience=2)
  evaluations = loop.Evaluations(
    t, model, {}, 0, Evaluator(), Actions({"INFER_EVAL": [action]}), concurrent_metrics=True
  )
  assert [evaluations.run() for _ in range(3)] == [False, False, True]
  assert evaluations.wait() == {}


def test_metrics_wait_for_the_next_evaluation_without_actions():
  t = _trainer(model := Model())
  evaluations = loop.Evaluations(
    t, model, {}, 0, Evaluator(), Actions(None), concurrent_metrics=True
  )
  assert not evaluations.run()
  assert not evaluations.run()
  assert evaluations.wait() == {"task": {"loss": 2.0}}


def test_some_steps_at_once(tmp_path):
  """T5X's way to train: an iterator over batches, and a number of steps."""
  rate = {"summary_dir": str(tmp_path), "learning_rate_fn": lambda step: 0.1 * (step + 1)}
  t = _trainer(Model(optimizers.sgd()), **rate)
  batches = iter([{"x": np.full((2, 4), float(i))} for i in range(4)])
  values = t.train(batches, 3).result()
  assert int(t.train_state.step) == 3
  assert next(batches)["x"][0, 0] == 3  # no further batch is read
  # w = 2, then 2 - 0.1 * 0, 2 - 0.2 * (2 * 1): sums over 8 numbers of w * x.
  assert values["loss"].value == pytest.approx((0 + 16 + 8 * 1.6 * 2) / 3)
  assert values["learning_rate"].value == pytest.approx(0.2)
  assert t.train(batches, 0).result() == {}
  t.close()


def test_a_model_of_ones_own_is_called_by_the_trainers_steps(monkeypatch):
  """The two halves of a step are public, and the trainer uses them."""
  seen = []

  def accumulate(model, state, batch, rng, num_microbatches, data_partition_spec):
    seen.append(rng)
    return jax.tree.map(jnp.ones_like, state.params), {"loss": metrics.Sum(1.0)}, None

  def apply(state, grads, metrics, learning_rate, weight_metrics, other_state_variables=None):
    assert other_state_variables is weight_metrics is None
    return state.apply_gradient(grads, learning_rate), metrics

  monkeypatch.setattr(trainer, "accumulate_grads_microbatched", accumulate)
  monkeypatch.setattr(trainer, "apply_grads", apply)
  t = _trainer()
  assert t.train(iter([{"x": np.zeros((2, 4))}] * 2), 2).result()["loss"].value == 2.0
  np.testing.assert_allclose(t.train_state.params["w"], 1.0)  # 2 - 2 * 0.5 * 1
  assert seen
  t.close()


def test_the_halves_of_a_step():
  model, params = Model(), {"w": jnp.full((4,), 2.0)}
  state = train_state.FlaxOptimTrainState.create(optimizers.sgd(), {"params": params})
  batch, rng = {"x": jnp.ones((4, 4))}, jax.random.PRNGKey(0)
  for num_microbatches in (None, 2):
    grads, values, mutables = trainer.accumulate_grads_microbatched(
      model, state, batch, rng, num_microbatches
    )
    np.testing.assert_array_equal(grads["w"], 4.0)
    assert mutables is None
  with pytest.raises(T5XError, match="Batch size 4 does not divide evenly into 3 microbatches"):
    trainer.accumulate_grads_microbatched(model, state, batch, rng, 3)
  new, values = trainer.apply_grads(state, grads, values, 0.25, trainer.WeightMetricsComputer())
  np.testing.assert_array_equal(new.params["w"], 1.0)
  assert values["learning_rate"].compute() == 0.25
  assert values["weight_gradient_norm"].compute() == 8.0


def test_events_are_written_by_the_first_process_only(tmp_path, monkeypatch):
  for process, folders in ((1, []), (0, ["eval"])):
    monkeypatch.setattr(jax, "process_index", lambda process=process: process)
    manager = trainer.MetricsManager("eval", str(tmp_path))
    manager.write_scalars(3, {"loss": 1.5})
    manager.flush()
    manager.close()
    assert manager.summary_dir == str(tmp_path / "eval")
    assert [p.name for p in tmp_path.iterdir()] == folders
  assert trainer.MetricsManager("eval").summary_dir is None
