"""Runs the scripts in processes of their own, for the end-to-end tests."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NO_EVAL = (
  "--gin.train.train_eval_dataset_cfg=None",
  "--gin.train.infer_eval_dataset_cfg=None",
)


class Runner:
  """Runs scripts with one compilation cache."""

  def __init__(self, cache):
    self.env = {
      **os.environ,
      "JAX_PLATFORMS": "cpu",
      "JAX_COMPILATION_CACHE_DIR": str(cache),
      "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)]),
    }

  def start(self, script, gin_file, *args):
    command = [sys.executable, "-m", f"t5x.{script}", f"--gin_search_paths={HERE}"]
    command += [f"--gin_file={gin_file}"] if gin_file else []
    return subprocess.Popen(
      [*command, *args],
      env=self.env,
      cwd=HERE.parent.parent,
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )

  def run(self, script, gin_file, *args, code=0):
    process = self.start(script, gin_file, *args)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, err[-4000:]
    return out, err
