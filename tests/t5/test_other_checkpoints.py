"""Checkpoints of another network or width than the one that starts from them, or runs them."""

import dataclasses
import functools

import flax
import numpy as np
import pytest
import seqio
import span_frames
import span_models
from commands import assert_four_parts

from sgdx_t5x import weights
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst.features import SpanFeatureConverter
from sgdx_t5x.spandst.restore import check_encoder
from sgdx_t5x.t5.pretrained_encoder import BertToT5, BertToT5Model
from sgdx_t5x.tasks import sample_encoder_vocabulary
from t5x import models, partitioning, utils
from t5x.errors import T5XError
from t5x.examples.t5 import network

START = {"fallback_to_scratch": True, "state_transformation_fns": (check_encoder,)}
RUN = {}  # evaluation, and training of a T5


def config(encoder_layers, width):
  return network.T5Config(
    span_frames.VOCAB_SIZE, emb_dim=width, num_heads=2, head_dim=8, mlp_dim=32,
    num_encoder_layers=encoder_layers, num_decoder_layers=1, logits_via_embedding=True,
  )  # fmt: skip


def bert_to_t5(width=16):
  """This network, with the encoder of `span_models`, or one of another width."""
  encoder = dataclasses.replace(span_models.CONFIG, emb_dim=width)
  vocabulary = sample_encoder_vocabulary()
  return BertToT5Model(BertToT5(config(0, width), encoder), vocabulary, vocabulary, None)


def t5():
  vocabulary = seqio.PassThroughVocabulary(span_frames.VOCAB_SIZE)
  network_of_t5 = network.Transformer(config(1, 16))
  return models.EncoderDecoderModel(network_of_t5, vocabulary, vocabulary, None)


MODELS = {
  "bert_to_t5": bert_to_t5,
  "wider": functools.partial(bert_to_t5, 32),
  "spandst": span_models.model,
  "t5": t5,
}


def initializer(name):
  lengths = {"encoder_input_tokens": 12, "decoder_input_tokens": 6}
  if name == "spandst":
    lengths = SpanFeatureConverter(pack=False).get_model_feature_lengths(span_frames.LENGTHS)
  return utils.TrainStateInitializer(
    None,
    MODELS[name]().get_initial_variables,
    {feature: (2, length) for feature, length in lengths.items()},
    partitioning.PjitPartitioner(num_partitions=1),
  )


@pytest.mark.parametrize(
  ("given", "network_name", "settings", "words"),
  [
    ("wider", "bert_to_t5", START, "wrong shape"),
    ("spandst", "bert_to_t5", START, "arrays are unknown to the model"),
    ("t5", "bert_to_t5", START, "has no BERT"),
    ("bert_to_t5", "spandst", START, "arrays are unknown to the model"),
    ("bert_to_t5", "t5", RUN, "arrays are missing from the checkpoint"),
    ("spandst", "bert_to_t5", RUN, "arrays are missing from the checkpoint"),
    ("t5", "bert_to_t5", RUN, "arrays are missing from the checkpoint"),
  ],
)
def test_it_is_refused(given, network_name, settings, words, tmp_path):
  params = flax.core.unfreeze(initializer(given).global_train_state_shape.params)
  shapes = flax.traverse_util.flatten_dict(params, sep="/")
  arrays = {name: np.zeros(shape.shape, np.float32) for name, shape in shapes.items()}
  path = weights.write_checkpoint(weights.Weights(None, arrays), tmp_path)
  start = utils.RestoreCheckpointConfig(path=str(path), mode="specific", **settings)
  with pytest.raises((SgdxError, T5XError)) as error:
    initializer(network_name).from_checkpoint([start])
  assert_four_parts(error.value.text, words)
