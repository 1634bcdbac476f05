"""Google's client and Hugging Face's models as providers. Nothing here uses the network.

Tests whose library is not installed are skipped; `pip install -e ".[google,hf]"` brings them.
"""

import concurrent.futures
import dataclasses
import json
import types

import pytest

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.papers.backtranslation.providers.google import GoogleTranslator
from sgdx_t5x.papers.backtranslation.providers.huggingface import HuggingFaceTranslator, Sampling
from sgdx_t5x.papers.backtranslation.providers.texts import TextProvider
from sgdx_t5x.variants.wording import wording

# --- google --------------------------------------------------------------------------------


class ApiError(Exception):
  """Like google.api_core's errors: `code` is the HTTP status."""

  def __init__(self, code):
    super().__init__(f"{code} quota exceeded")
    self.code = code


class FakeClient:
  """Like the v3 client: requests as dictionaries, answers with attributes; fails as scripted."""

  def __init__(self, *failures):
    self.failures, self.requests = list(failures), []

  def translate_text(self, request, retry, timeout):
    self.requests.append(request)
    if self.failures and (code := self.failures.pop(0)):
      raise ApiError(code)
    made = [f"{t} {request['target_language_code']}" for t in request["contents"]]
    items = [types.SimpleNamespace(translated_text=text) for text in made]
    return types.SimpleNamespace(translations=items)

  def get_supported_languages(self, request, retry, timeout):
    languages = [("en", True), ("zh-CN", True), ("ja", True), ("ko", True), ("xx", False)]
    items = [
      types.SimpleNamespace(language_code=code, support_source=True, support_target=target)
      for code, target in languages
    ]
    return types.SimpleNamespace(languages=items)


def google(client, notes=None):
  slept, notes = [], [] if notes is None else notes
  made = GoogleTranslator("proj", notify=notes.append, client=client, sleep=slept.append)
  return made, slept


def test_google_is_asked_for_plain_text_in_its_own_codes():
  translator, slept = google(client := FakeClient())
  assert translator.translate(["it's <b>", "b"], "en", "zh") == ["it's <b> zh-CN", "b zh-CN"]
  translator.translate(["a"], "zh", "en")
  assert client.requests[0] == {
    "parent": "projects/proj/locations/global",
    "model": "projects/proj/locations/global/models/general/nmt",
    "contents": ["it's <b>", "b"],
    "mime_type": "text/plain",
    "source_language_code": "en",
    "target_language_code": "zh-CN",
  }
  assert client.requests[1]["source_language_code"] == "zh-CN"
  assert slept == []


def test_google_is_waited_for_longer_and_longer():
  notes = []
  translator, slept = google(FakeClient(429, 503, 429, 500, 429, 429, 429, 429), notes)
  assert translator.translate(["a"], "en", "ja") == ["a ja"]
  assert len(slept) == 8
  for wait, most in zip(slept, [1, 2, 4, 8, 16, 32, 64, 64], strict=True):
    assert most / 2 <= wait <= most
  assert notes[0].startswith("google: ApiError (429); retrying in ")


@pytest.mark.parametrize(("failures", "requests"), [([429] * 9, 9), ([403], 1), ([400], 1)])
def test_a_failure_of_google_that_lasts_ends_the_command(tmp_path, failures, requests):
  """The first batch is kept; the next run sends only what is left."""
  client = FakeClient(None, *failures)
  provider = TextProvider(google(client)[0], tmp_path, lambda _: None)
  items = [(i, f"{i}" * 3000) for i in range(3)]  # stand in for elements; two would exceed a batch
  with pytest.raises(SgdxError, match=f"ApiError: {failures[0]} quota exceeded"):
    provider.back_translate(items, "zh", lambda *_: None)
  assert len(client.requests) == 1 + requests
  client = FakeClient()
  provider = TextProvider(google(client)[0], tmp_path, lambda _: None)
  assert [r.text[-8:] for r in provider.back_translate(items, "zh", lambda *_: None)] == [
    f"{i} zh-CN en"[-8:] for i in range(3)
  ]
  assert [r["contents"][0][0] for r in client.requests] == ["1", "2", "0", "1", "2"]


def test_google_says_which_languages_it_lacks():
  translator, _ = google(FakeClient())
  translator.check(["zh", "ja", "ko"])
  with pytest.raises(SgdxError, match=r"google: unsupported language 'xx'(.|\n)*en, zh-CN, ja, ko"):
    translator.check(["zh", "xx"])


