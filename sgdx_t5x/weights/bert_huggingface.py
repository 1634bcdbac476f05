"""Reads Hugging Face folders of BERT and MPNet weights: config.json and safetensors.

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
_MPNET_SIZES = {
  **{field: key for field, key in _SIZES.items() if field != "num_types"},
  "relative_buckets": "relative_attention_num_buckets",
}
_MPNET_FIRST = {"first_position": 2, "num_types": 0}
_OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}


def read(
  folder: pathlib.Path, config: Mapping[str, Any], on_progress: OnProgress = no_progress
) -> layout.Weights:
  """Reads a BERT; see `huggingface.read_huggingface`."""
  sizes = sizes_of(config, folder / hf_folder.CONFIG)
  network = _network(bert_layout.tensors(sizes), sizes.is_mpnet)
  arrays, notes = hf_folder.read_arrays(folder, network, on_progress)
  arrays = hf_names.without_aliases(arrays, network, str(folder), fixes={})
  if "pooler.dense.weight" not in arrays:
    sizes = dataclasses.replace(sizes, pooler=False)
    notes.append("the model has no pooler: training initializes a new one")
  table = bert_layout.tensors(sizes)
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
  problems = [
    f"{key} is {config[key]!r}, not {value!r}"
    for key, value in _FIXED.items()
    if config.get(key) is not None and config[key] != value
  ]
  is_mpnet = config.get("model_type") == "mpnet"
  values: dict[str, Any] = dict(_MPNET_FIRST) if is_mpnet else {}
  for field, key in (_MPNET_SIZES if is_mpnet else _SIZES).items():
    value = values[field] = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
      problems.append(f"{key} is {value!r}, not a positive integer")
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
  values["max_positions"] -= values.get("first_position", 0)
  return bert_layout.BertSizes(**values, epsilon=epsilon)
