"""Inference results as they are produced, so that a killed run continues where it stopped.

A journal is a JSONL file with one line per distinct input, in the order the device finished them:
{"key": digest of the input, "output": [...], "text": "..."}.
Its name ends in a hash of everything that determines the outputs: another configuration or other
weights write another file, and nothing is ever mixed or lost. It is removed when the final,
ordered file is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

import jax
import jax.numpy as jnp
from etils import epath

from t5x._process import matmul
from t5x._process.hosts import broadcast_text
from t5x._process.log import log
from t5x._script.gin_config import parsed

# Settings that decide where and in what portions the work is done, not its results.
_WITHOUT_EFFECT = (
  "output_dir",
  "OUTPUT_DIR",
  "batch_size",
  "BATCH_SIZE",
  "checkpoint_period",
  "num_partitions",
  "model_parallel_submesh",
  "ici_mesh_shape",
  "dcn_mesh_shape",
)


@jax.jit
def _checksum(x: jax.Array) -> jax.Array:
  """A sum over the bits of an array, independent of the order of addition."""
  kind = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32}[x.dtype.itemsize]
  bits = jax.lax.bitcast_convert_type(x, kind).astype(jnp.uint32).reshape(-1)
  return jnp.sum(bits * (2 * jnp.arange(bits.size, dtype=jnp.uint32) + 1))


def config_hash(params: Any, further_settings: Mapping[str, Any]) -> str:
  """Returns a hash of the weights, the gin configuration and further settings, such as the mode.

  It has eight hexadecimal digits.
  """
  digest = hashlib.blake2b(digest_size=4)
  for (scope, selector), settings in sorted(parsed().items()):
    if not scope.endswith(_WITHOUT_EFFECT):
      influential = {k: repr(v) for k, v in sorted(settings.items()) if k not in _WITHOUT_EFFECT}
      digest.update(f"{scope}/{selector}{influential}".encode())
  digest.update(repr(sorted(further_settings.items())).encode())
  # Results of the two are not mixed.
  if matmul.operands() != matmul.FLOAT32 and jax.default_backend() == "cpu":
    digest.update(matmul.operands().encode())
  # Summed where the weights are: they need not come to the host.
  for path, leaf in jax.tree_util.tree_leaves_with_path(params):
    digest.update(f"{jax.tree_util.keystr(path)}{leaf.shape}{int(_checksum(leaf))}".encode())
  return digest.hexdigest()


def json_value(value: Any) -> Any:
  """Bytes to text, arrays to lists."""
  if isinstance(value, bytes):
    return value.decode("utf-8", errors="replace")
  if hasattr(value, "tolist"):
    return json_value(value.tolist())
  if isinstance(value, (list, tuple)):
    return [json_value(v) for v in value]
  if isinstance(value, Mapping):
    return {k: json_value(v) for k, v in value.items()}
  return value


def decoder(vocabulary) -> Callable[[Any], Any]:
  """Returns a function from predicted ids (or a pair of ids and auxiliary values) to text."""

  def to_text(output):
    if isinstance(output, (list, tuple)) and output and isinstance(output[-1], Mapping):
      return to_text(output[0])
    if isinstance(output, (list, tuple)) and output and isinstance(output[0], (list, tuple)):
      return [to_text(o) for o in output]
    return vocabulary.decode([int(i) for i in output])

  return to_text


class Journal:
  """The journal of one task.

  Args:
      path: file name without the hash, e.g. OUTPUT_DIR/partial/<task>-predict.
      settings_hash: from `config_hash`.
      to_text: turns an output into readable text for the file, or None.
  """

  def __init__(self, path: str, settings_hash: str, to_text: Callable[[Any], Any] | None = None):
    self._path = epath.Path(f"{path}-{settings_hash}.jsonl")
    self._to_text = to_text
    self._file: IO[str] | None = None

  def read(self) -> dict[str, Any]:
    """Returns {key: output} of an earlier run; on every host, those of the first host."""
    text = ""
    if jax.process_index() == 0 and self._path.exists():
      text = self._path.read_bytes().decode(errors="replace")  # a cut may be within a character
    if jax.process_count() > 1:
      text = broadcast_text(text)
    outputs = {}
    for line in text.split("\n"):  # splitlines() also cuts at U+2028, which texts may have
      try:
        entry = json.loads(line)
        outputs[entry["key"]] = entry["output"]
      except (ValueError, KeyError):
        continue  # the line that was being written when the run was killed
    if outputs:
      log(f"{len(outputs)} results of an earlier run are in {self._path}: resuming from there")
    return outputs

  def write(self, keys: Sequence[str], outputs: Sequence[Any]) -> None:
    """Appends outputs and hands them to the operating system."""
    if jax.process_index() != 0:
      return
    if self._file is None:
      self._path.parent.mkdir(parents=True, exist_ok=True)
      self._file = self._path.open("a")
      self._file.write("\n")  # the last line may have been cut off
    for key, output in zip(keys, outputs, strict=True):
      entry = {"key": key, "output": json_value(output)}
      if self._to_text is not None:
        entry["text"] = self._to_text(entry["output"])
      self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    self._file.flush()

  def close(self, complete: bool) -> None:
    """Closes the file, and removes it if the results are now elsewhere."""
    if self._file is not None:
      self._file.close()
      self._file = None
    if complete and jax.process_index() == 0:
      self._path.unlink(missing_ok=True)
      # Other tasks' journals may be there, or it is not a local folder.
      with contextlib.suppress(OSError):
        os.rmdir(self._path.parent)
