"""A pretrained encoder: the same hidden states and pieces as torch and `transformers`.

The numbers are in tests/fixtures/hf_bert/minilm.npz, recorded by make.py there.
"""

import numpy as np
import pytest
from minilm import minilm
from places import FIXTURES

from sgdx_t5x.spandst.states import hidden_states
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary

pytestmark = pytest.mark.usefixtures("compiled_as_for_users")

# As in make.py.
TEXTS = (
  "I need a table for two at 7:30 pm in San José.",
  "",
  "Größe 42, café au lait — naïve!",
  "東京 to Kyoto, please",
  "restaurant_name : name of the restaurant " * 12,
)


@pytest.fixture(scope="module")
def recorded():
  return np.load(FIXTURES / "hf_bert/minilm.npz")


def test_pieces_are_those_of_transformers(recorded):
  vocabulary = WordPieceVocabulary(minilm())
  for i, text in enumerate(TEXTS):
    assert vocabulary.encode_texts(text).tolist() == recorded[f"ids_{i}"].tolist()


@pytest.mark.long
def test_hidden_states_are_those_of_transformers(recorded):
  for i, states in enumerate(hidden_states(minilm(), TEXTS)):
    expected = recorded[f"hidden_{i}"]
    assert states.dtype == np.float32
    assert states.shape == (len(expected), 384)
    np.testing.assert_allclose(states[:, : expected.shape[1]], expected, atol=1e-5, rtol=0)
    norms = np.linalg.norm(states, axis=1)
    np.testing.assert_allclose(norms, recorded[f"norms_{i}"], rtol=1e-5)
