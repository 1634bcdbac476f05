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
from sgdx_t5x.weights import bert_huggingface, bert_layout, gin_files

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


def test_there_and_back_is_bit_equal(tmp_path, capsys):
  there, back = tmp_path / "t5x", tmp_path / "hf"
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
  vocabulary = tmp_path / "vocab.txt"
  vocabulary.write_text("[PAD]\n")
  (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')  # else, uncased
  exporting = ["weights", "export", "--checkpoint", f"{there}/checkpoint_0", "--out", str(back)]
  assert main(exporting) == 2
  assert "arrays do not contain the number of heads" in capsys.readouterr().err
  back.mkdir()
  (back / "spiece.model").write_bytes(b"")  # regression: a T5's export was refused after reading
  for _ in range(2):
    options = ["--config", str(DATA), "--vocab", str(vocabulary), "--overwrite"]
    assert main([*exporting, *options]) == 0
  assert not (back / "spiece.model").exists()
  same(load_file(back / ONE_FILE), load_file(DATA / ONE_FILE))
  assert (back / "vocab.txt").read_text() == "[PAD]\n"
  assert json.loads((back / "tokenizer_config.json").read_text()) == {"do_lower_case": False}
  (tmp_path / "tokenizer_config.json").unlink()  # some have the casing in tokenizer.json only
  (tmp_path / "tokenizer.json").write_text('{"normalizer": {"lowercase": true}}')
  assert main([*exporting, *options]) == 0
  assert json.loads((back / "tokenizer_config.json").read_text()) == {"do_lower_case": True}
  written = json.loads((back / "config.json").read_text())
  assert written == json.loads((DATA / "config.json").read_text())
  same(weights.read_huggingface(back).arrays, weights.read_huggingface(DATA).arrays)


def test_relative_positions_that_are_no_matrix():
  shapes = {bert_layout.EMBEDDING: (64, 24), bert_layout.RELATIVE: (32,)}
  with pytest.raises(SgdxError, match=r"rel_embedding has shape \[32\]"):
    bert_layout.sizes_of(shapes, "checkpoint_1")


def test_an_encoder_without_pooler(folder, tmp_path):
  rewrite(folder, lambda arrays: {k: v for k, v in arrays.items() if "pooler" not in k})
  found = weights.read_huggingface(folder)
  assert not found.sizes.pooler
  assert "pooler" in found.notes[0]
  path = weights.write_checkpoint(found, tmp_path / "t5x")
  same(weights.read_checkpoint(path).arrays, found.arrays)


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


def test_a_vocabulary_that_does_not_fit(folder):
  (folder / "vocab.txt").write_text("\n".join(f"piece{i}" for i in range(65)))
  with pytest.raises(SgdxError, match="65 pieces, but the embedding has 64 rows"):
    weights.read_huggingface(folder)
  (folder / "vocab.txt").write_text("".join(f"piece{i}\n" for i in range(64)) + "\n")
  assert weights.read_huggingface(folder).sizes.vocab_size == 64
  (folder / "vocab.txt").write_bytes("[PAD]\ncaf\u00e9\n".encode("latin-1"))
  with pytest.raises(SgdxError, match="not UTF-8"):
    weights.read_huggingface(folder)


def test_a_vocabulary_that_does_not_fit_is_not_exported(folder, tmp_path):
  found, vocabulary = weights.read_huggingface(folder), tmp_path / "vocab.txt"
  vocabulary.write_text("\n".join(f"piece{i}" for i in range(65)))
  config = bert_huggingface.config_for(folder, found.sizes)
  with pytest.raises(SgdxError, match="65 pieces, but the embedding has 64 rows"):
    bert_huggingface.write(found, tmp_path / "exported", config, vocabulary)
  assert not (tmp_path / "exported").exists()


def test_another_models_config_is_refused_with_both_shapes(folder):
  found = weights.read_huggingface(folder)
  reconfigure(folder, intermediate_size=48)
  with pytest.raises(SgdxError, match=r"wi/kernel: \[24, 40\], not \[24, 48\]"):
    bert_huggingface.config_for(folder, found.sizes)
  with pytest.raises(SgdxError, match="there is no folder"):
    bert_huggingface.config_for(folder / "no" / "config.json", found.sizes)


def test_a_t5_has_no_config_to_give(tmp_path, capsys):
  there = tmp_path / "t5x"
  assert (
    main(["weights", "import", "--hf", str(FIXTURES / "hf_t5/t5_1_0"), "--out", str(there)]) == 0
  )
  exporting = ["weights", "export", "--checkpoint", f"{there}/checkpoint_0", "--config", str(DATA)]
  assert main([*exporting, "--out", str(tmp_path / "hf")]) == 2
  assert "is a T5 checkpoint" in capsys.readouterr().err


def test_published_sizes_name_their_gin_file():
  for name, sizes in gin_files.ENCODERS.items():
    assert gin_files.file_of(sizes) == name
