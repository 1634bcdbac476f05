"""Converting BERT weights between Hugging Face and T5X: names, bits, and what is refused."""

import json
import pathlib
import shutil

import numpy as np
import pytest
from places import FIXTURES
from safetensors.numpy import load_file, save_file

from sgdx_t5x import weights
from sgdx_t5x.cli import main
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.weights import gin_files

DATA = FIXTURES / "hf_bert/bert"
ONE_FILE = "model.safetensors"


@pytest.fixture
def folder(tmp_path):
  return pathlib.Path(shutil.copytree(DATA, tmp_path / "bert"))


def rewrite(folder, change):
  arrays = change(load_file(folder / ONE_FILE))
  save_file(arrays, folder / ONE_FILE, metadata={"format": "pt"})


def reconfigure(folder, **changes):
  config = json.loads((folder / "config.json").read_text())
  (folder / "config.json").write_text(json.dumps(config | changes))


def same(found, expected):
  assert found.keys() == expected.keys()
  for name, array in expected.items():
    assert array.tobytes() == found[name].tobytes(), name


def with_prefix(arrays):
  others = {"cls.predictions.bias": np.zeros(3, np.float32)}
  return {f"bert.{name}": array for name, array in arrays.items()} | others


def with_old_names(arrays):
  def old(name):
    return name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta")

  positions = {"embeddings.position_ids": np.arange(32)[None]}
  return {old(name): array for name, array in arrays.items()} | positions


@pytest.mark.parametrize("change", [with_prefix, with_old_names])
def test_older_and_larger_files_give_the_same_encoder(folder, change):
  expected = weights.read_huggingface(folder).arrays
  rewrite(folder, change)
  found = weights.read_huggingface(folder)
  same(found.arrays, expected)
  assert any("cls.predictions" in note for note in found.notes) == (change is with_prefix)


def test_an_import_says_how_to_train_on_it(tmp_path, capsys):
  there = tmp_path / "t5x"
  assert main(["weights", "import", "--hf", str(DATA), "--out", str(there)]) == 0
  out = capsys.readouterr().out
  for words in (
    "BERT: 2 layers of width 24, 3 heads of 8",
    "32 positions",
    "encoder.BertConfig:",
    "  num_heads = 3",
    "gin/spandst.gin",
    f"SGDX_ENCODER={DATA}",
  ):
    assert words in out


def test_an_encoder_without_pooler(folder):
  rewrite(folder, lambda arrays: {k: v for k, v in arrays.items() if "pooler" not in k})
  found = weights.read_huggingface(folder)
  assert not found.sizes.pooler
  assert "pooler" in found.notes[0]
  assert not any("pooler" in name for name in found.arrays)


@pytest.mark.parametrize(
  ("changes", "words"),
  [
    ({"vocab_size": 65}, ["word_embeddings.weight: [64, 24], not [65, 24]"]),
    ({"num_hidden_layers": 3}, ["encoder.layer.2.attention.self.query.weight", "missing"]),
    ({"num_hidden_layers": 1}, ["unknown", "encoder.layer.1"]),
    ({"num_attention_heads": 5}, ["hidden_size is not a multiple of num_attention_heads"]),
    ({"hidden_act": "relu"}, ["hidden_act is 'relu'"]),
    ({"type_vocab_size": 1}, ["type_vocab_size is 1, not at least 2"]),
    ({"hidden_size": "24"}, ["hidden_size is '24'"]),
    ({"layer_norm_eps": 0.0}, ["layer_norm_eps"]),
    ({"position_embedding_type": "relative_key"}, ["relative_key"]),
    ({"model_type": "roberta"}, ["'roberta'", "bert"]),
  ],
)
def test_what_the_config_says_and_the_arrays_do_not(folder, changes, words):
  reconfigure(folder, **changes)
  with pytest.raises(SgdxError) as e:
    weights.read_huggingface(folder)
  for word in words:
    assert word in str(e.value)


def test_published_sizes_name_their_gin_file():
  for name, sizes in gin_files.ENCODERS.items():
    assert gin_files.encoder_file(sizes) == name
