"""The model gin files build the published models."""

import functools
import pathlib
import sys

import gin
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t5x
from t5x._script import gin_config
from t5x._settings.model import check_model
from t5x.errors import T5XError
from t5x.examples.t5 import network

# Parameters of the published checkpoints (embedding of 32128 rows, tied output counted once).
PUBLISHED = {
  "t5_1_0/small": 60_506_624,
  "t5_1_0/base": 222_903_552,
  "t5_1_0/large": 737_668_096,
  "t5_1_0/xl": 2_851_598_336,
  "t5_1_0/xxl": 11_307_321_344,
  "t5_1_0/3B": 2_851_598_336,
  "t5_1_0/11B": 11_307_321_344,
  "t5_1_1/small": 76_961_152,
  "t5_1_1/base": 247_577_856,
  "t5_1_1/large": 783_150_080,
  "t5_1_1/xl": 2_849_757_184,
  "t5_1_1/xxl": 11_135_332_352,
}
HEADER = """
from __gin__ import dynamic_registration
import seqio
from t5x import decoding
from t5x import models
from t5x import optimizers
from t5x.examples.t5 import network
"""


def _make(size, bindings=""):
  """Parses a model's gin file and returns MODEL."""
  text = f"""{HEADER}
include "t5x/examples/t5/{size}.gin"
DROPOUT_RATE = 0.1
VOCABULARY = @seqio.PassThroughVocabulary()
seqio.PassThroughVocabulary.size = 32128
seqio.PassThroughVocabulary.eos_id = 1
{bindings}
"""
  with gin.unlock_config():
    gin.add_config_file_search_path(str(pathlib.Path(t5x.__file__).parents[1]))
    gin.parse_config(text)
    macro = gin.query_parameter("MODEL/macro.value")
    return macro.scoped_configurable_fn()


@pytest.fixture(autouse=True)
def _no_gin_left_over():
  """Clears gin and its new registrations: a model with registered methods cannot be subclassed."""
  registry, inverse = gin.config._REGISTRY, gin.config._INVERSE_REGISTRY
  before = dict(registry.items())
  gin.clear_config()
  yield
  gin.clear_config()
  for selector, entry in list(registry.items()):
    if selector not in before:
      registry.pop(selector)
      for key in [key for key, value in inverse.items() if value is entry]:
        del inverse[key]


@pytest.mark.parametrize("size", PUBLISHED)
def test_number_of_parameters(size):
  """Of the first layers, traced; the others have as many each."""
  model = _make(size)
  config = model.module.config
  shapes = {"encoder_input_tokens": (1, 2), "decoder_input_tokens": (1, 2)}

  def count(encoder_layers, decoder_layers):
    few = config.replace(num_encoder_layers=encoder_layers, num_decoder_layers=decoder_layers)
    model.module = network.Transformer(few)
    init = functools.partial(model.get_initial_variables, input_shapes=shapes)
    params = jax.eval_shape(init, jax.random.PRNGKey(0))["params"]
    return sum(int(np.prod(x.shape)) for x in jax.tree_util.tree_leaves(params))

  one = count(1, 1)
  others = (config.num_encoder_layers - 1) * (count(2, 1) - one)
  others += (config.num_decoder_layers - 1) * (count(1, 2) - one)
  assert one + others == PUBLISHED[size]


