"""A checkpoint of any model of `t5x.train` as a function from features to answers.

Models are run by T5X's own `utils.get_infer_fn`, as in `python -m t5x.infer`, so their answers are
the same. Of `tracking`, this module alone uses T5X, whichever is installed.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from sgdx_t5x.errors import SgdxError, first_line
from sgdx_t5x.tracking.answer_cache import answer_once
from sgdx_t5x.tracking.checkpoints import Checkpoint, configured, query, registered
from sgdx_t5x.tracking.protocol import override_lengths
from t5x import partitioning, utils

Features = Mapping[str, Sequence[int]]
_BATCH_SIZE = 64
# Features that stand for the same tokens, slots, values or intents, and have one length.
_TWINS = {
  "inputs": ("segments", "positions", "context"),
  "slots": ("slot_context",),
  "values": ("value_slots",),
  "intents": ("intent_context",),
}


class LoadedModel:
  """A model with the weights of a checkpoint.

  Attributes:
    checkpoint: where it is from.
    task: what it was trained on; `task.style_or_format` has the prompt format or style.
    model: T5X's, a `models.BaseModel`.
    lengths: of the task's features, from gin's inference settings unless overridden.
    digest: hash of the weights, 16 hex digits, independent of the checkpoint's path.
  """

  def __init__(self, checkpoint: Checkpoint, lengths: Mapping[str, int] | None = None):
    """Args: checkpoint; lengths of features, overriding those in its configuration."""
    self.checkpoint = checkpoint
    with configured(checkpoint), _as_sgdx_errors(checkpoint):
      self.task = registered(checkpoint)
      if self.task.style_or_format is None:
        raise SgdxError(
          f"{checkpoint.path}: trained on {self.task.name}, which has no single format and style",
          expected="a mixture whose tasks all have the same format and style",
          available=self.task.format,
          fix="train on such a mixture; `sgdx ls tasks` lists them",
        )
      if (model := query("MODEL")) is None:
        raise SgdxError(
          f"{checkpoint.config_path}: no MODEL",
          expected="the trained model as a macro, which `t5x.eval` and `t5x.infer` take, too",
          fix="set it there to what train.model has: MODEL = @models.EncoderDecoderModel()",
        )
      self.model = copy.deepcopy(model)  # which builds what gin refers to
      self.lengths = _lengths(checkpoint, lengths or {})
      # As t5x_lite's scripts do; Google's T5X has neither.
      getattr(utils, "compilation_cache", lambda: None)()
      self._operands = getattr(utils, "cpu_matmul", lambda: "")()
      self._restore()

  def _restore(self) -> None:
    converter = self.model.FEATURE_CONVERTER_CLS(pack=False)
    lengths = converter.get_model_feature_lengths(self.lengths)
    partitioner = _partitioner()
    initializer = utils.TrainStateInitializer(
      optimizer_def=None,
      init_fn=self.model.get_initial_variables,
      input_shapes={name: (_BATCH_SIZE, length) for name, length in lengths.items()},
      partitioner=partitioner,
    )
    # Nothing from scratch, as in training that begins from an encoder: random heads answer, too.
    restore = utils.RestoreCheckpointConfig(
      path=self.checkpoint.path,
      mode="specific",
      dtype="float32",
      fallback_to_scratch=False,
      state_transformation_fns=(),
    )
    self._state = initializer.from_checkpoint([restore], init_rng=jax.random.PRNGKey(0))
    self._infer = utils.get_infer_fn(
      self.model.predict_batch, _BATCH_SIZE, initializer.train_state_axes, partitioner
    )
    self._rows: list[dict[str, np.ndarray]] = []
    self._cache: dict[bytes, list[int]] = {}
    self._types: dict[str, np.dtype] = {}
    signature = {}
    for name, feature in converter.TASK_FEATURES.items():
      self._types[name] = feature.dtype.as_numpy_dtype
      signature[name] = tf.TensorSpec([None], feature.dtype)
    # Built once: every pass over it reads the current `_rows`.
    rows = tf.data.Dataset.from_generator(lambda: iter(self._rows), output_signature=signature)
    self._dataset = converter(rows, self.lengths).enumerate()

  @property
  def params(self) -> Any:
    """The weights, a tree of arrays."""
    return self._state.params

  @functools.cached_property
  def digest(self) -> str:
    """See the class."""
    digest = hashlib.blake2b(digest_size=8)
    for path, leaf in jax.tree_util.tree_leaves_with_path(self._state.params):
      digest.update(jax.tree_util.keystr(path).encode())
      digest.update(np.ascontiguousarray(leaf).view(np.uint8).data)
    return digest.hexdigest()

  @property
  def settings(self) -> dict[str, str]:
    """What its answers depend on, for `protocol.Tracker.settings`."""
    lengths = " ".join(f"{name}={length}" for name, length in sorted(self.lengths.items()))
    settings = {"weights": self.digest, "task": self.task.name, "lengths": lengths}
    if self._operands and jax.default_backend() == "cpu":
      settings["cpu_matmul"] = self._operands
    return settings | self._checksums

  @functools.cached_property
  def _checksums(self) -> dict[str, str]:
    """Of the network's configuration and of the input vocabulary."""
    # Functions in a configuration are shown with their addresses, which differ by process.
    network = re.sub(r" at 0x[0-9a-f]+", "", repr(self.model.module))
    vocabulary = self.model.input_vocabulary
    # Not its file, which may lie elsewhere and be the same: its pieces, and how it folds a text.
    pieces = [vocabulary.decode([i]) for i in range(vocabulary.vocab_size)]
    pieces.append(str(vocabulary.encode("Case and É")))
    texts = {"network": network, "vocabulary": "\n".join(pieces)}
    return {name: f"{zlib.crc32(text.encode()):08x}" for name, text in texts.items()}

  def answer(self, features: Sequence[Features]) -> list[list[int]]:
    """Runs the model in batches of similar lengths, once per distinct example.

    Args:
      features: the task features of each example, 1-D, unpadded and within `lengths`. Missing ones,
        such as `targets`, are empty.

    Returns:
      What `model.predict_batch` returned for each: token ids from a decoder, the answer vector from
      an encoder.
    """
    rows = []
    for example in features:
      rows.append({x: np.asarray(example.get(x, ()), kind) for x, kind in self._types.items()})
    return answer_once(self._cache, rows, self._run)

  def _run(self, rows: list[dict[str, np.ndarray]]) -> list[list[int]]:
    with configured(self.checkpoint):  # one thread at a time, also because `_rows` is shared
      self._rows = rows
      # T5X returns (number, output) in the order of batches, which are of rows of similar lengths.
      return [output for _, output in sorted(self._infer(self._dataset, self._state))]


