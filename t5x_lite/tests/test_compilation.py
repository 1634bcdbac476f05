"""The location of the compilation cache, and initialisation as a single program."""

import gin
import jax
import pytest

from t5x import optimizers, partitioning, utils


@pytest.fixture
def clean(monkeypatch, tmp_path):
  """No cache in the environment; afterwards restores JAX's settings and clears gin's."""
  monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
  names = [
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
  ]
  before = {name: getattr(jax.config, name) for name in names}
  with gin.unlock_config():
    yield tmp_path
    gin.clear_config()
  for name, value in before.items():
    jax.config.update(name, value)


def _bind(line):
  gin.parse_config(f"from __gin__ import dynamic_registration\nfrom t5x import utils\n{line}\n")


def test_default_folder(clean):
  assert utils.compilation_cache() == str(clean / "xdg/t5x_lite/jax")
  assert jax.config.jax_compilation_cache_dir == str(clean / "xdg/t5x_lite/jax")
  assert (clean / "xdg/t5x_lite/jax").is_dir()


def test_gin_sets_the_folder(clean):
  _bind(f"utils.compilation_cache.folder = '{clean}/mine'")
  assert utils.compilation_cache() == f"{clean}/mine"
  assert jax.config.jax_compilation_cache_dir == f"{clean}/mine"


def test_none_switches_it_off(clean):
  _bind("utils.compilation_cache.folder = None")
  assert utils.compilation_cache() is None
  assert jax.config.jax_compilation_cache_dir is None
  assert not (clean / "xdg").exists()


def test_environment_wins(clean, monkeypatch):
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(clean / "env"))
  _bind(f"utils.compilation_cache.folder = '{clean}/mine'")
  assert utils.compilation_cache() == str(clean / "env")


def test_a_folder_that_cannot_be_made_only_costs_time(clean, capsys):
  (clean / "file").touch()
  assert utils.compilation_cache(str(clean / "file/cache")) is None
  assert "no compilation cache: " in capsys.readouterr().err


def test_initialisation_is_one_program():
  """Parameters and slots of two layers: one trace and one compilation, not one per array."""
  import run_tasks

  from t5x import models
  from t5x.examples.t5 import network

  sizes = {"emb_dim": 8, "num_heads": 2, "head_dim": 4, "mlp_dim": 8, "vocab_size": 384}
  config = network.T5Config(num_encoder_layers=1, num_decoder_layers=1, **sizes)
  vocabulary = run_tasks.VOCAB
  model = models.EncoderDecoderModel(
    network.Transformer(config), vocabulary, vocabulary, optimizers.adamw()
  )
  initializer = utils.TrainStateInitializer(
    model.optimizer_def,
    model.get_initial_variables,
    {"encoder_input_tokens": (2, 4), "decoder_input_tokens": (2, 4)},
    partitioning.PjitPartitioner(num_partitions=1),
  )
  rng = jax.random.PRNGKey(0)
  compiled = []
  listener = lambda name, seconds, **_: compiled.append(name)  # noqa: E731
  jax.monitoring.register_event_duration_secs_listener(listener)
  try:
    state = initializer.from_scratch(rng)
  finally:
    jax.monitoring.unregister_event_duration_listener(listener)
  assert compiled.count("/jax/core/compile/backend_compile_duration") == 1, set(compiled)
  assert len(jax.tree.leaves(state)) > 60
