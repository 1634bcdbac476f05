"""SpanDST on MiniLM's sizes with JAX: its training step, or dialogues tracked; a child process.

  python spandst.py train DATA ROWS
  python spandst.py track DATA DIALOGUES

Training takes packed rows of 384 tokens with the settings of gin/study/spandst_gpu.gin. Tracking
is what `sgdx track` does with a checkpoint: dialogues are walked turn by turn, and T5X answers the
frames of a turn. Layers and heads have the shipped tracker's weights, embeddings random ones.
Communicates with its parent like _step_driver.py: READY, a number of steps (or passes), SECONDS.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Mapping, Sequence

import _data
import _engine
import numpy as np

import sgdx_t5x
from sgdx_t5x.spandst import encoder, features, optimizer, packed, span_model
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.spandst.vocab_file import WordPieceFile
from sgdx_t5x.tracking.predicting import read_split
from sgdx_t5x.tracking.protocol import Shown
from sgdx_t5x.tracking.spandst import SpanDST
from t5x import optimizers, utils

_BATCH = 64  # frames that `sgdx track` answers at once
_TOKENS = ("encoder_input_tokens",)


MINILM = encoder.BertConfig(30522, 384, 12, 6, 1536, 512, dropout_rate=0.0, freeze_embeddings=True)


def span_dst(
  config: encoder.BertConfig = MINILM, learning_rate: optimizer.Schedule | float = 1e-4
) -> span_model.SpanModel:
  """Returns the model with the settings of gin/spandst.gin."""
  adam = optimizer.bert_adam(
    learning_rate,
    frozen=("encoder/(token|position|type)_embedder",),
    unbiased=True,
    times={"(?!encoder/)": 10.0},
  )
  network = span_model.SpanTracker(config, lexical=True, pooled=True)
  numbers = features.numbers()
  return span_model.SpanModel(network, numbers, numbers, optimizers.chain([adam]))


def train(data: pathlib.Path, rows: int, arrays: Mapping[str, np.ndarray]) -> None:
  """Takes training steps on request."""
  batches = _data.batches(data / "spandst.npz", rows)
  shapes = {name: x.shape for name, x in batches[0].items()}
  loaded = _engine.Loaded(span_dst(), arrays, shapes, trains=True)
  loaded.train_on_request(batches, _data.about(batches, _TOKENS))


class Model:
  """Answers frames as `tracking.model.LoadedModel` does, without TensorFlow."""

  def __init__(
    self,
    model: span_model.SpanModel,
    arrays: Mapping[str, np.ndarray],
    lengths: Mapping[str, int],
  ):
    self.lengths, self.settings = lengths, {}
    # The method reads nothing of the converter, whose base class is SeqIO's.
    lengths_of = features.SpanFeatureConverter.get_model_feature_lengths
    self._features = lengths_of(None, lengths)
    shapes = {name: (_BATCH, length) for name, length in self._features.items()}
    self._loaded = loaded = _engine.Loaded(model, arrays, shapes, trains=False)
    predict = loaded.model.predict_batch
    self._infer = utils.get_infer_fn(predict, _BATCH, loaded.axes, loaded.partitioner)

  def answer(self, frames: Sequence[Mapping[str, Sequence[int]]]) -> list[list[int]]:
    """Returns the answer for each frame."""
    rows = [features.pack([_arrays(frame)], self._features) for frame in frames]
    examples = _data.Examples(rows, self._features)
    return [vector for _, vector in sorted(self._infer(examples, self._loaded.state))]


def _arrays(frame: Mapping[str, Sequence[int]]) -> dict[str, np.ndarray]:
  return {name: np.asarray(frame.get(name, ()), np.int32) for name in features.TASK_FEATURES}


def track(
  data: pathlib.Path, number: int, config: packed.PackedConfig, arrays: Mapping[str, np.ndarray]
) -> None:
  """Tracks dialogues on request."""
  vocabulary = WordPieceFile(data / "vocab.txt", lower_case=True)
  tracker = SpanDST(
    Model(span_dst(), arrays, config.lengths), SpanStyle(**config.style), vocabulary
  )
  corpus = sgdx_t5x.open_corpus(data / "corpus")
  dialogues = read_split(corpus, "test", tracker)[:number]
  schema = corpus.schema("test")

  def passes(number: int) -> int:
    frames = 0
    for _ in range(number):
      frames = sum(map(len, tracker.track(dialogues, Shown("test", "original", schema, schema))))
    return frames

  _engine.serve(passes, {"frames": passes(1), "dialogues": len(dialogues)})


def main() -> None:
  """See the module."""
  work, data, number = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
  config, arrays = packed.read(packed.SHIPPED)
  if work == "train":
    train(data, number, arrays)
  else:
    track(data, number, config, arrays)


if __name__ == "__main__":
  main()
