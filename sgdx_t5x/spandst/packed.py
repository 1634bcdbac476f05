"""A trained SpanDST as files for NumPy alone: config.json, weights.npz and, maybe, acts.npz.

`sgdx weights pack` writes them from a checkpoint of `t5x.train`; the last, of an `ActReader`, with
`--corpus`. Only what was trained is in them: the embeddings are the encoder's own (`minilm.py`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import not_found
from sgdx_t5x.spandst import minilm
from sgdx_t5x.spandst.span_text import SpanStyle

CONFIG, WEIGHTS, ACTS = "config.json", "weights.npz", "acts.npz"
SHIPPED = pathlib.Path(__file__).parent / "shipped"
FORMAT = "sgdx_t5x SpanDST, packed"
_SCALE = " scale"  # suffix of an array's scales
_READS = "reads"  # in acts.npz: the digest of the weights whose hidden states it reads
_STEPS = 127  # of an 8-bit number on either side of 0


@dataclasses.dataclass(frozen=True)
class PackedConfig:
  """config.json.

  Attributes:
    num_heads: of the encoder.
    epsilon: of its layer norms.
    lexical: see `span_model.SpanTracker`.
    pooled: see `span_model.SpanTracker`.
    longest_span: maximum tokens in a span.
    style: fields of the `SpanStyle` of training.
    lengths: of features.
    trained_on: task or mixture.
    step: of the checkpoint.
    bits: 8 or 16: of the stored weights.
    digest: hash of weights.npz's arrays, 16 hex digits.
    format: marks the file.
  """

  num_heads: int
  epsilon: float
  lexical: bool
  pooled: bool
  longest_span: int
  style: Mapping[str, Any]
  lengths: Mapping[str, int]
  trained_on: str
  step: int
  bits: int
  digest: str = ""
  format: str = FORMAT


def pack(arrays: Mapping[str, np.ndarray], bits: int) -> dict[str, np.ndarray]:
  """Returns arrays as they are stored.

  Matrices of the linear layers, the kernels, are rounded: to 8 bits with a scale for each output,
  or to float16. The encoder's embeddings are left out, all else stays float32.

  Args:
    arrays: name -> array of a checkpoint.
    bits: 8 or 16.
  """
  packed = {}
  for name, array in arrays.items():
    if name in minilm.TABLES:
      continue
    if not name.endswith("/kernel"):
      packed[name] = array.astype(np.float32)
    elif bits == 16:
      packed[name] = array.astype(np.float16)
    else:
      # The smallest float for a column of zeros, which would else be divided by zero.
      scale = np.maximum(np.abs(array).max(axis=0), np.finfo(np.float32).tiny) / _STEPS
      packed[name] = np.round(array / scale).astype(np.int8)
      packed[name + _SCALE] = scale.astype(np.float32)
  return packed


def unpack(packed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Returns the arrays that `pack` stored, in float32."""
  arrays = {}
  for name, array in packed.items():
    if not name.endswith(_SCALE):
      scale = packed.get(name + _SCALE, np.float32(1))
      arrays[name] = array.astype(np.float32) * scale
  return arrays


def write(folder: pathlib.Path, config: PackedConfig, arrays: Mapping[str, np.ndarray]) -> None:
  """Writes both files. Args: folder, which is created; config; arrays of a checkpoint."""
  folder.mkdir()
  packed = pack(arrays, config.bits)
  config = dataclasses.replace(config, digest=_digest(packed))
  np.savez_compressed(folder / WEIGHTS, **packed)  # type: ignore[arg-type]  # names, not options
  text = json.dumps(dataclasses.asdict(config), indent=2)
  (folder / CONFIG).write_text(text + "\n", encoding="utf-8")


def read(folder: pathlib.Path) -> tuple[PackedConfig, dict[str, np.ndarray]]:
  """Reads both files: the configuration, and the trained arrays in float32.

  Raises:
    SgdxError: a file is missing, damaged or of another kind.
  """
  config = _read_config(folder / CONFIG)
  path = folder / WEIGHTS
  packed = _arrays(path)
  if (digest := _digest(packed)) != config.digest:
    raise _damaged(path, f"digest {digest}, config.json says {config.digest}")
  width = len(packed["encoder/embedding_layer_norm/scale"])
  if width % config.num_heads:
    raise _damaged(folder / CONFIG, f"{config.num_heads} heads do not divide a width of {width}")
  return config, unpack(packed)


def write_acts(folder: pathlib.Path, reads: str, arrays: Mapping[str, np.ndarray]) -> None:
  """Writes acts.npz. Args: folder; reads, digest of its weights; arrays of an `ActReader`."""
  packed = {**pack(arrays, bits=16), _READS: np.array(reads)}
  np.savez_compressed(folder / ACTS, **packed)  # type: ignore[arg-type]  # names, not options


def read_acts(folder: pathlib.Path, reads: str) -> tuple[str, dict[str, np.ndarray]] | None:
  """Reads acts.npz: its digest, and its arrays in float32. None if the folder has none.

  Raises:
    SgdxError: it is damaged, or reads other weights than `reads`.
  """
  path = folder / ACTS
  if not path.is_file():
    return None
  packed = _arrays(path)
  of_weights = str(packed.pop(_READS, ""))
  if of_weights != reads:
    raise _damaged(path, f"trained for weights {of_weights!r}, config.json says {reads}")
  return _digest(packed), unpack(packed)


def _arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
  try:
    with path.open("rb") as file, np.load(file) as stored:
      return dict(stored)
  except Exception as e:  # many kinds, of zipfile, zlib and NumPy, by where the damage is
    raise _damaged(path, f"cannot be read ({e})") from None


def _read_config(path: pathlib.Path) -> PackedConfig:
  if not path.is_file():
    raise not_found(path, "the config.json of a packed tracker")
  try:
    data = json.loads(path.read_bytes())
    if isinstance(data, dict) and data.get("format") != FORMAT:
      raise SgdxError(
        f"{path}: not a packed tracker's",
        expected="a folder that `sgdx weights pack` wrote, or a checkpoint of `t5x.train`",
        fix=f"pass one, or none for the tracker that ships; {minilm.VARIABLE} names the encoder's",
      )
    PackedConfig(**data), SpanStyle(**data["style"])  # both refuse names that they do not have
    config = msgspec.convert(data, PackedConfig)
    msgspec.convert(config.style, SpanStyle)
    sizes = [config.num_heads, config.longest_span, config.lengths["inputs"]]
    if min(*sizes, config.lengths["memory"]) < 1:
      raise ValueError("a size below 1")
  except (KeyError, TypeError, ValueError, msgspec.ValidationError) as e:
    raise _damaged(path, f"not a packed tracker's ({e})") from None
  return config


def _damaged(path: pathlib.Path, problem: str) -> SgdxError:
  return SgdxError(
    f"{path}: {problem}",
    expected=f"{CONFIG}, {WEIGHTS} and {ACTS} as `sgdx weights pack` wrote them together",
    fix="install sgdx_t5x again, or pack the checkpoint again: sgdx weights pack --help",
  )


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
  digest = hashlib.blake2b(digest_size=8)
  for name in sorted(arrays):
    digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
    digest.update(np.ascontiguousarray(arrays[name]).view(np.uint8).data)
  return digest.hexdigest()
