"""Compiles the steps of a training run for the devices of a TPU slice; see `t5x.aot`."""

from __future__ import annotations

import dataclasses
import math
import time
import unittest.mock
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from t5x import partitioning, utils
from t5x._aot import account, advice
from t5x._process.log import log
from t5x._settings import defaults
from t5x.errors import T5XError
from t5x.examples.t5 import network


# Models branch on the backend, and have to branch as on the slice.
@unittest.mock.patch("jax.default_backend", lambda: "tpu")  # noqa: PT008 - it would be an argument
def compile_run(
  settings: Mapping[str, Any], devices: Sequence[Any], steps: Sequence[str]
) -> dict[str, Any]:
  """Compiles steps of a training run.

  Args:
    settings: arguments of `train`.
    devices: devices of the slice, from `topology_devices`.
    steps: which of train, eval and decode; evaluations that the run does not have are left out.

  Returns:
    What `--aot_json` writes, except the names of slice and compiler.

  Raises:
    T5XError: the batch does not divide over the mesh, or an array does not.
  """
  kind = devices[0].device_kind
  device = account.DEVICES[kind]  # of all slices that --aot_topology takes
  if settings.get("use_hardware_rng"):
    jax.config.update("jax_default_prng_impl", "rbg")
  partitioner, cfg = settings["partitioner"], settings["train_dataset_cfg"]
  # Fills the cached property: otherwise `default_mesh` would ask for this machine's devices.
  partitioner.__dict__["mesh"] = partitioning.default_mesh(
    **partitioner._mesh_args, devices=devices
  )
  data, model = partitioner.mesh.devices.shape
  batch = _batch(settings["model"], cfg, partitioner)
  trainer, initializer = _make_trainer(settings, batch)
  microbatches = trainer._num_microbatches or 1
  partitioner.check_microbatches(cfg.batch_size, microbatches)
  sizes = _state_bytes(initializer.global_train_state_shape, initializer.shardings)
  report = {
    "jax": jax.__version__,
    "device_kind": kind,
    "devices": data * model,
    "memory_bytes": device.memory,
    "usable_bytes": device.usable,
    "mesh": {"data": data, "model": model},
    "batch_size": cfg.batch_size,
    "num_microbatches": microbatches,
    **{f"{name}_bytes": size for name, size in sizes.items()},
    "steps": {},
  }
  for name, step in _programs(settings, steps, batch, trainer, initializer):
    log(f"compiling the {name} step for {data * model} x {kind}")
    # The optimizer's slots stay in memory while another step runs.
    resident = 0 if name == "train" else sizes["state"] - sizes["params"]
    report["steps"][name] = _compile_step(step, device, (data, model), resident)
  report["fits"] = all(step["fits"] for step in report["steps"].values())
  report["advice"] = [] if report["fits"] else _advice(settings, report)
  return report


def _advice(settings, report: Mapping[str, Any]) -> list[list[str]]:
  partitioner = settings["partitioner"]
  explicit = [partitioner._mesh_args[k] for k in ("model_parallel_submesh", "ici_mesh_shape")]
  zero = ("embed", "data") in partitioner.logical_axis_rules
  return advice.advise(report, _t5_config(settings["model"]), zero, not any(explicit))


@dataclasses.dataclass(frozen=True)
class _Step:
  """A step to compile.

  Attributes:
    lower: lowers it.
    batch: rows of its batch, and encoder and decoder tokens per row.
    work: its minimum work, or None if unknown for this model.
    loop: for a decode: (work of one token, tokens).
  """

  lower: Callable[[], Any]
  batch: Mapping[str, int]
  work: account.Work | None
  loop: tuple[account.Work | None, int] | None = None


def _make_trainer(settings: Mapping[str, Any], batch: Mapping[str, Any]) -> tuple[Any, Any]:
  """Returns (trainer, initializer) of a state that has only shapes."""
  model, partitioner = settings["model"], settings["partitioner"]
  initializer_cls = settings.get("train_state_initializer_cls") or utils.TrainStateInitializer
  initializer = initializer_cls(
    optimizer_def=model.optimizer_def,
    init_fn=model.get_initial_variables,
    input_shapes={name: x.shape for name, x in batch.items()},
    input_types={name: x.dtype for name, x in batch.items()},
    partitioner=partitioner,
  )
  state = initializer.global_train_state_shape
  trainer = settings["trainer_cls"](
    model=model,
    train_state=state.replace_step(np.int32(0)),  # it looks at the step's value
    partitioner=partitioner,
    eval_names=[],
    summary_dir=None,
    rng=None,
    train_state_axes=initializer.train_state_axes,
  )
  return trainer, initializer


