"""Settings that gin binds to optimizers and functions, and their error messages."""

import gin
import optax
import pytest

from t5x import adafactor, optimizers, schedules
from t5x._script import gin_calls
from t5x._settings.optimizer import check_optimizer
from t5x.errors import T5XError


def _take(a=0):
  return a


gin.external_configurable(lambda **kwargs: _take(**kwargs), "settings_of_data")
gin.external_configurable(optax.scale_by_learning_rate, module="optax")


def assert_four_parts(error):
  for part in (error.message, error.found, error.expected, error.fix):
    assert part


@pytest.mark.parametrize(
  ("optimizer", "words"),
  [
    (lambda: adafactor.Adafactor(decay_rate="x"), "adafactor.Adafactor.decay_rate"),
    (lambda: adafactor.Adafactor(factored="no"), "adafactor.Adafactor.factored"),
    (lambda: adafactor.Adafactor(logical_factor_rules={"a": 1}), "logical_factor_rules"),
    (
      lambda: optimizers.chain([optax.clip_by_global_norm("x"), optax.scale_by_adam()]),
      "optimizer",
    ),
    (lambda: optimizers.chain([optax.scale_by_adam]), "optimizers.chain.transformations"),
    (lambda: optimizers.chain([]), "optimizers.chain.transformations"),
    (lambda: optimizers.chain(5), "optimizers.chain.transformations"),
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
  ("config", "message"),
  [
    ("X = %Y\nY = %X\nsettings_of_data.a = %X", "The gin configuration refers to itself."),
    ("settings_of_data.nothing = 5", "'settings_of_data' has no parameter 'nothing'."),
    ("scale_by_learning_rate.learning_rate = {}\nsettings_of_data.a = @scale_by_learning_rate()",
     "optax cannot create scale_by_learning_rate with these settings."),
  ],
)  # fmt: skip
def test_calls_by_gin(config, message):
  gin.clear_config()
  try:
    gin.parse_config(config)
    with pytest.raises(T5XError) as e, gin_calls.friendly_gin_errors():
      gin.get_configurable("settings_of_data")()
  finally:
    gin.clear_config()
  assert e.value.message == message
  assert_four_parts(e.value)


def test_a_name_without_its_import(server, tmp_path):
  (tmp_path / "a.gin").write_text(
    "from __gin__ import dynamic_registration\ntrain/utils.DatasetConfig.batch_size = 8\n"
  )
  err = server.run("train", str(tmp_path / "a.gin"), "--dry_run", code=1)
  assert "'utils' was not provided by an import statement" in err
  assert "above that line, such as `from t5x import utils`" in err


def test_an_error_of_the_program_is_not_one_of_gin():
  """No binding sets the parameter: the caller is wrong, and the traceback says where."""
  gin.external_configurable(lambda: dict(**{"a": 1}).get(b=2), "settings_of_a_program")
  with pytest.raises(TypeError), gin_calls.friendly_gin_errors():
    gin.get_configurable("settings_of_a_program")()


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
