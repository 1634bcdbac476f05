"""benchmarks/gpu/ runs where neither TensorFlow nor SeqIO is installed."""

import os
import subprocess
import sys

from places import ROOT

WITHOUT = """
import sys
sys.modules.update(tensorflow=None, seqio=None)  # as if not installed
import _engine, measure, spandst, t5_jax, train_spandst
spandst.span_dst()
t5_jax.t5(measure.SIZES["tiny"])
print(measure.flops_of_step(measure.SIZES["tiny"], rows=1, inputs=2, targets=1))
"""


def test_models_are_made_without_tensorflow():
  folders = ("", "t5x_lite", "benchmarks", "benchmarks/gpu")
  env = os.environ | {"PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in folders)}
  done = subprocess.run(
    [sys.executable, "-c", WITHOUT], env=env, capture_output=True, text=True, check=False
  )
  assert done.returncode == 0, done.stderr
  # By hand: width 64 and two heads of 32, a gated MLP of 128, two layers in either stack.
  attention, mlp, layers = 4 * 64 * 64, 3 * 64 * 128, 2
  encoder = layers * (attention + mlp)
  cross = layers * 2 * 64 * 64  # keys and values of the encoder's output
  decoder = layers * (attention + 2 * 64 * 64 + mlp) + 64 * 32128
  pairs = layers * 2 * 2 + layers * (1 + 2)
  products = 2 * (encoder + cross) + decoder + 2 * pairs * 64
  assert float(done.stdout.splitlines()[-1]) == 3 * 2 * products
