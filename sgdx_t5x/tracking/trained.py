"""SpanDST of a checkpoint; `packed.py` has it without JAX."""

from collections.abc import Mapping, Sequence

from sgdx_t5x.tracking.checkpoints import Checkpoint, one_of
from sgdx_t5x.tracking.model import LoadedModel
from sgdx_t5x.tracking.spandst import SpanDST


def load(checkpoints: Sequence[Checkpoint], lengths: Mapping[str, int]) -> SpanDST:
  """Returns the tracker of a checkpoint. Raises SgdxError if there are several."""
  model = LoadedModel(one_of(checkpoints), lengths)
  return SpanDST(model, model.task.style_or_format, model.model.input_vocabulary)
