"""MPNet: its hidden states against `transformers`', and what it has that a BERT has not."""

import functools
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import traverse_util
from places import ROOT
from safetensors.numpy import load_file
from shared import shared_file

from sgdx_t5x import weights
from sgdx_t5x.cli import main
from sgdx_t5x.spandst import hidden_states, states
from sgdx_t5x.spandst.encoder import Bert, BertConfig
from sgdx_t5x.spandst.vocab_file import WordPieceFile
from sgdx_t5x.weights import bert_huggingface, bert_layout, gin_files, layout

# Of two layers; 32 buckets, as the published one has.
SIZES = bert_layout.BertSizes(40, 16, 2, 2, 24, 48, 0, 1e-5, first_position=2, relative_buckets=32)
# config.json of all-mpnet-base-v2, in these sizes.
CONFIG = {
  "model_type": "mpnet",
  "hidden_act": "gelu",
  "hidden_size": 16,
  "intermediate_size": 24,
  "layer_norm_eps": 1e-05,
  "max_position_embeddings": 50,
  "num_attention_heads": 2,
  "num_hidden_layers": 2,
  "pad_token_id": 1,
  "relative_attention_num_buckets": 32,
  "vocab_size": 40,
}
# Of the arrays in model.safetensors of all-mpnet-base-v2 that a BERT's has not.
NAMES = {
  "embeddings.position_embeddings.weight": (50, 16),
  "encoder.relative_attention_bias.weight": (32, 2),
  "encoder.layer.1.attention.attn.q.weight": (16, 16),
  "encoder.layer.1.attention.attn.o.bias": (16,),
  "encoder.layer.1.attention.LayerNorm.weight": (16,),
}
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "[PAD]", "[unused0]", "[unused1]"]
PIECES += ["[UNK]", "[CLS]", "[SEP]", "a", "taxi", "<mask>"]


@functools.cache
def random_weights():
  rng = np.random.default_rng(0)
  arrays = {t.t5x: rng.normal(0, 0.3, t.shape) for t in bert_layout.tensors(SIZES)}
  return layout.Weights(SIZES, {name: x.astype(np.float32) for name, x in arrays.items()})