@pytest.mark.long
def test_bindings_reach_the_model():
  model = _make(
    "t5_1_1/tiny",
    """
models.EncoderDecoderModel.decode_fn = @decoding.temperature_sample
decoding.temperature_sample.topk = 1
decoding.temperature_sample.rescale_log_probs = False
models.EncoderDecoderModel.predict_batch_with_aux.num_decodes = 2
OPTIMIZER = @optimizers.adamw()
optimizers.adamw.weight_decay = 0.1
network.T5Config.vocab_size = 64
LOSS_NORMALIZING_FACTOR = 'AVERAGE_PER_SEQUENCE'
""",
  )
  assert model.module.config.emb_dim == 8
  assert model.module.config.dropout_rate == 0.1
  assert model.optimizer_def.scale_by_trainer
  # In bfloat16, with dropout, as these files train; and with the bound number of decodes.
  batch = {
    "encoder_input_tokens": jnp.asarray([[3, 4, 1], [5, 1, 0]]),
    "decoder_input_tokens": jnp.asarray([[0, 7], [0, 9]]),
    "decoder_target_tokens": jnp.asarray([[7, 1], [9, 1]]),
  }
  shapes = {k: v.shape for k, v in batch.items()}
  key = jax.random.PRNGKey(0)
  params = jax.jit(lambda rng: model.get_initial_variables(rng, shapes)["params"])(key)
  loss = jax.jit(lambda rng: model.loss_fn(params, batch, rng)[0])
  assert np.isfinite(loss(key))
  assert loss(key) != loss(jax.random.PRNGKey(1))

  @jax.jit
  def predict(params):
    return model.predict_batch_with_aux(params, batch, return_all_decodes=True)

  decodes, aux = predict(params)
  assert decodes.shape == (2, 2, 2)
  assert aux["scores"].shape == (2, 2)


def test_the_users_search_paths_come_first(tmp_path, monkeypatch):
  """As in T5X."""
  monkeypatch.setattr(gin.config, "_LOCATION_PREFIXES", [""])
  monkeypatch.setattr(gin_config, "DEFAULT_SEARCH_PATHS", (str(tmp_path / "default"),))
  for folder in ("default", "mine"):
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "run_mark.gin").write_text(f"MARK = '{folder}'")
  with gin.unlock_config():
    mine = [str(tmp_path / "mine")]
    gin_config.parse_gin_flags(mine, ["run_mark.gin"], [], finalize_config=False)
  assert gin_config.macros() == {"MARK": "mine"}
  with pytest.raises(T5XError, match=r"Unable to open file: run\.cfg"):
    gin_config.parse_gin_flags([str(tmp_path)], ["run.cfg"], [], finalize_config=False)


def test_what_an_imported_module_raises_is_passed_on(tmp_path, monkeypatch):
  """With its own traceback; that the module is missing is told by gin's own words."""
  monkeypatch.syspath_prepend(tmp_path)
  (tmp_path / "faulty.py").write_text("import no_such_package\n")
  with gin.unlock_config():
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
      gin_config.parse_gin_flags([], [], ["import faulty"], finalize_config=False)
    with pytest.raises(T5XError, match="No module named 'no_such_package'"):
      gin_config.parse_gin_flags([], [], ["import no_such_package"], finalize_config=False)


_MINE = """
from t5x import models

class Inheriting(models.EncoderDecoderModel):
  pass

class Deciding(models.EncoderDecoderModel):
  def predict_batch_with_aux(self, params, batch, rng=None, num_decodes=1):
    pass
"""


@pytest.mark.parametrize(
  ("model", "bound", "reaches"),
  [
    ("Inheriting", "models.EncoderDecoderModel", False),  # had no effect, in silence
    ("Inheriting", "mine.Inheriting", True),
    ("Deciding", "models.EncoderDecoderModel", True),  # it has settings of its own
  ],
)
def test_bindings_of_a_method_that_a_subclass_inherits(
  model, bound, reaches, tmp_path, monkeypatch
):
  (tmp_path / "mine.py").write_text(_MINE)
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.delitem(sys.modules, "mine", raising=False)
  made = _make(
    "t5_1_1/tiny",
    f"""
import mine
MODEL = @mine.{model}()
mine.{model}:
  module = @network.Transformer()
  input_vocabulary = %VOCABULARY
  output_vocabulary = %VOCABULARY
  optimizer_def = %OPTIMIZER
{bound}.predict_batch_with_aux.num_decodes = 2
""",
  )
  if reaches:
    check_model(made)
    return
  with pytest.raises(T5XError, match="do not reach Inheriting") as e:
    check_model(made)
  assert e.value.found == "EncoderDecoderModel.predict_batch_with_aux.num_decodes = 2"
  for part in (e.value.expected, e.value.fix):
    assert "mine.Inheriting.predict_batch_with_aux" in part
