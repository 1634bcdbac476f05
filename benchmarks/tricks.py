"""Times what each speed trick of t5x_lite gains alone: the same work with it switched off, and on.

  python benchmarks/tricks.py CASE --data-dir DIR [--checkpoint DIR] [--only TRICK ...]

A case is work that users have: `sample` (t5x.eval's decoding with the quick start's model), `sgd`
(that of T5 Small on SGD's prompts, SGDX_VOCAB set), `train_sample`, `train_sgd` and
`train_sgd_unpacked` (loss and gradients).
A trick is switched off by replacing the function that holds it. All columns run in one process in
turn; a round's figures are CPU seconds (user and system, of all threads) and wall seconds, after a
first call that compiles.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from unittest import mock

import _common
import gin
import jax
import jax.numpy as jnp
import numpy as np
import seqio
import tensorflow as tf

from t5x import gin_utils, losses, models, utils
from t5x._checkpoint.choose import chosen
from t5x._infer import infer_fn, inference, setup, staged_decode
from t5x._train import trim
from t5x.examples.t5 import blocked_attention, embedding, products, softmax_attention

ON = "all on"
_patch = mock.patch.object


def _whole_rows(lengths, full, batch_size, compile_cost, compiled=()):
  """`rows.plan_batches` without sorting: the dataset's order, full length."""
  order = np.arange(len(lengths))
  return [(order[i : i + batch_size], full) for i in range(0, len(order), batch_size)]


def _longest_of_batch(lengths, full, batch_size, compile_cost, compiled=()):
  """`rows.plan_batches` without weighing compilations: sorted, as long as its longest."""
  order = np.argsort(-np.asarray(lengths), kind="stable")
  parts = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
  return [(part, inference.round_length(int(lengths[part[0]]), full)) for part in parts]


def _without_direct_attention():
  own = models.EncoderDecoderModel.decode_step

  def decode_step(self, *args, encoded=None):
    return own(self, *args)

  return _patch(models.EncoderDecoderModel, "decode_step", decode_step)


def _unmerged():
  own = inference.read_rows

  def read_rows(ds, rows, key_features=None, merge=True, window=None):
    return own(ds, rows, key_features, False, window)

  return _patch(inference, "read_rows", read_rows)


DECODING = {
  "packed rows": lambda: _patch(inference.BatchInference, "_is_to_be_packed", lambda *_: False),
  "stages": lambda: _patch(staged_decode, "stage_stops", lambda length, few=False: [length]),
  "staged decoding and packed rows": lambda: _patch(
    inference.BatchInference, "_can_be_staged", lambda *_: False
  ),
  "two calls at a time": lambda: _patch(inference, "max_calls", lambda size: 1),
  "encoder in chunks": lambda: _patch(
    models.EncoderDecoderModel, "_encode_in_chunks", models.EncoderDecoderModel._encode
  ),
  "direct cross-attention": _without_direct_attention,
  "sorted by length": lambda: _patch(inference, "plan_batches", _whole_rows),
  "lengths weighed against compilations": lambda: _patch(
    inference, "plan_batches", _longest_of_batch
  ),
  "distinct inputs once": _unmerged,
  "rows read ahead": lambda: _patch(inference, "ReadAhead", lambda windows: windows),
  "at most 32 rows": lambda: _patch(inference, "_MOST_ROWS_ON_CPU", 1 << 20),
  "blocked attention": lambda: _patch(blocked_attention, "applies", lambda *_: False),
  "bias by shifting": lambda: _patch(embedding, "_toeplitz", _gathered),
}


def _gathered(per_offset, query_length):
  keys = per_offset.shape[1] - query_length + 1
  positions = jnp.arange(keys)[None] - jnp.arange(query_length)[:, None] + query_length - 1
  return jnp.take(per_offset, positions, axis=1)


def _plain_attention(query, key, value, bias=None, mask=None, float32_scores=False):
  scores = softmax_attention.scores(query, key, bias, mask, float32_scores)
  weights = jax.nn.softmax(scores.astype(jnp.float32), axis=-1).astype(value.dtype)
  return products.einsum("...qk,...kd->...qd", weights, value)


def _plain_mean(scores, value):
  largest = jnp.max(scores, axis=-1, keepdims=True).astype(jnp.float32)
  weights = jnp.exp(scores.astype(jnp.float32) - largest)
  total = jnp.sum(weights, axis=-1, keepdims=True)
  out = products.einsum("...qk,...kd->...qd", weights.astype(value.dtype), value, jnp.float32)
  return (out / total).astype(value.dtype), largest, total


