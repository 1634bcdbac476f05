"""T5X's training step, or its answers to prompts, on the device that JAX has; a child process.

  python t5_jax.py train WEIGHTS DATA ROWS
  python t5_jax.py answer WEIGHTS PROMPTS ROWS MOST OUTPUT [NUMBER]

WEIGHTS is a folder in Hugging Face's layout, DATA that of prepare.py, PROMPTS a file in it; MOST is
the number of tokens to decode. Communicates with its parent like _step_driver.py: READY, a number
of steps (or passes over the prompts), SECONDS.
"""

from __future__ import annotations

import json
import pathlib
import sys
import types

import _data
import _engine

from sgdx_t5x.weights import huggingface, layout
from t5x import adafactor, decoding, models, utils
from t5x.examples.t5 import network


def t5(sizes: layout.Sizes) -> models.EncoderDecoderModel:
  """Returns T5 with the settings of gin/t5dst.gin, greedy decoding and bfloat16 activations."""
  config = network.T5Config(**sizes.gin(), dtype="bfloat16", dropout_rate=0.1)
  vocabulary = types.SimpleNamespace(eos_id=_data.EOS, vocab_size=sizes.vocab_size)
  rules = adafactor.standard_logical_factor_rules()
  return models.EncoderDecoderModel(
    network.Transformer(config),
    vocabulary,
    vocabulary,
    # Its own rate: the trainer is given none.
    adafactor.Adafactor(learning_rate=1e-3, decay_rate=0.8, logical_factor_rules=rules),
    decode_fn=decoding.temperature_sample,
    default_decoder_params=models.DecoderParams(topk=1),
    z_loss=0.0001,
    loss_normalizing_factor="NUM_REAL_TARGET_TOKENS",
  )


def train(weights: layout.Weights, data: str, rows: int) -> None:
  """Takes training steps on request."""
  batches = _data.batches(pathlib.Path(data, "t5dst.npz"), rows)
  shapes = {name: x.shape for name, x in batches[0].items()}
  loaded = _engine.Loaded(t5(weights.sizes), weights.arrays, shapes, trains=True)
  loaded.train_on_request(batches, _data.about(batches, _data.T5_TOKENS))


def answer(
  weights: layout.Weights, path: str, rows: int, most: int, output: str, number: int | None = None
) -> None:
  """Answers all prompts on request, as `t5x.infer` does after reading them."""
  prompts = _data.prompts(path)[:number]
  lengths = {"encoder_input_tokens": _data.LONGEST, "decoder_input_tokens": most}
  shapes = {name: (rows, length) for name, length in lengths.items()}
  loaded = _engine.Loaded(t5(weights.sizes), weights.arrays, shapes, trains=False)
  infer = utils.get_infer_fn(loaded.model.predict_batch, rows, loaded.axes, loaded.partitioner)
  examples = _data.Examples([{"encoder_input_tokens": ids} for ids in prompts], lengths)

  def passes(number: int) -> list[tuple[int, list[int]]]:
    answers = []
    for _ in range(number):
      answers = infer(examples, loaded.state)
    return answers

  answers = [_data.until_end(ids) for _, ids in passes(1)]
  pathlib.Path(output).write_text(json.dumps(answers))
  _engine.serve(passes, {"prompts": len(prompts), "rows": rows})


def main() -> None:
  """See the module."""
  work, folder, data, rows, *rest = sys.argv[1:]
  weights = huggingface.read_huggingface(folder)
  if work == "train":
    train(weights, data, int(rows))
  else:
    answer(weights, data, int(rows), int(rest[0]), rest[1], *map(int, rest[2:]))


if __name__ == "__main__":
  main()