def _programs(
  settings: Mapping[str, Any],
  steps: Sequence[str],
  batch: Mapping[str, Any],
  trainer: Any,
  initializer: Any,
) -> Iterator[tuple[str, _Step]]:
  """Yields (name, step) of each step that the run has and `steps` names."""
  model, partitioner = settings["model"], settings["partitioner"]
  state = initializer.global_train_state_shape
  rng = jax.eval_shape(lambda: jax.random.PRNGKey(0))
  if "train" in steps:
    forward = _forward_work(model, batch)
    work = forward and dataclasses.replace(forward, flops=3 * forward.flops)
    yield "train", _Step(lambda: trainer._train_step.lower(state, batch, rng), _sizes(batch), work)
  cfg = settings.get("train_eval_dataset_cfg")
  if "eval" in steps and cfg is not None and settings.get("eval_steps"):
    rows = _batch(model, cfg, partitioner)
    lower = lambda: trainer._eval_step.lower(state.params, rows)  # noqa: E731
    yield "eval", _Step(lower, _sizes(rows), _forward_work(model, rows))
  cfg = settings.get("infer_eval_dataset_cfg")
  evaluator_cls = settings.get("inference_evaluator_cls", defaults.evaluator)
  if "decode" in steps and cfg is not None and evaluator_cls is not None:
    lengths = cfg.task_feature_lengths or settings["train_dataset_cfg"].task_feature_lengths
    cfg = dataclasses.replace(cfg, task_feature_lengths=lengths, pack=False)
    yield "decode", _decode_step(settings, cfg, initializer, rng)


