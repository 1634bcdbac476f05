"""Accounting for programs compiled for TPUs, and `--run_mode=aot` itself if libtpu is installed.

The HLO below is handwritten in the format of libtpu 0.0.42; expected numbers are computed by hand.
"""

import importlib.util
import json
import os
import subprocess
import sys
import types

import jax
import jax.numpy as jnp
import pytest
from run_scripts import SUPPORT, T5X_LITE

from t5x import aot
from t5x._aot import account, advice
from t5x.errors import T5XError, UsageError

needs_libtpu = pytest.mark.skipif(
  importlib.util.find_spec("libtpu") is None,
  reason='libtpu, the compiler for TPUs, is not installed (pip install "jax[tpu]")',
)

PROGRAM = """HloModule jit_step, is_scheduled=true

%fused (p: bf16[8,128]) -> bf16[8,128] {
  %p = bf16[8,128]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT %inner = bf16[8,128]{1,0} add(%p, %p), backend_config={"estimated_cycles":"999"}
}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[]{:T(256)} parameter(0)
  %b = f32[]{:T(256)} parameter(1)
  ROOT %add = f32[]{:T(256)} add(%a, %b)
}

%inner_cond (s: (s32[], f32[])) -> pred[] {
  %s = (s32[]{:T(256)}, f32[]{:T(256)}) parameter(0)
  %v = f32[]{:T(256)} get-tuple-element(%s), index=1
  %zero = f32[]{:T(256)} constant(0)
  ROOT %gt = pred[]{:T(512)} compare(%v, %zero), direction=GT
}

%inner_body (s.1: (s32[], f32[])) -> (s32[], f32[]) {
  %s.1 = (s32[]{:T(256)}, f32[]{:T(256)}) parameter(0)
  ROOT %c = (s32[]{:T(256)}, f32[]{:T(256)}) copy(%s.1), backend_config={"estimated_cycles":"3"}
}

%cond (t: (s32[], f32[8])) -> pred[] {
  %t = (s32[]{:T(256)}, f32[8]{0:T(256)}) parameter(0)
  %limit = s32[]{:T(256)} constant(4)
  %i = s32[]{:T(256)} get-tuple-element(%t), index=0
  ROOT %lt = pred[]{:T(512)} compare(%i, %limit), direction=LT
}

%body (t.1: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t.1 = (s32[]{:T(256)}, f32[8]{0:T(256)}) parameter(0)
  %g = (f32[8]{0:T(256)}, f32[32]{0:T(256)}) all-gather-start(%t.1), dimensions={0}
  %gd = f32[32]{0:T(256)} all-gather-done(%g)
  %w.1 = (s32[]{:T(256)}, f32[]{:T(256)}) while(%x), condition=%inner_cond, body=%inner_body
  ROOT %o = (s32[], f32[8]{0}) fusion(%gd), calls=%fused, backend_config={"estimated_cycles":"10"}
}

%short (q: f32[]) -> f32[] {
  ROOT %q1 = f32[]{:T(256)} copy(%q), backend_config={"estimated_cycles":"5"}
}

%long (r: f32[]) -> f32[] {
  ROOT %r1 = f32[]{:T(256)} copy(%r), backend_config={"estimated_cycles":"7"}
}

ENTRY %main (x: bf16[8,128]) -> f32[] {
  %x = bf16[8,128]{1,0:T(8,128)(2,1)} parameter(0)
  %f = bf16[8,128]{1,0:T(8,128)} fusion(%x), calls=%fused, backend_config={"estimated_cycles":"100"}
  %r = (bf16[1024]{0}, f32[2]{0}) all-reduce(%f, %f), channel_id=1, to_apply=%sum
  %bits = (u32[4]{0}, u32[256]{0}) rng-bit-generator(%k), algorithm=rng_default
  %w = (s32[]{:T(256)}, f32[8]{0:T(256)}) while(%init), condition=%cond, body=%body
  ROOT %y = f32[]{:T(256)} conditional(%i, %a, %b), branch_computations={%short, %long}
}
"""


def test_program_counts_loops_as_often_as_they_run():
  program = account.read_program(PROGRAM)
  # Entry: the fusion (not what is inside it), and the longer branch. Body: 10, and the inner
  # loop once, because its condition gives no iteration count.
  assert program.loops == (account.Loop(trips=4, cycles=13.0),)
  assert program.cycles == 107 + 4 * 13
  assert program.unknown_loops == 1


