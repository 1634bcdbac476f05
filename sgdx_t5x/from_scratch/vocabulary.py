"""A small SentencePiece vocabulary, trained on a corpus: `sgdx data vocabulary`.

For a model without pretraining: 2,000 pieces cut SGD's prompts as short as T5's 32,000, and leave
its parameters to the network. Special ids are T5's (pad 0, </s> 1, <unk> 2), so the same gin files
fit both. The text is that of train alone: its dialogues and its original schemas.
"""

import contextlib
import io
import pathlib
import tempfile
from collections.abc import Callable, Iterable, Iterator

import sentencepiece

from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.data.dialogue import Dialogue
from sgdx_t5x.data.schema import Service

# One piece each: spelled out, the tags would be half of a short prompt.
TAGS = ("[USER]", "[SYSTEM]", "[domain]", "[slot]", "[PVs]", "none", "dontcare")
_SCHEMA_WEIGHT = 20  # every prompt has some words of a schema, and of all utterances a few


def corpus_lines(
  corpus: Corpus, on_dialogue: Callable[[int], None] = lambda _: None
) -> Iterator[str]:
  """Yields the lines of train: utterances once, schemas often.

  Args:
    corpus: where to read.
    on_dialogue: called with the number of each dialogue read.
  """

  def counted() -> Iterator[Dialogue]:
    for number, dialogue in enumerate(corpus.dialogues("train"), start=1):
      on_dialogue(number)
      yield dialogue

  return lines(counted(), [*corpus.schema("train")] * _SCHEMA_WEIGHT)


def lines(dialogues: Iterable[Dialogue], services: Iterable[Service]) -> Iterator[str]:
  """Yields the utterances of dialogues, then all that a prompt can show of services."""
  for dialogue in dialogues:
    for turn in dialogue.turns:
      yield turn.utterance
  for service in services:
    yield f"{service.name} {service.description}"
    for slot in service.slots:
      yield f"{slot.name.replace('_', ' ')} {slot.description}"
      yield f"{', '.join(slot.possible_values)}"


def train_vocabulary(text: Iterable[str], num_pieces: int) -> bytes:
  """Returns a unigram model of `num_pieces` pieces for lines of text, the same on every machine."""
  model = io.BytesIO()
  # The model keeps the name of its rules' file, so that must be the same on every machine.
  with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    # One rule, no-break space to space: a model without rules logs a line whenever it is loaded.
    pathlib.Path("rules.tsv").write_text("A0\t20\n")
    sentencepiece.SentencePieceTrainer.train(
      sentence_iterator=iter(text),
      model_writer=model,
      vocab_size=num_pieces,
      model_type="unigram",
      character_coverage=1.0,
      normalization_rule_tsv="rules.tsv",
      user_defined_symbols=[f"\u2581{tag}" for tag in TAGS],
      pad_id=0,
      eos_id=1,
      unk_id=2,
      bos_id=-1,
      num_threads=1,  # more threads give another model on another machine
      minloglevel=1,
    )
  return model.getvalue()
