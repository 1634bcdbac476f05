"""Hugging Face folders of BERT and MPNet weights: config.json, safetensors and vocab.txt.

MPNet pads with its piece 1, SeqIO and T5X with 0: these two rows of its embedding are exchanged,
and so are the pieces (`spandst.vocab_file`).

Checked against `transformers` 5.23 (tests/fixtures/hf_bert/make.py). Names may have a prefix
such as `bert.`, and old files call the parameters of a layer norm gamma and beta. Arrays that are
not part of the encoder (a head, a buffer of positions) are left out.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import not_utf8
from sgdx_t5x.progress import OnProgress, no_progress
from sgdx_t5x.weights import bert_layout, hf_folder, hf_names, layout

# Fixed in our network; a model with other values would compute something else.
_FIXED = {"hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False}
_SIZES = {  # field of BertSizes: key of config.json
  "vocab_size": "vocab_size",
  "emb_dim": "hidden_size",
  "num_heads": "num_attention_heads",
  "num_layers": "num_hidden_layers",
  "mlp_dim": "intermediate_size",
  "max_positions": "max_position_embeddings",
  "num_types": "type_vocab_size",
}
# An MPNet has no token types, and its first position is 2; its config.json says neither.
_MPNET_SIZES = {**_SIZES, "relative_buckets": "relative_attention_num_buckets"}
del _MPNET_SIZES["num_types"]
_MPNET_FIRST = {"first_position": 2, "num_types": 0}
_OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}


def read(
  folder: pathlib.Path, config: Mapping[str, Any], on_progress: OnProgress = no_progress
) -> layout.Weights:
  """Reads a BERT; see `huggingface.read_huggingface`."""
  sizes = sizes_of(config, folder / hf_folder.CONFIG)
  network = _network(bert_layout.tensors(sizes), sizes.is_mpnet)
  arrays, notes = hf_folder.read_arrays(folder, network, on_progress)
  if "pooler.dense.weight" not in arrays:
    sizes = dataclasses.replace(sizes, pooler=False)
    notes.append("the model has no pooler: training initializes a new one")
  table = bert_layout.tensors(sizes)
  vocabulary = folder / hf_folder.VOCABULARY
  if vocabulary.is_file():
    check_vocabulary(vocabulary, sizes.vocab_size)
  arrays_by_path = hf_folder.by_path(table, arrays, folder, notes)
  if sizes.is_mpnet:
    arrays_by_path[bert_layout.EMBEDDING] = _exchanged(arrays_by_path[bert_layout.EMBEDDING])
  return layout.Weights(sizes, arrays_by_path, notes=tuple(notes))


def _exchanged(embedding: np.ndarray) -> np.ndarray:
  """Returns an embedding whose first two rows have changed places."""
  return np.concatenate([embedding[[1, 0]], embedding[2:]])


def _network(table: Sequence[layout.Tensor], is_mpnet: bool) -> hf_names.Network:
  """Returns what the arrays of a BERT are called, today and in old files."""
  aliases = {}
  for tensor in table:
    for old_ending, ending in _OLD_NAMES.items():
      if tensor.hf.endswith(f"LayerNorm{ending}"):
        aliases[tensor.hf.removesuffix(ending) + old_ending] = tensor.hf
  return hf_names.Network(
    names=frozenset(tensor.hf for tensor in table),
    aliases=aliases,
    modules=("embeddings", "encoder", "pooler"),
    prefix="mpnet." if is_mpnet else "bert.",
  )


def sizes_of(config: Mapping[str, Any], path: pathlib.Path) -> bert_layout.BertSizes:
  """Returns the sizes in `config`, the config.json at `path`.

  Raises:
    SgdxError: lists all missing, invalid or unsupported settings.
  """
  is_mpnet = config.get("model_type") == "mpnet"
  keys = _MPNET_SIZES if is_mpnet else _SIZES
  values, problems = hf_folder.read_settings(config, _FIXED, keys)
  values |= _MPNET_FIRST if is_mpnet else {}
  if values["num_types"] == 1:  # the dialogue is of type 0, the schema of type 1
    problems.append("type_vocab_size is 1, not at least 2, for the two parts of an input")
  epsilon = config.get("layer_norm_eps", 1e-12)
  if not isinstance(epsilon, float) or epsilon <= 0:
    problems.append(f"layer_norm_eps is {epsilon!r}, not a positive number")
  if not problems and values["emb_dim"] % values["num_heads"]:
    problems.append("hidden_size is not a multiple of num_attention_heads")
  if problems:
    raise SgdxError(
      f"{path}: " + "; ".join(problems),
      expected=f"settings of {'an MPNet' if is_mpnet else 'a BERT'} encoder",
      fix="use a model with these settings",
    )
  # config.json counts the rows of the table, also those before the first position.
  values["max_positions"] -= values.get("first_position", 0)
  return bert_layout.BertSizes(**values, epsilon=epsilon)


def check_vocabulary(path: pathlib.Path, vocab_size: int) -> None:
  """Raises SgdxError if a vocab.txt has more pieces than the embedding has rows."""
  try:
    pieces = len(path.read_text(encoding="utf-8").rstrip("\n").split("\n"))
  except UnicodeDecodeError as e:
    raise not_utf8(str(path), e, "one piece per line, as in BERT's vocab.txt") from None
  if pieces > vocab_size:
    raise SgdxError(
      f"{path}: {pieces:,} pieces, but the embedding has {vocab_size:,} rows",
      expected="the vocabulary that the encoder was trained with",
      fix="download the model and its tokenizer again, from the same source",
    )


def write(
  weights: layout.Weights,
  folder: str | pathlib.Path,
  config: Mapping[str, Any],
  vocabulary: str | pathlib.Path | None = None,
  overwrite: bool = False,
  on_progress: OnProgress = no_progress,
) -> pathlib.Path:
  """Writes a BERT or an MPNet for `transformers`; see also `huggingface.write_huggingface`.

  Args:
    weights, folder, overwrite, on_progress: as there.
    config: config.json of the model that the weights come from; e.g. the number of heads cannot be
      inferred from the arrays.
    vocabulary: vocab.txt to copy beside the weights, with a tokenizer_config.json that says whether
      it is cased: the one beside it, or as its tokenizer.json says; or None.
  """
  folder = hf_folder.check_free(folder, overwrite, vocabulary)
  if vocabulary is not None:
    check_vocabulary(pathlib.Path(vocabulary), weights.sizes.vocab_size)
  model, kind = "BertModel", "bert"
  if weights.sizes.is_mpnet:
    model, kind = "MPNetModel", "mpnet"
    embedding = _exchanged(weights.arrays[bert_layout.EMBEDDING])
    arrays = {**weights.arrays, bert_layout.EMBEDDING: embedding}
    weights = dataclasses.replace(weights, arrays=arrays)
  content = {**config, "architectures": [model], "model_type": kind, "dtype": "float32"}
  content.pop("torch_dtype", None)  # the older name of dtype
  json_files = {hf_folder.CONFIG: content}
  if vocabulary and (settings := _settings(pathlib.Path(vocabulary))):
    json_files[hf_folder.TOKENIZER] = settings
  table, copied = bert_layout.tensors(weights.sizes), (vocabulary, hf_folder.VOCABULARY)
  hf_folder.write_folder(folder, table, weights, json_files, copied, on_progress)
  return folder


def _settings(vocabulary: pathlib.Path) -> dict[str, Any]:
  """Returns the tokenizer's settings, with the casing if only its tokenizer.json says it."""
  config = vocabulary.with_name(hf_folder.TOKENIZER)
  tokenizer = vocabulary.with_name("tokenizer.json")
  fix = "correct it, or copy vocab.txt elsewhere"
  settings = hf_folder.read_json(config, fix) if config.is_file() else {}
  if "do_lower_case" not in settings and tokenizer.is_file():
    normalizer = hf_folder.read_json(tokenizer, fix).get("normalizer")
    if isinstance(normalizer, dict) and isinstance(normalizer.get("lowercase"), bool):
      settings["do_lower_case"] = normalizer["lowercase"]
  return settings


def config_for(path: str | pathlib.Path, sizes: bert_layout.BertSizes) -> dict[str, Any]:
  """Reads the config.json to export weights with.

  Args:
    path: the file, or its folder.
    sizes: sizes of the weights.

  Raises:
    SgdxError: it does not describe these arrays.
  """
  path = pathlib.Path(path)
  path = path / hf_folder.CONFIG if path.is_dir() else path
  config = hf_folder.read_json(path, "pass the config.json of the model that training started from")
  # Only the weights show whether there is a pooler.
  described = dataclasses.replace(sizes_of(config, path), pooler=sizes.pooler)
  layout.check(
    layout.shapes_of(bert_layout.tensors(described)),
    layout.shapes_of(bert_layout.tensors(sizes)),
    "the checkpoint",
    expected=f"the arrays that {path} describes",
    fix="pass the config.json of the model that training started from",
  )
  return config