def test_an_operation_without_an_estimate_counts_as_none():
  # libtpu 0.0.42 writes the largest integer for a scatter on v6e: 167 years at 1.75 GHz.
  program = account.read_program(PROGRAM.replace('"100"', f'"{2**63 - 1}"'))
  assert program.unestimated == 1
  assert program.cycles == 7 + 4 * 13
  assert account.read_program(PROGRAM).unestimated == 0


def test_program_sums_collectives_and_random_bits():
  program = account.read_program(PROGRAM)
  # 1024 bfloat16 and 2 float32; for the gather only its result, in each of 4 iterations.
  assert program.collectives == {"all-reduce": 2048 + 8, "all-gather": 4 * 128}
  assert program.rng == 4 * (4 + 256)


@pytest.mark.parametrize(
  ("shape", "size"), [("f32[]", 4), ("(bf16[2,3]{1,0}, pred[5]{0})", 17), ("u32[8]{0:T(256)}", 32)]
)
def test_shape_bytes(shape, size):
  assert account.shape_bytes(shape) == size


def test_out_of_memory_reads_both_messages():
  of_temporaries = (
    "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries "
    "(24.50G) exceeds available HBM (15.75G)."
  )
  of_program = "Ran out of memory in memory space hbm. Used 512.00M of 15.75G hbm. Exceeded"
  assert account.out_of_memory(of_temporaries) == (24.5 * 2**30, 15.75 * 2**30)
  assert account.out_of_memory(of_program) == (2**29, 15.75 * 2**30)
  assert account.out_of_memory("INTERNAL: something else") is None


T5_BASE = types.SimpleNamespace(
  vocab_size=32128,
  emb_dim=768,
  num_heads=12,
  head_dim=64,
  mlp_dim=3072,
  mlp_activations=("relu",),
  num_encoder_layers=12,
  num_decoder_layers=12,
)


def test_sizes_of_models_with_and_without_a_decoder():
  from t5x._aot import compile

  def of(**lengths):
    return compile._sizes(
      {name: jax.ShapeDtypeStruct((4, n), jnp.int32) for name, n in lengths.items()}
    )

  both = of(encoder_input_tokens=512, decoder_input_tokens=64)
  assert both == {"rows": 4, "inputs": 512, "targets": 64}
  assert of(decoder_input_tokens=64) == {"rows": 4, "inputs": 64, "targets": 64}
  assert of(encoder_input_tokens=512) == {"rows": 4, "inputs": 512, "targets": 0}


def test_bounds_are_those_worked_out_for_google_t5x():
  # T5 1.0 Base, 512 / 256: batch 512 in training, 256 in decoding, on 32 cores of v3.
  v3 = account.DEVICES["TPU v3"]
  train = 3 * account.forward_work(T5_BASE, 512, 512, 256).seconds(v3, 32, 1)
  token = account.decode_step_work(T5_BASE, 256, 512, 256, decodes=1, itemsize=2)
  assert train == pytest.approx(141.9e-3, rel=1e-3)
  assert token.seconds(v3, 32, 1) == pytest.approx(1.05e-3, rel=5e-3)
  # Half the weights on each; the caches are divided among as many devices as before.
  half = token.seconds(v3, 16, 2) * v3.bandwidth
  assert half == pytest.approx(token.weight_bytes / 2 + token.cache_bytes / 32)


def _report(**step):
  return {
    "mesh": {"data": 4, "model": 1},
    "devices": 4,
    "num_microbatches": 1,
    "batch_size": 64,
    "state_bytes": 2.0,
    "params_bytes": 2.0,
    "steps": {"train": {"usable_bytes": 10.0, **step}},
  }


def test_advice_names_only_what_divides_and_helps():
  # State and gradients take 4 of 16; the other 12 grow with the rows. Two microbatches halve them
  # but need 2 more to accumulate gradients: 6 + 6 > 10. Four: 6 + 3.
  report = _report(needed_bytes=16.0)
  found = advice.advise(report, T5_BASE, zero=False, can_partition=True)
  assert ["trainer.Trainer.num_microbatches = 4"] in found
  assert ["BATCH_SIZE = 32"] in found
  # The rest alone is too large, so partitioning the state does not help.
  assert not any(len(a) == 1 and "num_partitions" in a[0] for a in found)


