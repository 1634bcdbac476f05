"""Which gin files, or bindings, describe the model of a checkpoint."""

from __future__ import annotations

import dataclasses

from sgdx_t5x.weights.bert_layout import BertSizes
from sgdx_t5x.weights.layout import Sizes

VOCAB_SIZE = 32_128  # of all T5 checkpoints that Google published; mT5 has its own


def _model(
  emb_dim: int, num_heads: int, mlp_dim: int, num_layers: int, first_version: bool = False
) -> Sizes:
  return Sizes(
    vocab_size=VOCAB_SIZE,
    emb_dim=emb_dim,
    num_heads=num_heads,
    head_dim=64,
    mlp_dim=mlp_dim,
    num_encoder_layers=num_layers,
    num_decoder_layers=num_layers,
    gated=not first_version,
    tied=first_version,
  )


# Files to pass after gin/t5dst.gin, which is itself T5 1.0 Base. Flan-T5 has the sizes of T5 1.1;
# its own files differ only in INITIAL_CHECKPOINT_PATH and TRAIN_STEPS, which an import replaces.
MODELS = {
  "": _model(768, 12, 3072, 12, first_version=True),
  "gin/models/t5_1_0_small.gin": _model(512, 8, 2048, 6, first_version=True),
  "gin/models/t5_1_0_large.gin": _model(1024, 16, 4096, 24, first_version=True),
  "gin/models/t5_1_1_small.gin": _model(512, 6, 1024, 8),
  "gin/models/t5_1_1_base.gin": _model(768, 12, 2048, 12),
  "gin/models/t5_1_1_large.gin": _model(1024, 16, 2816, 24),
  "gin/models/t5_1_1_xl.gin": _model(2048, 32, 5120, 24),
}


# Files to pass after gin/spandst.gin.
ENCODERS = {
  "gin/models/minilm.gin": BertSizes(30_522, 384, 12, 6, 1536, 512, 2),
  "gin/models/bert_base_cased.gin": BertSizes(28_996, 768, 12, 12, 3072, 512, 2),
  "gin/models/mpnet.gin": BertSizes(
    30_527, 768, 12, 12, 3072, 512, 0, epsilon=1e-5, first_position=2, relative_buckets=32
  ),
  "gin/models/bert_large.gin": BertSizes(28_996, 1024, 16, 24, 4096, 512, 2),
}


def file_of(sizes: Sizes | BertSizes) -> str | None:
  """Returns the file with these sizes, whatever a T5's vocabulary or a BERT's pooler; or None."""
  if isinstance(sizes, BertSizes):
    sizes = dataclasses.replace(sizes, pooler=True)
  else:
    sizes = dataclasses.replace(sizes, vocab_size=VOCAB_SIZE)
  return next((file for file, model in {**MODELS, **ENCODERS}.items() if model == sizes), None)


def bindings(sizes: Sizes | BertSizes) -> str:
  """Returns the text of a gin file, for use after the tracker's, for a model without one."""
  imported, configurable = "from t5x.examples.t5 import network", "network.T5Config"
  if isinstance(sizes, BertSizes):
    imported, configurable = "from sgdx_t5x.spandst import encoder", "encoder.BertConfig"
  lines = [f"  {name} = {value!r}" for name, value in sizes.gin().items()]
  return "\n".join(
    ["from __gin__ import dynamic_registration", imported, f"{configurable}:", *lines]
  )
