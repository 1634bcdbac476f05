"""A packed SpanDST as a model of `tracking/spandst.py`: NumPy alone, no extra of the package."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst import minilm, packed
from sgdx_t5x.spandst.act_reader import ActReader, SlotAct
from sgdx_t5x.spandst.numpy_network import Features, SpanNetwork
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.spandst.vocab_file import WordPieceFile
from sgdx_t5x.tracking.answer_cache import answer_once
from sgdx_t5x.tracking.protocol import override_lengths
from sgdx_t5x.tracking.spandst import SpanDST


class PackedModel:
  """The network of a folder that `sgdx weights pack` wrote.

  Args:
    folder: of the packed files.
    lengths: of `inputs` and `memory`, overriding those in config.json. NumPy pads nothing, so a
      service may have any number of slots, values and intents.

  Attributes:
    network: the network.
    act_reader: reads the system's acts where none are annotated; None if the folder has none.

  Raises:
    SgdxError: damaged files, unknown lengths, or no MiniLM (`minilm.folder`).
  """

  def __init__(self, folder: pathlib.Path, lengths: Mapping[str, int] | None = None):
    config, arrays = packed.read(folder)
    encoder = minilm.folder()
    self.vocabulary = WordPieceFile(encoder, lower_case=True)
    self.style = SpanStyle(**config.style)
    task = config.trained_on
    used = {name: config.lengths[name] for name in ("inputs", "memory")}
    self.lengths: Mapping[str, int] = override_lengths(used, lengths or {}, task)
    tables = minilm.tables(encoder)
    # Of a longer input the last tokens would have no position.
    positions = len(tables["encoder/position_embedder/embedding"])
    if self.lengths["inputs"] > positions:
      raise SgdxError(
        f"inputs={self.lengths['inputs']}",
        expected=f"at most {positions}, the encoder's number of positions",
        fix=f"pass --lengths inputs={positions}",
      )
    self.network = SpanNetwork(
      {**arrays, **tables},
      *(config.num_heads, config.epsilon, config.lexical, config.pooled, config.longest_span),
    )
    self.config = config
    self.act_reader, self._acts_digest = None, ""
    if stored := packed.read_acts(folder, config.digest):
      self._acts_digest, of_reader = stored
      self.act_reader = ActReader(self.network, of_reader)
    self._answers: dict[bytes, list[int]] = {}
    self._acts: dict[bytes, list[SlotAct]] = {}

  @property
  def settings(self) -> dict[str, str]:
    """What its answers depend on, for `protocol.Tracker.settings`."""
    lengths = " ".join(f"{name}={length}" for name, length in sorted(self.lengths.items()))
    settings = {"weights": self.config.digest, "task": self.config.trained_on, "lengths": lengths}
    return settings | ({"acts": self._acts_digest} if self.act_reader else {})

  def answer(self, features: Sequence[Features]) -> list[list[int]]:
    """Returns the answer for each frame; each distinct frame is computed once."""
    return answer_once(self._answers, features, self.network.answer)

  def read_acts(self, features: Sequence[Features]) -> list[list[SlotAct]]:
    """Returns what `act_reader` reads in each frame; each distinct frame is computed once."""
    assert self.act_reader is not None
    return answer_once(self._acts, features, self.act_reader)


def load(folder: pathlib.Path, lengths: Mapping[str, int] | None = None) -> SpanDST:
  """Returns the tracker of a packed folder. Args, Raises: see `PackedModel`."""
  model = PackedModel(folder, lengths)
  read_acts = model.read_acts if model.act_reader else None
  return SpanDST(model, model.style, model.vocabulary, read_acts)