def test_requests_and_errors_are_those_of_the_official_client():
  """The official client against a local server: first quota exceeded, then an answer."""
  translate_v3 = pytest.importorskip("google.cloud.translate_v3", reason='needs ".[google]"')
  import grpc

  received = []

  def answer(request, context):
    received.append(request)
    if len(received) == 1:
      context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "quota exceeded")
    items = [translate_v3.Translation(translated_text=f"<{t}>") for t in request.contents]
    return translate_v3.TranslateTextResponse(translations=items)

  def languages(request, context):
    item = translate_v3.SupportedLanguage(
      language_code="ko", support_source=True, support_target=True
    )
    return translate_v3.SupportedLanguages(languages=[item])

  def method(function, request, response):
    return grpc.unary_unary_rpc_method_handler(function, request.deserialize, response.serialize)

  handlers = {
    "TranslateText": method(
      answer, translate_v3.TranslateTextRequest, translate_v3.TranslateTextResponse
    ),
    "GetSupportedLanguages": method(
      languages, translate_v3.GetSupportedLanguagesRequest, translate_v3.SupportedLanguages
    ),
  }
  server = grpc.server(concurrent.futures.ThreadPoolExecutor(1))
  service = "google.cloud.translation.v3.TranslationService"
  server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
  port = server.add_insecure_port("localhost:0")
  server.start()
  try:
    kind = translate_v3.TranslationServiceClient.get_transport_class("grpc")
    channel = grpc.insecure_channel(f"localhost:{port}")
    transport = kind(channel=channel)
    translator, slept = google(translate_v3.TranslationServiceClient(transport=transport))
    translator.check(["ko"])
    assert translator.translate(["a", "b"], "en", "ko") == ["<a>", "<b>"]
  finally:
    server.stop(None)
  assert len(slept) == 1
  assert received[0] == received[1]
  assert received[1].mime_type == "text/plain"


# --- hf ------------------------------------------------------------------------------------


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
  "max_position_embeddings": 64,
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


def save_marian(transformers, folder, codes=()):
  folder.mkdir()
  vocabulary = {"</s>": 0, "<unk>": 1, "<pad>": 2}
  for piece in (*pieces(), *codes):
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


def hf(marian, **options):
  return HuggingFaceTranslator(str(marian / "en-{pivot}"), str(marian / "{pivot}-en-"), **options)


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_a_marian_model_really_translates_a_schema(transformers, marian, tmp_path):
  """Its texts equal those of the bare model, one by one, without padding and batches."""
  items = list(wording(open_corpus("sample").schema("train")).items())[:20]
  translator = hf(marian, batch_size=6, beams=2)
  provider = TextProvider(translator, tmp_path, lambda _: None)
  provider.check(["zh"])
  records = provider.back_translate(items, "zh", lambda *_: None)
  assert {r.provider for r in records} == {"en-zh + zh-en-, 2 beams"}
  assert len({r.text for r in records}) > 5
  assert all(r.text != r.pivot_text for r in records)

  def alone(name, text, room):
    tokenizer = transformers.MarianTokenizer.from_pretrained(marian / name)
    model = transformers.MarianMTModel.from_pretrained(marian / name).eval()
    inputs = tokenizer([text], return_tensors="pt")
    [made] = model.generate(**inputs, num_beams=2, do_sample=False, max_new_tokens=room)
    return tokenizer.decode(made, skip_special_tokens=True)

  for (_, text), record in list(zip(items, records, strict=True))[:4]:
    assert alone("en-zh", text, 62) == record.pivot_text

  translator.translate = None  # everything is in the cache
  assert provider.back_translate(items, "zh", lambda *_: None) == records


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_sampled_texts_are_a_matter_of_the_seed(marian):
  def sample(**options):
    translator = hf(marian, sampling=Sampling(**options))
    return translator.translate(["account type", "Which account"], "en", "zh")

  assert sample(seed=1) == sample(seed=1)
  assert sample(seed=1) != sample(seed=2)
  searched = hf(marian, beams=1).translate(["account type", "Which account"], "en", "zh")
  assert sample(seed=1) != searched
  assert sample(seed=1, temperature=1e-3) == sample(seed=2, temperature=1e-3) == searched
  assert sample(seed=1, top_p=1e-6) == searched


@pytest.mark.parametrize(("pivot", "code"), [("zh", ">>cmn_Hans<<"), ("ja", ">>jpn<<")])
def test_a_marian_model_of_several_targets_is_told_which(transformers, tmp_path, pivot, code):
  folder = save_marian(transformers, tmp_path / "many", codes=(">>cmn_Hans<<", ">>jpn<<"))
  translator = HuggingFaceTranslator(str(folder), str(save_marian(transformers, tmp_path / "en")))
  translator.check([pivot])
  tokenizer, inputs = spied(translator, folder, "en", pivot)
  assert tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])[0] == code
  with pytest.raises(SgdxError, match=r"unsupported language 'ko'(.|\n)*cmn_Hans, jpn"):
    translator.check(["ko"])


