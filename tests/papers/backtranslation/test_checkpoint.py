"""Checkpoints as a provider. Nothing here uses the network.

Models are tiny, with random weights. Without the libraries the tests are skipped;
`pip install -e ".[hf]"` brings them.
"""

import json

import pytest

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.papers.backtranslation.checkpoint import CheckpointTranslator
from sgdx_t5x.papers.backtranslation.text_provider import TextProvider
from sgdx_t5x.variants.wording import wording


def vocabulary_file():
  import importlib.resources

  return str(importlib.resources.files("sgdx_t5x.corpus.sample") / "vocabulary.model")


def pieces():
  import sentencepiece

  model = sentencepiece.SentencePieceProcessor(model_file=vocabulary_file())
  return [model.id_to_piece(i) for i in range(model.get_piece_size())]


SIZES = {
  "d_model": 16,
  "encoder_layers": 1,
  "decoder_layers": 1,
  "encoder_attention_heads": 2,
  "decoder_attention_heads": 2,
  "encoder_ffn_dim": 32,
  "decoder_ffn_dim": 32,
  "max_position_embeddings": 256,
  "init_std": 1.0,  # otherwise all outputs are alike
}


def save(transformers, folder, kind, tokenizer, size, **config):
  import torch

  torch.manual_seed(len(folder.name))
  tokenizer.save_pretrained(folder)
  config = getattr(transformers, f"{kind}Config")(vocab_size=size, **SIZES, **config)
  name = {"Marian": "MarianMTModel", "M2M100": "M2M100ForConditionalGeneration"}[kind]
  getattr(transformers, name)(config).save_pretrained(folder)
  return folder


def save_marian(transformers, folder):
  folder.mkdir()
  vocabulary = {"</s>": 0, "<unk>": 1, "<pad>": 2}
  for piece in pieces():
    vocabulary.setdefault(piece, len(vocabulary))
  (folder / "vocab.json").write_text(json.dumps(vocabulary))
  spm = vocabulary_file()
  tokenizer = transformers.MarianTokenizer(spm, spm, str(folder / "vocab.json"))
  ids = {"pad_token_id": 2, "decoder_start_token_id": 2, "eos_token_id": 0}
  return save(transformers, folder, "Marian", tokenizer, len(vocabulary), **ids)


@pytest.fixture(scope="module")
def marian(transformers, tmp_path_factory):
  """Two checkpoints that each translate in one direction, with random weights."""
  root = tmp_path_factory.mktemp("marian")
  for name in ("en-zh", "zh-en-"):
    save_marian(transformers, root / name)
  return root


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_marian_models_really_translate_a_schema(transformers, marian, tmp_path):
  """Their texts equal those of the bare model, one by one, without padding and batches."""
  items = list(wording(open_corpus("sample").schema("train")).items())[:8]
  translator = CheckpointTranslator(marian / "en-zh", marian / "zh-en-")
  translator.batch_texts = 3
  provider = TextProvider(translator, tmp_path, lambda _: None)
  provider.check(["zh"])
  records = provider.back_translate(items, "zh", lambda *_: None)
  assert {r.provider for r in records} == {"en-zh + zh-en-, 4 beams"}
  assert len({r.text for r in records}) > 3
  assert all(r.text != r.pivot_text for r in records)
  tokenizer = transformers.MarianTokenizer.from_pretrained(marian / "en-zh")
  model = transformers.MarianMTModel.from_pretrained(marian / "en-zh").eval()
  for (_, text), record in list(zip(items, records, strict=True))[:2]:
    inputs = tokenizer([text], return_tensors="pt")
    [ids] = model.generate(**inputs, num_beams=4, do_sample=False, max_new_tokens=200)
    assert tokenizer.decode(ids, skip_special_tokens=True) == record.pivot_text

  translator.translate = None  # everything is in the cache
  assert provider.back_translate(items, "zh", lambda *_: None) == records


