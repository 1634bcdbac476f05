"""Settings that gin binds to optimizers and functions, and their error messages."""

import gin
import optax
import pytest

from t5x import adafactor, optimizers, schedules
from t5x._settings.model import check_optimizer
from t5x.errors import T5XError


def _take(a=0):
  return a


gin.external_configurable(_take, "settings_of_data")


def assert_four_parts(error):
  for part in (error.message, error.found, error.expected, error.fix):
    assert part


@pytest.mark.parametrize(
  ("optimizer", "words"),
  [
    (lambda: adafactor.Adafactor(decay_rate="x"), "optimizer"),
    (
      lambda: optimizers.chain([optax.clip_by_global_norm("x"), optax.scale_by_adam()]),
      "optimizer",
    ),
  ],
)
def test_optimizers(optimizer, words):
  with pytest.raises(T5XError) as e:
    check_optimizer(optimizer())
  assert_four_parts(e.value)
  assert words in e.value.text


def test_good_optimizers():
  rules = adafactor.standard_logical_factor_rules()
  check_optimizer(adafactor.Adafactor(logical_factor_rules=rules))
  check_optimizer(adafactor.Adafactor(beta1=0.9, step_offset=1000, clipping_threshold=None))
  check_optimizer(optimizers.adamw(weight_decay=0.1))
  check_optimizer(optimizers.chain([optax.clip_by_global_norm(1.0), optax.scale_by_adam()]))


@pytest.mark.parametrize(
  ("transformations", "found"),
  [
    (optax.scale_by_adam(), "GradientTransformation"),  # brackets around it are missing
    ([optax.scale_by_adam], "<function scale_by_adam"),  # its () are missing
    (None, "None"),
    ("adam", "'adam'"),
  ],
)
def test_a_chain_is_a_list_of_transformations(transformations, found):
  with pytest.raises(T5XError, match=r"optimizers\.chain takes a list") as e:
    optimizers.chain(transformations)
  assert_four_parts(e.value)
  assert e.value.found.startswith(found)


@pytest.mark.parametrize(
  "bindings",
  [
    ("--gin.train.trainer_cls=@trainer.Trainer()",),
    ("--gin.train.trainer_cls=%A", "--gin.A=%B", "--gin.B=@trainer.Trainer()"),
  ],
)
def test_a_class_that_gin_would_make_an_object_of(bindings, server, tmp_path):
  """It ended in a traceback, through macros, too."""
  args = ("run_train.gin", "--gin.MODEL_DIR='new'", "--gin.TRAIN_STEPS=1", *bindings, "--dry_run")
  err = server.run("train", *args, code=1, cwd=tmp_path)
  assert "train.trainer_cls takes a class, and is bound to an object of one." in err
  assert "train.trainer_cls = @trainer.Trainer\n" in err
  assert "Traceback" not in err


def test_a_name_without_its_import(server, tmp_path):
  (tmp_path / "a.gin").write_text(
    "from __gin__ import dynamic_registration\ntrain/utils.DatasetConfig.batch_size = 8\n"
  )
  err = server.run("train", str(tmp_path / "a.gin"), "--dry_run", code=1)
  assert "'utils' was not provided by an import statement" in err
  assert "above that line, such as `from t5x import utils`" in err


def test_an_error_without_a_headline_has_what_was_found_as_one():
  """Regression: "t5x: error:   found:     learning rate factor ..."."""
  with pytest.raises(T5XError) as e:
    schedules.create_learning_rate_scheduler("constnt")
  first, second, *_ = e.value.text.split("\n")
  assert first == "learning rate factor 'constnt' in 'constnt'"
  assert second.startswith("  expected:")


def test_errors_hold_no_control_characters_and_no_long_lines():
  error = T5XError("a\x1b[2J\0\ud800\tb", found="é 日本", fix="x" * 5_000)
  assert error.text.split("\n")[0] == r"a\x1b[2J\x00\ud800\tb"
  assert "é 日本" in error.text
  assert max(map(len, error.text.split("\n"))) < 1_100
