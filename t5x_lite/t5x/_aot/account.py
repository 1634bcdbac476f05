"""What a compiled TPU program needs and does, read from XLA's own accounting.

Nothing is run. Bytes come from the executable's memory analysis; times from the `estimated_cycles`
that XLA's cost model writes on the operations of the scheduled program. (Its `optimal_seconds` is
of no use: it is negative for most programs.)
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Device:
  """A kind of TPU as JAX sees one device: a core of v3, a chip of all later ones.

  Memory, peak and bandwidth are those of https://cloud.google.com/tpu/docs; the clock is the peak
  divided by the FLOPs of the matrix units in a cycle (v3: 2 units of 128 x 128 a core).

  Attributes:
    memory: bytes of HBM.
    usable: bytes of it that a program can use, as the compiler of libtpu 0.0.42 reports them when
      one does not fit.
    peak: bfloat16 FLOP/s.
    bandwidth: bytes/s to and from HBM.
    clock: cycles/s.
  """

  memory: float
  usable: float
  peak: float
  bandwidth: float
  clock: float


# By `device_kind`.
DEVICES = {
  "TPU v3": Device(16 * GIB, 15.48 * GIB, 61.5e12, 450e9, 0.94e9),
  "TPU v4": Device(32 * GIB, 30.75 * GIB, 275e12, 1228e9, 1.05e9),
  "TPU v5 lite": Device(16 * GIB, 15.75 * GIB, 197e12, 819e9, 1.5e9),
  "TPU v6 lite": Device(32 * GIB, 31.25 * GIB, 918e12, 1640e9, 1.75e9),
}

_BYTES = {"pred": 1, "s4": 0.5, "u4": 0.5, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2}
_BYTES |= {"f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8, "c64": 8}
_COLLECTIVES = (
  "all-reduce",
  "reduce-scatter",
  "all-gather",
  "all-to-all",
  "collective-permute",
)

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
_OP = re.compile(r"^  (?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\(")
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_NO_ESTIMATE = 2**63 - 1  # cycles, of some gathers and scatters on v6e
_CALLED = re.compile(r"(?:calls|to_apply|async_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"(?:true_computation|false_computation)=%?([\w.\-]+)")
_BRANCH_LIST = re.compile(r"branch_computations=\{([^}]*)\}")
_WHILE = re.compile(r"condition=%?([\w.\-]+), body=%?([\w.\-]+)")
_ARRAY = re.compile(r"\b([a-z]+\d+|pred)\[([\d,]*)\]")
_LIMIT = re.compile(r"compare\(%?([\w.\-]+), %?([\w.\-]+)\), direction=(LT|GT)")
_INTEGER = re.compile(r"%?([\w.\-]+) = s32\[\]\S* constant\((\d+)\)")


@dataclasses.dataclass(frozen=True)
class Loop:
  """A `while` of the program's entry.

  Attributes:
    trips: maximum number of iterations; None if it cannot be read.
    cycles: estimated cycles of one iteration.
  """

  trips: int | None
  cycles: float


@dataclasses.dataclass
class Program:
  """Estimates for one execution of a program, or of a computation in it.

  Loops count with their maximum number of iterations.

  Attributes:
    cycles: estimated cycles.
    collectives: {kind: bytes of its results}.
    rng: bytes drawn by `rng-bit-generator`s.
    unknown_loops: loops, at any depth, whose iterations could not be read; counted once.
    unestimated: operations for which the compiler gives no cycles; they count as 0.
    loops: loops of the entry.
  """

  cycles: float = 0.0
  collectives: dict[str, float] = dataclasses.field(
    default_factory=lambda: collections.defaultdict(float)
  )
  rng: float = 0.0
  unknown_loops: int = 0
  unestimated: int = 0
  loops: tuple[Loop, ...] = ()

  def add(self, called: Program, times: float = 1.0) -> None:
    """Adds what a part costs that is executed so many times."""
    self.cycles += times * called.cycles
    self.rng += times * called.rng
    self.unknown_loops += called.unknown_loops
    self.unestimated += called.unestimated
    for kind, size in called.collectives.items():
      self.collectives[kind] += times * size


def shape_bytes(shape: str) -> float:
  """Returns the bytes of an HLO shape such as `(bf16[8,128]{1,0}, f32[])`, without padding."""
  total = 0.0
  for dtype, dims in _ARRAY.findall(shape):
    size = _BYTES.get(dtype, 1 if dtype.startswith("f8") else 4)
    for dim in filter(None, dims.split(",")):
      size *= int(dim)
    total += size
  return total


def read_program(text: str) -> Program:
  """Reads the text of a scheduled TPU program (`compiled.as_text()`).

  Loops are assumed to count up from 0 to the constant that their condition compares with: true of
  `jax.lax.scan` and of a decode of full length.

  Args:
    text: HLO.
  """
  computations, entry = _split(text)
  costs: dict[str, Program] = {}
  program = _cost(entry, computations, costs)
  for line in computations.get(entry, ()):
    for condition, body in _WHILE.findall(line):
      cycles = _cost(body, computations, costs).cycles
      program.loops += (Loop(_trips(condition, computations), cycles),)
  return program


def _split(text: str) -> tuple[dict[str, list[str]], str]:
  """Returns ({computation: its lines}, name of the entry)."""
  computations: dict[str, list[str]] = {}
  lines: list[str] = []
  entry = ""
  for line in text.splitlines():
    head = _HEAD.match(line)
    if head:
      lines = computations[head.group(2)] = []
      entry = head.group(2) if head.group(1) else entry
    elif line.startswith("  "):
      lines.append(line)
  return computations, entry


def _cost(name: str, computations: Mapping[str, list[str]], costs: dict[str, Program]) -> Program:
  """Cost of a computation and all it calls."""
  if name in costs:
    return costs[name]
  costs[name] = total = Program()
  for line in computations.get(name, ()):
    op = _OP.match(line)
    if not op:
      continue
    _, shape, kind = op.groups()
    total.add(_own_cost(line, shape, kind))
    for condition, body in _WHILE.findall(line):
      trips = _trips(condition, computations)
      total.add(_cost(body, computations, costs), trips or 1)
      total.unknown_loops += trips is None
    branches = [_cost(c, computations, costs) for c in _branches(line)]
    if branches:
      total.add(max(branches, key=lambda c: c.cycles))
    for called in _CALLED.findall(line):
      inner = _cost(called, computations, costs)
      # An operation's own estimate covers everything fused into it.
      total.add(dataclasses.replace(inner, cycles=0.0) if _CYCLES.search(line) else inner)
  return total


def _own_cost(line: str, shape: str, kind: str) -> Program:
  """The cost of one operation without what it calls: `shape` is that of its result."""
  match = _CYCLES.search(line)
  cycles = int(match.group(1)) if match else 0
  cost = Program(unestimated=1) if cycles == _NO_ESTIMATE else Program(cycles=float(cycles))
  base = kind.removesuffix("-start")
  if base in _COLLECTIVES:
    size = shape_bytes(shape)
    # The start of a gather or permute has its operands next to its results.
    if kind != base and base != "all-reduce":
      size = max(map(shape_bytes, re.findall(r"\w+\[[\d,]*\]", shape)), default=0.0)
    cost.collectives[base] = size
  elif kind == "rng-bit-generator":
    cost.rng = shape_bytes(shape)
  return cost


def _branches(line: str) -> Iterator[str]:
  yield from _BRANCHES.findall(line)
  for names in _BRANCH_LIST.findall(line):
    yield from (name.strip().lstrip("%") for name in names.split(","))


def _trips(condition: str, computations: Mapping[str, list[str]]) -> int | None:
  """Returns the maximum iterations of a loop with this condition, or None if unknown."""
  text = "\n".join(computations.get(condition, ()))
  constants = {name: int(value) for name, value in _INTEGER.findall(text)}
  limits = []
  for lhs, rhs, direction in _LIMIT.findall(text):
    limit = rhs if direction == "LT" else lhs  # counter < limit, or limit > counter
    if limit in constants:
      limits.append(constants[limit])
  return limits[0] if len(limits) == 1 else None


# ------------------------------------------------------------------------------- memory


def memory_of(compiled: Any) -> dict[str, int]:
  """Returns the bytes per device of a compiled program, by kind.

  Args:
    compiled: what `jax.jit(...).lower(...).compile()` returns.
  """
  analysis = compiled.memory_analysis()
  names = {
    "argument": "argument_size_in_bytes",
    "temporary": "temp_size_in_bytes",
    "output": "output_size_in_bytes",
    "alias": "alias_size_in_bytes",
    "peak": "peak_memory_in_bytes",
    "code": "generated_code_size_in_bytes",
  }
  return {key: int(getattr(analysis, name)) for key, name in names.items()}


_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = r"([\d.]+)([KMGT]?)"
_TOO_LARGE = (
  re.compile(rf"Used {_SIZE} of {_SIZE} hbm"),
  re.compile(rf"\({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
)


def out_of_memory(message: str) -> tuple[float, float] | None:
  """Returns (bytes needed, bytes available) if the compiler ran out of memory, else None.

  Args:
    message: text of the error that compiling raised.
  """
  for pattern in _TOO_LARGE:
    match = pattern.search(message)
    if match:
      need, need_unit, have, have_unit = match.groups()
      return float(need) * _UNITS[need_unit], float(have) * _UNITS[have_unit]
  return None


# -------------------------------------------------------------------------- lower bounds


@dataclasses.dataclass(frozen=True)
class Work:
  """The minimum work of a step, over all devices.

  Attributes:
    flops: FLOPs of matrix products.
    weight_bytes: weights to be read; every data partition reads them all.
    cache_bytes: cached keys and values to be read.
  """

  flops: float
  weight_bytes: float = 0.0
  cache_bytes: float = 0.0

  def seconds(self, device: Device, data: int, model: int) -> float:
    """Returns the shortest time on a mesh of data x model devices, if perfectly divided."""
    size = self.weight_bytes / model + self.cache_bytes / (data * model)
    return max(self.flops / (data * model) / device.peak, size / device.bandwidth)


def forward_work(config: Any, rows: int, inputs: int, targets: int) -> Work:
  """Returns the matrix products of T5's forward pass; a training step does three times as much.

  Embedding lookups, however they are done, are not counted. Args: `inputs` and `targets` are tokens
  per row of the encoder and the decoder.
  """
  c = config
  encoder = rows * inputs * _encoder_weights(c) * 2 + 4 * rows * inputs**2 * _joined(c)
  decoder = rows * targets * _decoder_weights(c) * 2 + rows * inputs * _cross_weights(c) * 2
  decoder += 4 * rows * targets * (targets + inputs) * _joined(c)
  logits = 2 * rows * targets * c.vocab_size * c.emb_dim
  return Work(c.num_encoder_layers * encoder + c.num_decoder_layers * decoder + logits)


def decode_start_work(config: Any, rows: int, inputs: int) -> Work:
  """Returns the products before the first token: encoder, and keys and values of its output."""
  c = config
  encoder = rows * inputs * _encoder_weights(c) * 2 + 4 * rows * inputs**2 * _joined(c)
  cross = rows * inputs * _cross_weights(c) * 2
  return Work(c.num_encoder_layers * encoder + c.num_decoder_layers * cross)


def decode_step_work(
  config: Any, rows: int, inputs: int, targets: int, decodes: int, itemsize: int
) -> Work:
  """Returns what one token costs: weights and caches read once.

  Args:
    config, rows, inputs: as for `forward_work`.
    targets: tokens the cache has room for.
    decodes: decodes per row.
    itemsize: bytes of a weight or cached value.
  """
  c = config
  weights = c.num_decoder_layers * _decoder_weights(c) + c.vocab_size * c.emb_dim
  attended = c.num_decoder_layers * rows * (decodes * targets + inputs) * _joined(c)
  scores = 4 * c.num_decoder_layers * rows * decodes * (targets + inputs) * _joined(c)
  return Work(
    flops=2 * rows * decodes * weights + scores,
    weight_bytes=weights * itemsize,
    cache_bytes=2 * attended * itemsize,
  )


def _joined(config: Any) -> int:
  return config.num_heads * config.head_dim


def _mlp_weights(config: Any) -> int:
  return (len(config.mlp_activations) + 1) * config.emb_dim * config.mlp_dim


def _encoder_weights(config: Any) -> int:
  return 4 * config.emb_dim * _joined(config) + _mlp_weights(config)


def _decoder_weights(config: Any) -> int:
  """Weights of a layer applied to decoder tokens: not the cross-attention's key and value."""
  return 6 * config.emb_dim * _joined(config) + _mlp_weights(config)


def _cross_weights(config: Any) -> int:
  return 2 * config.emb_dim * _joined(config)
