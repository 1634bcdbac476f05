"""The sample's WordPiece vocabulary is what its script makes."""

import pytest

from sgdx_t5x import tasks
from sgdx_t5x.papers.simulator.sample import train_wordpiece
from sgdx_t5x.t5.sample_vocabulary import sample_lines


def test_pairs_are_merged_by_frequency():
  """By hand: "a ##b" occurs 3 times, "ab ##c" and "x ##y" twice; of these, "ab" comes first."""
  pieces = train_wordpiece.train_wordpiece(["ab abc", "abc xy xy"], 5 + 16 + 36 + 36 + 32 + 3)
  assert pieces[-3:] == ["ab", "abc", "xy"]


@pytest.mark.long
def test_the_file_of_the_sample():
  lines = list(sample_lines())
  pieces = train_wordpiece.train_wordpiece(lines, train_wordpiece.NUM_PIECES)
  assert train_wordpiece.VOCABULARY.read_text("utf-8") == "\n".join(pieces) + "\n"
  vocabulary = tasks.sample_encoder_vocabulary()
  assert all(vocabulary.unk_id not in vocabulary.cut(line).ids for line in lines[:2000])