@pytest.fixture(params=["m2m", "nllb"])
def multilingual(request, transformers, tmp_path):
  """A checkpoint for all directions, its codes of English and Korean, and their tokens."""
  folder = tmp_path / request.param
  folder.mkdir()
  start = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
  if request.param == "m2m":
    vocabulary = dict(start)
    for piece in (*pieces(), "en", "ko"):  # words that look like codes
      vocabulary.setdefault(piece, len(vocabulary))
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = transformers.M2M100Tokenizer(str(folder / "vocab.json"), vocabulary_file())
    size = len(vocabulary) + 108  # 100 languages, 8 made-up words
    codes = {"en": "__en__", "ko": "__ko__"}
  else:
    letters = {c: i for i, c in enumerate("▁abcdefghijklmnopqrstuvwxyz", start=4)}
    tokenizer = transformers.NllbTokenizer(vocab=start | letters, merges=[])
    size = len(tokenizer)
    codes = {"eng_Latn": "eng_Latn", "kor_Hang": "kor_Hang"}
  return save(transformers, folder, "M2M100", tokenizer, size), codes


def test_a_multilingual_model_is_told_both_languages(multilingual):
  folder, tokens = multilingual
  english, korean = tokens
  translator = CheckpointTranslator(folder, codes={"en": english, "ko": korean})
  translator.check(["ko"])
  for source, target in (("en", "ko"), ("ko", "en")):
    codes = {"en": english, "ko": korean}
    tokenizer, inputs = spied(translator, folder, source, target)
    first = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])[0]
    assert first == tokens[codes[source]]
    start = inputs["forced_bos_token_id"]
    assert start == tokenizer.convert_tokens_to_ids(tokens[codes[target]])


def spied(translator, folder, source, target):
  """Translates, and returns the tokenizer and the model's inputs."""
  model = translator._load_model(folder)
  inputs = {}
  generate = model.generate
  model.generate = lambda **kwargs: inputs.update(kwargs) or generate(**kwargs)
  assert len(translator.translate(["account type"], source, target)) == 1
  model.generate = generate
  return translator._tokenizer(folder), inputs


def test_unknown_codes_are_refused_with_the_nearest(multilingual, marian):
  folder, tokens = multilingual
  english, korean = tokens
  wrong = {"en": english, "ko": korean + "s"}
  with pytest.raises(UsageError, match=f"no language '{korean}s'(.|\n)*nearest: .*{korean}"):
    CheckpointTranslator(folder, codes=wrong).check(["ko"])
  with pytest.raises(UsageError, match=r"no code given for en(.|\n)*--source CODE --target CODE"):
    CheckpointTranslator(folder).check(["ko"])
  with pytest.raises(UsageError, match=r"no language 'en'(.|\n)*its tokenizer has none"):
    CheckpointTranslator(marian / "en-zh", codes={"en": "en", "zh": "zh"}).check(["zh"])


@pytest.mark.parametrize(("names", "pivots"), [(["en-zh"], 1), (["en-zh", "zh-en-"], 2)])
def test_one_checkpoint_without_codes_for_two_ways_is_refused(marian, names, pivots):
  folders = [marian / name for name in names]
  with pytest.raises(UsageError, match="it translates in one direction"):
    CheckpointTranslator(*folders).check(["zh", "ja"][:pivots])


def test_checkpoints_that_lack_or_are_broken_are_refused(transformers, tmp_path):
  with pytest.raises(SgdxError, match="as `save_pretrained` writes it"):
    CheckpointTranslator(tmp_path / "nowhere").check(["zh"])
  (tmp_path / "config.json").write_text('{"model_type": "marian"}')
  with pytest.raises(SgdxError, match=r"available: config\.json"):
    CheckpointTranslator(tmp_path).check(["zh"])


def test_settings_are_what_decides_a_text(tmp_path):
  """A checkpoint's cache is not used for another checkpoint written in its place."""
  for name in ("to", "back"):
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text("{}")

  def settings(codes=None):
    translator = CheckpointTranslator(tmp_path / "to", tmp_path / "back", codes)
    return translator.settings("en", "zh")

  different = [settings(), settings({"en": "en", "zh": "zho_Hant"})]
  (tmp_path / "to" / "config.json").write_text("{ }")
  different.append(settings())
  assert len({json.dumps(d) for d in different}) == len(different)
