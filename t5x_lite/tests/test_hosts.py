"""Training by several processes: `jax.distributed` on one machine, as on several hosts."""

import functools
import json
import re
import signal
import socket
import time

import numpy as np
import pytest
import run_tasks
import seqio
from events import scalars
from run_scripts import NO_EVAL

from t5x import checkpoints, partitioning, utils
from t5x._process import hosts
from t5x.errors import T5XError, UsageError


def _free_port():
  with socket.socket() as s:
    s.bind(("localhost", 0))
    return s.getsockname()[1]


def _flags(count, index, port=None, **more):
  flags = {
    "coordinator_address": f"localhost:{port or _free_port()}",
    "process_count": count,
    "process_index": index,
    "heartbeat_timeout": 10,
    **more,
  }
  return ["--multiprocess_gpu", *(f"--{name}={value}" for name, value in flags.items())]


# The others get each program from the first process instead of compiling it too.
_COMPILED_BY_ONE = {"JAX_SHARE_BINARY_BETWEEN_HOSTS": "1"}


def _start(server, count, folder, steps, *args, gin_file="run_hosts.gin", **flags):
  port = _free_port()
  args = (f"--gin.MODEL_DIR='{folder}'", f"--gin.TRAIN_STEPS={steps}", *args)
  return [
    server.start(
      "train", gin_file, *args, *_flags(count, index, port, **flags), env=_COMPILED_BY_ONE
    )
    for index in range(count)
  ]


def _train(server, count, folder, steps, *args):
  """Runs `count` processes to their end; returns what the first one wrote."""
  runs = _start(server, count, folder, steps, *args)
  ended = [run.wait() for run in runs]
  assert [code for code, _ in ended] == [0] * count, "\n".join(err[-3000:] for _, err in ended)
  assert all("t5x: " not in err for _, err in ended[1:])  # only the first one logs
  return ended[0][1]


# ------------------------------------------------------------------------------------- data


class _Converter(seqio.EncDecFeatureConverter):
  pass


