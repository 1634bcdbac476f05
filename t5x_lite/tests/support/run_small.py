"""A network of two matrices, for tests of what surrounds a network: it is compiled in no time."""

import jax.numpy as jnp
from flax import linen as nn

from t5x.examples.t5 import layers

SIZE, WIDTH = 384, 16  # tokens, as run_tasks' vocabulary has; numbers per token


class Network(nn.Module):
  """Predicts a token from the one before it and the mean of the inputs."""

  dropout_rate: float = 0.0

  @nn.compact
  def __call__(
    self,
    encoder_input_tokens,
    decoder_input_tokens,
    decoder_target_tokens,
    *,
    enable_dropout=True,
    **unused,
  ):
    del decoder_target_tokens, unused
    init = nn.initializers.normal(0.3)
    table = layers.param_with_axes(self, "table", init, (SIZE, WIDTH), ("vocab", "embed"))
    out = layers.param_with_axes(self, "out", init, (WIDTH, SIZE), ("embed", "vocab"))
    read = jnp.take(table, encoder_input_tokens, axis=0).mean(axis=1, keepdims=True)
    x = read + jnp.take(table, decoder_input_tokens, axis=0)
    return layers.Dropout(self.dropout_rate)(x, not enable_dropout) @ out
