"""`gin_utils.run` runs scripts of users, which define their flags as T5X's own scripts do."""

import subprocess
import sys

SCRIPT = """
from absl import flags
import gin
from t5x import gin_utils

flags.DEFINE_multi_string("gin_file", [], "")
flags.DEFINE_multi_string("gin_bindings", [], "")
flags.DEFINE_list("gin_search_paths", ["."], "")

def main(argv):
  F = flags.FLAGS
  gin_utils.parse_gin_flags(F.gin_search_paths, F.gin_file, F.gin_bindings)
  print(len(argv), argv[1:], gin.query_parameter("%STEPS"))

if __name__ == "__main__":
  gin_utils.run(main)
"""


def _run(folder, *args):
  (folder / "mine.py").write_text(SCRIPT)
  (folder / "mine.gin").write_text("STEPS = 3\n")
  command = [sys.executable, "mine.py", *args]
  return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_its_flags_and_positional_arguments(tmp_path):
  done = _run(tmp_path, "--gin_file=mine.gin", "--gin.STEPS=5", "more")
  assert (done.returncode, done.stdout) == (0, "2 ['more'] 5\n"), done.stderr
  helped = _run(tmp_path, "--help")
  assert "--gin_search_paths" in helped.stdout + helped.stderr


def test_errors_are_told_in_four_parts(tmp_path):
  done = _run(tmp_path, "--gin_file=mine.gin", "--gin.STEPS=five")
  assert done.returncode == 2
  assert "t5x: error:" in done.stderr
  assert "fix:" in done.stderr
  assert "Traceback" not in done.stderr