@functools.cache
def _batches(num_shards, pack, batches, converter=_Converter, skip=0):
  """Global batches put together from what each host reads."""
  cfg = utils.DatasetConfig(
    "run_last3", {"inputs": 96, "targets": 16}, "train", 8, True, seed=3, pack=pack
  )
  hosts = [
    utils.get_dataset(cfg, shard, num_shards, converter, skip_batches=skip).take(batches)
    for shard in range(num_shards)
  ]
  hosts = [list(ds.as_numpy_iterator()) for ds in hosts]
  return [
    {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for parts in zip(*hosts, strict=True)
  ]


@pytest.mark.long
@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("num_shards", [2, 4])
def test_hosts_split_each_batch_of_one(num_shards, pack):
  one, several = _batches(1, pack, 12), _batches(num_shards, pack, 12)
  for want, got in zip(one, several, strict=True):
    assert want.keys() == got.keys()
    for name, array in want.items():
      np.testing.assert_array_equal(got[name], array, err_msg=name)


class _DropsExamples(seqio.EncDecFeatureConverter):
  """Leaves every third example out, so that rows and examples differ in number."""

  def _convert_features(self, ds, task_feature_lengths):
    ds = super()._convert_features(ds, task_feature_lengths)
    return ds.enumerate().filter(lambda i, _: i % 3 > 0).map(lambda _, x: x)


@pytest.mark.long
@pytest.mark.parametrize(
  ("converter", "pack"),
  [
    (_Converter, False),
    (_Converter, True),
    (_DropsExamples, False),
    (_DropsExamples, True),
  ],
)
def test_batches_passed_over_are_those_before(pack, converter):
  """Over three epochs of 200 examples, on one host and on two."""
  skip = 20 if pack else 60
  want = _batches(1, pack, skip + 4, converter)[skip:]
  for num_shards in (1, 2):
    for a, b in zip(want, _batches(num_shards, pack, 4, converter, skip), strict=True):
      for name, array in a.items():
        np.testing.assert_array_equal(b[name], array, err_msg=name)


@pytest.mark.long
def test_no_example_is_lost_or_doubled():
  """Two epochs of 200 examples, shuffled: each input comes twice, on 1, 2 and 4 hosts."""
  words = [row["inputs"] for row in run_tasks._examples("train")]
  expected = {word: 2 * words.count(word) for word in words}
  for num_shards in (1, 2, 4):
    cfg = utils.DatasetConfig("run_last3", {"inputs": 48, "targets": 8}, "train", 8, True, 3)
    found = {}
    for shard in range(num_shards):
      ds = utils.get_dataset(cfg, shard, num_shards, _Converter, num_epochs=2)
      for batch in ds.as_numpy_iterator():
        for ids in batch["encoder_input_tokens"]:
          word = run_tasks.VOCAB.decode(ids[ids > 1].tolist())
          found[word] = found.get(word, 0) + 1
    assert found == expected


def test_data_layout_of_hosts():
  """Which part of a batch each host feeds, on meshes of 8 devices in 1, 2 and 4 processes."""

  class Device:
    def __init__(self, i, per_process):
      self.id, self.process_index = i, i // per_process

  class Mesh:
    def __init__(self, shape, per_process):
      grid = np.array([Device(i, per_process) for i in range(8)], object)
      self.devices = grid.reshape(shape)

  def layouts(hosts, shape):
    partitioner = partitioning.PjitPartitioner(num_partitions=1)
    partitioner.__dict__["mesh"] = Mesh(shape, 8 // hosts)
    parts = [partitioner.get_data_layout(8, host_index=i) for i in range(hosts)]
    return [(p.shard_id, p.num_shards, p.is_first_host_in_replica_set) for p in parts]

  assert layouts(1, (8, 1)) == [(0, 1, True)]
  assert layouts(2, (8, 1)) == [(0, 2, True), (1, 2, True)]
  assert layouts(4, (4, 2)) == [(i, 4, True) for i in range(4)]
  # Two data partitions of four devices, each on two hosts, which feed the same rows.
  assert layouts(4, (2, 4)) == [(0, 2, True), (0, 2, False), (1, 2, True), (1, 2, False)]


def test_batch_has_to_divide_over_hosts():
  cfg = utils.DatasetConfig("run_last3", {"inputs": 48, "targets": 8}, "train", 6, True, 3)
  with pytest.raises(T5XError, match="Batch size 6 does not divide evenly across 4 hosts"):
    utils.get_dataset(cfg, 0, 4, _Converter)


# --------------------------------------------------------------------------------- training


@pytest.fixture(scope="module")
def one(server, tmp_path_factory):
  """MODEL_DIR of eight steps by one process, evaluated after every four."""
  folder = tmp_path_factory.mktemp("one")
  args = (f"--gin.MODEL_DIR='{folder}'", "--gin.TRAIN_STEPS=8")
  server.run("train", "run_hosts.gin", *args)
  return folder


def _same_scalars(one, folder, part, tag, steps):
  """Each written once, with the value of one process."""
  want, got = scalars(one / part, tag), scalars(folder / part, tag)
  assert got.keys() == set(steps)
  for step, values in got.items():
    assert len(values) == 1
    assert values == pytest.approx(want[step], rel=1e-5), (step, tag)


def _same_metrics(one, folder):
  """Computed once, after the last step, with the values of one process."""
  rows = []
  for root in (one, folder):
    text = (root / "inference_eval/run_last3-metrics.jsonl").read_text()
    rows.append([json.loads(line) for line in text.splitlines()])
  (*_, want), (got,) = rows
  assert (got["step"], got["exact_match"]) == (want["step"], want["exact_match"])
  assert got["mean_score"] == pytest.approx(want["mean_score"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.long  # a minute
def test_four_processes_and_then_two(server, one, tmp_path):
  """`test_a_lost_process_ends_the_others` goes on with one process after two."""
  err = _train(server, 4, tmp_path, 4, *NO_EVAL)
  assert err.startswith("t5x: devices: 4 x cpu of 4 processes\n")
  assert checkpoints.checkpoint_steps(tmp_path) == [0, 4]
  err = _train(server, 2, tmp_path, 8)
  assert err.startswith("t5x: devices: 2 x cpu of 2 processes\n")
  assert f"restored {tmp_path}/checkpoint_4" in err
  for tag in ("loss", "accuracy"):
    _same_scalars(one, tmp_path, "train", tag, range(1, 9))
  _same_scalars(one, tmp_path, "training_eval/run_last3", "loss", [8])
  _same_metrics(one, tmp_path)


# ---------------------------------------------------------------------------------- stopping


SMALL = (*NO_EVAL, "--gin.EVAL_PERIOD=4")


def _wait_for_step(runs, folder, step):
  while not any(s >= step for s in checkpoints.checkpoint_steps(folder)):
    assert all(run.poll() is None for run in runs), "\n".join(run.err() for run in runs)
    time.sleep(0.05)


@pytest.mark.long
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_one_stops_all_at_one_step(server, tmp_path, signum):
  """The exit code shows which one received it; JAX's service notified the others."""
  runs = _start(server, 2, tmp_path, 10**6, *SMALL, gin_file="run_small.gin")
  _wait_for_step(runs, tmp_path, 4)
  runs[1].kill(signum)
  ended = [run.wait() for run in runs]
  assert [code for code, _ in ended] == [128 + signal.SIGTERM, 128 + signum], ended
  step = int(re.search(r"stopped at step (\d+); saved", ended[0][1]).group(1))
  assert checkpoints.checkpoint_steps(tmp_path)[-1] == step


@pytest.mark.long
@pytest.mark.parametrize("victim", [0, 1])
def test_a_lost_process_ends_the_others(server, tmp_path, victim):
  runs = _start(server, 2, tmp_path, 10**6, *SMALL, gin_file="run_small.gin")
  _wait_for_step(runs, tmp_path, 4)
  runs[victim].kill()
  code, err = runs[1 - victim].wait()
  assert code in (1, -signal.SIGABRT), err[-3000:]
  assert "Another process of this run was lost" in err or "another task died" in err
  # The checkpoints that exist are usable.
  step = checkpoints.checkpoint_steps(tmp_path)[-1]
  args = (f"--gin.MODEL_DIR='{tmp_path}'", f"--gin.TRAIN_STEPS={step + 4}", *SMALL)
  assert f"done at step {step + 4}" in server.run("train", "run_small.gin", *args)


@pytest.mark.parametrize("index", [0, pytest.param(1, marks=pytest.mark.long)])
def test_fewer_processes_than_stated(server, tmp_path, index):
  """Process 0 waits for another one; process 1 for a coordinator that does not exist."""
  args = (f"--gin.MODEL_DIR='{tmp_path}'", "--gin.TRAIN_STEPS=4")
  run = server.start("train", "run_hosts.gin", *args, *_flags(2, index, initialization_timeout=3))
  code, err = run.wait()
  assert code == 1
  assert f"process {index} of 2 waited 3 s for the others at localhost:" in err
  assert "set --initialization_timeout=SECONDS to wait longer" in err
  assert "Traceback" not in err
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
  ("address", "count", "index", "expected"),
  [
    ("here:1", 2, 2, "out of range"),
    ("here:1", 2, -1, "out of range"),
    ("here:1", 0, 0, "out of range"),
    ("here:1", None, 0, "incomplete"),
    ("here", 2, 0, "out of range"),
  ],
)
def test_wrong_flags(address, count, index, expected):
  with pytest.raises(UsageError, match=expected):
    hosts.check_flags(address, count, index, True)
  with pytest.raises(UsageError, match="incomplete"):
    hosts.check_flags(address, count, index, False)


def test_wrong_flags_end_the_script(server):
  err = server.run("train", "run_hosts.gin", *_flags(2, 2), code=2)
  assert "out of range" in err
  assert "--process_index=2" in err
  assert "Traceback" not in err


def test_batch_has_to_divide_over_processes(server, tmp_path):
  runs = _start(server, 2, tmp_path, 4, *NO_EVAL, "--gin.BATCH_SIZE=15")
  code, err = runs[0].wait()
  assert code == 1
  assert "batch size 15 on 2 data partitions" in err
  assert runs[1].wait()[0] != 0