def _decode_step(settings, cfg, initializer, rng) -> _Step:
  """The whole decode of a batch, as `utils.get_infer_fn` pads it without stages."""
  model, partitioner = settings["model"], settings["partitioner"]
  data = partitioner.mesh.devices.shape[0]
  rows = -(-cfg.batch_size // data) * data
  batch = _batch(model, dataclasses.replace(cfg, batch_size=rows), partitioner)
  decode = partitioner.partition(
    lambda params, batch, rng: model.predict_batch(params, batch, rng=rng),
    in_axis_resources=(initializer.train_state_axes.params, partitioner.data_partition_spec, None),
    out_axis_resources=None,
  )
  params, sizes = initializer.global_train_state_shape.params, _sizes(batch)
  config = _t5_config(model)
  start = token = None
  if config is not None:
    decodes = model._default_decoder_params.num_decodes or 1
    itemsize = jnp.dtype(config.dtype).itemsize
    start = account.decode_start_work(config, rows, sizes["inputs"])
    token = account.decode_step_work(
      config, rows, sizes["inputs"], sizes["targets"], decodes, itemsize
    )
  loop = (token, sizes["targets"]) if sizes["targets"] else None
  return _Step(lambda: decode.lower(params, batch, rng), sizes, start, loop)


def _batch(model, cfg, partitioner) -> dict[str, Any]:
  """Returns the shapes of a global batch, as the feature converter makes it."""
  lengths = cfg.task_feature_lengths
  if not lengths:
    raise T5XError(
      "The lengths of the training examples are not set.",
      found=f"task_feature_lengths = {lengths!r}",
      expected="{feature: tokens}: no data is read from which to measure them",
      fix="set TASK_FEATURE_LENGTHS",
    )
  partitioner.get_data_layout(cfg.batch_size)  # raises if it does not divide
  converter = model.FEATURE_CONVERTER_CLS(pack=cfg.pack)
  specs = converter.MODEL_FEATURES
  batch = {}
  for name, length in converter.get_model_feature_lengths(lengths).items():
    dtype = specs[name].dtype if name in specs else converter.PACKING_FEATURE_DTYPES[name]
    batch[name] = jax.ShapeDtypeStruct((cfg.batch_size, length), dtype.as_numpy_dtype)
  return batch


def _sizes(batch: Mapping[str, Any]) -> dict[str, int]:
  """Returns rows, and encoder and decoder tokens per row; a model without a decoder has 0."""
  decoder = batch.get("decoder_input_tokens")
  inputs = batch.get("encoder_input_tokens", decoder)
  targets = 0 if decoder is None else decoder.shape[1]
  return {"rows": inputs.shape[0], "inputs": inputs.shape[1], "targets": targets}


def _t5_config(model) -> Any:
  """Returns the network's configuration, or None if it is not one of ours."""
  config = getattr(model.module, "config", None)
  return config if isinstance(config, network.T5Config) else None


def _forward_work(model, batch) -> account.Work | None:
  config = _t5_config(model)
  return account.forward_work(config, **_sizes(batch)) if config is not None else None


def _state_bytes(state: Any, shardings: Any) -> dict[str, float]:
  """Returns bytes per device of the state and of the parameters in it."""

  def size(shapes, shardings) -> float:
    leaves = zip(jax.tree.leaves(shapes), jax.tree.leaves(shardings), strict=True)
    return sum(math.prod(s.shard_shape(x.shape)) * x.dtype.itemsize for x, s in leaves)

  return {"state": size(state, shardings), "params": size(state.params, shardings.params)}


def _compile_step(
  step: _Step, device: account.Device, mesh: tuple[int, int], resident: float
) -> dict[str, Any]:
  """Returns the figures of a step."""
  started = time.time()
  try:
    compiled = step.lower().compile()
  except RuntimeError as e:
    sizes = account.out_of_memory(str(e))
    if sizes is None:
      raise
    needed, usable = sizes
    return {
      "batch": dict(step.batch),
      "compile_seconds": time.time() - started,
      "fits": False,
      "needed_bytes": needed + resident,
      "usable_bytes": usable,
    }
  seconds = time.time() - started
  memory = account.memory_of(compiled)
  program = account.read_program(compiled.as_text())
  costs = compiled.cost_analysis() or {}
  # The peak counts live values; the temporaries are one block, with unused gaps in between.
  allocated = memory["argument"] + memory["temporary"] + memory["output"] - memory["alias"]
  needed = max(memory["peak"], allocated) + memory["code"] + resident
  figures: dict[str, Any] = {
    "batch": dict(step.batch),
    "compile_seconds": seconds,
    "fits": needed <= device.usable,
    "needed_bytes": needed,
    "usable_bytes": device.usable,
    "memory": {**memory, "optimizer_slots": resident},
    # XLA counts the body of a loop once.
    "xla_flops": costs.get("flops"),
    "xla_bytes_accessed": costs.get("bytes accessed"),
    "estimated_ms": 1e3 * program.cycles / device.clock,
    "bound_ms": 1e3 * step.work.seconds(device, *mesh) if step.work else None,
    "collective_bytes": dict(program.collectives),
    "rng_bytes": program.rng,
    "unknown_loops": program.unknown_loops,
    "unestimated_operations": program.unestimated,
  }
  if step.loop:
    figures |= _decode_figures(step.work, *step.loop, program, device, mesh)
  bound = figures["bound_ms"]
  if bound and figures["estimated_ms"]:
    figures["bound_over_estimated"] = bound / figures["estimated_ms"]
  return figures


def _decode_figures(
  start_work: account.Work | None,
  token_work: account.Work | None,
  tokens: int,
  program: account.Program,
  device: account.Device,
  mesh: tuple[int, int],
) -> dict[str, Any]:
  """Returns the figures of a decode: before the first token, per token, and in all."""
  ms = 1e3 / device.clock
  # The decode is the loop that takes longest.
  loop = max(program.loops, key=lambda x: (x.trips or tokens) * x.cycles, default=None)
  figures: dict[str, Any] = {"tokens": tokens}
  if loop is not None:
    start_cycles = program.cycles - (loop.trips or 1) * loop.cycles
    figures["start_ms"], figures["token_ms"] = start_cycles * ms, loop.cycles * ms
    figures["estimated_ms"] = (start_cycles + tokens * loop.cycles) * ms
  if token_work is not None and start_work is not None:
    token_bound = 1e3 * token_work.seconds(device, *mesh)
    figures["token_bound_ms"] = token_bound
    figures["bound_ms"] = 1e3 * start_work.seconds(device, *mesh) + tokens * token_bound
  return figures
