"""Hugging Face weight folders, independent of the network: config.json and safetensors."""

from __future__ import annotations

import contextlib
import json
import pathlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x.errors import SgdxError, quoted, require
from sgdx_t5x.files.reading import decode_json, json_type, not_found
from sgdx_t5x.files.writing import atomic_folder, check_folder
from sgdx_t5x.progress import MEGABYTE, OnProgress, counter
from sgdx_t5x.weights import hf_names, layout

CONFIG, ONE_FILE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
VOCABULARY, TOKENIZER = "vocab.txt", "tokenizer_config.json"  # of a BERT
GENERATION_CONFIG, SENTENCEPIECE = "generation_config.json", "spiece.model"  # of a T5
_EXPORTED = (CONFIG, ONE_FILE, VOCABULARY, TOKENIZER, GENERATION_CONFIG, SENTENCEPIECE)
_OTHER_FORMATS = ("pytorch_model*.bin*", "*.pt", "tf_model.h5", "flax_model*.msgpack*")


def check_free(
  folder: str | pathlib.Path, overwrite: bool, vocabulary: str | pathlib.Path | None
) -> pathlib.Path:
  """Returns the absolute path of the folder to write.

  Args:
    folder: the folder.
    overwrite: whether an earlier export, of a T5 or a BERT, may be replaced.
    vocabulary: a file to copy into the folder, or None.

  Raises:
    SgdxError: the folder may not be written, or the vocabulary does not exist.
  """
  if vocabulary is not None and not pathlib.Path(vocabulary).is_file():
    expected = "as --vocab, the SentencePiece model or vocab.txt that the weights were trained with"
    raise not_found(pathlib.Path(vocabulary), expected)
  return check_folder(
    folder,
    replace=overwrite,
    ours=lambda path: path.as_posix() in _EXPORTED,
    expected="a folder that is new or empty, or an earlier export to replace",
  )


def read_config(folder: pathlib.Path, kinds: Mapping[str, str]) -> dict[str, Any]:
  """Reads config.json.

  Args:
    folder: the model's folder.
    kinds: {supported model_type: description}.

  Raises:
    SgdxError: config.json is missing, or is for another kind of model.
  """
  if not folder.is_dir():
    raise SgdxError(
      f"{folder}: {'not a folder' if folder.exists() else 'no such folder'}",
      expected=f"a folder with {CONFIG} and {ONE_FILE}",
      fix="download the model there first: hf download google/flan-t5-base --local-dir DIR",
    )
  # Before the arrays, which take minutes to read.
  config = read_json(folder / CONFIG, "download or save the complete model, including this file")
  kind = config.get("model_type")
  if not isinstance(kind, str) or kind not in kinds:
    raise SgdxError(
      f"{folder / CONFIG}: model_type {quoted(kind)}",
      expected=" or ".join(f"{name} ({text})" if text else name for name, text in kinds.items()),
      fix="import one of these; this package cannot run other models",
    )
  return config


