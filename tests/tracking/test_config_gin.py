"""What a checkpoint's config.gin may name: judged before anything is imported or called."""

import pathlib
import sys
import types

import gin
import pytest
from commands import assert_four_parts, sgdx
from places import ROOT

from sgdx_t5x.cli import main
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tracking import checkpoints, model
from sgdx_t5x.tracking.checkpoints import Checkpoint, find_checkpoints
from sgdx_t5x.tracking.config_gin import check_config, trained_task
from t5x import train
from t5x._script import gin_config
from t5x.errors import T5XError

DYNAMIC = "from __gin__ import dynamic_registration\n"
T5X = DYNAMIC + "from t5x import utils\nfrom t5x import models\n"
TASK = "MIXTURE_OR_TASK_NAME = 'sample_t5dst_sgd'\n"


@pytest.fixture
def stranger(tmp_path, monkeypatch):
  """A module that notes when it is imported or called."""
  (tmp_path / "stranger.py").write_text(
    "import pathlib\nPLACE = pathlib.Path(__file__).with_name('ran')\nPLACE.write_text('')\n"
    "def network():\n  PLACE.write_text('')\n"
  )
  monkeypatch.syspath_prepend(tmp_path)
  yield tmp_path / "ran"
  sys.modules.pop("stranger", None)
  with gin.unlock_config():
    gin.clear_config()


@pytest.mark.parametrize(
  ("config", "module"),
  [
    ("import stranger\n", "stranger"),
    (DYNAMIC + "import stranger\nMODEL = @stranger.network()\n", "stranger"),
    (DYNAMIC + "import stranger as t5x\n", "stranger"),
    ("from stranger import network\n", "stranger"),
    ("import __main__\n", "__main__"),
    ("import t5xtras\n", "t5xtras"),
    ("MIXTURE_OR_TASK_MODULE = 'stranger'\n", "stranger"),
    ("MIXTURE_OR_TASK_MODULE = %A\nA = %B\nB = 'stranger'\n", "stranger"),
    ("MIXTURE_OR_TASK_MODULE/gin.macro.value = 'stranger'\n", "stranger"),
    (T5X + "a/utils.DatasetConfig.module = 'stranger'\n", "stranger"),
    (T5X + "utils.DatasetConfig:\n  module = %M\nM = 'stranger'\n", "stranger"),
    (T5X + "MODEL = @utils.os.getenv()\n", "os"),
    (T5X + "A = {'a': [1, (@x/y/utils.os.getenv(),)]}\n", "os"),
    (T5X + "utils.os.getenv.key = 'HOME'\n", "os"),
    (T5X + "b/utils.os.getenv:\n  key = 'HOME'\n", "os"),
    (T5X + "MODEL = @utils.os.sys.exit()\n", "os"),
    (T5X + "MODEL = @utils.get_infer_fn.__globals__.get()\n", "builtins"),
    (T5X + "MODEL = @models.EncoderDecoderModel.__class__()\n", "abc"),
    (T5X + "MODEL = @utils.import_module()\n", "t5x"),
    (DYNAMIC + "import jax\nMODEL = @jax.numpy.load()\n", "jax"),
    (DYNAMIC + "import gin as g\nMODEL = @g.parse_config()\n", "gin"),
  ],
)
def test_what_lies_outside_is_refused_before_it_runs(stranger, config, module):
  checkpoint = Checkpoint("c", "runs/config.gin", config + TASK, "sample_t5dst_sgd")
  with pytest.raises(SgdxError) as e, checkpoints.configured(checkpoint):
    pass
  assert_four_parts(str(e.value), f"add --allow-module {module} (in Python: ")
  assert not stranger.exists()


def test_all_modules_to_allow_are_named_at_once():
  with pytest.raises(SgdxError, match="--allow-module mine yours "):
    check_config("import mine.models\nfrom yours import tasks\nimport mine.tasks\n", "config.gin")


def test_modules_can_be_allowed_where_they_are_refused(stranger, tmp_path, capsys):
  (tmp_path / "checkpoint_1").mkdir()
  (tmp_path / "config.gin").write_text(f"import stranger\n{TASK}")
  command = ("weights", "pack", tmp_path, "--out", tmp_path / "packed")
  assert sgdx(*command) == 1
  assert_four_parts(capsys.readouterr().err, "add --allow-module stranger ")
  assert sgdx(*command, "--allow-module", "stranger") == 1
  assert_four_parts(capsys.readouterr().err, "no MODEL")  # it went on


def test_what_the_user_allows_runs(stranger):
  config = f"{DYNAMIC}import stranger\nMODEL = @stranger.network()\n{TASK}"
  checkpoint = Checkpoint("c", "config.gin", config, "sample_t5dst_sgd", ("other", "stranger"))
  with checkpoints.configured(checkpoint):
    assert stranger.exists()
  stranger.unlink()
  other = Checkpoint("c", "config.gin", config, "sample_t5dst_sgd")  # once is not for ever
  with pytest.raises(SgdxError), checkpoints.configured(other):
    pass


def test_another_file_is_not_included(tmp_path):
  (tmp_path / "other.gin").write_text("import stranger\n")
  with pytest.raises(SgdxError, match=r"includes .*other\.gin"):
    check_config(f"include '{tmp_path / 'other.gin'}'\n", "config.gin")


