"""Converting weights between Hugging Face and T5X: names, shapes, values and resulting logits.

Logits of `transformers` are in tests/fixtures/hf_t5 (made by make.py there): CI has no torch.
"""

import dataclasses
import functools
import importlib.util
import json
import pathlib
import shutil

import ml_dtypes
import numpy as np
import pytest
from packed_goldens import load_arrays
from places import FIXTURES
from safetensors.numpy import load_file, save_file

from sgdx_t5x import weights
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.weights import gin_files, layout, t5x_checkpoint

DATA = FIXTURES / "hf_t5"
FAMILIES = ("t5_1_0", "t5_1_1")
ONE_FILE = "model.safetensors"


@pytest.fixture(params=FAMILIES)
def family(request):
  return request.param


@pytest.fixture
def folder(tmp_path):
  """Makes a copy of a family's folder that a test may modify."""

  def make(family="t5_1_1"):
    return pathlib.Path(shutil.copytree(DATA / family, tmp_path / family))

  return make


def change_config(folder, **changes):
  config = json.loads((folder / "config.json").read_text())
  config.update(changes)
  config = {key: value for key, value in config.items() if value is not None}
  (folder / "config.json").write_text(json.dumps(config))


def change_arrays(folder, change):
  arrays = load_file(folder / ONE_FILE)
  change(arrays)
  save_file(arrays, folder / ONE_FILE, metadata={"format": "pt"})


