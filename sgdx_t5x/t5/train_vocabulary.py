"""A small SentencePiece vocabulary, trained on a corpus: `sgdx data vocabulary`.

For a model without pretraining: 2,000 pieces tokenize SGD's prompts into as few tokens as T5's
32,000, and leave more parameters for the network. Special ids are T5's (pad 0, </s> 1, <unk> 2), so
the same gin files fit both. The text is from train only: its dialogues and original schemas.

Tags and signs of the formats that ask for a whole frame come after the trained pieces, so that
T5DST's prompts have the same tokens with and without them.
"""

import contextlib
import io
import itertools
import pathlib
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any

import sentencepiece

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import as_text
from sgdx_t5x.progress import OnProgress, counted

# One piece each; otherwise the tags would be half of a short prompt.
TAGS = ("[USER]", "[SYSTEM]", "[domain]", "[slot]", "[PVs]", "none", "dontcare")
FRAME_TAGS = (
  *("[states]", "[intents]", "[req_slots]", "[user]", "[system]", "||", "|"),  # D3ST
  *("[example]", "[slots]", "[context]", "[state]", "[intent]"),  # SDT
)
_SIGNS = ("=", ")", "(")  # added if the text has none
# Character normalization before tokenization. A no-break space becomes a space (a model without
# rules logs a line when it is loaded). "=" is followed by a space, so that a value has the same
# pieces as in the dialogue: a model without pretraining could hardly copy it otherwise.
_RULES = "A0\t20\n3D\t3D 20\n"
_SCHEMA_WEIGHT = 20  # every prompt has parts of a schema, but only a few of all utterances


def corpus_lines(corpus: Corpus, on_progress: OnProgress) -> Iterator[str]:
  """Yields the lines of train: utterances once, schemas `_SCHEMA_WEIGHT` times.

  Raises:
    SgdxError: there are no dialogues.
  """
  dialogues, total = corpus.dialogues("train"), corpus.expected_dialogues("train")
  first = next(dialogues, None)
  if first is None:
    raise SgdxError(
      f"{corpus.origin}: no dialogues in train",
      expected="the utterances that a vocabulary is made for",
      available=corpus.file_counts(),
      fix="pass a corpus with dialogues to train on",
    )
  every = itertools.chain([first], dialogues)
  read = counted(every, on_progress, "reading train", total, "dialogues")
  return lines(read, [*corpus.schema("train")] * _SCHEMA_WEIGHT)


def lines(dialogues: Iterable[Dialogue], services: Iterable[Service]) -> Iterator[str]:
  """Yields the utterances of dialogues, then all that a prompt can show of services."""
  for dialogue in dialogues:
    for turn in dialogue.turns:
      yield as_text(turn.utterance)
  for service in services:
    yield f"{service.name} {service.description}"
    for slot in service.slots:
      yield f"{slot.name.replace('_', ' ')} {slot.description}"
      yield f"{', '.join(slot.possible_values)}"


def train_vocabulary(text: Iterable[str], num_pieces: int) -> bytes:
  """Returns a unigram model for lines of text, the same on every machine.

  Args: num_pieces, without those added for formats of whole frames.
  """
  model = io.BytesIO()
  # The model stores the name of its rule file, so that must be the same on every machine.
  with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    pathlib.Path("rules.tsv").write_text(_RULES)
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
  return _with_frame_tags(model.getvalue())


def _with_frame_tags(trained: bytes) -> bytes:
  """Appends to a model the pieces that formats of whole frames need."""
  from sentencepiece import sentencepiece_model_pb2

  proto: Any = sentencepiece_model_pb2  # its classes are created on import
  model, piece = proto.ModelProto.FromString(trained), proto.ModelProto.SentencePiece
  texts = {entry.piece for entry in model.pieces}
  lowest_score = min(entry.score for entry in model.pieces)
  for tag in FRAME_TAGS:
    model.pieces.add(piece=f"\u2581{tag}", score=0.0, type=piece.USER_DEFINED)
  for sign in _SIGNS:
    if sign not in texts:
      model.pieces.add(piece=sign, score=lowest_score, type=piece.NORMAL)
  model.trainer_spec.vocab_size = len(model.pieces)
  return model.SerializeToString(deterministic=True)
