"""Trains the sample's SentencePiece vocabulary: `python -m sgdx_t5x.sample.train_vocabulary`.

The text is that of the train dialogues and of all schemas of the sample, in all nine wordings:
like T5's public vocabulary, it knows the words of schemas that the model never saw.
Special ids are T5's (pad 0, </s> 1, <unk> 2), so the same gin files fit both.
"""

import argparse
import contextlib
import io
import pathlib
import tempfile

import sentencepiece

from sgdx_t5x import sample

VOCABULARY = pathlib.Path(__file__).with_name("vocabulary.model")
NUM_PIECES = 1000
# One piece each: spelled out, the tags would be half of a short prompt.
TAGS = ("[USER]", "[SYSTEM]", "[domain]", "[slot]", "[PVs]", "none", "dontcare")


def texts():
  """Yields the lines that the vocabulary is trained on."""
  for dialogue in sample.dialogues("train"):
    for turn in dialogue.turns:
      yield turn.utterance
  for split in sample.SPLITS:
    for version in sample.VERSIONS:
      for service in sample.schema(split, version):
        yield f"{service.name} {service.description}"
        for slot in service.slots:
          yield f"{slot.name.replace('_', ' ')} {slot.description}"
          yield f"{', '.join(slot.possible_values)}"


def train(out: pathlib.Path, num_pieces: int) -> None:
  """Writes a unigram model of `num_pieces` pieces to `out`."""
  lines, model = list(texts()), io.BytesIO()
  # The model keeps the name of its rules' file, so that must be the same on every machine.
  with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
    # One rule, no-break space to space: a model without rules logs a line whenever it is loaded.
    pathlib.Path("rules.tsv").write_text("A0\t20\n")
    sentencepiece.SentencePieceTrainer.train(
      sentence_iterator=iter(lines),
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
  out.write_bytes(model.getvalue())


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--out", type=pathlib.Path, default=VOCABULARY)
  parser.add_argument("--pieces", type=int, default=NUM_PIECES)
  arguments = parser.parse_args()
  train(arguments.out, arguments.pieces)
  print(f"{arguments.out}: {arguments.pieces} pieces")
