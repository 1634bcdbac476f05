"""Training of what reads the system's acts: on the sample, for the tracker that ships."""

import pytest
from minilm import minilm

from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.records.turns import NONE
from sgdx_t5x.spandst import packed
from sgdx_t5x.spandst.act_reader import SlotAct
from sgdx_t5x.tracking import act_training
from sgdx_t5x.tracking.packed import PackedModel


@pytest.mark.long
def test_acts_are_learnt(monkeypatch, tmp_path):
  monkeypatch.setenv("SGDX_ENCODER", str(minilm()))
  monkeypatch.setattr(act_training, "_TRAIN_DIALOGUES", 60)
  monkeypatch.setattr(act_training, "_EPOCHS", 60)
  (tmp_path / "t").mkdir()
  for name in (packed.CONFIG, packed.WEIGHTS):
    (tmp_path / "t" / name).symlink_to(packed.SHIPPED / name)
  updates, corpus = [], open_corpus(SAMPLE)
  share = act_training.train_acts(tmp_path / "t", corpus, lambda *x: updates.append(x))
  (_, done, total) = updates[-1]
  assert done == total > 100
  model = PackedModel(tmp_path / "t")
  _, right = act_training._system_turns(model, corpus, "dev", 60)
  silent = sum(all(act == SlotAct(NONE) for act in acts) for acts in right) / len(right)
  assert silent + 0.2 < share == act_training.share_read(model, corpus)
