"""Which gin files, or bindings, describe the model of a checkpoint."""

from __future__ import annotations

import dataclasses

from sgdx_t5x.weights.bert_layout import BertSizes
from sgdx_t5x.weights.layout import Sizes

_T5_1_0, _T5_1_1 = {"gated": False, "tied": True}, {"gated": True, "tied": False}
VOCAB_SIZE = 32_128  # of all T5 checkpoints that Google published; mT5 has its own

# Files to pass after gin/t5dst.gin, which is itself T5 1.0 Base. Flan-T5 has the sizes of T5 1.1;
# its own files differ only in INITIAL_CHECKPOINT_PATH and TRAIN_STEPS, which an import replaces.
# Rows of the embedding, width, heads, their width, that of the MLP, layers of both stacks.
MODELS = {
  "": Sizes(VOCAB_SIZE, 768, 12, 64, 3072, 12, 12, **_T5_1_0),
  "gin/models/t5_1_0_small.gin": Sizes(VOCAB_SIZE, 512, 8, 64, 2048, 6, 6, **_T5_1_0),
  "gin/models/t5_1_0_large.gin": Sizes(VOCAB_SIZE, 1024, 16, 64, 4096, 24, 24, **_T5_1_0),
  "gin/models/t5_1_1_small.gin": Sizes(VOCAB_SIZE, 512, 6, 64, 1024, 8, 8, **_T5_1_1),
  "gin/models/t5_1_1_base.gin": Sizes(VOCAB_SIZE, 768, 12, 64, 2048, 12, 12, **_T5_1_1),
  "gin/models/t5_1_1_large.gin": Sizes(VOCAB_SIZE, 1024, 16, 64, 2816, 24, 24, **_T5_1_1),
  "gin/models/t5_1_1_xl.gin": Sizes(VOCAB_SIZE, 2048, 32, 64, 5120, 24, 24, **_T5_1_1),
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
