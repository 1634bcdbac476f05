"""Runs the official scorer, which was written for TensorFlow 1, with TensorFlow 2.

  python _official.py DIR difflib|levenshtein [flags of evaluate.py]

DIR holds `schema_guided_dst/` of github.com/google-research/google-research (metrics.py and
evaluate.py suffice), which is not part of this project. Needs TensorFlow and fuzzywuzzy; with
"difflib", fuzzywuzzy does not find python-Levenshtein even where it is installed.
"""

import pathlib
import runpy
import sys

folder, backend = sys.argv[1:3]
if backend == "difflib":
  sys.modules["Levenshtein"] = None  # importing it fails
from fuzzywuzzy import fuzz  # noqa: E402

if ("difflib" in fuzz.SequenceMatcher.__module__) != (backend == "difflib"):
  sys.exit(f"fuzzywuzzy uses {fuzz.SequenceMatcher.__module__}, not {backend}")
import tensorflow.compat.v1 as tf  # noqa: E402

sys.modules["tensorflow"] = tf
script = pathlib.Path(folder, "schema_guided_dst", "evaluate.py")
sys.path.insert(0, folder)
sys.argv[:3] = [str(script)]
runpy.run_path(str(script), run_name="__main__")
