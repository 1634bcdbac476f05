"""WordPiece by BERT's rules, and as a SeqIO vocabulary."""

import json
import pathlib
import random

import pytest
import seqio
import tensorflow as tf
from places import ROOT

from sgdx_t5x import tasks
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary
from sgdx_t5x.spandst.wordpiece import WordPiece, words_of

PIECES = (
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[unused1]", "san", "jose", "José", "San", "##s", "cafe"),
  *("un", "##aff", "##able", "京", ".", ",", "'", "[", "]", "sep", "ss", "ß", "7", ":", "30"),
)
IDS = {piece: i for i, piece in enumerate(PIECES)}


@pytest.fixture
def write(tmp_path):
  def make(*pieces, name="vocab.txt"):
    (tmp_path / name).write_text("\n".join(pieces) + "\n", encoding="utf-8")
    return tmp_path / name

  return make


def cut(text, lower_case=True):
  pieces = WordPiece(IDS, lower_case).cut(text)
  return [PIECES[i] for i in pieces.ids], [
    text[start:end] for start, end in zip(pieces.starts, pieces.ends, strict=True)
  ]


# Rules of BERT's BasicTokenizer; for pretrained pieces see test_minilm.py.
@pytest.mark.parametrize(
  ("text", "words"),
  [
    ("San José's", ["san", "jose", "'", "s"]),
    ("e\u0301a", ["ea"]),  # a combining accent
    ("a\u200bb\x07c\ufffdd\ue000e", ["abcde"]),  # dropped: format, control, private
    ("a\tb\nc\u00a0d\u2009e\u2028f", ["a", "b", "c", "d", "e", "f"]),
    ("東京to", ["東", "京", "to"]),
    ("カタカナ 한글", ["カタカナ", "한글"]),
    ("x^2~`$5", ["x", "^", "2", "~", "`", "$", "5"]),
    ("“quoted”—dash…", ["“", "quoted", "”", "—", "dash", "…"]),
    ("½ Ⅷ ﬁ", ["½", "ⅷ", "ﬁ"]),  # no compatibility decomposition
    ("Straße", ["straße"]),
    ("a≠b a≯b", ["a", "=", "b", "a", ">", "b"]),  # punctuation once the stroke is stripped
    ("[SEP] [MASK]", ["[", "sep", "]", "[", "mask", "]"]),
    ("", []),
    (" \n", []),
  ],
)
def test_words_of_uncased_text(text, words):
  import unicodedata

  assert words_of(text, lower_case=True) == [
    "".join(c for c in unicodedata.normalize("NFD", w) if unicodedata.category(c) != "Mn")
    for w in words
  ]


def test_cased_text_keeps_case_and_accents():
  assert words_of("San José's", lower_case=False) == ["San", "José", "'", "s"]
  assert cut("San José.", lower_case=False)[0] == ["San", "José", "."]


def test_pieces_are_the_longest_from_the_left():
  assert cut("unaffable")[0] == ["un", "##aff", "##able"]
  assert cut("unaffables")[0] == ["un", "##aff", "##able", "##s"]
  assert cut("unaffablest") == (["[UNK]"], ["unaffablest"])
  assert cut("x" * 101) == (["[UNK]"], ["x" * 101])


def test_offsets_give_the_users_own_characters():
  text = "  San Jos\u00e9's Cafe\u0301, UN\u00adAFF\u00c1BLE 東京[SEP] 7:30"
  pieces, characters = cut(text)
  assert pieces[:5] == ["san", "jose", "'", "[UNK]", "cafe"]
  assert characters[:2] == ["San", "José"]
  assert ("##able", "ÁBLE") in zip(pieces, characters, strict=True)
  assert characters[4] == "Cafe\u0301"  # with its accent, a character of its own
  assert "".join(characters[-7:]) == "京[SEP]7:30"


@pytest.mark.parametrize("lower_case", [False, True])
def test_printable_ascii_is_cut_as_any_text_is(lower_case):
  """The shortcut for such texts agrees with the general rules, which a tab makes necessary."""
  word_piece = WordPieceVocabulary(
    ROOT / "sgdx_t5x/corpus/sample/vocab.txt", lower_case
  )._word_piece
  draw = random.Random(0)
  for _ in range(300):
    text = "".join(chr(draw.randrange(32, 127)) for _ in range(draw.randrange(60)))
    assert word_piece.cut(text) == word_piece.cut(text + "\t")
    assert [w for w, _ in word_piece.split(text)] == [w for w, _ in word_piece.split(text + "\t")]


