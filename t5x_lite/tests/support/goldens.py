"""The golden numbers recorded from Google's T5X, and the models they were recorded of.

Tests read the full recordings where ../shared/golden is, else the set of them in the repository.
"""

import functools
import json
import pathlib

import jax
import numpy as np
from flax import traverse_util
from packed_goldens import Sample, load_arrays, unpacked
from shared import find_shared

MODELS = ("t5_1_1", "t5_1_0")


def find_golden() -> pathlib.Path:
  """Returns where the golden numbers are: the full recordings, which CI must have, or the set."""
  return find_shared("golden/A") or unpacked()


def subtree(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
  """Returns the arrays under `prefix/`, without the prefix."""
  return {k[len(prefix) + 1 :]: v for k, v in arrays.items() if k.startswith(prefix + "/")}


class GoldenModel:
  """Recorded numbers of one model, with the same model made here."""

  def __init__(self, root: pathlib.Path, name: str):
    from t5x.examples.t5 import network

    self.root, self.name = root / name, name
    config = json.loads((root / "config.json").read_text())
    sizes = config["config"]
    self._floors = config["noise_floor_jit_vs_op_by_op_max_abs"]
    self.z_loss, self.learning_rate = config["z_loss"], config["learning_rate"]
    self.module = network.Transformer(
      network.T5Config(
        **{k: sizes[k] for k in ("vocab_size", "emb_dim", "num_heads", "head_dim", "mlp_dim")},
        num_encoder_layers=2,
        num_decoder_layers=2,
        dropout_rate=0.0,
        mlp_activations=("gelu", "linear") if name == "t5_1_1" else ("relu",),
        logits_via_embedding=name == "t5_1_0",
      )
    )
    self.flat_params = load_arrays(self.root / "params.npz")
    self.params = traverse_util.unflatten_dict(self.flat_params, sep="/")
    self.expected = load_arrays(self.root / "expected.npz")
    arrays = load_arrays(self.root / "batch.npz")
    unpacked = subtree(arrays, "unpacked")
    self.batches = {
      "unpacked": unpacked,
      "packed": subtree(arrays, "packed"),
      "weighted": unpacked | subtree(arrays, "weighted"),
      "prompt": unpacked | subtree(arrays, "prompt"),
    }

  @functools.cached_property
  def packed_grads(self):
    """Jitted gradient of the recorded setting, as a function of the parameters."""
    model, batch = self.model(label_smoothing=0.1), self.batches["packed"]
    return jax.jit(jax.grad(lambda params: model.loss_fn(params, batch, None)[0]))

  def atol(self, quantity: str) -> float:
    """Ten times the noise floor of the original (jit against op by op)."""
    return 10 * self._floors[f"{self.name}/{quantity}"]["max_abs"]

  def model(self, **kwargs):
    """Makes the EncoderDecoderModel; keyword arguments as its own."""
    import seqio

    from t5x import adafactor, models

    vocabulary = seqio.PassThroughVocabulary(64, eos_id=1)
    kwargs.setdefault(
      "optimizer_def",
      adafactor.Adafactor(
        decay_rate=0.8,
        step_offset=0,
        logical_factor_rules=adafactor.standard_logical_factor_rules(),
      ),
    )
    kwargs.setdefault("z_loss", self.z_loss)
    return models.EncoderDecoderModel(self.module, vocabulary, vocabulary, **kwargs)


class GoldenSet:
  """Reads files of the golden numbers."""

  def __init__(self, root: pathlib.Path):
    self.root = root

  def arrays(self, name: str) -> dict[str, np.ndarray | Sample]:
    """All arrays of an npz file; the set of the repository has samples of the large ones."""
    return load_arrays(self.root / name)

  def json(self, name: str):
    """A JSON file."""
    return json.loads((self.root / name).read_text())
