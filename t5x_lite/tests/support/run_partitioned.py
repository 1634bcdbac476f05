"""Run on 8 devices: compiles a gradient and says in JSON what each of them draws and sums."""

import json
import re

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from t5x import partitioning
from t5x.examples.t5 import layers, network

ROWS, LENGTH, VOCAB, WIDTH = 16, 24, 96, 40


def main() -> None:
  jax.config.update("jax_default_prng_impl", "rbg")
  module = network.Transformer(
    network.T5Config(
      vocab_size=VOCAB,
      emb_dim=WIDTH,
      num_heads=2,
      num_encoder_layers=1,
      num_decoder_layers=1,
      head_dim=8,
      mlp_dim=48,
      logits_via_embedding=True,
    )
  )
  tokens = jax.random.randint(jax.random.PRNGKey(0), (ROWS, LENGTH), 1, VOCAB)
  params = module.init(jax.random.PRNGKey(1), tokens, tokens, tokens, enable_dropout=False)
  partitioner = partitioning.PjitPartitioner(model_parallel_submesh=(1, 1, 1, 1))

  def loss(params, tokens, rng):
    logits = module.apply({"params": params}, tokens, tokens, tokens, rngs={"dropout": rng})
    return jnp.mean(logits**2)

  def partition(function, *specs):
    return partitioner.partition(function, specs, None)

  data = PartitionSpec("data")
  step = partition(jax.grad(loss), None, data, None)
  lowered = step.lower(params["params"], tokens, jax.random.PRNGKey(2))
  draw = partition(lambda rng: layers.keep_mask(rng, 0.5, (ROWS, LENGTH)), None)
  keep = jax.device_get(draw(jax.random.PRNGKey(3)))
  drawn = re.findall(r"rng_bit_generator.*-> \(tensor<\S+>, tensor<([\dx]+)xui", lowered.as_text())
  text = lowered.compile().as_text()
  sums = "\n".join(re.findall(r"= (.*) all-reduce(?:-start)?\(", text))
  print(
    json.dumps(
      {
        "drawn": [[int(n) for n in dims.split("x")] for dims in drawn],
        "sums_of_the_embedding": sums.count(f"[{VOCAB},{WIDTH}]"),
        "different_partitions": len({row.tobytes() for row in keep.reshape(8, -1)}),
        "kept": float(keep.mean()),
      }
    )
  )


if __name__ == "__main__":
  main()
