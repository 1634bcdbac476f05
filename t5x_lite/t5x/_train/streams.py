"""The stream of training data: its identity, where it began, and its batches from a given step."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Iterator

import jax
from etils import epath

from t5x import utils
from t5x._data.datasets import drawn_seed
from t5x._process import hosts
from t5x._process.files import replace_text
from t5x._process.log import log
from t5x._train.setup import Start
from t5x.errors import T5XError


@dataclasses.dataclass(frozen=True)
class Stream:
  """The training data of a run, and where it began; stored as MODEL_DIR/stream.json.

  Args:
      first_step: the step whose batch is the stream's first.
      data_seed: seed of the data.
      seed: seed of parameters and dropout.
      settings: what the batches are made from, as text.
      run_start: the step that the run started from; None in files of older versions.
  """

  first_step: int
  data_seed: int
  seed: int
  settings: str
  run_start: int | None = None


def choose_stream(model_dir: str, start: Start, random_seed: int | None, cfg) -> Stream:
  """Returns the stream of data to read, starting at `start.step`.

  A resumed run continues its stream with the same seeds (including those drawn at random). It
  begins a new one if the data's settings have changed, or no stream was stored.

  Args:
      model_dir: MODEL_DIR.
      start: where the run starts.
      random_seed: RANDOM_SEED or None.
      cfg: `utils.DatasetConfig` of the training data.
  """
  path = epath.Path(model_dir) / "stream.json"
  settings = _describe(cfg, random_seed)
  resuming = start.resuming
  stored = _read_stream(path) if resuming and utils.resume_data() else None
  if stored is not None and stored.settings == settings and stored.first_step <= start.step:
    log(
      f"training data seed {stored.data_seed} since step {stored.first_step}; skipping the "
      f"{start.step - stored.first_step} batches already seen"
    )
    stream = stored
    if stored.run_start is None:
      stream = dataclasses.replace(stored, run_start=start.run_start)
  else:
    if resuming:
      reason = "" if stored is None else ": its settings have changed"
      log(f"training data is in a new order from step {start.step}{reason}")
    data_seed = utils.resolve_seed(cfg, random_seed, start.step, "training data")
    stream = Stream(start.step, data_seed, _seed(random_seed), settings, start.run_start)
  hosts.barrier("stream.json is read")  # before it is written
  if stream is not stored:
    _store(model_dir, stream)
  return stream


def store_moved(model_dir: str, stream: Stream, shift: int) -> None:
  """Stores a stream whose first step `state_transformation_fns` have changed by `shift`."""
  if shift:
    first_step, run_start = stream.first_step + shift, (stream.run_start or 0) + shift
    _store(model_dir, dataclasses.replace(stream, first_step=first_step, run_start=run_start))


def _store(model_dir: str, stream: Stream) -> None:
  if jax.process_index() == 0:
    text = json.dumps(dataclasses.asdict(stream)) + "\n"
    replace_text(epath.Path(model_dir) / "stream.json", text)


def _seed(random_seed: int | None) -> int:
  """Returns RANDOM_SEED, or a seed drawn at random."""
  if random_seed is not None:
    return int(random_seed)
  seed = drawn_seed()
  log(f"RANDOM_SEED is not set: using {seed}")
  return seed


def _describe(cfg, random_seed: int | None) -> str:
  """All settings that decide what the batches hold, as text to compare."""
  name = cfg.mixture_or_task_name
  lengths = cfg.task_feature_lengths
  values = {
    **{f.name: getattr(cfg, f.name) for f in dataclasses.fields(cfg)},
    "mixture_or_task_name": name if isinstance(name, str) else name.name,
    "task_feature_lengths": dict(lengths) if lengths else None,
    "RANDOM_SEED": random_seed,
  }
  for without_effect in ("module", "use_memory_cache"):
    values.pop(without_effect, None)
  return ", ".join(f"{k} = {v!r}" for k, v in sorted(values.items()))


def stored_run_start(model_dir: str) -> int | None:
  """Returns the step that the run in MODEL_DIR started from, or None where it is not known."""
  stored = _read_stream(epath.Path(model_dir) / "stream.json")
  return None if stored is None else stored.run_start


def _read_stream(path: epath.Path) -> Stream | None:
  """Returns the stored stream, or None (for example if another program wrote the checkpoints)."""
  try:
    return Stream(**json.loads(path.read_text()))
  except (OSError, ValueError, TypeError):
    return None


def training_data(cfg, model, partitioner, get_dataset_fn: Callable, stream: Stream, step: int):
  """Returns (dataset of this host's batches starting at `step`, number of data shards).

  Args:
      cfg: `utils.DatasetConfig`.
      model: gives the feature converter.
      partitioner: gives this host's part of the data.
      get_dataset_fn: `utils.get_dataset` or what replaces it.
      stream: the stream, from `choose_stream`.
      step: step the run starts from.
  """
  layout = partitioner.get_data_layout(cfg.batch_size)
  cfg = dataclasses.replace(cfg, seed=stream.data_seed)
  args = cfg, layout.shard_id, layout.num_shards, model.FEATURE_CONVERTER_CLS
  skipped = step - stream.first_step
  # The one of gin files that replace it need not know how to skip: then whole batches are skipped.
  if "skip_batches" in inspect.signature(get_dataset_fn).parameters:
    return get_dataset_fn(*args, skip_batches=skipped), layout.num_shards
  return get_dataset_fn(*args).skip(skipped), layout.num_shards


def never_empty(batches: Iterator, cfg) -> Iterator:
  """Yields the batches; raises T5XError if they end: data repeats unless it is empty."""
  yield from batches
  raise T5XError(
    f"The training data of {cfg.mixture_or_task_name!r} is empty.",
    found=f"no example in split {cfg.split!r} after preprocessing",
    fix="check the split, the task's filters and its files.",
  )
