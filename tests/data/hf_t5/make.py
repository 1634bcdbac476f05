"""Makes the folders beside this file: tiny random T5s of `transformers`, with their logits.

Needs torch (CPU will do) and `transformers`, which the tests do not:
  python tests/data/hf_t5/make.py
Weights and tokens are random numbers; norms are random too, so that a scale put in a wrong place
shows. Encoder and decoder differ in depth, and heads * head size differs from the width.
"""

import json
import pathlib
import platform

import numpy as np
import torch
import transformers

HERE = pathlib.Path(__file__).resolve().parent
SIZES = {
  "vocab_size": 64,
  "d_model": 16,
  "d_kv": 8,
  "d_ff": 24,
  "num_heads": 3,
  "num_layers": 1,
  "num_decoder_layers": 2,
}
FAMILIES = {
  "t5_1_0": {"feed_forward_proj": "relu", "tie_word_embeddings": True},
  "t5_1_1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False},
}


def random_model(family: str, seed: int) -> transformers.T5ForConditionalGeneration:
  """Returns a model in which every number matters."""
  config = transformers.T5Config(
    **SIZES, **FAMILIES[family], decoder_start_token_id=0, dropout_rate=0.0
  )
  model = transformers.T5ForConditionalGeneration(config).eval()
  if family == "t5_1_1":  # transformers 5 ties what is not read from a file; Google's 1.1 is not
    model.lm_head.weight = torch.nn.Parameter(torch.empty(64, 16))
  rng = np.random.default_rng(seed)
  with torch.no_grad():
    for name, parameter in sorted(model.named_parameters()):
      shape = tuple(parameter.shape)
      if "layer_norm" in name:
        values = rng.uniform(0.5, 1.5, shape)
      elif name == "shared.weight" or "relative_attention_bias" in name:
        values = rng.normal(0.0, 1.0, shape)
      else:
        values = rng.normal(0.0, 0.7 * shape[1] ** -0.5, shape)
      parameter.copy_(torch.tensor(values, dtype=torch.float32))
  return model


def random_batch(seed: int) -> dict[str, np.ndarray]:
  """Returns token ids with padding in the inputs; long enough for buckets of many positions."""
  rng = np.random.default_rng(seed)
  inputs = rng.integers(2, 64, (3, 150))
  inputs[1, 40:], inputs[2, 5:] = 0, 0
  decoder = rng.integers(2, 64, (3, 20))
  decoder[:, 0] = 0
  return {"inputs": inputs, "decoder_inputs": decoder}


def logits(model, batch) -> np.ndarray:
  """Returns the model's logits, [batch, length, vocabulary]."""
  inputs = torch.tensor(batch["inputs"])
  with torch.no_grad():
    out = model(
      input_ids=inputs,
      attention_mask=(inputs > 0).long(),
      decoder_input_ids=torch.tensor(batch["decoder_inputs"]),
    )
  return out.logits.numpy()


def main() -> None:
  """Writes both folders, logits.npz and versions.json."""
  torch.set_num_threads(1)
  batch = random_batch(seed=5)
  expected, floor = dict(batch), {}
  for seed, family in enumerate(FAMILIES):
    model = random_model(family, seed)
    model.save_pretrained(HERE / family)
    expected[family] = logits(model, batch)
    exact = logits(model.double(), batch)
    floor[family] = float(np.abs(exact - expected[family]).max())
  np.savez_compressed(HERE / "logits.npz", **expected)
  versions = {
    "python": platform.python_version(),
    "torch": torch.__version__,
    "transformers": transformers.__version__,
    "max_abs_logit": {f: float(np.abs(expected[f]).max()) for f in FAMILIES},
    "max_abs_difference_float32_float64": floor,
  }
  (HERE / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


if __name__ == "__main__":
  main()
