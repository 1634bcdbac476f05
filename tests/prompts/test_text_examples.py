"""Tokenisation of prompts, and unbatching of examples."""

import io

import numpy as np
import pytest

seqio = pytest.importorskip("seqio")

import sentencepiece  # noqa: E402
import tensorflow as tf  # noqa: E402

from sgdx_t5x.corpus.opening import open_corpus  # noqa: E402
from sgdx_t5x.prompts.seqio_steps import one_by_one  # noqa: E402
from sgdx_t5x.prompts.text_examples import Tokens  # noqa: E402
from sgdx_t5x.tasks import sample_vocabulary  # noqa: E402

HARD = (
  *(
    "",
    " ",
    "two  blanks ",
    "a\tb\nc d",
    "no\u00a0break of a\u00a0 blank",
    "e\u0301 cafe\u0301 \u0301",
  ),
  *(
    "\u2603 \u2603\u2603 x",
    "\u2581low \u2581",
    "x <unk> </s> <extra_id_0>",
    "a=b of 1) c",
    "\x00 \x7f",
  ),
)


def check_tokens(vocabulary, texts):
  tokens = Tokens(vocabulary)
  for text in texts:
    expected = vocabulary.encode(text)
    assert np.frombuffer(tokens.cached(text), np.int32).tolist() == expected, text
    assert np.frombuffer(tokens.once(text), np.int32).tolist() == expected, text
  return tokens


def test_words_are_the_tokens_of_their_text():
  turns = [
    turn.utterance for dialogue in open_corpus("sample").dialogues("dev") for turn in dialogue.turns
  ]
  tokens = check_tokens(sample_vocabulary(), [*HARD, *turns])
  assert tokens._scores


def test_words_are_the_tokens_of_their_text_with_t5s_vocabulary(real_archive, t5_vocabulary_file):
  """ "Hmmm" has two equally good segmentations: what precedes it decides."""
  corpus = open_corpus(str(real_archive))
  turns = {turn.utterance for dialogue in corpus.dialogues("dev") for turn in dialogue.turns}
  check_tokens(
    seqio.SentencePieceVocabulary(str(t5_vocabulary_file)), [*HARD, *sorted(turns)[::20]]
  )


def test_pieces_that_cross_blanks_are_not_cut_at_them(tmp_path):
  texts = ["a table for two please", "a table for four please", "for two please"]
  model = io.BytesIO()
  sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(texts * 20),
    model_writer=model,
    vocab_size=40,
    hard_vocab_limit=False,
    split_by_whitespace=False,
    bos_id=-1,
    pad_id=0,
    eos_id=1,
    unk_id=2,
    minloglevel=2,
  )
  (tmp_path / "vocabulary.model").write_bytes(model.getvalue())
  vocabulary = seqio.SentencePieceVocabulary(str(tmp_path / "vocabulary.model"))
  whole, words = vocabulary.encode(texts[0]), texts[0].split()
  assert whole != [token for word in words for token in vocabulary.encode(word)]
  check_tokens(vocabulary, texts)


@pytest.mark.parametrize(
  "lengths", [[[2, 0, 3], [0]], [[0, 0], [0, 0, 0]], [[0, 1, 0], [4]], [[5]]]
)
def test_examples_leave_batches_as_they_are(lengths):
  """Rows without values too, even at the end of a batch."""
  features = {
    name: seqio.Feature(sample_vocabulary(), add_eos=name == "targets")
    for name in ("inputs", "targets")
  }

  def batch(rows):
    number = np.arange(sum(rows), dtype=np.int32) + 3
    text = tf.strings.as_string(number)
    ragged = {"inputs": number, "targets": number, "gold_value": text}
    found = {k: tf.RaggedTensor.from_row_lengths(v, rows) for k, v in ragged.items()}
    return {**found, "seen": np.arange(len(rows)) % 2 == 0}

  batches = [batch(rows) for rows in lengths]
  signature = tf.data.Dataset.from_tensors(batches[0]).element_spec
  signature = {
    name: tf.RaggedTensorSpec([None, None], spec.dtype, 1)
    if isinstance(spec, tf.RaggedTensorSpec)
    else tf.TensorSpec([None], spec.dtype)
    for name, spec in signature.items()
  }
  dataset = tf.data.Dataset.from_generator(lambda: batches, output_signature=signature)
  found = list(one_by_one(dataset, {"inputs": 3, "targets": 4}, features).as_numpy_iterator())
  expected = [
    {
      "inputs": of["inputs"][i].numpy().tolist()[:3],
      "targets": [*of["targets"][i].numpy().tolist(), 1][:4],
      "gold_value": of["gold_value"][i].numpy().tolist(),
      "seen": bool(of["seen"][i]),
    }
    for of in batches
    for i in range(len(of["seen"]))
  ]
  assert [{k: v.tolist() for k, v in example.items()} for example in found] == expected


def test_lone_surrogates_which_json_may_hold_are_read_as_question_marks():
  tokens = Tokens(sample_vocabulary())
  assert tokens.cached("caf\udce9 \ud83d") == tokens.cached("caf? ?")