def test_macros_in_a_circle_end(stranger):
  config = f"MIXTURE_OR_TASK_MODULE = %A\nA = %MIXTURE_OR_TASK_MODULE\nMODEL = None\n{TASK}"
  found = checkpoints.registered(Checkpoint("c", "config.gin", config, "sample_t5dst_sgd"))
  assert found.name == "sample_t5dst_sgd"


def test_lengths_that_macros_give(stranger):
  """Regression: what they referred to was taken for a length."""
  config = f"TASK_FEATURE_LENGTHS = %L\nL = {{'inputs': %N, 'targets': 8}}\nN = 64\n{TASK}"
  checkpoint = Checkpoint("c", "config.gin", config, "sample_t5dst_sgd")
  with checkpoints.configured(checkpoint):
    assert model._lengths(checkpoint, {}) == {"inputs": 64, "targets": 8}


def test_a_model_that_is_no_macro_is_missed(stranger):
  """Regression: it ended in gin's TypeError, "macro() missing 1 required positional argument"."""
  config = f"{T5X}utils.DatasetConfig.batch_size = 8\n{TASK}"
  with pytest.raises(SgdxError) as e:
    model.LoadedModel(Checkpoint("c", "runs/config.gin", config, "sample_t5dst_sgd"))
  assert_four_parts(str(e.value), "runs/config.gin: no MODEL")


@pytest.mark.parametrize(
  ("config", "words"),
  [
    (T5X + "MODEL = @utils.nothing()\n", "utils.nothing: there is no nothing"),
    (T5X + "MODEL = @partitioning.f()\n", "nothing imports partitioning"),
    ("MODEL = @unknown()\n", "unknown"),
    ("MODEL = [\n", "not a gin file"),
    ("from t5x import nothing_there\n", "nothing_there"),
  ],
)
def test_what_is_not_there_is_named(config, words):
  checkpoint = Checkpoint("c", "runs/config.gin", config + TASK, "sample_t5dst_sgd")
  with pytest.raises(SgdxError) as e:
    checkpoints.registered(checkpoint)
  assert_four_parts(str(e.value), words)


@pytest.mark.parametrize("module", ["sgdx_t5x.trackers", "sgdx_t5x.encoder"])
def test_a_run_from_before_modules_moved_is_refused(module, tmp_path, capsys):
  """By `sgdx track`, and by t5x.train where its config.gin is to resume it."""
  config, lacking = tmp_path / "config.gin", f"No module named '{module}'"
  config.write_text(f"{DYNAMIC}from {module} import model\nMODEL = @model.Model()\n{TASK}")
  (tmp_path / "checkpoint_1").mkdir()
  out = str(tmp_path / "out")
  assert main(["track", str(tmp_path), "--corpus", "sample", "--out", out]) == 1
  assert_four_parts(capsys.readouterr().err, f"{config}: {lacking}")
  with gin.unlock_config(), pytest.raises(T5XError) as e:
    gin_config.parse_gin_flags([], [str(config)], [])
  gin.clear_config()
  assert_four_parts(e.value.text, str(config), lacking)


@pytest.mark.parametrize(
  ("config", "task"),
  [
    ("# MIXTURE_OR_TASK_NAME = 'a'\nMIXTURE_OR_TASK_NAME = \\\n    'b'\n", "b"),
    ("MIXTURE_OR_TASK_NAME = %X\ntrain/a.b.DatasetConfig.mixture_or_task_name = 'c'\n", "c"),
    ("MIXTURE_OR_TASK_NAME = %X\nX = %Y\nY = 'e'\n", "e"),
    ("MIXTURE_OR_TASK_NAME = %X\nX = %MIXTURE_OR_TASK_NAME\n", ""),
    ("train_eval/b.DatasetConfig.mixture_or_task_name = 'd'\n", ""),
    ("\ufffd\0", ""),
  ],
)
def test_the_task_that_a_configuration_names(config, task):
  assert trained_task(config) == task


def test_configurations_of_all_shipped_files_are_trusted(monkeypatch):
  """As `t5x.train` saves them, where `__main__` is the script."""
  script = types.ModuleType("__main__")
  script.__dict__.update(vars(train), __name__="__main__")
  gin.add_config_file_search_path(str(pathlib.Path(train.__file__).parents[1]))
  monkeypatch.chdir(ROOT)
  checked = 0
  for file in sorted(ROOT.glob("gin/**/*.gin")):
    if file.stem.endswith(("eval", "infer", "classify")):
      continue
    with monkeypatch.context() as patch, gin.unlock_config():
      patch.setitem(sys.modules, "__main__", script)
      gin.clear_config()
      gin.parse_config_file(str(file.relative_to(ROOT)))
      config = gin.config_str()
      gin.clear_config()
    if "import __main__ as train_script" in config:
      check_config(checkpoints._MAIN.sub(r"from t5x import train as \1", config), str(file))
      checked += 1
  assert checked >= 10


def test_options_reach_the_checkpoints(tmp_path):
  (tmp_path / "checkpoint_1").mkdir()
  (tmp_path / "config.gin").write_text(TASK)
  assert find_checkpoints(tmp_path, ["mine"])[0].allowed == ("mine",)