@pytest.mark.parametrize(
  ("kind", "source", "target"),
  [("m2m", "__en__", "__ko__"), ("nllb", "eng_Latn", "kor_Hang")],
)
def test_a_multilingual_model_is_told_both_languages(transformers, tmp_path, kind, source, target):
  folder = tmp_path / kind
  folder.mkdir()
  start = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
  if kind == "m2m":
    vocabulary = dict(start)
    for piece in (*pieces(), "en", "ko"):  # words that look like codes
      vocabulary.setdefault(piece, len(vocabulary))
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = transformers.M2M100Tokenizer(str(folder / "vocab.json"), vocabulary_file())
    size = len(vocabulary) + 108  # 100 languages, 8 made-up words
  else:
    letters = {c: i for i, c in enumerate("▁abcdefghijklmnopqrstuvwxyz", start=4)}
    tokenizer = transformers.NllbTokenizer(vocab=start | letters, merges=[])
    size = len(tokenizer)
  save(transformers, folder, "M2M100", tokenizer, size)
  translator = HuggingFaceTranslator(str(folder))
  translator.check(["zh", "ja", "ko"])
  tokenizer, inputs = spied(translator, folder, "en", "ko")
  assert tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])[0] == source
  assert inputs["forced_bos_token_id"] == tokenizer.convert_tokens_to_ids(target)
  tokenizer, inputs = spied(translator, folder, "ko", "en")
  assert tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])[0] == target
  with pytest.raises(SgdxError, match=r"unsupported language 'xx'(.|\n)*--language-codes xx=CODE"):
    translator.check(["xx"])
  other = {"xx": "fr" if kind == "m2m" else "fra_Latn"}
  HuggingFaceTranslator(str(folder), language_codes=other).check(["xx"])


def spied(translator, folder, source, target):
  """Translates, and returns the tokenizer and the model's inputs."""
  model = translator._load_model(folder)
  given = {}
  generate = model.generate
  model.generate = lambda **kwargs: given.update(kwargs) or generate(**kwargs)
  assert len(translator.translate(["account type"], source, target)) == 1
  model.generate = generate
  return translator._tokenizer(folder), given


def test_one_checkpoint_for_two_ways_is_refused(marian):
  (marian / "en-ja").symlink_to(marian / "en-zh")
  cases = [
    (("en-zh", None), ["zh"], "en > zh and zh > en"),
    (("en-{pivot}", "zh-en-"), ["zh", "ja"], "en > zh and en > ja"),  # a link to en-zh
  ]
  for names, pivots, part in cases:
    to, back = (name and str(marian / name) for name in names)
    with pytest.raises(UsageError, match="a checkpoint with language codes") as error:
      HuggingFaceTranslator(to, back).check(pivots)
    assert part in error.value.found


def test_checkpoints_that_lack_or_are_broken_are_refused(marian, tmp_path):
  with pytest.raises(SgdxError, match=r"no config.json in .*en-ko, for en > ko(.|\n)*en-zh"):
    hf(marian).check(["zh", "ko"])
  (tmp_path / "config.json").write_text('{"model_type": "marian"}')
  with pytest.raises(SgdxError, match="a complete checkpoint"):
    HuggingFaceTranslator(str(tmp_path), str(tmp_path)).check(["zh"])
  with pytest.raises(SgdxError, match="a text of 181 tokens"):
    hf(marian).translate(["account " * 30], "en", "zh")


def test_settings_are_what_decides_a_text(tmp_path):
  """A checkpoint's cache is not used for another checkpoint written in its place."""
  for name in ("to", "from"):
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text("{}")
  folders = str(tmp_path / "to"), str(tmp_path / "from")

  def settings(**options):
    return HuggingFaceTranslator(*folders, **options).settings("en", "zh")

  assert settings() == settings(batch_size=2)
  different = [settings(), settings(beams=1), settings(language_codes={"zh": "zho_Hant"})]
  different += [settings(sampling=Sampling(seed=seed)) for seed in (0, 1)]
  (tmp_path / "to" / "config.json").write_text("{ }")
  different.append(settings())
  assert len({json.dumps(d) for d in different}) == len(different)


@pytest.mark.parametrize("change", [{"temperature": 0}, {"top_p": 0}, {"top_p": 1.1}])
def test_sampling_without_sense_is_refused(change):
  with pytest.raises(UsageError, match="fix:"):
    dataclasses.replace(Sampling(), **change)
