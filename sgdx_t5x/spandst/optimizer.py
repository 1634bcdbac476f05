"""The optimizer that BERT was released with, built of parts that T5X can partition.

BertAdam is Adam (Kingma and Ba 2015) without bias correction, with weight decay added to the update
(Loshchilov and Hutter 2019) of arrays called `kernel` or `embedding` only. T5X knows how to
partition the states of optax's own transformations, so the parts below use only these states. In
gin:

  OPTIMIZER = @optimizers.chain()
  optimizers.chain.transformations = [@optimizer.bert_adam()]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import optax

from sgdx_t5x.errors import SgdxError

PyTree = Any
Schedule = Callable[[Any], Any]
_DECAYED = ("kernel", "embedding")


def warmup_schedule(
  learning_rate: float,
  total_steps: int,
  warmup: float = 0.1,
  from_peak: bool = True,
) -> Schedule:
  """Returns a learning rate that rises linearly, then falls linearly to 0.

  With x the fraction of steps done, it is the peak times x / warmup, then times
  (1 - x) / (1 - warmup).

  Args:
    learning_rate: the peak.
    total_steps: steps of the run.
    warmup: fraction of them before the peak, in [0, 1).
    from_peak: False makes the factor fall as 1 - x, as BertAdam's does, with a jump at the peak.

  Raises:
    SgdxError: `total_steps` is below 1, or `warmup` is out of range.
  """
  if total_steps < 1 or not 0 <= warmup < 1:
    raise SgdxError(
      f"optimizer.warmup_schedule with total_steps = {total_steps!r}, warmup = {warmup!r}",
      expected="at least one step, and a warmup fraction of at least 0 and below 1",
      fix="set optimizer.warmup_schedule.total_steps = %TRAIN_STEPS",
    )

  def schedule(step: Any) -> Any:
    share_done = jnp.asarray(step, jnp.float32) / total_steps
    falling = (1 - share_done) / ((1 - warmup) if from_peak else 1.0)
    rising = share_done / max(warmup, 1e-12)
    return learning_rate * jnp.maximum(jnp.where(share_done < warmup, rising, falling), 0.0)

  return schedule


def _adam_direction(
  b1: float, b2: float, eps: float, unbiased: bool
) -> optax.GradientTransformation:
  """Adam's direction, m / (sqrt(v) + eps). Args: see `bert_adam`."""

  def update(updates: PyTree, state: optax.ScaleByAdamState, params: PyTree = None):
    del params
    mu = jax.tree.map(lambda g, m: b1 * m + (1 - b1) * g, updates, state.mu)
    nu = jax.tree.map(lambda g, v: b2 * v + (1 - b2) * jnp.square(g), updates, state.nu)
    count = state.count + 1
    of_m, of_v = (1 - b1**count, 1 - b2**count) if unbiased else (1.0, 1.0)
    updates = jax.tree.map(lambda m, v: m / of_m / (jnp.sqrt(v / of_v) + eps), mu, nu)
    return updates, optax.ScaleByAdamState(count=count, mu=mu, nu=nu)

  return optax.GradientTransformation(optax.scale_by_adam().init, update)


def _unset(step: Any) -> Any:
  """Default learning rate, for evaluation and inference configs, which name an optimizer too."""
  raise SgdxError(
    "bert_adam without a learning rate",
    expected="a number, or a schedule",
    fix="in gin: optimizer.bert_adam.learning_rate = @optimizer.warmup_schedule()",
  )


def bert_adam(
  learning_rate: float | Schedule = _unset,
  weight_decay: float = 0.01,
  max_norm: float | None = 1.0,
  b1: float = 0.9,
  b2: float = 0.999,
  eps: float = 1e-6,
  frozen: Sequence[str] = (),
  unbiased: bool = False,
  times: Mapping[str, float] | None = None,
) -> optax.GradientTransformation:
  """Returns BertAdam.

  Args:
    learning_rate: a number, or a function of the step such as `warmup_schedule` returns; required
      for training.
    weight_decay: of arrays called `kernel` or `embedding`. Others have none: norms, biases, and the
      tables of single vectors (`texts`, `no_intent`), which BERT's own rule would include.
    max_norm: norm that the gradient of all parameters together is clipped to, or None.
    b1: decay of the first moment.
    b2: decay of the second moment.
    eps: added to the root of the second moment.
    frozen: regular expressions, matched at the start of parameter paths; matching parameters are
      not updated and have no moments, e.g. "encoder/token_embedder".
    unbiased: correct the bias of the moments, which BertAdam does not: without it the first
      `1 / (1 - b2)` steps are several times as large as the learning rate implies.
    times: regular expression -> learning rate multiplier of the parameters whose paths it matches
      from the start, e.g. {"(?!encoder/)": 10.0} for heads that start from random weights.
  """
  # Decay joins the update, not the gradient, so that Adam's moments do not see it.
  transformations = [
    _adam_direction(b1, b2, eps, unbiased),
    optax.add_decayed_weights(weight_decay, mask=_where(lambda path: path[-1] in _DECAYED)),
    optax.scale_by_learning_rate(learning_rate),
  ]
  for pattern, factor in (times or {}).items():
    transformations.append(optax.masked(optax.scale(factor), _where(_matches([pattern]))))
  if max_norm is not None:  # of the gradients as they are, so before all else
    transformations.insert(0, optax.clip_by_global_norm(max_norm))
  if not frozen:
    return optax.chain(*transformations)
  is_frozen = _matches(frozen)
  # Masked, frozen parameters have no moments; their update would else be the gradient itself.
  return optax.chain(
    optax.masked(optax.chain(*transformations), _where(lambda path: not is_frozen(path))),
    optax.masked(optax.set_to_zero(), _where(is_frozen)),
  )


def _matches(patterns: Sequence[str]) -> Callable[[Sequence[str]], bool]:
  """Returns a predicate: whether any regular expression matches a path from its start."""
  compiled = [re.compile(pattern) for pattern in patterns]
  return lambda path: any(pattern.match("/".join(path)) for pattern in compiled)


def _where(holds: Callable[[Sequence[str]], bool]) -> Callable[[PyTree], PyTree]:
  """Returns a function from parameters to a mask of those whose paths satisfy `holds`."""

  def mask(params: PyTree) -> PyTree:
    def of_path(path: Sequence[Any], _: Any) -> bool:
      return holds([str(getattr(key, "key", key)) for key in path])

    return jax.tree_util.tree_map_with_path(of_path, params)

  return mask
