"""Reads and writes Hugging Face folders of T5 weights: config.json and safetensors.

`read_huggingface` reads BERTs too, through `bert_huggingface`.

Checked against `transformers` 5.23 (tests/fixtures/hf_t5/make.py). Two pitfalls of its format:
  - `transformers` 5 saves `tie_word_embeddings: true` for every T5, even T5 1.1. Whether the logits
    reuse and rescale the embedding as in T5 1.0 is then given by `scale_decoder_outputs`.
  - The embedding has up to four names, and files contain one, some or all of them.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError, quoted
from sgdx_t5x.progress import OnProgress, no_progress
from sgdx_t5x.weights import bert_huggingface, hf_folder, hf_names, layout

MT5_VOCAB_SIZE = 250_112
_KINDS = {"t5": "T5 1.0, T5 1.1, Flan-T5", "mt5": "", "bert": "BERT, MiniLM", "mpnet": "MPNet"}
_EMBEDDING_ALIASES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
_LOGITS = "lm_head.weight"
_ALIAS_FIX = (
  "save the model again: T5 has one embedding for encoder and decoder, T5 1.0 for the logits too; "
  'if this is a T5 1.1 or Flan-T5, set "scale_decoder_outputs": false in config.json'
)
# In the published T5 1.0 files; T5 has no relative bias in cross-attention, and nothing reads it.
_UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
_TOKENS = {"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
# Fixed in a network without these settings; other values would change the logits.
_FIXED = {
  "relative_attention_num_buckets": layout.BUCKETS,
  "relative_attention_max_distance": layout.MAX_DISTANCE,
  "layer_norm_epsilon": layout.EPSILON,
  "is_encoder_decoder": True,
  **_TOKENS,
}
_SIZES = {  # field of `layout.Sizes` -> key of config.json
  "vocab_size": "vocab_size",
  "emb_dim": "d_model",
  "num_heads": "num_heads",
  "head_dim": "d_kv",
  "mlp_dim": "d_ff",
  "num_encoder_layers": "num_layers",
  "num_decoder_layers": "num_decoder_layers",
}
_ACTIVATIONS = {"relu": False, "gated-gelu": True}  # feed_forward_proj -> gated


# --- reading -------------------------------------------------------------------------------


def read_huggingface(
  folder: str | pathlib.Path, on_progress: OnProgress = no_progress
) -> layout.Weights:
  """Reads a T5, T5 1.1, Flan-T5, mT5, BERT or MPNet of `transformers`.

  Args:
    folder: contains config.json and model.safetensors, or its shards and their index.
    on_progress: called with (task, done, total, unit).

  Returns:
    The weights in T5X's layout, in float32 (lossless for float16 and bfloat16).

  Raises:
    SgdxError: the folder is invalid, or its arrays do not match config.json.
  """
  folder = pathlib.Path(folder)
  config = hf_folder.read_config(folder, _KINDS)
  if config["model_type"] in ("bert", "mpnet"):
    return bert_huggingface.read(folder, config, on_progress)
  sizes = _sizes(config, folder)
  table = layout.tensors(sizes)
  network = _network(table, sizes.tied)
  arrays, notes = hf_folder.read_arrays(folder, network, on_progress)
  arrays_by_path = hf_folder.by_path(table, arrays, folder, notes)
  if config["model_type"] == "mt5":
    notes.append("mT5 has its own vocabulary: set SGDX_VOCAB to its SentencePiece file")
  return layout.Weights(sizes, arrays_by_path, notes=tuple(notes))


def _network(table: Sequence[layout.Tensor], tied: bool) -> hf_names.Network:
  """Returns what the arrays of a T5 are called; `tied` if its logits reuse the embedding."""
  return hf_names.Network(
    names=frozenset(tensor.hf for tensor in table),
    aliases=dict.fromkeys((*_EMBEDDING_ALIASES, *([_LOGITS] if tied else ())), "shared.weight"),
    modules=("shared", "encoder", "decoder", "lm_head"),
    prefix="transformer.",
    outside=(_LOGITS,),
    unused=(_UNUSED,),
    alias_fix=_ALIAS_FIX,
  )


def _sizes(config: Mapping[str, Any], folder: pathlib.Path) -> layout.Sizes:
  """Returns the sizes in config.json. Raises SgdxError listing all invalid settings."""
  if config.get("num_decoder_layers") is None:
    config = {**config, "num_decoder_layers": config.get("num_layers")}
  values, problems = hf_folder.read_settings(config, _FIXED, _SIZES)
  activation = config.get("feed_forward_proj", "relu")
  if not isinstance(activation, str) or activation not in _ACTIVATIONS:
    supported = ", ".join(_ACTIVATIONS)
    problems.append(f"feed_forward_proj is {quoted(activation)}, not one of {supported}")
  if problems:
    raise SgdxError(
      f"{folder / hf_folder.CONFIG}: " + "; ".join(problems),
      expected="settings of T5 1.0, T5 1.1, Flan-T5 or mT5, which T5X's network supports",
      fix="import a model with these settings",
    )
  return layout.Sizes(**values, gated=_ACTIVATIONS[activation], tied=_is_tied(config))


def _is_tied(config: Mapping[str, Any]) -> bool:
  """Whether the logits reuse and rescale the embedding; see the module for the pitfall."""
  if config["model_type"] == "mt5":
    return False  # whatever config.json says: mT5 is never tied, and transformers 5 never rescales
  scaled = config.get("scale_decoder_outputs")
  return config.get("tie_word_embeddings") is not False if scaled is None else bool(scaled)


def write_huggingface(
  weights: layout.Weights,
  folder: str | pathlib.Path,
  vocabulary: str | pathlib.Path | None = None,
  overwrite: bool = False,
  on_progress: OnProgress = no_progress,
) -> pathlib.Path:
  """Writes a folder that `transformers` reads with `from_pretrained`.

  Args:
    weights: what to write.
    folder: a new or empty folder.
    vocabulary: SentencePiece model to copy beside the weights, or None.
    overwrite: replace a folder that contains only such files.
    on_progress: see `read_huggingface`.

  Returns:
    The folder's absolute path.

  Raises:
    SgdxError: nothing is written then.
  """
  folder = hf_folder.check_free(folder, overwrite, vocabulary)
  config = _config(weights.sizes)
  json_files = {hf_folder.CONFIG: config, hf_folder.GENERATION_CONFIG: _TOKENS}
  table, copied = layout.tensors(weights.sizes), (vocabulary, hf_folder.SENTENCEPIECE)
  hf_folder.write_folder(folder, table, weights, json_files, copied, on_progress)
  return folder


def _config(sizes: layout.Sizes) -> dict[str, Any]:
  """Returns config.json: sizes inferred from the arrays, and T5's defaults for the rest."""
  kind, name = "t5", "T5ForConditionalGeneration"
  if sizes.vocab_size == MT5_VOCAB_SIZE and not sizes.tied:
    kind, name = "mt5", "MT5ForConditionalGeneration"  # decides on the tokenizer
  return {
    "architectures": [name],
    "model_type": kind,
    **{key: getattr(sizes, field) for field, key in _SIZES.items()},
    "feed_forward_proj": "gated-gelu" if sizes.gated else "relu",
    "tie_word_embeddings": sizes.tied,
    "scale_decoder_outputs": sizes.tied,  # what `transformers` 5 goes by
    "dropout_rate": 0.1,
    "initializer_factor": 1.0,
    "use_cache": True,
    "torch_dtype": "float32",
    **_FIXED,
  }
