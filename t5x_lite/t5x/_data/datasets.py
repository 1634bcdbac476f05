"""Datasets for the scripts: configuration, seqio pipelines, batches on the device.

Re-exported by `t5x.utils`, where gin files look for these names.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import gin
import numpy as np
import seqio
import tensorflow as tf

from t5x._data import batches
from t5x._process import hosts
from t5x._process.log import log
from t5x.errors import T5XError, check_flag, check_whole, nearest, not_in_lite


@dataclasses.dataclass
class DatasetConfig:
  """What to read and how (gin: `utils.DatasetConfig`, scopes train, train_eval, infer_eval).

  Args:
      mixture_or_task_name: registered seqio name.
      task_feature_lengths: {feature: tokens}; None lets the evaluator measure them.
      split: seqio split.
      batch_size: examples per step over all hosts.
      shuffle: shuffle the examples.
      seed: of training data; None derives it from RANDOM_SEED if that is set, else draws one at
          random. Of teacher-forced evaluation it is RANDOM_SEED or 0, of inference 42.
      use_cached: read seqio's offline cache.
      pack: put several short examples in one row (training only).
      use_custom_packing_ops: not covered (needs Tensor2Tensor).
      module: Python module to import first (deprecated: import it in gin instead).
      use_memory_cache: keep evaluation examples in memory.
      trim_output_features: cut features to task_feature_lengths.
      runtime_preprocessors, num_prefetch_threads, num_workers: of AirIO, which is not covered.
  """

  mixture_or_task_name: Any
  task_feature_lengths: Mapping[str, int] | None
  split: str
  batch_size: int
  shuffle: bool
  seed: int | None
  use_cached: bool = False
  pack: bool = False
  use_custom_packing_ops: bool = False
  module: str | None = None
  use_memory_cache: bool = True
  trim_output_features: bool = True
  runtime_preprocessors: Sequence[Any] | None = None
  num_prefetch_threads: int | None = None
  num_workers: int | None = 0

  def __post_init__(self):
    check_whole(self.batch_size, "DatasetConfig.batch_size (BATCH_SIZE)", fix="--gin.BATCH_SIZE=16")
    check_whole(self.seed, "DatasetConfig.seed", -(2**63), optional=True)
    for name in ("shuffle", "use_cached", "pack", "use_memory_cache", "trim_output_features",
                 "use_custom_packing_ops"):  # fmt: skip
      check_flag(getattr(self, name), f"DatasetConfig.{name}")
    if self.use_custom_packing_ops:
      raise not_in_lite("DatasetConfig.use_custom_packing_ops=True", "set it to False")
    for name in ("runtime_preprocessors", "num_prefetch_threads", "num_workers"):
      if getattr(self, name):
        raise not_in_lite(f"DatasetConfig.{name}, which is AirIO's", "leave it unset")
    lengths = self.task_feature_lengths or {}
    if not isinstance(lengths, Mapping):
      raise T5XError(
        "TASK_FEATURE_LENGTHS has no length for each feature.",
        found=repr(lengths),
        expected="feature -> tokens",
        fix=_SET_LENGTHS,
      )
    for feature, length in lengths.items():
      # A feature of several dimensions has a length for each.
      for n in length if isinstance(length, (list, tuple)) else [length]:
        check_whole(n, f"The length of {feature!r} in TASK_FEATURE_LENGTHS", fix=_SET_LENGTHS)


_SET_LENGTHS = "--gin.TASK_FEATURE_LENGTHS=\"{'inputs': 512, 'targets': 128}\""


def check_lengths(cfg: DatasetConfig, converter_cls, needed: bool = True) -> None:
  """Raises T5XError unless there is a length for each feature that a model reads, and no other.

  Args:
      cfg: what to read; its task must be registered.
      converter_cls: the model's feature converter class, or a partial of it.
      needed: whether lengths are required; else missing ones are measured.
  """
  if cfg.task_feature_lengths is None and not needed:
    return
  lengths = dict(cfg.task_feature_lengths or {})
  provider = get_mixture_or_task(cfg.mixture_or_task_name)
  features = provider.output_features
  if isinstance(converter_cls, functools.partial):
    converter_cls = converter_cls.func
  # A model reads those of its converter's features that the task has.
  required = [f for f in getattr(converter_cls, "TASK_FEATURES", None) or () if f in features]
  unknown = [f for f in lengths if f not in features]
  missing = [f for f in required if f not in lengths] if needed else []
  if not unknown and not missing:
    return
  problem = f"lack {missing[0]!r}" if missing else f"name unknown feature {unknown[0]!r}"
  raise T5XError(
    f"The lengths for {provider.name!r} {problem}.",
    found=f"TASK_FEATURE_LENGTHS = {None if cfg.task_feature_lengths is None else lengths}",
    expected=f"a number of tokens for {' and '.join(required)}",
    available=f"features of the task: {', '.join(features)}",
    fix=_SET_LENGTHS,
  )


def import_module(module: str | None) -> None:
  """Imports the module that registers the tasks, if one is named."""
  if not module:
    return
  try:
    importlib.import_module(module)
  except (ImportError, TypeError, ValueError) as e:  # also for a name that no module can have
    raise T5XError(
      f"DatasetConfig.module names {module!r}, which cannot be imported.",
      found=e,
      expected="a module that Python can import",
      fix="correct MIXTURE_OR_TASK_MODULE, or import the module in your gin file.",
    ) from e


def get_mixture_or_task(name) -> seqio.Task | seqio.Mixture:
  """Looks up a seqio task or mixture; the error names the nearest ones if there is none."""
  if hasattr(name, "output_features"):
    return name
  registered = {*seqio.TaskRegistry.names(), *seqio.MixtureRegistry.names()}
  if not isinstance(name, str) or name not in registered:
    raise T5XError(
      f"No seqio task or mixture is named {name!r}.",
      expected="the name of one that is registered",
      available="nearest: "
      + (", ".join(nearest(str(name), registered)) or "no close match")
      + f" ({len(registered)} registered)",
      fix="correct MIXTURE_OR_TASK_NAME, or import the module that registers it in your "
      "gin file (for example `import my_project.tasks`).",
    )
  return seqio.get_mixture_or_task(name)


def has_split(task: seqio.Task, split: str) -> bool:
  """Whether a task has the split, or the splits that one such as "train[:50%]" is a part of."""
  names = re.sub(r"\[[^]]*\]", "", split).split("+")
  return split in task.splits or all(name in task.splits for name in names)


def _check_split(provider, split: str) -> None:
  """Raises T5XError unless the task, or one of the mixture, has the split."""
  tasks = seqio.get_subtasks(provider)
  # SeqIO leaves out a mixture's tasks without a split of exactly that name.
  has = has_split if isinstance(provider, seqio.Task) else lambda task, name: name in task.splits
  if any(t.splits for t in tasks) and not any(has(t, split) for t in tasks):
    raise no_split(provider, split)


def no_split(provider, split: str) -> T5XError:
  """Returns the error for a task or mixture without a split."""
  splits = set().union(*(task.splits for task in seqio.get_subtasks(provider)))
  return T5XError(
    f"{provider.name!r} has no split {split!r}.",
    expected="a split of its tasks",
    available=", ".join(sorted(splits)),
    fix="set utils.DatasetConfig.split to one of these.",
  )


def _check_cached(provider, split: str) -> None:
  """`use_cached=True` without a cache is the first problem new users meet; say what to do."""
  for task in seqio.get_subtasks(provider):
    if task.supports_caching and task.cache_dir is None:  # SeqIO reads the others uncached
      raise T5XError(
        f"Task {task.name!r} is not in a seqio cache, but use_cached is True.",
        found=f"split {split!r}, cache folders: "
        + (", ".join(map(str, seqio.utils.get_global_cache_dirs())) or "none set"),
        fix="--gin.USE_CACHED_TASKS=False reads it uncached; "
        "--seqio_additional_cache_dirs=DIR adds a cache folder.",
      )


def drawn_seed() -> int:
  """Draws a seed, the same in all processes: every host must shuffle alike."""
  return hosts.broadcast_number(np.random.SeedSequence().generate_state(1)[0] % 2**31)


def resolve_seed(cfg: DatasetConfig, random_seed: int | None, step: int, stream_name: str) -> int:
  """Returns the seed of a stream of data that begins at `step`, and logs where it comes from.

  A stream that does not begin at step 0 has another order: folding the step in keeps it from
  repeating the examples of step 0, and keeps it reproducible.
  """
  if cfg.seed is not None:
    seed, origin = int(cfg.seed), "DatasetConfig.seed"
  elif random_seed is not None:
    seed, origin = (int(random_seed) * 2654435761 + 17) % 2**31, f"RANDOM_SEED={random_seed}"
  else:
    seed, origin = drawn_seed(), "a random draw"
  if step:
    seed = (seed + step * 1_000_003) % 2**31
    origin += f" and step {step}"
  if cfg.shuffle:
    log(f"{stream_name} seed {seed} (from {origin})")
  return seed


def get_dataset(
  cfg: DatasetConfig,
  shard_id: int,
  num_shards: int,
  feature_converter_cls,
  num_epochs: int | None = None,
  continue_from_last_checkpoint: bool = False,
  batching_fn=None,
  skip_batches: int = 0,
) -> tf.data.Dataset:
  """Returns a batched dataset of model features for one host.

  Every host makes the same stream of global batches and keeps its rows of each. So no example is
  lost or read twice, whatever shuffling, packing and filters do, and a run can continue with
  another number of hosts. (SeqIO's own shards save hosts some reading, but they have different
  lengths, are shuffled and packed separately, and only fit the number of hosts they were made for.)

  Args:
      cfg: what to read; `cfg.seed` must be resolved (see `resolve_seed`).
      shard_id: which rows of each batch this host feeds.
      num_shards: number of such parts.
      feature_converter_cls: the model's seqio feature converter class.
      num_epochs: passes over the data; None repeats forever.
      continue_from_last_checkpoint: not covered; `train` resumes the data without it.
      batching_fn: not covered.
      skip_batches: global batches to skip; like `.skip(skip_batches)` on the result, but examples
          that are not packed are skipped before they are padded and batched, which saves a third
          to half of the work.
  """
  if continue_from_last_checkpoint or batching_fn is not None:
    raise not_in_lite("get_dataset(continue_from_last_checkpoint=..., batching_fn=...)")
  import_module(cfg.module)
  provider = get_mixture_or_task(cfg.mixture_or_task_name)
  _check_split(provider, cfg.split)
  if cfg.use_cached:
    _check_cached(provider, cfg.split)
  rows = _rows_of_host(cfg.batch_size, shard_id, num_shards)
  seed = resolve_seed(cfg, None, 0, "data") if cfg.seed is None else cfg.seed
  converter = feature_converter_cls(
    pack=cfg.pack, use_custom_packing_ops=cfg.use_custom_packing_ops
  )
  ds = provider.get_dataset(
    cfg.task_feature_lengths,
    split=cfg.split,
    use_cached=cfg.use_cached,
    shuffle=cfg.shuffle,
    seed=seed,
    shard_info=seqio.ShardInfo(index=0, num_shards=1),
    num_epochs=num_epochs,
    trim_output_features=cfg.trim_output_features,
  )
  if not cfg.pack and batches.makes_one_row_of_each(converter):
    ds = ds.skip(skip_batches * cfg.batch_size)
    skip_batches = 0
  ds = batches.convert_and_batch(
    ds,
    converter,
    cfg.task_feature_lengths or {},
    cfg.batch_size,
    drop_remainder=num_epochs is None,
    trimmed=cfg.trim_output_features,
  )
  ds = ds.with_options(_reading_options()).skip(skip_batches)
  if num_shards > 1:
    ds = ds.map(lambda batch: {name: x[rows] for name, x in batch.items()})
  return ds.prefetch(2)


def _reading_options() -> tf.data.Options:
  options = tf.data.Options()
  options.deterministic = True
  # Ending an autotuned iterator can take a minute, waiting for its tuning thread: that thread
  # checks for cancellation when it is woken, but it is woken before it is cancelled.
  options.autotune.enabled = False
  return options


def _rows_of_host(batch_size: int, shard_id: int, num_shards: int) -> slice:
  """Rows of a global batch that host `shard_id` of `num_shards` feeds."""
  if batch_size % num_shards:
    raise T5XError(
      f"Batch size {batch_size} does not divide evenly across {num_shards} hosts.",
      fix=f"use a multiple of {num_shards} as BATCH_SIZE.",
    )
  size = batch_size // num_shards
  return slice(shard_id * size, (shard_id + 1) * size)


@gin.configurable(module="t5x.utils")
def resume_data(exactly: bool = True) -> bool:
  """Whether a resumed run skips the training data it has seen, to continue with the rest.

  It then reads exactly what the uninterrupted run would have read; but all that is skipped is
  read and tokenized again. Where that takes too long (endless data, at its millionth step),
  `utils.resume_data.exactly = False` in a gin file starts a new order instead, which may repeat
  some examples of the epoch before others come. Google's T5X has no such function: leave the line
  out there.

  Args:
      exactly: False starts a new order.
  """
  return exactly


def get_training_eval_datasets(
  cfg: DatasetConfig,
  shard_id: int,
  num_shards: int,
  eval_steps: int,
  feature_converter_cls,
  deterministic: bool = False,
  model_dir: str | None = None,
  start_step: int = 0,
  get_dataset_fn=get_dataset,
) -> dict[str, tf.data.Dataset]:
  """Returns {task: dataset of at most `eval_steps` batches} for teacher-forced evaluation.

  A mixture is evaluated too, beside its tasks.

  A task smaller than `eval_steps` batches is read once and its last batch padded with empty
  rows, so that no example counts twice. (Google's T5X repeats the examples.)
  """
  del deterministic, model_dir, start_step
  import_module(cfg.module)
  provider = get_mixture_or_task(cfg.mixture_or_task_name)
  tasks = seqio.get_subtasks(provider)
  names = [task.name for task in tasks if cfg.split in task.splits]
  for task in tasks:
    if task.name not in names:
      log(f"{task.name} has no split {cfg.split!r}; no training_eval for it")
  if not names:
    _check_split(provider, cfg.split)
  elif isinstance(provider, seqio.Mixture):
    names.append(provider.name)
  datasets = {}
  for name in names:
    task_cfg = dataclasses.replace(cfg, mixture_or_task_name=name)
    ds = get_dataset_fn(task_cfg, shard_id, num_shards, feature_converter_cls, num_epochs=1).take(
      eval_steps
    )
    datasets[name] = ds.cache() if cfg.use_memory_cache else ds
  return datasets


def verify_matching_vocabs(cfg: DatasetConfig, model) -> None:
  """Raises T5XError if the task's vocabularies are not the model's, which may have none."""
  provider = get_mixture_or_task(cfg.mixture_or_task_name)
  features = provider.output_features
  for name, attribute in (("inputs", "input_vocabulary"), ("targets", "output_vocabulary")):
    of_model = getattr(model, attribute, None)
    if of_model is None or name not in features:
      continue
    of_task = features[name].vocabulary
    if of_task != of_model:
      raise T5XError(
        f"The model's vocabulary differs from that of {provider.name!r} ({name}).",
        found=f"task: {of_task}; model: {of_model}",
        expected="the same vocabulary; SentencePiece vocabularies are compared by file "
        "path and extra_ids",
        fix="use the same vocabulary object or path for the model and the tasks.",
      )


def batch_shapes(ds: tf.data.Dataset, batch_size: int) -> tuple[dict, dict]:
  """Returns ({feature: global shape}, {feature: dtype}) of a batched dataset."""
  spec = ds.element_spec
  shapes = {k: (batch_size, *tuple(v.shape[1:])) for k, v in spec.items()}
  return shapes, {k: v.dtype.as_numpy_dtype for k, v in spec.items()}


def lengths_str(lengths: Mapping[str, int] | Sequence | None) -> str:
  """`{'inputs': 512}` as `inputs 512`, for log lines."""
  if not lengths:
    return "measured"
  return ", ".join(f"{k} {v}" for k, v in dict(lengths).items())