def split_in_two(folder):
  """Replaces the one file with two shards and their index."""
  arrays = load_file(folder / ONE_FILE)
  (folder / ONE_FILE).unlink()
  weight_map = {
    name: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, name in enumerate(arrays)
  }
  for shard in sorted(set(weight_map.values())):
    part = {name: arrays[name] for name in arrays if weight_map[name] == shard}
    save_file(part, folder / shard)
  index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
  (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def transformer(sizes):
  from t5x.examples.t5 import network

  return network.Transformer(network.T5Config(**sizes.gin()))


def params_of(found):
  from flax import traverse_util

  return traverse_util.unflatten_dict(dict(found.arrays), sep="/")


def our_logits(found, batch):
  """Logits of T5X's network, all decoder positions valid as in `transformers` without a mask."""
  import jax

  module, decoder = transformer(found.sizes), batch["decoder_inputs"]
  apply = jax.jit(functools.partial(module.apply, enable_dropout=False))
  return apply({"params": params_of(found)}, batch["inputs"], decoder, np.ones_like(decoder))


def assert_same(found, expected):
  assert found.sizes == expected.sizes
  assert found.arrays.keys() == expected.arrays.keys()
  for name, array in expected.arrays.items():
    assert found.arrays[name].dtype == array.dtype
    np.testing.assert_array_equal(found.arrays[name], array, err_msg=name)


# --- names and shapes ----------------------------------------------------------------------


def test_every_array_of_transformers_has_a_name(family):
  table = layout.tensors(weights.read_huggingface(DATA / family).sizes)
  shapes = {name: array.shape for name, array in load_file(DATA / family / ONE_FILE).items()}
  assert {tensor.hf: tensor.hf_shape for tensor in table} == shapes


@pytest.mark.parametrize("name", gin_files.MODELS)
def test_arrays_and_slots_are_those_of_a_fresh_t5x_train_state(name):
  """At the published widths, where matrices are factored, without allocating anything."""
  import jax
  from flax import traverse_util

  from t5x import adafactor

  sizes = dataclasses.replace(gin_files.MODELS[name], num_encoder_layers=1, num_decoder_layers=2)
  optimizer = adafactor.Adafactor(logical_factor_rules=adafactor.standard_logical_factor_rules())

  def init(key):
    tokens = np.ones((1, 2), np.int32)
    params = transformer(sizes).init(key, tokens, tokens, tokens, enable_dropout=False)["params"]
    return params, optimizer.init_state(params).param_states

  params, slots = jax.eval_shape(init, jax.random.PRNGKey(0))
  params = traverse_util.flatten_dict(params, sep="/")
  slots = traverse_util.flatten_dict(slots, sep="/")
  table = layout.tensors(sizes)
  assert {t.t5x: t.shape for t in table} == {k: v.shape for k, v in params.items()}
  for tensor in table:
    expected = {k: getattr(slots[tensor.t5x], k).shape for k in ("m", "v", "v_col", "v_row")}
    assert t5x_checkpoint.adafactor_slots(tensor.shape) == expected, tensor.t5x


# --- values --------------------------------------------------------------------------------


def test_logits_are_those_of_transformers(family):
  with np.load(DATA / "logits.npz") as archive:
    expected = dict(archive)
  versions = json.loads((DATA / "versions.json").read_text())
  logits = our_logits(weights.read_huggingface(DATA / family), expected)
  # Ten times the float32 error of `transformers` itself: about 1e-5, with logits of up to 6.
  atol = 10 * versions["max_abs_difference_float32_float64"][family]
  np.testing.assert_allclose(logits, expected[family], rtol=0, atol=atol)


def test_there_and_back_is_bitwise(family, tmp_path):
  imported = weights.read_huggingface(DATA / family)
  path = weights.write_checkpoint(imported, tmp_path, step=7)
  assert path == tmp_path / "checkpoint_7"
  again = weights.read_checkpoint(path)
  assert again.step == 7
  assert_same(again, imported)
  folder = weights.write_huggingface(again, tmp_path / "hf")
  exported, original = load_file(folder / ONE_FILE), load_file(DATA / family / ONE_FILE)
  assert exported.keys() == original.keys()
  for name, array in original.items():
    assert array.tobytes() == exported[name].tobytes(), name
  config = json.loads((folder / "config.json").read_text())
  source = json.loads((DATA / family / "config.json").read_text())
  # Dropout is T5's default; `transformers` 5 writes "tied" for every T5, and 4 relies on it.
  differ = {k for k in config if k in source and config[k] != source[k]}
  assert differ == {"dropout_rate"} | ({"tie_word_embeddings"} if family == "t5_1_1" else set())
  assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_becomes_float32(folder, dtype):
  path = folder()
  change_arrays(path, lambda a: a.update({k: v.astype(dtype) for k, v in a.items()}))
  found = weights.read_huggingface(path)
  original = load_file(DATA / "t5_1_1" / ONE_FILE)["shared.weight"]
  embedding = found.arrays["token_embedder/embedding"]
  assert embedding.dtype == np.float32
  np.testing.assert_array_equal(embedding, original.astype(dtype).astype(np.float32))
  assert "were converted to float32" in found.notes[0]


def as_transformers_4(path):
  change_config(path, scale_decoder_outputs=None, tie_word_embeddings=False)


def as_the_first_t5(path):
  """As in the published T5 1.0 folders: few settings, all aliases, an array that is not used."""
  names = ("scale_decoder_outputs", "tie_word_embeddings", "feed_forward_proj", "eos_token_id")
  change_config(path, **dict.fromkeys(names))

  def change(arrays):
    for name in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head"):
      arrays[f"{name}.weight"] = arrays["shared.weight"]
    unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    arrays[unused] = np.ones((32, 3), np.float32)

  change_arrays(path, change)


def under_an_alias(path):
  change_arrays(path, lambda a: a.update({"decoder.embed_tokens.weight": a.pop("shared.weight")}))


def as_mt5(path):
  change_config(path, model_type="mt5", scale_decoder_outputs=None)


@pytest.mark.parametrize(
  ("name", "change"),
  [
    ("t5_1_0", as_the_first_t5),
    ("t5_1_0", under_an_alias),
    ("t5_1_0", split_in_two),
    ("t5_1_1", as_transformers_4),
    ("t5_1_1", under_an_alias),
    ("t5_1_1", as_mt5),
    ("t5_1_1", split_in_two),
  ],
)
def test_other_spellings_of_the_same_weights(folder, name, change):
  path = folder(name)
  change(path)
  assert_same(weights.read_huggingface(path), weights.read_huggingface(DATA / name))


def test_a_checkpoint_starts_a_training_run(family, tmp_path):
  """Restored by T5X's own code, it equals a new T5X train state of these parameters."""
  import jax

  from t5x import adafactor, checkpoints, train_state

  imported = weights.read_huggingface(DATA / family)
  path = weights.write_checkpoint(imported, tmp_path)
  optimizer = adafactor.Adafactor(logical_factor_rules=adafactor.standard_logical_factor_rules())
  module, tokens = transformer(imported.sizes), np.ones((1, 2), np.int32)

  def init(key):
    variables = module.init(key, tokens, tokens, tokens, enable_dropout=False)
    return train_state.FlaxOptimTrainState.create(optimizer, variables)

  state = jax.eval_shape(init, jax.random.PRNGKey(0))
  restored = checkpoints.restore(checkpoints.CheckpointChoice(str(path), "a test"), state)
  fresh = train_state.FlaxOptimTrainState.create(optimizer, {"params": params_of(imported)})
  jax.tree_util.tree_map(np.testing.assert_array_equal, restored.state_dict(), fresh.state_dict())


@pytest.mark.parametrize("kind", ["ckpt_orbax", "ckpt_legacy"])
def test_checkpoints_of_googles_t5x_are_read(kind, golden_folder):
  """Both layouts, after three steps of training; the expected arrays are stored next to them."""
  found = weights.read_checkpoint(golden_folder / kind / "checkpoint_3")
  assert found.step == 3
  assert (found.sizes.gated, found.sizes.tied, found.sizes.num_heads) == (True, False, 3)
  params = load_arrays(golden_folder / "t5_1_1/params.npz")
  assert {k: v.shape for k, v in found.arrays.items()} == {k: v.shape for k, v in params.items()}


def test_transformers_itself_agrees(family, transformers, tmp_path):
  """Live, both ways; only where torch and transformers are installed."""
  spec = importlib.util.spec_from_file_location("make_hf_t5", DATA / "make.py")
  make = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(make)

  model, batch = make.random_model(family, seed=77), make.random_batch(seed=78)
  model.save_pretrained(tmp_path / "hf")
  imported = weights.read_huggingface(tmp_path / "hf")
  expected = make.logits(model, batch)
  np.testing.assert_allclose(our_logits(imported, batch), expected, rtol=0, atol=1e-5)
  folder = weights.write_huggingface(imported, tmp_path / "out")
  loaded, info = transformers.AutoModelForSeq2SeqLM.from_pretrained(
    folder, output_loading_info=True
  )
  assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
  np.testing.assert_array_equal(make.logits(loaded.eval(), batch), expected)


# --- faults --------------------------------------------------------------------------------


def truncate(path):
  file = path / ONE_FILE
  file.write_bytes(file.read_bytes()[:-100])


def lose_a_shard(path):
  split_in_two(path)
  (path / "model-00002-of-00002.safetensors").unlink()


def lose_an_array_of_a_shard(path):
  split_in_two(path)
  shard = path / "model-00002-of-00002.safetensors"
  arrays = load_file(shard)
  arrays.popitem()
  save_file(arrays, shard)


def point_outside(path):
  split_in_two(path)
  index = path / "model.safetensors.index.json"
  index.write_text(index.read_text().replace("model-00002", "../model-00002"))


def only_torch(path):
  (path / ONE_FILE).rename(path / "pytorch_model.bin")


def rename(old, new):
  return lambda path: change_arrays(path, lambda a: a.update({new: a.pop(old)}))


def put(name, change):
  return lambda path: change_arrays(path, lambda a: a.update({name: change(a[name].copy())}))


def nan(array):
  array[0, 0] = np.nan
  return array


def config(**changes):
  return lambda path: change_config(path, **changes)


NORM = "encoder.final_layer_norm.weight"
FAULTS = [
  ("t5_1_1", shutil.rmtree, ["no such folder", "hf download"]),
  ("t5_1_1", lambda path: (path / "config.json").unlink(), ["config.json", ONE_FILE]),
  ("t5_1_1", lambda path: (path / "config.json").write_text("{"), ["not valid JSON"]),
  ("t5_1_1", lambda path: (path / "config.json").write_text("[]"), ["JSON value is a list"]),
  ("t5_1_1", lambda path: (path / "config.json").write_text("[" * 100_000), ["too deeply"]),
  ("t5_1_1", lambda path: (path / ONE_FILE).unlink(), ["no model.safetensors", "config.json"]),
  ("t5_1_1", only_torch, ["pytorch_model.bin", "save_pretrained", "safe_serialization"]),
  ("t5_1_1", truncate, [ONE_FILE, "bytes", "not fully covered", "download"]),
  ("t5_1_1", lose_a_shard, ["1 of the 2 files", "model-00002-of-00002"]),
  ("t5_1_1", lose_an_array_of_a_shard, ["in none of its files"]),
  ("t5_1_1", point_outside, ["weight_map", "this folder"]),
  ("t5_1_1", config(model_type="umt5"), ["'umt5'", "mt5"]),
  ("t5_1_1", config(model_type=["t5"]), ["model_type ['t5']", "mt5"]),
  ("t5_1_1", config(feed_forward_proj="gated-silu"), ["'gated-silu'", "gated-gelu"]),
  ("t5_1_1", config(feed_forward_proj=["relu"]), ["['relu']", "gated-gelu"]),
  ("t5_1_1", config(relative_attention_num_buckets=16, d_kv=-1), ["buckets is 16", "d_kv is -1"]),
  ("t5_1_1", config(d_model=None), ["d_model is None"]),
  ("t5_1_1", config(d_ff=32), ["DenseReluDense.wo.weight: [16, 24], not [16, 32]"]),
  ("t5_1_1", config(vocab_size=128), ["shared.weight: [64, 16], not [128, 16]"]),
  ("t5_1_1", config(num_layers=2), ["missing:", "encoder.block.1.layer.0", "and 3 more"]),
  ("t5_1_1", config(num_layers=1, num_decoder_layers=1), ["unknown:", "decoder.block.1"]),
  ("t5_1_1", config(feed_forward_proj="relu"), ["wi.weight", "wi_0.weight (nearest:"]),
  ("t5_1_1", config(scale_decoder_outputs=True), ["lm_head.weight differs", "Flan-T5"]),
  ("t5_1_0", config(scale_decoder_outputs=False), ["missing:", "lm_head.weight"]),
  ("t5_1_1", rename(NORM, "encoder.final_norm.weight"), [f"(nearest: {NORM})"]),
  ("t5_1_1", put(NORM, lambda a: a.astype(np.int8)), [NORM, "type I8", "unquantized"]),
  ("t5_1_1", put("lm_head.weight", nan), ["not finite", "lm_head.weight"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "spoil", "words"), FAULTS)
def test_a_fault_is_told_in_four_parts(folder, name, spoil, words):
  path = folder(name)
  spoil(path)
  with pytest.raises(SgdxError) as e:
    weights.read_huggingface(path)
  for word in (*words, "expected:", "fix:"):
    assert word in e.value.text


def save_other_checkpoint(path, arrays):
  """Writes a checkpoint of a T5 whose arrays the callable `arrays` has changed."""
  imported = weights.read_huggingface(DATA / "t5_1_1")
  changed = weights.Weights(imported.sizes, arrays(dict(imported.arrays)))
  return weights.write_checkpoint(changed, path)


def without(arrays, name):
  del arrays[name]
  return arrays


@pytest.mark.parametrize(
  ("arrays", "words"),
  [
    (lambda a: without(a, "token_embedder/embedding"), ["token_embedder/embedding is missing"]),
    (lambda a: without(a, "encoder/encoder_norm/scale"), ["missing:", "encoder/encoder_norm"]),
    (lambda a: {**a, "encoder/enc_norm/scale": np.ones(2)}, ["unknown:", "(nearest: encoder/"]),
    (lambda a: {**a, "decoder/decoder_norm/scale": np.ones(9)}, ["scale: [9], not [16]"]),
    (lambda a: {**a, "decoder/decoder_norm/scale": np.full(16, np.inf)}, ["not finite"]),
  ],
)
def test_a_checkpoint_that_is_not_a_t5(tmp_path, arrays, words):
  path = save_other_checkpoint(tmp_path, arrays)
  with pytest.raises(SgdxError) as e:
    weights.read_checkpoint(path)
  for word in (*words, str(path), "expected:", "fix:"):
    assert word in e.value.text


def test_damaged_checkpoints(golden_folder, tmp_path):
  path = weights.write_checkpoint(weights.read_huggingface(DATA / "t5_1_0"), tmp_path)
  metadata = path / "state/_METADATA"
  metadata.write_bytes(metadata.read_bytes()[:100])
  with pytest.raises(SgdxError, match="cannot be read"):
    weights.read_checkpoint(path)
  (path / "commit_success.txt").unlink()
  (path / "_CHECKPOINT_METADATA").write_text('{"commit_timestamp_nsecs": null}')
  with pytest.raises(SgdxError, match="no complete T5X checkpoint"):
    weights.read_checkpoint(path)
  legacy = shutil.copytree(golden_folder / "ckpt_legacy/checkpoint_3", tmp_path / "legacy")
  (legacy / "target.encoder.encoder_norm.scale/.zarray").unlink()
  with pytest.raises(SgdxError, match="cannot be read: Array 'target/encoder/encoder_norm/scale'"):
    weights.read_checkpoint(legacy)