def _plain_loss(logits, targets, label_smoothing=0.0, z_loss=0.0):
  logits = logits.astype(jnp.float32)
  log_z = jax.nn.logsumexp(logits, axis=-1)
  of_target = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
  total_z_loss = z_loss * jnp.square(log_z)
  return log_z - of_target + total_z_loss, total_z_loss


TRAINING = {
  "trimmed batches": lambda: _patch(trim, "trim", lambda batch: batch),
  "blocked attention": lambda: _patch(blocked_attention, "applies", lambda *_: False),
  "attention's own gradient": lambda: _patch(softmax_attention, "attend", _plain_attention),
  "sum of weights by a column": lambda: _patch(softmax_attention, "weighted_mean", _plain_mean),
  "sum over rows by a product": lambda: _patch(
    softmax_attention, "_sum_rows", lambda x: jnp.sum(x, axis=0, keepdims=True, dtype=jnp.float32)
  ),
  "loss's own gradient": lambda: _patch(losses, "smoothed_cross_entropy", _plain_loss),
  "bias by shifting": lambda: _patch(embedding, "_toeplitz", _gathered),
}


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
  cpu, wall = time.process_time(), time.perf_counter()
  work()
  return time.process_time() - cpu, time.perf_counter() - wall


def measure(columns: Mapping[str, Callable[[], object]], rounds: int) -> None:
  """Prints per column the medians, and their ratios to the column with everything on."""
  first = {}
  for name, work in columns.items():
    first[name] = _seconds(work)
    print(f"compiled  {name}: {first[name][0]:.1f} CPU s", flush=True)
  results: dict[str, list[tuple[float, float]]] = {name: [] for name in columns}
  for i in range(rounds):
    for name, work in columns.items():
      results[name].append(_seconds(work))
      cpu, wall = results[name][-1]
      print(f"round {i + 1}/{rounds}  {name}: {cpu:.2f} CPU s, {wall:.2f} s", flush=True)
  print(f"\n{_common.machine()}; {rounds} rounds, medians")
  width = max(map(len, columns))
  heads = ("CPU s, ratio (by round)", "wall s, ratio (by round)", "first call, CPU s")
  print(f"{'off':{width}}  " + "".join(f"{head:30}" for head in heads))
  for name, pairs in results.items():
    texts = []
    for kind in (0, 1):
      ratios = sorted(a[kind] / b[kind] for a, b in zip(pairs, results[ON], strict=True))
      middle = statistics.median(pair[kind] for pair in pairs)
      ratio = statistics.median(ratios)
      texts.append(f"{middle:8.2f}  {ratio:5.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    print(f"{name:{width}}  {'  '.join(texts)}  {first[name][0]:8.1f}", flush=True)


def decoding_columns(model, dataset_cfg, restore_cfg, partitioner, args) -> dict[str, Callable]:
  """Returns {trick: decodes the case's prompts with it switched off}."""
  if args.lengths:
    model = copy.copy(model)
    _set_lengths(model, args.lengths)
  initializer = utils.TrainStateInitializer(
    optimizer_def=None,
    init_fn=model.get_initial_variables,
    input_shapes={n: (8, 16) for n in ("encoder_input_tokens", "decoder_input_tokens")},
    partitioner=partitioner,
  )
  if args.checkpoint:
    state = initializer.from_choice(chosen(restore_cfg), restore_cfg)
  else:
    state = initializer.from_scratch(jax.random.PRNGKey(0))
  axes = initializer.train_state_axes
  datasets = []
  for task in setup.tasks_of(dataset_cfg):
    _, rows = setup.datasets_of(model, task, dataset_cfg, 0, args.shards)
    features = [features for _, features in itertools.islice(rows, args.prompts)]
    stacked = {k: np.stack([x[k] for x in features]) for k in features[0]}
    datasets.append(tf.data.Dataset.from_tensor_slices(stacked).enumerate())
  print("prompts:", [len(ds) for ds in datasets])
  answers = {}

  def column(name, switch):
    own = copy.copy(model)  # otherwise JAX would use what it has traced for another column
    with switch():
      decode = infer_fn.get_infer_fn(own.predict_batch, dataset_cfg.batch_size, axes, partitioner)

    def work():
      with switch():
        answers[name] = [out for ds in datasets for _, out in decode(ds, state)]
      if answers[name] != answers.setdefault(ON, answers[name]):
        same = sum(a == b for a, b in zip(answers[name], answers[ON], strict=True))
        print(f"{name}: {same} of {len(answers[ON])} answers are equal")

    return work

  tricks = {ON: contextlib.nullcontext, **DECODING}
  return {name: column(name, switch) for name, switch in tricks.items()}


def _set_lengths(model, lengths: Sequence[int]) -> None:
  """Lets random weights answer as long as trained ones: a row's length is drawn by its tokens."""
  own = functools.partial(lambda *args, **kwargs: type(model).decode_step(model, *args, **kwargs))
  table = jnp.asarray(sorted(lengths))
  eos = model.output_vocabulary.eos_id

  def decode_step(params, cross_cache, tokens, length, state, encoded=None):
    logits, cache = own(params, cross_cache, tokens, length, state, encoded)
    wanted = jnp.take(table, jnp.sum(tokens * 7919, axis=1) % len(table))[:, None]
    is_last = state.cur_index + 1 >= wanted
    is_eos = jnp.arange(logits.shape[-1]) == eos
    return jnp.where(is_last == is_eos, logits, -1e9), cache

  model.decode_step = decode_step


def training_columns(model, dataset_cfg, args) -> dict[str, Callable]:
  """Returns {trick: computes loss and gradients with it switched off}."""
  cfg = dataclasses.replace(dataset_cfg, seed=0)
  ds = utils.get_dataset(cfg, 0, 1, model.FEATURE_CONVERTER_CLS)
  batches = list(itertools.islice(ds.as_numpy_iterator(), args.batches))
  shapes = {k: x.shape for k, x in batches[0].items()}
  params = jax.jit(lambda key: model.get_initial_variables(key, shapes)["params"])(
    jax.random.key(0)
  )

  def column(name, switch):
    def loss(params, batch, key):
      return model.loss_fn(params, batch, key)

    step = jax.jit(jax.value_and_grad(loss, has_aux=True))

    def work():
      with switch():
        for batch in trim.trimmed(batches, model):
          on_device = jax.device_put(dict(batch))
          jax.block_until_ready(step(params, on_device, jax.random.key(0)))

    return work

  tricks = {ON: contextlib.nullcontext, **TRAINING}
  return {name: column(name, switch) for name, switch in tricks.items()}


GIN = {
  "sample": ["gin/sample/infer.gin"],
  "sgd": ["gin/infer.gin", "gin/models/t5_1_0_small.gin"],
  "train_sample": ["gin/sample/t5dst_backtrans.gin"],
  "train_sgd": ["gin/t5dst.gin", "gin/models/t5_1_0_small.gin"],
}


def train(*, model, train_dataset_cfg, **unused):
  """Returns the columns of a case of training; gin configures it as `t5x.train`'s."""
  return training_columns(model, train_dataset_cfg, train.args)


def infer(*, model, dataset_cfg, restore_checkpoint_cfg, partitioner, **unused):
  """Returns the columns of a case of decoding; gin configures it as `t5x.infer`'s."""
  return decoding_columns(model, dataset_cfg, restore_checkpoint_cfg, partitioner, infer.args)


def main() -> None:
  """Configures the case with gin, measures, prints the table."""
  parser = _common.make_parser(__doc__, repeats=3)
  parser.add_argument("case", choices=[*GIN, "train_sgd_unpacked"])
  parser.add_argument("--data-dir", required=True)
  parser.add_argument("--checkpoint")
  parser.add_argument("--shards", type=int, default=1, help="run one of so many parts")
  parser.add_argument("--batches", type=int, default=2, help="training batches a round")
  parser.add_argument("--prompts", type=int, help="of each task (default: all)")
  parser.add_argument(
    "--lengths", type=int, nargs="+", help="tokens of answers, for random weights"
  )
  parser.add_argument("--only", nargs="+")
  parser.add_argument("--bind", nargs="+", default=[], help="gin bindings")
  args = parser.parse_args()
  seqio.set_tfds_data_dir_override(args.data_dir)
  kind = args.case.removesuffix("_unpacked")
  bindings = list(args.bind)
  small = ["network.T5Config.dtype = 'float32'"] if "sgd" in args.case else []
  trains = "train" in kind
  if trains:
    bindings += ["MODEL_DIR = 'unused'"]
    packed = not args.case.endswith("_unpacked")
    bindings += [*small, "INITIAL_CHECKPOINT_PATH = []"]
    bindings += [f"train/utils.DatasetConfig.pack = {packed}"]
  else:
    bindings += [f"CHECKPOINT_PATH = {args.checkpoint!r}", "INFER_OUTPUT_DIR = 'unused'", *small]

  train.args = infer.args = args
  configured = gin.configurable(train if trains else infer)
  gin_utils.parse_gin_flags([], GIN[kind], bindings)
  columns = configured()
  if args.only:
    columns = {name: work for name, work in columns.items() if name in (ON, *args.only)}
  measure(columns, args.repeats)


if __name__ == "__main__":
  main()
