"""Gin values: `t5x.train`, `eval` and `infer` start with them or explain what is wrong.

Runs the scripts' own code from the flags to the step at which data are read: parsing,
resolving, making the model, optimizer, schedule and partitioner, and all checks of settings, tasks,
vocabularies, lengths, checkpoints and batches. Left out are locks, output folders, the data
themselves and compilation. See test_corpora.py.
"""

import contextlib
import pathlib
import re
import sys
import types

import gin
import jax
import pytest
from fuzzing import TEXTS, damaged, run

from sgdx_t5x.errors import SgdxError

pytestmark = pytest.mark.long

ROOT = pathlib.Path(__file__).parents[2]
SCRIPTS = {
  "train": ("gin/t5dst.gin", "gin/sample/t5dst.gin"),
  "eval": ("gin/eval.gin", "gin/sample/eval.gin"),
  "infer": ("gin/infer.gin", "gin/sample/infer.gin"),
}
FOLDERS = {"MODEL_DIR": "'m'", "EVAL_OUTPUT_DIR": "'e'", "INFER_OUTPUT_DIR": "'i'"}
REQUIRED = {
  **FOLDERS,
  "CHECKPOINT_PATH": "'c/checkpoint_1'",
  "MIXTURE_OR_TASK_NAME": "'t5dst_sgd'",
  "INITIAL_CHECKPOINT_PATH": "[]",  # the public checkpoints are in Google's storage
}
NUMBERS = ("0", "-1", "1", "2", "3", "1.5", "-0.0", "1e-30", str(2**31), str(2**63), str(-(2**63)),
           str(10**18), "1" + "0" * 400, "1e308", "1e999", "-1e999", "1e400", "nan", "inf", "1_0",
           "0x10", "007", "1" * 5_000)  # fmt: skip
OTHERS = ("None", "True", "False", "[]", "{}", "()", "[[]]", "[None]", "{'a': 1}", "{1: 2}", "(1,)",
          "[0]", "['']", "b'x'", "1j", "...", "-", "+1", "'a' 'b'", "'''x'''", "[" * 90 + "]" * 90,
          "[" * 900 + "]" * 900, "{'inputs': 'x'}", "{'inputs': 5, 'targets': -1}")  # fmt: skip
REFERENCES = ("@unknown()", "@unknown", "@train", "@utils.DatasetConfig()", "@utils.DatasetConfig",
              "@x/utils.DatasetConfig()", "@trainer.Trainer", "@trainer.Trainer()", "@trainer",
              "@network.T5Config()", "@network.Transformer()", "@models.EncoderDecoderModel()",
              "@models.EncoderDecoderModel", "@partitioning.PjitPartitioner()", "@utils", "@",
              "@partitioning.standard_logical_axis_rules()", "@utils.CheckpointConfig()", "@()",
              "@utils.create_learning_rate_scheduler", "@utils.create_learning_rate_scheduler()",
              "@utils.SaveCheckpointConfig()", "@utils.RestoreCheckpointConfig()", "@macro", "@@",
              "@seqio.Evaluator", "@seqio.JSONLogger", "@decoding.temperature_sample",
              "@tasks.vocabulary()", "@tasks.sample_vocabulary()", "@gin.singleton()",
              "@adafactor.Adafactor()", "@optimizers.chain()", "%UNKNOWN", "%", "%%", "%a b",
              "@optax.scale_by_adam()", "@optax.scale_by_adam", "%DROPOUT_RATE", "@a/b/c()",
              "@ train()", "@train(1)", "%gin.REQUIRED")  # fmt: skip
NAMES = ("train", "train.", ".train", "train.nothing", "nothing.x", "x", "", " ", "train/", "a/b/c",
         "train.model.x", "BATCH SIZE", "é", "1X", "BATCHSIZE", "utils.DatasetConfig",
         "train/utils.DatasetConfig.batchsize", "import x", "include 'x.gin'", "from x import y",
         "utils.DatasetConfig.seed", "network.T5Config.dropout_rate", "gin.macro",
         "macro.value")  # fmt: skip


class _Checked(BaseException):
  """Raised where data would be read, when everything before is done."""


def _read_no_data(*_):
  raise _Checked


class _Nowhere:
  """A path at which nothing is written."""

  def __init__(self, *_):
    pass

  def __truediv__(self, _):
    return self


