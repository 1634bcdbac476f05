"""Reading many records at a time equals SeqIO's processing of one after the other."""

import itertools
import zlib

import numpy as np
import pytest
import seqio
from records import records_of

import sgdx_t5x.tasks  # noqa: F401  # registers them


@pytest.fixture(autouse=True)
def data_dir(small_sample):
  with records_of(small_sample / "data"):
    yield


class TfdsRecords(seqio.TfdsDataSource):
  """The records as TFDS reads and parses them, one by one, shuffled as by RecordSource."""

  def __init__(self, task):
    splits = {"train": "train", "dev": "dev"}
    super().__init__(tfds_name="sgd/sample:1.*.*", splits=splits, read_only=True)
    self.task = task

  def get_dataset(self, split=None, shuffle=True, seed=None, shard_info=None, **unused):
    seed = seed and (seed + zlib.crc32(self.task.encode())) % 2**31
    records = super().get_dataset(split, shuffle, seed, shard_info)
    records = records.shuffle(20_000, seed=seed) if shuffle else records
    records.sgdx_split = split
    return records


def one_after_the_other(task):
  """The same task built of SeqIO's own parts: TFDS parser, `append_eos`, `seqio.Task` trimming."""
  _, examples, _ = task.preprocessors
  steps = [
    lambda records: records.ragged_batch(7),
    examples,
    lambda batches: batches.unbatch(),
    seqio.preprocessors.append_eos,
  ]
  return seqio.Task(task.name, TfdsRecords(task.name), task.output_features, steps)


HOW = {
  "dev": {"split": "dev", "shuffle": False},
  "epochs": {"split": "train", "seed": 3, "num_epochs": 2},
  "shards": {"split": "train", "seed": 4, "shard_info": seqio.ShardInfo(1, 3)},
  "untrimmed": {"split": "dev", "shuffle": False, "trim_output_features": False},
  "whole": {"split": "dev", "shuffle": False, "sequence_length": None},
}
NAMES = ("t5dst_sgd_sgdx", "d3st_sgd", "sdt_sgd")
# Each format, and one of them shuffled: the order does not depend on it.
QUICK = {*itertools.product(("dev",), NAMES), ("epochs", NAMES[0])}


@pytest.mark.parametrize(
  ("how", "name"),
  [
    pytest.param(
      HOW[how], name, id=f"{how}-{name}", marks=() if (how, name) in QUICK else pytest.mark.long
    )
    for how, name in itertools.product(HOW, NAMES)
  ],
)
def test_equals_seqio_one_by_one(how, name):
  task = seqio.get_mixture_or_task(f"sample_{name}")
  short = {"inputs": 320, "targets": 3}  # cuts histories and targets
  how = {"sequence_length": short, **how}
  found = task.get_dataset(**how)
  expected = one_after_the_other(task).get_dataset(**how)
  pairs = zip(found.take(200).as_numpy_iterator(), expected.take(200), strict=True)
  number = 0
  for number, (f, e) in enumerate(pairs, 1):  # noqa: B007
    assert f.keys() == e.keys()
    for key, value in f.items():
      wanted = e[key].numpy()
      assert np.asarray(value).dtype == np.asarray(wanted).dtype, key
      np.testing.assert_array_equal(value, wanted, err_msg=key)
  assert number > 25  # of six dialogues, or of 60 in train


def test_the_records_of_a_split_are_counted():
  """As in TFDS: a file that lost records is an error, not a shorter epoch."""
  source = seqio.get_mixture_or_task("sample_t5dst_sgd").source
  records = source.get_dataset("dev", shuffle=False)
  assert len(list(records)) == len(records) == source.num_input_examples("dev")
