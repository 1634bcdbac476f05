"""Subsets of a corpus: which dialogues are drawn, and that nothing else changes."""

import pytest
import tiny_corpus

from sgdx_t5x.corpus.corpus import count
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.subset import Subset
from sgdx_t5x.errors import UsageError


@pytest.fixture(scope="module")
def sample():
  return open_corpus("sample")


def ids(corpus, split):
  return [dialogue.dialogue_id for dialogue in corpus.dialogues(split)]


def test_a_larger_draw_holds_a_smaller_one_in_the_order_of_the_split(sample):
  few, more = (ids(Subset(sample, {"dev": n}), "dev") for n in (5, 20))
  assert (len(few), len(more)) == (5, 20)
  assert set(few) < set(more)
  assert more == [name for name in ids(sample, "dev") if name in set(more)]


def test_seeds_draw_differently_and_always_the_same(sample):
  draws = [tuple(ids(Subset(sample, {"dev": 10}, seed), "dev")) for seed in (0, 1, 0)]
  assert draws[0] == draws[2] != draws[1]


def test_services_keep_their_shares(sample):
  """Unlike `sgdx prompts --limit`: means over draws are those of the split."""
  whole = [d.services[0] for d in sample.dialogues("dev")]
  drawn = [
    d.services[0] for seed in range(30) for d in Subset(sample, {"dev": 40}, seed).dialogues("dev")
  ]
  for service in set(whole):
    share = whole.count(service) / len(whole)
    deviation = (share * (1 - share) / len(drawn)) ** 0.5
    assert abs(drawn.count(service) / len(drawn) - share) < 5 * deviation


def test_what_is_not_drawn_from_stays(sample):
  subset = Subset(sample, {"dev": 3})
  assert count(subset.dialogues("test")) == count(sample.dialogues("test"))
  assert subset.schema("dev", "v3").names == sample.schema("dev", "v3").names
  assert subset.seen_services("dev") == sample.seen_services("dev")
  assert (subset.is_complete("dev", 3), subset.is_complete("test", 1)) == (False, True)
  assert subset.checksum() != sample.checksum()
  assert subset.checksum() == Subset(sample, {"dev": 3}).checksum()
  assert subset.checksum() != Subset(sample, {"dev": 4}).checksum()


def test_more_than_there_are_is_refused(sample):
  with pytest.raises(UsageError, match="request 1 to"):
    Subset(sample, {"dev": 10**6})


def test_of_an_empty_split_none_can_be_drawn(tmp_path):
  root = tiny_corpus.write_corpus(tmp_path / "tiny")  # without dialogues in train
  with pytest.raises(UsageError, match="a corpus with dialogues of train"):
    Subset(open_corpus(root), {"train": 1})
