"""Names and types of arrays in Hugging Face files: whatever wraps a network, the same weights.

In one file and in shards with an index. Expected are the weights of the folder as `transformers`
saved it (tests/fixtures/hf_t5/make.py, tests/fixtures/hf_bert/make.py).
"""

import json
import shutil

import ml_dtypes
import numpy as np
import pytest
from places import FIXTURES
from safetensors.numpy import load_file, save_file

from sgdx_t5x import weights
from sgdx_t5x.errors import SgdxError

FOLDERS = {name: FIXTURES / f"hf_t5/{name}" for name in ("t5_1_0", "t5_1_1")}
FOLDERS["bert"] = FIXTURES / "hf_bert/bert"
T5_ALIASES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
ONE_FILE, INDEX = "model.safetensors", "model.safetensors.index.json"


@pytest.fixture
def write(tmp_path):
  """Returns a function that writes a folder with other arrays, and an index if names are listed."""

  def write_folder(name, arrays, listed=None):
    folder = tmp_path / name
    shutil.copytree(FOLDERS[name], folder, ignore=shutil.ignore_patterns(ONE_FILE))
    if listed is None:
      save_file(arrays, folder / ONE_FILE)
      return folder
    shards = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    for i, shard in enumerate(shards):
      save_file({key: arrays[key] for key in sorted(arrays)[i::2]}, folder / shard)
    weight_map = {key: shards[i % 2] for i, key in enumerate(listed)}
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder

  return write_folder


def stored(name):
  return load_file(FOLDERS[name] / ONE_FILE)


def assert_same_weights(folder, name):
  """Reads a folder, compares it with the fixture `name`, and returns the notes."""
  read, expected = weights.read_huggingface(folder), weights.read_huggingface(FOLDERS[name])
  assert read.sizes == expected.sizes
  assert read.arrays.keys() == expected.arrays.keys()
  for key, array in expected.arrays.items():
    np.testing.assert_array_equal(read.arrays[key], array, err_msg=key)
  return "; ".join(read.notes)


def error_of(folder):
  with pytest.raises(SgdxError) as e:
    weights.read_huggingface(folder)
  return e.value.text


# --- indexes -------------------------------------------------------------------------------


def renamed(arrays, old, new):
  return {new if key == old else key: array for key, array in arrays.items()}


@pytest.mark.parametrize("name", ["t5_1_0", "t5_1_1"])
@pytest.mark.parametrize("stored_as", ["shared.weight", *T5_ALIASES])
@pytest.mark.parametrize("listed_as", [("shared.weight", *T5_ALIASES), ("shared.weight",)])
def test_an_index_may_have_other_names_of_the_embedding(write, name, stored_as, listed_as):
  """Flan-T5 XL's index lists three names, of which its shards have one."""
  arrays = renamed(stored(name), "shared.weight", stored_as)
  listed = [key for key in arrays if key != stored_as] + list(listed_as)
  if name == "t5_1_0":  # its logits reuse the embedding
    listed.append("lm_head.weight")
  assert_same_weights(write(name, arrays, listed), name)


@pytest.mark.parametrize(
  ("name", "lost"),
  [("t5_1_1", "shared.weight"), ("t5_1_1", "lm_head.weight"), ("bert", "pooler.dense.bias")],
)
def test_an_array_that_no_shard_has_under_any_name_is_named(write, name, lost):
  arrays = stored(name)
  del arrays[lost]
  text = error_of(write(name, arrays, [*arrays, lost]))
  assert f"1 arrays are in none of its files: {lost}" in text


def test_an_index_may_list_buffers_and_heads_that_no_shard_has(write):
  arrays = stored("bert")
  others = ["embeddings.position_ids", "cls.predictions.decoder.weight"]
  assert_same_weights(write("bert", arrays, [*arrays, *others]), "bert")


# --- arrays that are no part of the network ------------------------------------------------

TYPES = (
  np.int8, np.int64, np.uint8, np.bool_, np.float64,
  ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
)  # fmt: skip
OTHERS = {
  "t5_1_0": ("encoder.position_ids", "decoder.block.0.steps", "qa_outputs.seen", "counter"),
  "t5_1_1": ("encoder.position_ids", "decoder.block.0.steps", "classifier.weight", "norm.count"),
  "bert": ("embeddings.position_ids", "encoder.layer.0.seen", "classifier.weight", "num_updates"),
}


@pytest.mark.parametrize("in_shards", [False, True], ids=["file", "shards"])
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: np.dtype(kind).name)
@pytest.mark.parametrize("name", FOLDERS)
def test_buffers_and_heads_of_any_type_are_left_out(write, name, kind, in_shards):
  arrays = stored(name) | {key: np.zeros((2, 3), kind) for key in OTHERS[name]}
  notes = assert_same_weights(write(name, arrays, arrays if in_shards else None), name)
  assert "left out what is no part of the network, 4 in all" in notes


