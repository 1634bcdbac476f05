"""Training of what reads the system's acts: on the sample, for the tracker that ships."""

import json

import pytest
from commands import assert_four_parts
from minilm import minilm
from packed_tracker import CONFIG, arrays
from places import ROOT

from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.records.turns import NONE
from sgdx_t5x.spandst import packed
from sgdx_t5x.spandst.act_reader import SlotAct
from sgdx_t5x.tracking import act_training
from sgdx_t5x.tracking.packed import PackedModel


@pytest.mark.long
def test_acts_are_learnt(monkeypatch, tmp_path):
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  monkeypatch.setattr(act_training, "_TRAIN_DIALOGUES", 40)
  monkeypatch.setattr(act_training, "_DEV_DIALOGUES", 12)
  monkeypatch.setattr(act_training, "_EPOCHS", 60)
  (tmp_path / "t").mkdir()
  for name in (packed.CONFIG, packed.WEIGHTS):
    (tmp_path / "t" / name).symlink_to(packed.SHIPPED / name)
  updates, corpus = [], open_corpus(SAMPLE)
  share = act_training.train_acts(tmp_path / "t", corpus, lambda *x: updates.append(x))
  (_, done, total) = updates[-1]
  assert done == total > 100
  model = PackedModel(tmp_path / "t")
  _, right = act_training._system_turns(model, corpus, "dev", 12)
  silent = sum(all(act == SlotAct(NONE) for act in acts) for acts in right) / len(right)
  assert silent + 0.2 < share == act_training.share_read(model, corpus)


def corpus_of(folder, **dialogues):
  """A corpus of one's own schema. Args: split -> its dialogues."""
  schema = (ROOT / "benchmarks/own_schemas/test/schema.json").read_text()
  for split, dialogues_of_split in dialogues.items():
    (folder / split).mkdir(parents=True)
    (folder / split / "schema.json").write_text(schema)
    (folder / split / "dialogues_001.json").write_text(json.dumps(dialogues_of_split))
  return open_corpus(folder)


def own_dialogue():
  return json.loads((ROOT / "benchmarks/own_schemas/test/dialogues_001.json").read_text())[0]


def test_a_corpus_that_cannot_teach_acts_is_refused_before_training(monkeypatch, tmp_path):
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  monkeypatch.setattr(act_training, "_fit", None)  # would be called
  packed.write(tmp_path / "t", CONFIG, arrays())
  full, user_alone = own_dialogue(), own_dialogue()
  user_alone["turns"] = user_alone["turns"][:1]
  corpora = {
    "dev": {"train": [full], "test": [full]},
    "dev has no system turns": {"train": [full], "dev": [user_alone]},
    "train has no system turns": {"train": [user_alone], "dev": [full]},
    "dialogues of train": {"train": [], "dev": [full]},
  }
  for number, (words, dialogues) in enumerate(corpora.items()):
    corpus = corpus_of(tmp_path / f"corpus{number}", **dialogues)
    with pytest.raises(SgdxError) as error:
      act_training.train_acts(tmp_path / "t", corpus, lambda *_: None)
    assert_four_parts(error.value.text, words)


def test_custom_acts_count_as_none(monkeypatch, tmp_path):
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  packed.write(tmp_path / "t", CONFIG, arrays())
  custom = own_dialogue()
  for turn in custom["turns"]:
    for frame in turn["frames"]:
      for act in frame.get("actions", ()):
        act["act"] = "MY_ACT"
  corpus = corpus_of(tmp_path / "corpus", dev=[custom])
  _, right = act_training._system_turns(PackedModel(tmp_path / "t"), corpus, "dev", 1)
  assert {act for acts in right for act in acts} == {SlotAct(NONE)}
