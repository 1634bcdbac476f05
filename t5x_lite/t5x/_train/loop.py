"""The training loop: steps, and between them statistics, checkpoints and evaluations."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from t5x import checkpoints
from t5x._process.log import log
from t5x._process.progress import Progress
from t5x._process.stop import StopRequest
from t5x._step import divergence
from t5x._step.actions import Actions
from t5x._step.metrics_manager import shown_loss
from t5x._train.setup import Periods
from t5x.errors import Interrupted

_TOKENS = ("encoder_input_tokens", "decoder_target_tokens")  # whose lengths are logged


class Saver:
  """Saves the trainer's state, unless it is not finite.

  Args:
      model_dir: MODEL_DIR.
      checkpointer: one of the classes in `checkpoints`, or None to save nothing.
      save_cfg: SaveCheckpointConfig or None.
      trainer: has the train state.
      model: its optimizer may tolerate losses that are not finite (`skip_nan_updates`).
      actions: one of them may end training when a loss is not finite.
  """

  def __init__(self, model_dir: str, checkpointer, save_cfg, trainer, model, actions: Actions):
    self._model_dir, self._checkpointer, self._trainer = model_dir, checkpointer, trainer
    self._transform = _chain(save_cfg.state_transformation_fns if save_cfg else ())
    self._optimizer_def, self._handle_nan = model.optimizer_def, actions.handle_nan
    self._tolerant = bool(getattr(self._optimizer_def, "skip_nan_updates", False))
    self._first_step = int(trainer.train_state.step)
    self.diverged = False  # True: not finite, and an action is to end training because of it

  @property
  def compares_metrics(self) -> bool:
    """Whether saving deletes checkpoints by their metrics, which must be known then."""
    return isinstance(self._checkpointer, checkpoints.SaveBestCheckpointer)

  def check_losses(self, step: int) -> None:
    """Ends the run if a loss fetched so far is not finite; costs nothing.

    Raises:
        T5XError: one is not, and neither `skip_nan_updates` nor an action handles it.
    """
    if self._trainer.losses.first_bad is None or self._tolerant:
      return
    self._end(step)

  def _end(self, step: int) -> None:
    """Ends a run whose state is not finite, or leaves that to the action that is there for it."""
    watch = self._trainer.check_losses()
    if self._handle_nan:
      if not self.diverged:
        problem = f"parameters are not finite at step {step}"
        if watch.first_bad:
          problem = f"loss is {watch.value} at step {watch.first_bad}"
        log(f"{problem}: nothing more will be saved")
      self.diverged = True
      return
    if self._checkpointer is not None:
      self._checkpointer.wait()  # the error names the latest one, which may still be being written
    steps = checkpoints.checkpoint_steps(self._model_dir)
    latest = os.path.join(self._model_dir, f"checkpoint_{steps[-1]}") if steps else None
    raise divergence.diverged(watch, self._first_step, step, self._optimizer_def, latest)

  def save(self, step: int) -> bool:
    """Saves the state after `step`; returns whether a checkpoint of it exists.

    Raises:
        T5XError: the state is not finite, or cannot be written.
    """
    self._trainer.check_losses()  # waits for the latest step: its state is what is saved
    self.check_losses(step)
    # A finite loss is not enough: it was computed before the update.
    if not self.diverged and not divergence.all_finite(self._trainer.train_state.params):
      self._end(step)
    if self.diverged or self._checkpointer is None:
      return False
    self._checkpointer.save(self._trainer.train_state, self._transform)
    return True

  def save_and_say_how_to_resume(self, step: int) -> None:
    """Saves the state of a run that was asked to stop."""
    started = time.time()
    if not self.save(step):
      reason = "it is not finite" if self.diverged else "checkpoint_cfg.save is None"
      log(f"stopped at step {step}; nothing is saved ({reason})")
      return
    self._checkpointer.wait()
    log(
      f"stopped at step {step}; saved in {time.time() - started:.1f} s. The same command "
      f"continues from {os.path.join(self._model_dir, f'checkpoint_{step}')}."
    )

  def close(self) -> None:
    """Waits for the checkpoint being written."""
    if self._checkpointer is not None:
      self._checkpointer.close()


class Evaluations:
  """Evaluates the trainer's state, teacher-forced and by inference.

  Args:
      trainer: evaluates teacher-forced.
      model: tells whether its loss is a sum over tokens.
      eval_sets: {task: batches} of the teacher-forced evaluation.
      rows: rows per batch on this host.
      evaluator: `utils.InferenceEvaluator`, or None.
      actions: may end training.
      concurrent_metrics: compute inference metrics while training continues.
  """

  def __init__(
    self,
    trainer,
    model,
    eval_sets: Mapping[str, Any],
    rows: int,
    evaluator,
    actions: Actions,
    concurrent_metrics: bool,
  ):
    self._trainer, self._eval_sets, self._rows = trainer, eval_sets, rows
    self._evaluator, self._actions = evaluator, actions
    # An action must not look at the metrics of the previous evaluation.
    self._concurrent = concurrent_metrics and not actions.has("INFER_EVAL")
    self._model = model
    self._pending: Any = None

  def run(self) -> bool:
    """Evaluates the current state; returns whether an action wants to end training."""
    ended = False
    if self._eval_sets:
      results = self._trainer.evaluate(self._eval_sets, self._rows)
      for task, values in results.items():
        names = shown_loss(self._model, values), "accuracy"
        figures = [f"{k} {values[k]:.4f}" for k in names if k in values]
        log(f"training_eval {task}: " + ", ".join(figures))
      ended |= self._actions.run("TRAIN_EVAL", self._trainer.train_state, results)
    if self._evaluator is not None:
      self.wait()  # what a metric of the last evaluation raised ends the run now
      self._pending = self._evaluator.evaluate(self._trainer.train_state)
      if not self._concurrent:
        results = self.wait()
        ended |= self._actions.run("INFER_EVAL", self._trainer.train_state, results)
    return ended

  def wait(self) -> dict[str, Any]:
    """Waits for the metrics of the last evaluation; re-raises what a metric raised."""
    pending, self._pending = self._pending, None
    return {} if pending is None else self._evaluator.finish(pending)

  def close(self) -> None:
    """Waits for metrics that are being computed when a run fails, so that they are written."""
    if self._pending is not None:
      with contextlib.suppress(Exception):
        self._pending.result()


class Loop:
  """Trains from the train state's step to `total_steps`.

  Args:
      trainer: takes the steps.
      batches: endless iterator of batches on the devices.
      total_steps: step to end at.
      periods: when to do something other than training.
      saver: saves checkpoints.
      evaluations: evaluates.
      actions: may end training.
      stop: asks for a clean stop.
  """

  def __init__(
    self,
    trainer,
    batches,
    total_steps: int,
    periods: Periods,
    saver: Saver,
    evaluations: Evaluations,
    actions: Actions,
    stop: StopRequest,
  ):
    self._trainer, self._batches, self._stop = trainer, batches, stop
    self._total_steps, self._periods = total_steps, periods
    self._saver, self._evaluations, self._actions = saver, evaluations, actions
    self.step = int(trainer.train_state.step)
    self._progress = Progress(self.step, total_steps, trainer.last_metrics)
    self._stats_seconds = 0.0  # progress.seconds() at the last TensorBoard point

  def run(self, eval_first: bool) -> None:
    """Trains, evaluates and saves to the end.

    Args:
        eval_first: evaluate the starting state.

    Raises:
        T5XError: the run cannot go on.
        Interrupted: after Ctrl-C or SIGTERM, once the state is saved.
    """
    try:
      with self._stop.listening():
        self._run(eval_first)
      self._evaluations.wait()
    except Interrupted:
      with contextlib.suppress(Exception):
        self._progress.update(self.step, force=True)
      # A better checkpoint without its metrics yet would be deleted; the state is saved anyway.
      with contextlib.suppress(Exception):
        self._wait_to_compare()
      self._saver.save_and_say_how_to_resume(self.step)
      raise

  def _run(self, eval_first: bool) -> None:
    """Saves the starting state, trains to the end, and saves a state that an action ended with."""
    with self._progress.excluded():
      self._saver.save(self.step)  # the starting state, as T5X does: a baseline for comparisons
      # A run stopped during its last evaluation still has to do that.
      if eval_first or self.step == self._total_steps:
        self._evaluations.run()
    ended = self._saver.diverged  # at the start: the checkpoint was not finite
    with _collections_off() if self._periods.gc else contextlib.nullcontext():
      while self.step < self._total_steps and not ended:
        self._train_until(self._periods.next_stop(self.step, self._total_steps))
        ended = self._saver.diverged or self._between_steps()
    if ended:
      log(f"an action ended training at step {self.step}")
      with self._progress.excluded():
        self._wait_to_compare()
        if not self._saver.save(self.step):
          log("its last state is not saved")
    self._progress.update(self.step, force=True)

  def _wait_to_compare(self) -> None:
    """Waits for metrics if saving compares those of the checkpoints, to delete the others."""
    if self._saver.compares_metrics:
      self._evaluations.wait()

  def _train_until(self, target: int) -> None:
    """Takes steps up to `target`, or until a loss is not finite."""
    while self.step < target and not self._saver.diverged:
      # Wait first, then check: a request that arrives meanwhile prevents the next dispatch.
      self._trainer.wait_for_room()
      self._stop.check()
      batch = next(self._batches)
      if self._trainer.compiles(batch):
        self._compile(batch)
      else:
        self._trainer.step(batch)
      self.step += 1
      self._saver.check_losses(self.step)
      self._progress.update(self.step)

  def _compile(self, batch) -> None:
    """Takes a step with new shapes, whose time does not count."""
    is_first = self._trainer.compile_seconds is None
    self._trainer.check_losses()  # waits for the steps before it, whose time does count
    with self._progress.excluded(steps=1):
      self._trainer.step(batch)
    if is_first:
      self._stats_seconds = self._progress.seconds()
    tokens = [x.shape[1] for n in _TOKENS if (x := batch.get(n)) is not None and x.ndim == 2]
    shape = f" ({' / '.join(map(str, tokens))} tokens)" if tokens else ""
    log(f"compiled the training step{shape} in {self._trainer.compile_seconds:.1f} s")

  def _between_steps(self) -> bool:
    """Does what is due after the current step; returns whether an action ends training."""
    step, last = self.step, self.step == self._total_steps
    ended = False
    if last or step % self._periods.stats == 0:
      self._trainer.check_losses()  # waits for the steps: only then is their time known
      values = self._trainer.summarize(step, self._progress.seconds() - self._stats_seconds)
      self._stats_seconds = self._progress.seconds()
      ended |= self._actions.run("TRAIN", self._trainer.train_state, {"train": values})
      self._saver.check_losses(step)
    with self._progress.excluded():
      # Saved before it is evaluated, as in T5X: a metric that fails costs no step.
      if last or self._periods.save_at(step):
        self._wait_to_compare()
        self._saver.save(step)
      if self._saver.diverged:
        return True
      if last or self._periods.eval_at(step):
        self._progress.clear()
        ended |= self._evaluations.run()
      if self._periods.gc and step % self._periods.gc == 0:
        gc.collect()
    return ended and not last  # the last step is saved already


@contextlib.contextmanager
def _collections_off():
  """Leaves garbage collections to the loop inside the block."""
  was_on = gc.isenabled()
  gc.disable()
  try:
    yield
  finally:
    if was_on:
      gc.enable()


def _chain(fns: Sequence[Callable]) -> Callable | None:
  """One function that applies all `fns` to a state dictionary, or None.

  Those written for T5X take and return a second tree beside the state, with information on each
  array. It has no use here; the state stands for it, since they change both alike.
  """
  if not fns:
    return None

  def apply(tree):
    infos = tree
    for fn in fns:
      result = fn(tree, infos)
      tree, infos = result if isinstance(result, tuple) else (result, result)
    return tree

  return apply