def test_advice_divides_a_state_that_is_too_large():
  # 9 for state and gradients, 3 for the rest: with two partitions 4.5 + 3.
  report = _report(needed_bytes=12.0) | {"state_bytes": 5.0, "params_bytes": 4.0, "batch_size": 4}
  found = advice.advise(report, T5_BASE, zero=False, can_partition=True)
  assert ["partitioning.PjitPartitioner.num_partitions = 2"] in found
  assert not any("microbatches" in binding for a in found for binding in a)  # one row each
  held = advice.advise(report, T5_BASE, zero=False, can_partition=False)
  assert not any("num_partitions" in binding for a in held for binding in a)


def test_advice_is_empty_where_nothing_helps():
  report = _report(needed_bytes=900.0) | {"batch_size": 4, "state_bytes": 400.0}
  assert advice.advise(report, T5_BASE, zero=False, can_partition=True) == []


def test_topology_by_either_name():
  assert aot.check_topology("v3:4x4") == aot.check_topology("v3-32") == "v3:4x4"


def test_unknown_topology_names_the_nearest():
  with pytest.raises(T5XError) as e:
    aot.check_topology("v5e:8x4")
  assert "v5e:4x8" in e.value.available
  assert e.value.fix.startswith("--aot_topology=v5e:")
  with pytest.raises(T5XError, match="generations v3, v4, v5e, v6e"):
    aot.check_topology("h100")
  with pytest.raises(UsageError):
    aot.check_topology(None)


def test_without_libtpu_says_what_to_install(monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(T5XError) as e:
    aot.prepare_environment()
  import jax

  assert e.value.fix == f'pip install "jax[tpu]=={jax.__version__}"'
  assert e.value.exit_code == 1


def test_refusal_says_by_how_much():
  gib = 2**30
  steps = {"train": {"fits": False, "needed_bytes": 20 * gib, "usable_bytes": 15.5 * gib}}
  report = {"steps": steps, "device_kind": "TPU v3", "topology": "v3:4x4", "advice": [["a = 1"]]}
  with pytest.raises(T5XError) as e:
    aot.refuse_if_too_large(report)
  assert e.value.found == "train: 20.00 GiB of 15.50, 4.50 GiB too much"
  assert e.value.fix.endswith("any of these, estimated to suffice:\na = 1")
  aot.refuse_if_too_large(report | {"steps": {}})


# --------------------------------------------------------------------------- with libtpu


def _aot(*args, code=0):
  process = subprocess.run(
    [
      *(sys.executable, "-m", "t5x.main", "--run_mode=aot", f"--gin_search_paths={SUPPORT}"),
      *("--gin_file=run_train.gin", *args),
    ],
    env=os.environ
    | {"PYTHONPATH": os.pathsep.join([str(T5X_LITE), str(SUPPORT), *filter(None, sys.path)])},
    capture_output=True,
    text=True,
  )
  assert process.returncode == code, process.stderr[-4000:]
  return process.stdout, process.stderr


@needs_libtpu
def test_compiles_all_steps_of_a_run_for_a_slice(tmp_path):
  path = tmp_path / "report.json"
  out, _ = _aot("--aot_topology=v5e-4", f"--aot_json={path}")  # about 15 s
  report = json.loads(path.read_text())
  assert report["format"] == "t5x-aot/1"
  assert (report["device_kind"], report["mesh"]) == ("TPU v5 lite", {"data": 4, "model": 1})
  assert set(report["steps"]) == {"train", "eval", "decode"}
  train, decode = report["steps"]["train"], report["steps"]["decode"]
  # The state is donated, so all of it is aliased; the batch of 16 rows is not part of it.
  assert train["memory"]["alias"] >= report["params_bytes"]
  assert train["fits"]
  assert train["collective_bytes"]["all-reduce"] > 0
  assert 0 < train["bound_ms"] < train["estimated_ms"]
  assert decode["tokens"] == 8
  assert decode["estimated_ms"] == pytest.approx(decode["start_ms"] + 8 * decode["token_ms"])
  assert "bound / estimated" in out


@needs_libtpu
def test_batch_that_does_not_divide():
  _, err = _aot("--aot_topology=v3:4x4", "--gin.BATCH_SIZE=24", code=1)
  assert "batch size 24 on 32 data partitions" in err
