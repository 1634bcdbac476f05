"""Names and layouts of all arrays of a BERT or an MPNet, in T5X and in Hugging Face files.

In T5X they are all under `encoder/`, where a tracker has its encoder; the tracker's heads are not
among them. Matrices are transposed, as kernels are [in, out] in T5X.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from sgdx_t5x.weights import layout
from sgdx_t5x.weights.layout import Tensor

PREFIX = "encoder/"
EMBEDDING = PREFIX + "token_embedder/embedding"
RELATIVE = PREFIX + "relpos_bias/rel_embedding"
_BERT_NAMES = {  # of the parts of attention
  "query": "self.query",
  "key": "self.key",
  "value": "self.value",
  "out": "output.dense",
  "norm": "output.LayerNorm",
}
_MPNET_NAMES = {
  "query": "attn.q",
  "key": "attn.k",
  "value": "attn.v",
  "out": "attn.o",
  "norm": "LayerNorm",
}
_MPNET_FIRST = 2  # its first position, which arrays do not tell
_MARK = PREFIX + "embedding_layer_norm/scale"  # T5's encoder has no norm there


@dataclasses.dataclass(frozen=True)
class BertSizes:
  """What determines the arrays of a BERT; fields as in `sgdx_t5x.spandst.encoder.BertConfig`.

  Args:
    num_heads: attention heads, which cannot be inferred from the arrays; 0 if not known.
    epsilon: epsilon of layer norms, which cannot be inferred either.
    pooler: whether there is a pooler.
    first_position: as in `BertConfig`.
    relative_buckets: as in `BertConfig`.
  """

  vocab_size: int
  emb_dim: int
  num_heads: int
  num_layers: int
  mlp_dim: int
  max_positions: int
  num_types: int
  epsilon: float = 1e-12
  pooler: bool = True
  first_position: int = 0
  relative_buckets: int = 0

  def gin(self) -> dict[str, Any]:
    """Returns the gin bindings of `encoder.BertConfig` for weights of these sizes."""
    fields = dataclasses.asdict(self)
    del fields["pooler"]
    if not self.is_mpnet:  # a BERT's gin files need not name them
      del fields["first_position"], fields["relative_buckets"]
    return fields

  @property
  def is_mpnet(self) -> bool:
    """Whether it is an MPNet: of these two, the one with relative positions."""
    return self.relative_buckets > 0


def is_bert(names: Mapping[str, Any]) -> bool:
  """Whether a checkpoint with these parameter names contains a BERT."""
  return _MARK in names


def tensors(sizes: BertSizes) -> list[Tensor]:
  """Returns all arrays of a BERT of these sizes, embeddings first."""
  width, positions = sizes.emb_dim, sizes.first_position + sizes.max_positions
  table = [_embedding("token", "word", sizes.vocab_size, width)]
  table.append(_embedding("position", "position", positions, width))
  if sizes.num_types:  # which an MPNet does not have
    table.append(_embedding("type", "token_type", sizes.num_types, width))
  if sizes.is_mpnet:
    shape = (sizes.num_heads, sizes.relative_buckets)
    table.append(Tensor(RELATIVE, "encoder.relative_attention_bias.weight", shape, True))
  table += _norm("embedding_layer_norm", "embeddings.LayerNorm", width)
  names = _MPNET_NAMES if sizes.is_mpnet else _BERT_NAMES
  for i in range(sizes.num_layers):
    t5x, hf = f"layers_{i}", f"encoder.layer.{i}"
    for name in ("query", "key", "value", "out"):
      table += _dense(f"{t5x}/{name}", f"{hf}.attention.{names[name]}", width, width)
    table += _norm(f"{t5x}/attention_layer_norm", f"{hf}.attention.{names['norm']}", width)
    table += _dense(f"{t5x}/wi", f"{hf}.intermediate.dense", width, sizes.mlp_dim)
    table += _dense(f"{t5x}/wo", f"{hf}.output.dense", sizes.mlp_dim, width)
    table += _norm(f"{t5x}/mlp_layer_norm", f"{hf}.output.LayerNorm", width)
  if sizes.pooler:
    table += _dense("pooler", "pooler.dense", width, width)
  return table


def _embedding(t5x: str, hf: str, rows: int, width: int) -> Tensor:
  name = f"embeddings.{hf}_embeddings.weight"
  return Tensor(f"{PREFIX}{t5x}_embedder/embedding", name, (rows, width), False)


def _norm(t5x: str, hf: str, width: int) -> list[Tensor]:
  return [
    Tensor(f"{PREFIX}{t5x}/scale", f"{hf}.weight", (width,), False),
    Tensor(f"{PREFIX}{t5x}/bias", f"{hf}.bias", (width,), False),
  ]


def _dense(t5x: str, hf: str, inputs: int, outputs: int) -> list[Tensor]:
  return [
    Tensor(f"{PREFIX}{t5x}/kernel", f"{hf}.weight", (inputs, outputs), True),
    Tensor(f"{PREFIX}{t5x}/bias", f"{hf}.bias", (outputs,), False),
  ]


def sizes_of(shapes: Mapping[str, tuple[int, ...]], origin: str) -> BertSizes:
  """Infers the sizes from T5X's arrays, except heads and epsilon; see `layout.sizes_of`."""
  shape = functools.partial(layout.matrix_shape, shapes, origin)
  vocab_size, emb_dim = shape(EMBEDDING)
  is_mpnet = RELATIVE in shapes
  num_heads, buckets = shape(RELATIVE) if is_mpnet else (0, 0)
  first_position = _MPNET_FIRST if is_mpnet else 0
  return BertSizes(
    vocab_size=vocab_size,
    emb_dim=emb_dim,
    num_heads=num_heads,
    num_layers=layout.num_layers(shapes, PREFIX),
    mlp_dim=shape(f"{PREFIX}layers_0/wi/kernel")[1],
    max_positions=shape(f"{PREFIX}position_embedder/embedding")[0] - first_position,
    num_types=0 if is_mpnet else shape(f"{PREFIX}type_embedder/embedding")[0],
    pooler=f"{PREFIX}pooler/kernel" in shapes,
    first_position=first_position,
    relative_buckets=buckets,
  )