class Scripts:
  """The scripts' parsed configurations, on top of which values are bound."""

  def __init__(self, monkeypatch):
    from t5x import eval as t5x_eval
    from t5x import gin_utils, infer, train
    from t5x._process import folder_lock
    from t5x._script import gin_calls, gin_config
    from t5x._train import streams

    self._parse = gin_config.parse_gin_flags
    self._friendly = gin_calls.friendly_gin_errors
    self._entries = {"train": train.train, "eval": t5x_eval.evaluate, "infer": infer.infer}
    for entry in self._entries.values():
      monkeypatch.setattr(sys.modules["__main__"], entry.__name__, entry, raising=False)
    # Not the function itself: gin may have registered it in another test.
    monkeypatch.setattr(gin_utils, "epath", types.SimpleNamespace(Path=_Nowhere))
    monkeypatch.setattr(gin_utils, "replace_text", lambda *_: None)
    found = gin_config.installed_search_paths()  # 20 ms
    monkeypatch.setattr(gin_config, "installed_search_paths", lambda: found)
    monkeypatch.setattr(streams, "choose_stream", _read_no_data)
    monkeypatch.setattr(folder_lock, "held", self._lock)
    monkeypatch.chdir(ROOT)
    self._parsed, self.bindings = {}, {}
    for script, files in SCRIPTS.items():
      for file in files:
        gin.clear_config()
        bindings = [f"{n} = {v}" for n, v in REQUIRED.items() if n in _macros_of(script)]
        self._parse([], [file], bindings)
        self._parsed[script, file] = {
          key: dict(params) for key, params in gin.config._CONFIG.items()
        }
        self.bindings[script, file] = _bindings(gin.config_str(max_line_length=2_000))
    gin.clear_config()

  def _lock(self, *_):
    return contextlib.nullcontext() if self._script == "train" else _read_no_data()

  def start(self, script, file, files, bindings):
    """Runs a script up to its data; raises its errors as SgdxError."""
    from t5x._script import cli

    gin.clear_config()
    parsed = self._parsed[script, file]
    gin.config._CONFIG.update((key, dict(params)) for key, params in parsed.items())
    self._script = script
    try:
      for binding in bindings:
        cli.gin_config.check_literal(binding)
      self._parse([], files, bindings)
      with self._friendly():
        gin.get_configurable(self._entries[script])()
    except _Checked:
      return
    except Exception as e:
      error = cli.find_user_error(e)
      if error is None:
        raise
      message = "\n".join(filter(None, (getattr(error, "message", ""), str(error.found or ""))))
      raise _Explained(error, message) from e
    raise AssertionError("it ended before data are read")


class _Explained(SgdxError):
  """An error of `t5x`, with its own text."""

  def __init__(self, error, message):
    super().__init__(message, expected=str(error.expected or ""), fix=str(error.fix or ""))
    self.text = error.text


def _macros_of(script):
  if script == "train":
    return {"MODEL_DIR", "INITIAL_CHECKPOINT_PATH"}
  return {f"{script.upper()}_OUTPUT_DIR", "CHECKPOINT_PATH", "MIXTURE_OR_TASK_NAME"}


def _bindings(text):
  """Returns {name: value} from a configuration's text."""
  text = text.replace("\\\n", " ")
  found = re.findall(r"^([A-Za-z_][\w./]*) = (.*(?:\n[ \]}).].*)*)", text, re.MULTILINE)
  return {name: " ".join(value.split()) for name, value in found}


@pytest.fixture(scope="module")
def scripts():
  with pytest.MonkeyPatch.context() as monkeypatch:
    yield Scripts(monkeypatch)
  gin.clear_config()
  jax.config.update("jax_default_prng_impl", "threefry2x32")  # USE_HARDWARE_RNG changes it


def _value(rng, value):
  what = rng.random()
  if what < 0.3:
    return rng.choice(NUMBERS)
  if what < 0.45:
    return rng.choice(OTHERS)
  if what < 0.55:
    return rng.choice(REFERENCES)
  if what < 0.7:
    return rng.choice((repr, str))(rng.choice(TEXTS))
  return rng.choice((f"[{value}]", f"({value},)", f"{{'a': {value}}}", f"'{value}'", f"-{value}",
                     value[:-1], value[1:], f"{value}0", f"{value}x", f"{value} {value}", value,
                     f"{value}\n", f"@{value}", f"%{value}", f"{value}()", f"{value}  # x",
                     f"{value}\nx = 1", value.upper(), value.swapcase(),
                     f"{value[:3]}x{value[3:]}"))  # fmt: skip


def _name(rng, name):
  return rng.choice((name.lower(), name[:-1], name[1:], f"{name}x", f"x/{name}", f"{name}.x",
                     name.rpartition(".")[2], name.replace(".", "/"), *NAMES))  # fmt: skip


def test_values(scripts, folder):
  cases = list(scripts.bindings)
  weights = [8 if script == "train" else 1 for script, _ in cases]

  def make(rng):
    case = rng.choices(cases, weights)[0]
    known, bindings = scripts.bindings[case], []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
      name = rng.choice(list(known))
      value = _value(rng, known[name])
      name = _name(rng, name) if rng.random() < 0.1 else name
      bindings.append(
        f"{name} = {value}" if rng.random() < 0.98 else rng.choice((name, value, "= 1"))
      )
    return *case, bindings

  run("gin_values", make, lambda case: scripts.start(*case[:2], [], case[2]), folder)


def test_files(scripts, folder):
  path = folder / "x.gin"
  path.touch()
  contents = {}
  for case, known in scripts.bindings.items():
    lines = [f"{name} = {value}" for name, value in known.items() if name.isupper()]
    contents[case] = ("# a file\n" + "\n".join(lines) + "\n").encode()

  def make(rng):
    case = rng.choice(list(contents))
    return *case, damaged(rng, contents[case])

  def read(case):
    path.write_bytes(case[2])
    scripts.start(*case[:2], [str(path)], [])

  run("gin_files", make, read, folder)
