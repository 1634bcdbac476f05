"""A trainer with slow steps, which sends its own process SIGTERM after the fifth."""

import os
import signal
import sys
import threading
import time

import jax
import jax.numpy as jnp

from t5x import trainer


def _slow(loss_fn):
  """`loss_fn`, after about a tenth of a second of multiplying matrices."""

  def slow_loss_fn(params, batch, rng):
    loss, metrics = loss_fn(params, batch, rng)
    start = jnp.full((256, 256), loss)
    work = jax.lax.fori_loop(0, 150, lambda _, x: jnp.tanh(x @ x), start)
    return loss + 0 * jax.lax.stop_gradient(work)[0, 0], metrics

  return slow_loss_fn


class SlowTrainer(trainer.Trainer):
  """Says on stderr how many steps were done when the signal was sent."""

  def __init__(self, model, **kwargs):
    model.loss_fn = _slow(model.loss_fn)
    super().__init__(model, **kwargs)
    self._outputs, step = [], self._train_step

    def recorded(*args):
      state, metrics, rate = step(*args)
      self._outputs.append(rate)
      return state, metrics, rate

    self._train_step = recorded
    threading.Thread(target=self._stop_after, args=(5,), daemon=True).start()

  def _stop_after(self, steps):
    while len(self._outputs) < steps or not self._outputs[steps - 1].is_ready():
      time.sleep(0.005)
    done = sum(x.is_ready() for x in self._outputs)
    print(f"run_slow: {done} steps were done", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