def read_settings(
  config: Mapping[str, Any], fixed: Mapping[str, Any], sizes: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
  """Returns the sizes in config.json by their fields, and what is wrong with the settings.

  Args:
    config: the file's content.
    fixed: settings that a network has built in; they may be missing.
    sizes: field -> key of config.json, whose value must be a positive integer.
  """
  problems = []
  for key, value in fixed.items():
    if config.get(key) not in (None, value):
      problems.append(f"{key} is {quoted(config[key])}, not {value!r}")
  values = {field: config.get(key) for field, key in sizes.items()}
  for field, value in values.items():
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
      problems.append(f"{sizes[field]} is {quoted(value)}, not a positive integer")
  return values, problems


def read_json(path: pathlib.Path, fix: str) -> dict[str, Any]:
  """Reads a JSON object; `fix` is the fourth part of the error if it cannot be read."""
  try:
    content = decode_json(path.read_bytes(), str(path), "a JSON file", fix)
  except OSError as e:
    raise SgdxError(
      f"{path}: {e.strerror}", expected="a JSON file", available=listing(path.parent), fix=fix
    ) from None
  if not isinstance(content, dict):
    raise SgdxError(
      f"{path}: the top-level JSON value is {json_type(content)}",
      expected="an object {...}",
      fix=fix,
    )
  return content


def listing(folder: pathlib.Path) -> str:
  """Lists the first files of a folder, for error messages."""
  if not folder.is_dir():
    return f"there is no folder {folder}"
  names = sorted(path.name for path in folder.iterdir())
  return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") if names else "an empty folder"


def read_arrays(
  folder: pathlib.Path, network: hf_names.Network, on_progress: OnProgress
) -> tuple[dict[str, np.ndarray], list[str]]:
  """Returns {Hugging Face name: float32 array} of a network, and notes on the files.

  Args:
    folder: the model's folder.
    network: which of the arrays to read.
    on_progress: called with (task, done, total, unit).

  Raises:
    SgdxError: a file is missing or damaged, or an array is of an unsupported type or differs under
      two names.
  """
  paths = _weight_files(folder)
  types: dict[str, str] = {}  # of all files: the prefix of names is found in all of them together
  for path in paths:
    with _opened(path) as file:
      types.update((name, file.get_slice(name).get_dtype()) for name in file.keys())  # noqa: SIM118
  names_to_read = hf_names.arrays_to_read(types, network, str(folder))
  size = sum(path.stat().st_size for path in paths)
  on_bytes = counter(on_progress, "reading", size, "MB", MEGABYTE)
  arrays: dict[str, np.ndarray] = {}
  for path in paths:
    with _opened(path) as file:
      for name in sorted(names_to_read.keys() & file.keys()):
        if types[name] not in hf_names.FLOATS:
          raise SgdxError(
            f"{path}: {name} is of type {types[name]}",
            expected=f"floating point: {', '.join(hf_names.FLOATS)}",
            fix="import the unquantized model",
          )
        array = file.get_tensor(name)
        arrays[names_to_read[name]] = array.astype(np.float32, copy=False)
        on_bytes(array.nbytes)
  if paths[0].name != ONE_FILE:
    _check_index(folder, arrays, network)
  notes = []
  if left_out := sorted(types.keys() - names_to_read.keys()):
    examples = ", ".join(left_out[:3]) + (", ..." if len(left_out) > 3 else "")
    notes.append(f"left out what is no part of the network, {len(left_out)} in all: {examples}")
  if converted := {types[name] for name in names_to_read} - {"F32"}:
    notes.append(f"{', '.join(sorted(converted))} arrays were converted to float32")
  return hf_names.without_aliases(arrays, network, str(folder)), notes


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[Any]:
  """Opens a safetensors file. Raises SgdxError if it cannot be read, also in the block."""
  safetensors = _import_safetensors()
  try:
    with safetensors.safe_open(path, framework="numpy") as file:
      yield file
  except (safetensors.SafetensorError, OSError) as e:
    raise SgdxError(
      f"{path}, {path.stat().st_size:,} bytes: {e}",
      expected="a complete safetensors file",
      fix="download it again; a file of about 130 bytes is a Git LFS pointer (`git lfs pull`)",
    ) from None


def _import_safetensors() -> Any:
  """Returns the package with its NumPy functions. Raises SgdxError if it is not installed."""
  for module in ("ml_dtypes", "safetensors.numpy"):  # the former for bfloat16 in NumPy
    require(module, extra="train", why="Hugging Face's weight files")
  return require("safetensors", extra="train", why="Hugging Face's weight files")


def _weight_files(folder: pathlib.Path) -> list[pathlib.Path]:
  if (folder / ONE_FILE).exists():  # `transformers` prefers it too
    return [folder / ONE_FILE]
  if not (folder / INDEX).exists():
    # Formats that only their frameworks read.
    other_formats: list[str] = []
    for pattern in _OTHER_FORMATS:
      other_formats += (path.name for path in folder.glob(pattern))
    other_formats.sort()
    fix = f"complete the folder: hf download NAME --local-dir {folder}"
    if other_formats:
      fix = (
        "convert it on a machine with torch: T5ForConditionalGeneration (or BertModel)"
        ".from_pretrained(DIR).save_pretrained(NEW_DIR, safe_serialization=True), and copy the "
        "vocabulary there, for a BERT vocab.txt and tokenizer_config.json"
      )
    raise SgdxError(
      f"{folder}: no {ONE_FILE}"
      + (f", but {', '.join(other_formats[:3])}" if other_formats else ""),
      expected=f"{ONE_FILE}, or {INDEX} and its shards",
      available=listing(folder),
      fix=fix,
    )
  names = sorted(set(_weight_map(folder).values()))
  missing = [name for name in names if not (folder / name).is_file()]
  if missing:
    raise SgdxError(
      f"{folder / INDEX}: {len(missing)} of the {len(names)} files it lists are missing: "
      + ", ".join(missing[:4]),
      expected="all shards next to their index",
      available=listing(folder),
      fix="download the missing shards",
    )
  return [folder / name for name in names]


def _weight_map(folder: pathlib.Path) -> dict[str, str]:
  fix = "download the index again"
  weight_map: Any = read_json(folder / INDEX, fix).get("weight_map")
  names = weight_map.values() if isinstance(weight_map, dict) else ()
  # A name must not lead outside the folder.
  if not names or not all(isinstance(x, str) and pathlib.PurePath(x).name == x for x in names):
    raise SgdxError(
      f"{folder / INDEX}: no weight_map from arrays to files in this folder",
      expected='{"weight_map": {"shared.weight": "model-00001-of-00002.safetensors", ...}}',
      fix=fix,
    )
  return weight_map


def _check_index(
  folder: pathlib.Path, arrays: Mapping[str, Any], network: hf_names.Network
) -> None:
  """Raises SgdxError if the index lists arrays of the network that are in no file."""
  # It may list an array under its aliases, too, which the files do not repeat (Flan-T5 XL).
  aliases, lost = network.aliases, []
  available = {aliases.get(name, name) for name in arrays}
  for listed, name in hf_names.own_names(_weight_map(folder), network, str(folder / INDEX)).items():
    name = aliases.get(name, name)
    if name in network.names and name not in available:
      lost.append(listed)
  if lost:
    raise SgdxError(
      f"{folder / INDEX}: {len(lost)} arrays are in none of its files: {', '.join(lost[:4])}",
      expected="shards that contain the arrays of the index",
      fix="download the index and all shards again",
    )


def by_path(
  table: Sequence[layout.Tensor],
  arrays: Mapping[str, np.ndarray],
  folder: pathlib.Path,
  notes: Sequence[str],
) -> dict[str, np.ndarray]:
  """Returns arrays by T5X name, transposed where the two layouts differ.

  Args:
    table: the expected arrays.
    arrays: the arrays found, by Hugging Face name.
    folder: their source, for error messages.
    notes: on their source, likewise: what was left out may be what is missing.

  Raises:
    SgdxError: missing or unknown arrays, wrong shapes, or values that are not finite.
  """
  layout.check(
    {tensor.hf: tensor.hf_shape for tensor in table},
    {name: array.shape for name, array in arrays.items()},
    str(folder),
    expected=f"the {len(table)} arrays that {CONFIG} describes",
    available="; ".join(notes),
    fix=f"correct {CONFIG}, or save the model again: model.save_pretrained(DIR)",
  )
  layout.check_finite(arrays, str(folder))
  return {tensor.t5x: tensor.turned(arrays[tensor.hf]) for tensor in table}


def write_folder(
  folder: pathlib.Path,
  table: Sequence[layout.Tensor],
  weights: layout.Weights,
  json_files: Mapping[str, Mapping[str, Any]],
  vocabulary: tuple[str | pathlib.Path | None, str],
  on_progress: OnProgress,
) -> None:
  """Writes the arrays of a table in float32, JSON files and a vocabulary, atomically.

  Args:
    folder: its absolute path.
    table: which of the weights to write.
    weights: weights by T5X name.
    json_files: name of a JSON file -> its content.
    vocabulary: (file to copy, or None; its name in the folder).
    on_progress: see `huggingface.read_huggingface`.
  """
  safetensors = _import_safetensors()
  arrays = {}
  for tensor in table:
    array = tensor.turned(weights.arrays[tensor.t5x])
    # Contiguous, since safetensors writes an array's memory, ignoring its strides.
    arrays[tensor.hf] = np.ascontiguousarray(array, dtype=np.float32)
  size = sum(array.nbytes for array in arrays.values())
  with atomic_folder(folder) as temporary:
    temporary.mkdir()
    try:
      on_progress("writing", 0, size // MEGABYTE, "MB")
      safetensors.numpy.save_file(arrays, temporary / ONE_FILE, metadata={"format": "pt"})
    except safetensors.SafetensorError as e:  # a full disk, for instance
      raise OSError(str(e)) from e
    for name, content in json_files.items():
      text = json.dumps(content, indent=2, sort_keys=True) + "\n"
      (temporary / name).write_text(text, "utf-8")
    source, name = vocabulary
    if source is not None:
      shutil.copyfile(source, temporary / name)