@pytest.fixture
def folder(tmp_path):
  path = bert_huggingface.write(random_weights(), tmp_path / "mpnet", CONFIG)
  (path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
  (path / "tokenizer_config.json").write_text('{"do_lower_case": true, "unk_token": "[UNK]"}')
  return path


@pytest.mark.long  # fetches 440 MB
@pytest.mark.usefixtures("real_archive")  # skipped where there is no ../shared
def test_hidden_states_equal_the_recording(tmp_path):
  """Of all-mpnet-base-v2 in `transformers`, float32: one by one, and three in a padded batch."""
  golden = np.load(shared_file("golden/mpnet/hidden_states.npz"))
  command = [ROOT / "launch/mpnet.sh", tmp_path / "mpnet"]
  subprocess.run(command, check=True, env={**os.environ, "PYTHON": sys.executable})
  vocabulary = states.WordPieceVocabulary(tmp_path / "mpnet")
  rows = []
  for number, text in enumerate(golden["texts"]):
    row = vocabulary.encode_texts(str(text))
    row = row if len(row) <= 512 else np.append(row[:511], vocabulary.eos_id)
    in_file = np.where(row < 2, 1 - row, row)
    assert in_file.tolist() == golden[f"ids{number}"].tolist()
    rows.append(row)
  # The last text, which is cut to 512 tokens here, the public function would refuse.
  found = hidden_states(tmp_path / "mpnet", list(map(str, golden["texts"][:-1])))
  found += states.encode(*states.load(tmp_path / "mpnet"), rows[-1:])
  is_token = golden["batch_mask"] == 1
  for number, length in enumerate(is_token.sum(axis=1)):
    recorded = golden["batch_h"][number, :length]
    np.testing.assert_allclose(found[number], recorded, atol=1e-4, rtol=0)
    assert golden["batch_ids"][number, :length].tolist() == golden[f"ids{number}"].tolist()
  for number, hidden in enumerate(found):
    n = len(hidden)
    assert n == golden[f"n{number}"]
    if n > 64:
      hidden = np.concatenate([hidden[:8], hidden[n // 2 : n // 2 + 8], hidden[-8:]])
    np.testing.assert_allclose(hidden, golden[f"h{number}"], atol=1e-4, rtol=0)


def test_files_have_the_published_names_and_order_of_pieces(folder):
  stored = load_file(folder / "model.safetensors")
  assert {name: stored[name].shape for name in NAMES} == NAMES
  assert not any("token_type" in name for name in stored)
  read = weights.read_huggingface(folder)
  assert read.sizes == SIZES
  for name, array in random_weights().arrays.items():
    assert array.tobytes() == read.arrays[name].tobytes(), name
  embedding = read.arrays[bert_layout.EMBEDDING]
  in_file = stored["embeddings.word_embeddings.weight"]
  assert (embedding[:2] == in_file[1::-1]).all()
  assert (embedding[2:] == in_file[2:]).all()
  shapes = {name: array.shape for name, array in read.arrays.items()}
  assert bert_layout.sizes_of(shapes, "").relative_buckets == 32
  assert json.loads((folder / "config.json").read_text())["architectures"] == ["MPNetModel"]


def test_the_commands_speak_of_an_mpnet(folder, tmp_path, capsys):
  imported, exported = str(tmp_path / "t5x"), str(tmp_path / "hf")
  assert main(["weights", "import", "--hf", str(folder), "--out", imported]) == 0
  options = ["--checkpoint", f"{imported}/checkpoint_0", "--config", str(folder)]
  assert main(["weights", "export", *options, "--out", exported]) == 0
  out = capsys.readouterr().out
  assert out.count("MPNet: 2 layers") == 2
  assert f"MPNetModel.from_pretrained('{exported}')" in out
  in_both = [load_file(path + "/model.safetensors") for path in (str(folder), exported)]
  assert all((in_both[1][name] == array).all() for name, array in in_both[0].items())


def test_padding_is_piece_0_in_its_vocabulary(folder):
  vocabulary = WordPieceFile(folder)
  assert vocabulary.encode_texts("a taxi", "a").tolist() == [0 + 1, 10, 11, 2, 10, 2]
  assert (vocabulary.marker(1), vocabulary.unk_id) == (6, 7)


def test_the_gin_file_has_the_published_sizes():
  assert gin_files.ENCODERS["gin/models/mpnet.gin"].max_positions == 514 - 2


def test_examples_of_a_packed_row_do_not_change_each_other():
  """Relative positions of a row are those of its examples."""
  config = BertConfig(**SIZES.gin(), dropout_rate=0)
  rng = np.random.default_rng(1)
  rows = rng.integers(4, 40, (2, 21))
  rows[0, 13:] = 0
  packed = np.concatenate([rows[0, :13], rows[1], np.zeros(4, int)])[None]
  segments = np.array([[1] * 13 + [2] * 21 + [0] * 4])
  positions = np.array([[*range(13), *range(21), *range(4)]])
  arrays = {k.removeprefix("encoder/"): x for k, x in random_weights().arrays.items()}
  params = traverse_util.unflatten_dict(arrays, sep="/")
  run = jax.jit(Bert(config).apply)
  whole = run({"params": params}, packed, segment_ids=segments, positions=positions)
  alone = run({"params": params}, rows)
  for found, hidden in ((alone[0, :13], whole[0, :13]), (alone[1], whole[0, 13:34])):
    np.testing.assert_allclose(found, hidden, atol=1e-5)
  other = {**params, "relpos_bias": {"rel_embedding": jnp.zeros((2, 32))}}
  moved = run({"params": other}, packed, segment_ids=segments, positions=positions)
  assert np.abs(moved - whole)[0, :34].max() > 5e-3
