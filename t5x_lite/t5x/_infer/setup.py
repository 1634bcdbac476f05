"""What `infer` prepares before the first batch: settings, tasks, their rows, the model's state."""

from __future__ import annotations

import collections
import hashlib

import jax
import seqio

from t5x._checkpoint.choose import check_single
from t5x._data.batches import quick_converter
from t5x._data.datasets import get_mixture_or_task, has_split, no_split
from t5x._process.log import log
from t5x._process.read_ahead import ReadAhead
from t5x.errors import T5XError, check_whole

_EXAMPLES_AHEAD = 4096  # that are read before they are requested

STEPS = {  # mode -> method of the model
  "predict": "predict_batch",
  "score": "score_batch",
  "predict_with_aux": "predict_batch_with_aux",
}


def check_settings(mode: str, dataset_cfg, restore_cfg, shard_id: int, num_shards: int) -> None:
  """Raises T5XError for settings that cannot work."""
  if mode not in tuple(STEPS):  # also unhashable ones
    raise T5XError(
      "infer.mode is unknown.",
      found=repr(mode),
      expected="what to write for each example",
      available=", ".join(STEPS),
      fix="--gin.infer.mode=\"'predict'\"",
    )
  if dataset_cfg.pack or dataset_cfg.shuffle:
    raise T5XError(
      "infer must keep the dataset's rows and order.",
      found=f"pack={dataset_cfg.pack}, shuffle={dataset_cfg.shuffle}",
      expected="both False",
      fix="set utils.DatasetConfig.pack and .shuffle to False.",
    )
  check_single(restore_cfg, "infer")
  check_whole(num_shards, "infer.num_shards")
  check_whole(shard_id, "infer.shard_id", 0)
  if shard_id >= num_shards:
    raise T5XError(
      "shard_id is out of range.",
      found=f"{shard_id} of {num_shards} shards",
      expected=f"0 to {num_shards - 1}",
      fix="set --shard_id, or infer.num_shards",
    )


def tasks_of(dataset_cfg) -> list:
  """The mixture's tasks that have the split; logs the others."""
  provider, split = get_mixture_or_task(dataset_cfg.mixture_or_task_name), dataset_cfg.split
  tasks = []
  for task in seqio.get_subtasks(provider):
    if has_split(task, split):
      tasks.append(task)
    else:
      log(f"{task.name} has no split {split!r}; nothing is written for it")
  if not tasks:
    raise no_split(provider, split)
  return tasks


def check_vocabulary_feature(tasks, feature: str) -> None:
  """Raises T5XError unless all tasks have the feature whose vocabulary decodes predictions."""
  for task in tasks:
    if feature not in tuple(task.output_features):  # also one that is unhashable
      raise T5XError(
        f"infer.output_vocab_feature_name is no feature of {task.name!r}.",
        found=repr(feature),
        expected="the feature whose vocabulary decodes predictions",
        available=", ".join(task.output_features),
        fix="infer.output_vocab_feature_name = 'targets'",
      )


def datasets_of(model, task, dataset_cfg, shard_id: int, num_shards: int):
  """Returns (the task's examples in order, or this shard of them; numbered rows made of them)."""
  lengths = dataset_cfg.task_feature_lengths
  task_ds = task.get_dataset(
    sequence_length=lengths,
    split=dataset_cfg.split,
    shuffle=False,
    num_epochs=1,
    seed=dataset_cfg.seed,
    use_cached=dataset_cfg.use_cached,
    shard_info=seqio.ShardInfo(shard_id, num_shards) if num_shards > 1 else None,
  )
  task_ds = task_ds.cache()  # read once: for the model, and from memory for the file
  model_ds = quick_converter(model.FEATURE_CONVERTER_CLS(pack=False))(task_ds, lengths)
  return task_ds, _Rows(model_ds.enumerate())


class _Rows:
  """The numbered rows of a dataset, whose first pass begins at once, in a thread.

  Attributes:
      digest: of the rows of the last whole pass.
  """

  def __init__(self, ds):
    self.element_spec, self._ds = ds.element_spec, ds
    self._ahead = ReadAhead(ds.as_numpy_iterator(), _EXAMPLES_AHEAD)
    self.digest = ""

  def __iter__(self):
    # One pass writes the predictions; a second only looks whether the inputs have changed.
    rows, self._ahead = self._ahead or self._ds.as_numpy_iterator(), None
    digest = hashlib.blake2b(digest_size=8)
    for number, features in rows:
      for name in sorted(features):
        digest.update(features[name].tobytes())
      yield number, features
    self.digest = digest.hexdigest()

  def read(self) -> str:
    """Reads all rows; returns their digest."""
    collections.deque(self, maxlen=0)
    return self.digest


def restore(model, dataset_cfg, choice, restore_cfg, partitioner, initializer_cls, seed: int):
  """Returns (state of the chosen checkpoint, its PartitionSpecs)."""
  converter = model.FEATURE_CONVERTER_CLS(pack=False)
  lengths = converter.get_model_feature_lengths(dataset_cfg.task_feature_lengths)
  initializer = initializer_cls(
    optimizer_def=None,
    init_fn=model.get_initial_variables,
    input_shapes={k: (dataset_cfg.batch_size, n) for k, n in lengths.items()},
    partitioner=partitioner,
  )
  state = initializer.from_choice(choice, restore_cfg, jax.random.PRNGKey(seed))
  return state, initializer.train_state_axes