def test_vocabulary_of_seqio(write):
  vocabulary = WordPieceVocabulary(write(*PIECES), lower_case=True)
  assert isinstance(vocabulary, seqio.Vocabulary)
  assert vocabulary.vocab_size == len(PIECES)
  assert (vocabulary.pad_id, vocabulary.unk_id) == (0, 1)
  assert (vocabulary.bos_id, vocabulary.eos_id) == (2, 3)
  ids = vocabulary.encode("San José unaffable")
  assert vocabulary.encode_tf(tf.constant("San José unaffable")).numpy().tolist() == ids
  for answer in (ids, [*ids, 3], [*ids, 3, 0, 0]):  # SeqIO passes on what ends a text
    assert vocabulary.decode(answer) == "san jose unaffable"
    assert vocabulary.decode_tf(tf.constant(answer)).numpy().decode() == "san jose unaffable"
  assert vocabulary.encode_texts("san", "jose").tolist() == [2, 5, 3, 6, 3]
  assert vocabulary.marker(1) == 4
  with pytest.raises(SgdxError, match=r"no piece \[unused2\]"):
    vocabulary.marker(2)


def test_equal_vocabularies_have_the_same_file_and_case(write, tmp_path):
  path = write(*PIECES)
  (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
  one = WordPieceVocabulary(path)
  assert one == WordPieceVocabulary(tmp_path, lower_case=True)
  assert hash(one) == hash(WordPieceVocabulary(tmp_path))
  assert one != WordPieceVocabulary(path, lower_case=False)
  assert one != seqio.PassThroughVocabulary(size=3)
  for text in ("[]", '"x"', "null"):  # is no configuration
    (tmp_path / "tokenizer_config.json").write_text(text)
    with pytest.raises(SgdxError, match="no setting says whether"):
      WordPieceVocabulary(path)


@pytest.mark.parametrize(
  ("pieces", "words"),
  [
    (("[PAD]", "[UNK]", "a"), ["no piece [CLS]", "no piece [SEP]"]),
    (("[UNK]", "[PAD]", "[CLS]", "[SEP]"), ["[PAD] is piece 1"]),
    (("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "a"), ["duplicate pieces: a"]),
  ],
)
def test_files_that_are_no_vocabulary(write, pieces, words):
  vocabulary = WordPieceVocabulary(write(*pieces), lower_case=True)
  with pytest.raises(SgdxError) as e:
    vocabulary.encode("a")
  for word in words:
    assert word in str(e.value)


def test_a_vocabulary_whose_case_nothing_tells(write, tmp_path):
  with pytest.raises(SgdxError, match="nothere"):
    WordPieceVocabulary(tmp_path / "nothere")
  with pytest.raises(SgdxError, match="do_lower_case"):
    WordPieceVocabulary(write(*PIECES))
  with pytest.raises(SgdxError, match="missing"):
    WordPieceVocabulary(tmp_path / "missing/vocab.txt", lower_case=True).encode("a")


@pytest.mark.parametrize(
  ("settings", "words"),
  [
    ({"do_lower_case": True, "strip_accents": False}, ["strip_accents is false", "true or null"]),
    ({"do_lower_case": False, "strip_accents": True}, ["strip_accents is true", "false or null"]),
    ({"do_lower_case": True, "tokenize_chinese_chars": False}, ["tokenize_chinese_chars"]),
    ({"do_lower_case": True, "unk_token": "[MASK]"}, ['unk_token is "[MASK]"']),
    ({"do_lower_case": True, "unk_token": {"content": "<unk>"}}, ['unk_token is "<unk>"']),
  ],
)
def test_rules_that_are_not_berts_are_refused(write, settings, words):
  path = write(*PIECES)
  config = pathlib.Path(path).with_name("tokenizer_config.json")
  config.write_text(json.dumps(settings))
  with pytest.raises(SgdxError) as e:
    WordPieceVocabulary(path)
  assert all(word in str(e.value) for word in words)
  assert WordPieceVocabulary(path, lower_case=settings["do_lower_case"]).encode("a")
  config.write_text(json.dumps({"do_lower_case": True, "strip_accents": True}))
  assert WordPieceVocabulary(path).lower_case


def test_the_samples_vocabulary_knows_its_characters_and_has_markers():
  vocabulary = tasks.sample_encoder_vocabulary()
  assert vocabulary == tasks.sample_encoder_vocabulary()
  assert vocabulary.marker(16)
  assert vocabulary.unk_id not in vocabulary.encode("zq#~!@%^&*()9")


def test_the_encoder_must_be_named(monkeypatch, tmp_path):
  monkeypatch.delenv("SGDX_ENCODER", raising=False)
  with pytest.raises(SgdxError, match="SGDX_ENCODER is not set"):
    tasks.encoder_vocabulary()
  monkeypatch.setenv("SGDX_ENCODER", str(tmp_path))
  with pytest.raises(SgdxError, match=r"no vocab\.txt"):
    tasks.encoder_vocabulary()
