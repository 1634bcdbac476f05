"""The tiny model that tests of inference make, with random weights."""

import run_tasks

from t5x import models, optimizers
from t5x.examples.t5 import network


def tiny_model(decode_fn, **sizes):
  """Returns a 1 + 1 layer model of run_tasks' vocabulary; `sizes` are of `network.T5Config`."""
  settings = {
    "vocab_size": 384,
    "emb_dim": 16,
    "num_heads": 2,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "head_dim": 8,
    "mlp_dim": 16,
    "mlp_activations": ("relu",),
    "dropout_rate": 0.0,
  }
  return models.EncoderDecoderModel(
    module=network.Transformer(network.T5Config(**(settings | sizes))),
    input_vocabulary=run_tasks.VOCAB,
    output_vocabulary=run_tasks.VOCAB,
    optimizer_def=optimizers.sgd(0.1),
    decode_fn=decode_fn,
  )