@pytest.mark.parametrize("kind", [np.float32, np.int32])
def test_buffers_known_by_name_are_left_out_whatever_their_type(write, kind):
  others = ("embeddings.position_ids", "encoder.norm.num_batches_tracked")
  arrays = stored("bert") | {key: np.ones((), kind) for key in others}
  assert_same_weights(write("bert", arrays), "bert")


@pytest.mark.parametrize(
  ("name", "key", "kind", "words"),
  [
    ("t5_1_1", "encoder.block.0.adapter.weight", np.float32, "unknown:"),
    ("t5_1_1", "encoder.block.9.layer.0.SelfAttention.q.weight", np.int8, "is of type I8"),
    ("bert", "encoder.layer.9.output.dense.bias", np.float16, "unknown:"),
    ("bert", "embeddings.word_embeddings.weight", np.int8, "is of type I8"),
    ("t5_1_1", "shared.weight", ml_dtypes.float8_e4m3fn, "is of type F8_E4M3"),
  ],
)
def test_other_parameters_inside_the_network_are_refused(write, name, key, kind, words):
  arrays = stored(name)
  arrays[key] = np.ones(arrays[key].shape if key in arrays else 3, kind)
  text = error_of(write(name, arrays))
  assert words in text
  assert key in text


def test_what_was_left_out_is_named_where_arrays_are_missing(write):
  text = error_of(write("t5_1_1", renamed(stored("t5_1_1"), "shared.weight", "share.weight")))
  assert "missing:\n      shared.weight" in text
  assert "available: left out what is no part of the network, 1 in all: share.weight" in text


# --- wrapped models ------------------------------------------------------------------------

PREFIXES = (
  "_orig_mod.", "module.", "0.auto_model.", "module._orig_mod.", "model.", "model.module.t5.",
  "bert.", "encoder.", "module.bert.", "0.auto_model._orig_mod.module.", "net.encoder.",
)  # fmt: skip


@pytest.mark.parametrize("in_shards", [False, True], ids=["file", "shards"])
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["t5_1_1", "bert"])
def test_names_may_begin_with_what_wraps_the_network(write, name, prefix, in_shards):
  arrays = {prefix + key: array for key, array in stored(name).items()}
  arrays |= {"head.weight": np.ones(3, np.float32), "module.steps": np.ones((), np.int64)}
  folder = write(name, arrays, arrays if in_shards else None)
  assert "head.weight, module.steps" in assert_same_weights(folder, name)


def test_an_index_may_have_names_without_the_words_that_shards_have(write):
  arrays = {f"_orig_mod.{key}": array for key, array in stored("t5_1_1").items()}
  assert_same_weights(write("t5_1_1", arrays, stored("t5_1_1")), "t5_1_1")


def test_modules_inside_the_network_may_be_wrapped(write):
  def wrapped(key):
    return key.replace("encoder.", "encoder._orig_mod.").replace(".layer.", ".module.layer.")

  arrays = {f"bert.{wrapped(key)}": array for key, array in stored("bert").items()}
  assert_same_weights(write("bert", arrays), "bert")


def test_logits_may_stand_outside_of_a_wrapped_t5(write):
  arrays = {f"t5.{key}": array for key, array in stored("t5_1_1").items()}
  assert_same_weights(
    write("t5_1_1", renamed(arrays, "t5.lm_head.weight", "lm_head.weight")), "t5_1_1"
  )


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_a_teacher_beside_the_network_is_left_out(write, prefix):
  """As `transformers` does, which loads names with its own prefix or none."""
  own = stored("bert")
  arrays = {f"teacher.{key}": np.zeros_like(array) for key, array in own.items()}
  arrays |= {prefix + key: array for key, array in own.items()}
  assert "teacher." in assert_same_weights(write("bert", arrays), "bert")


def test_two_networks_are_refused(write):
  own = stored("t5_1_1")
  both = {f"{prefix}.{key}": own[key] for prefix in ("model", "average") for key in own}
  text = error_of(write("t5_1_1", both))
  assert "arrays of 2 networks" in text
  assert "'model.'" in text
  assert "'average.'" in text


def test_two_arrays_of_one_name_are_refused(write):
  arrays = stored("bert") | {"module.pooler.dense.bias": np.ones(24, np.float32)}
  text = error_of(write("bert", arrays))
  assert "pooler.dense.bias" in text
  assert "module.pooler.dense.bias" in text


def test_a_missing_array_is_named_alone_under_any_prefix(write):
  arrays = {f"model.{key}": array for key, array in stored("t5_1_1").items()}
  lost = "encoder.block.0.layer.0.SelfAttention.q.weight"
  del arrays[f"model.{lost}"]
  text = error_of(write("t5_1_1", arrays))
  assert "1 arrays do not match" in text
  assert lost in text