def _partitioner() -> partitioning.PjitPartitioner:
  """Returns the configured partitioner; on a single device, one without partitioning."""
  if jax.device_count() > 1:
    return partitioning.PjitPartitioner()
  return partitioning.PjitPartitioner(num_partitions=1, model_parallel_submesh=None)


def _lengths(checkpoint: Checkpoint, overrides: Mapping[str, int]) -> Mapping[str, int]:
  lengths = query("infer_eval/t5x.utils.DatasetConfig.task_feature_lengths")
  # Gin resolves what is referred to, as in {'inputs': %LENGTH}, where it copies a value.
  lengths = copy.deepcopy(lengths or query("TASK_FEATURE_LENGTHS"))
  if not isinstance(lengths, Mapping):
    raise SgdxError(
      f"{checkpoint.config_path}: no TASK_FEATURE_LENGTHS",
      expected="the feature lengths of the task, for which models are built",
      fix="set it there: TASK_FEATURE_LENGTHS = {'inputs': 512, 'targets': 256}",
    )
  lengths = override_lengths(lengths, overrides, checkpoint.task)
  for name, length in overrides.items():
    for twin in _TWINS.get(name, ()):
      if twin in lengths and twin not in overrides:
        lengths[twin] = length
  return lengths


@contextlib.contextmanager
def _as_sgdx_errors(checkpoint: Checkpoint) -> Iterator[None]:
  """Turns the errors that t5x_lite gives in parts into SgdxErrors.

  Others pass: an author of a model or of a task needs the traceback.
  """
  try:
    yield
  except ValueError as e:  # T5XError is one; Google's T5X does not have it
    if not hasattr(e, "fix"):
      raise
    texts = filter(None, (getattr(e, "message", None), getattr(e, "found", None)))
    raise SgdxError(
      f"{checkpoint.path}: " + (": ".join(map(str, texts)) or first_line(e)),
      expected=str(getattr(e, "expected", None) or "a checkpoint that matches its config.gin"),
      available=str(getattr(e, "available", None) or ""),
      fix="pass the checkpoint with the config.gin it was trained with; --debug shows more",
    ) from e
