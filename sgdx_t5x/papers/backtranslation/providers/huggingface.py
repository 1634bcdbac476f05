"""The provider `hf`: Marian, M2M100, NLLB or mBART-50 checkpoints, run by `transformers`.

A Marian checkpoint usually translates from one language to another; the others translate between
all languages that they know, selected by language codes. Beam search is the default; the SGD-X
paper proposes sampling for variants that differ more. The extra `hf` installs the libraries.
"""

import dataclasses
import hashlib
import json
import pathlib
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError, UsageError, first_line, nearest, require
from sgdx_t5x.papers.backtranslation.providers.texts import SOURCE

PLACEHOLDER = "{pivot}"
_MARIAN = "marian"
_MULTILINGUAL = ("m2m_100", "mbart")  # NLLB's model is M2M100's
_MOST_TOKENS = 200  # of a translation: some never end on their own
_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(_[A-Za-z]{2,4})?")
# Of NLLB, M2M100 and mBART-50; of Marian checkpoints with several target languages.
_CODES = {
  "en": ("eng_Latn", "en", "en_XX"),
  "zh": ("zho_Hans", "zh", "zh_CN"),
  "ja": ("jpn_Jpan", "ja", "ja_XX"),
  "ko": ("kor_Hang", "ko", "ko_KR"),
}
_MARIAN_CODES = {
  "en": ("eng", "eng_Latn", "en"),
  "zh": ("cmn_Hans", "zho_Hans", "cmn", "zho", "zh"),
  "ja": ("jpn", "jpn_Jpan", "ja"),
  "ko": ("kor", "kor_Hang", "ko"),
}


@dataclasses.dataclass(frozen=True)
class Sampling:
  """Sampling instead of beam search.

  Attributes:
    temperature: 1 keeps the model's probabilities; lower values sharpen them.
    top_p: tokens are sampled from the likeliest ones with this cumulative probability.
    seed: the same seed gives the same texts.
  """

  temperature: float = 1.0
  top_p: float = 0.9
  seed: int = 0

  def __post_init__(self):
    if self.temperature <= 0 or not 0 < self.top_p <= 1:
      raise UsageError(
        f"temperature {self.temperature:g}, top-p {self.top_p:g}",
        expected="a temperature above 0, a top-p above 0 and at most 1",
        fix="pass --temperature 1 --top-p 0.9",
      )


class HuggingFaceTranslator:
  """Translates with checkpoints on this machine, on its GPU if there is one."""

  name = "hf"
  is_paid = False
  batch_characters = 20_000

  def __init__(
    self,
    model_to: str | None = None,
    model_from: str | None = None,
    *,
    language_codes: Mapping[str, str] | None = None,
    batch_size: int = 16,
    beams: int = 4,
    sampling: Sampling | None = None,
  ):
    """Args:
    model_to: folder of a checkpoint English > pivot; "{pivot}" in it stands for the pivot.
    model_from: the same for pivot > English; None if `model_to` translates both ways.
    language_codes: language -> the checkpoint's code, where it is not the usual one.
    batch_size: texts at a time.
    beams: width of the beam search.
    sampling: how to sample; None for beam search.
    """
    if not model_to:
      raise UsageError(
        "--provider hf without --model-to",
        expected="the folder of a Marian, M2M100, NLLB or mBART-50 checkpoint",
        fix="pass --model-to DIR, and --model-from DIR unless it translates both ways",
      )
    self._to, self._from = model_to, model_from or model_to
    self._codes = language_codes or {}
    self.batch_texts, self._beams, self._sampling = batch_size, beams, sampling
    self._tokenizers: dict[pathlib.Path, Any] = {}
    self._model: tuple[pathlib.Path | None, Any] = (None, None)  # one at a time: they are large

  def check(self, pivots: Sequence[str]) -> None:
    """Refuses pivots without a checkpoint, or whose code the checkpoint does not know."""
    one_way: dict[pathlib.Path, tuple[str, str]] = {}
    for pivot in pivots:
      for source, target in ((SOURCE, pivot), (pivot, SOURCE)):
        folder = self._folder(source, target)
        has_codes = self._languages(folder, source, target) != _Languages()
        first = one_way.setdefault(folder, (source, target))
        if not has_codes and first != (source, target):
          raise UsageError(
            f"{folder} would have to translate {' > '.join(first)} and {source} > {target}",
            expected="a checkpoint with language codes, or one checkpoint per direction",
            fix=f"pass --model-to and --model-from, with {PLACEHOLDER} in both for several pivots; "
            "or run the command for each pivot",
          )

  def settings(self, source: str, target: str) -> Mapping[str, Any]:
    """What determines a translation: the files, by size and modification time, and decoding."""
    folder = self._folder(source, target)
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {
      "model": str(folder),
      "files": [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files],
      "language_codes": dict(self._codes),
      "decoding": self._decoding(),
    }

  def label(self, pivot: str) -> str:
    """Names the folders of the checkpoints and the decoding."""
    ways = ((SOURCE, pivot), (pivot, SOURCE))
    names = dict.fromkeys(self._folder(*way).name for way in ways)
    return f"{' + '.join(names)}, {self._decoding()}"

  def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
    """Translates a batch."""
    import torch

    folder = self._folder(source, target)
    languages, tokenizer = self._languages(folder, source, target), self._tokenizer(folder)
    model = self._load_model(folder)
    if languages.source:
      tokenizer.src_lang = languages.source
    inputs = tokenizer(
      [languages.prefix + text for text in texts], return_tensors="pt", padding=True
    ).to(model.device)
    room = _room(model.config, inputs["input_ids"].shape[1], texts)
    options: dict[str, Any] = {"max_new_tokens": room}
    if languages.target is not None:
      options["forced_bos_token_id"] = languages.target
    with torch.inference_mode(), torch.random.fork_rng():
      if self._sampling is None:
        options |= {"num_beams": self._beams, "do_sample": False}
      else:
        torch.manual_seed(_seed(self._sampling.seed, texts, source, target))
        options |= {"num_beams": 1, "do_sample": True, "top_k": 0}
        options |= {"temperature": self._sampling.temperature, "top_p": self._sampling.top_p}
      made = model.generate(**inputs, **options)
    return tokenizer.batch_decode(made, skip_special_tokens=True)

  def _decoding(self) -> str:
    if self._sampling is None:
      return f"{self._beams} beams"
    s = self._sampling
    return f"sampled, temperature {s.temperature:g}, top-p {s.top_p:g}, seed {s.seed}"

  def _folder(self, source: str, target: str) -> pathlib.Path:
    template, pivot = (self._to, target) if source == SOURCE else (self._from, source)
    folder = pathlib.Path(template.replace(PLACEHOLDER, pivot)).resolve()
    if not (folder / "config.json").is_file():
      option = "--model-to" if source == SOURCE else "--model-from"
      beside = sorted(path.name for path in folder.parent.glob("*") if path.is_dir())
      raise SgdxError(
        f"{option}: no config.json in {folder}, for {source} > {target}",
        expected="a checkpoint folder, as written by `save_pretrained`",
        available=nearest(folder.name, beside),
        fix="download the checkpoint, or choose pivots that have one",
      )
    return folder

  def _languages(self, folder: pathlib.Path, source: str, target: str) -> "_Languages":
    """Returns how the languages are passed to the checkpoint. Raises SgdxError if it lacks one."""
    family = _config(folder).get("model_type")
    tokenizer = self._tokenizer(folder)
    if family == _MARIAN:
      known = tokenizer.supported_language_codes  # of targets: ">>jpn<<"
      for code in self._candidates(target, _MARIAN_CODES):
        if f">>{code}<<" in known:
          return _Languages(prefix=f">>{code}<< ")
      if not known or target == SOURCE:  # those that translate into English alone need no code
        return _Languages()
      raise _no_language(folder, target, [code.strip("<>") for code in known])
    if family in _MULTILINGUAL:
      (source_code, _), (_, target_id) = (
        self._code(folder, language) for language in (source, target)
      )
      return _Languages(source=source_code, target=target_id)
    raise SgdxError(
      f"{folder}: unsupported model type {family!r}",
      expected="a Marian, M2M100, NLLB or mBART-50 checkpoint",
      available=", ".join((_MARIAN, *_MULTILINGUAL)),
      fix="use another checkpoint",
    )

  def _code(self, folder: pathlib.Path, language: str) -> tuple[str, int]:
    """Returns a multilingual checkpoint's code of a language, and the id of its token."""
    tokenizer = self._tokenizer(folder)
    for code in self._candidates(language, _CODES):
      token = code if "_" in code else f"__{code}__"  # M2M100's: a plain "en" may be a word
      number = tokenizer.convert_tokens_to_ids(token)
      if number not in (None, tokenizer.unk_token_id):
        return code, number
    known = getattr(tokenizer, "lang_code_to_id", None) or tokenizer.get_vocab()
    raise _no_language(folder, language, [c for c in known if _LANGUAGE_CODE.fullmatch(c)])

  def _candidates(self, language: str, codes: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    given = self._codes.get(language)
    return (given,) if given else codes.get(language, (language,))

  def _tokenizer(self, folder: pathlib.Path) -> Any:
    if folder not in self._tokenizers:
      tokenizer = _transformers().AutoTokenizer
      self._tokenizers[folder] = _load(tokenizer, folder)
    return self._tokenizers[folder]

  def _load_model(self, folder: pathlib.Path) -> Any:
    if self._model[0] != folder:
      import torch

      self._model = (None, None)  # free the other before loading this one
      model = _load(_transformers().AutoModelForSeq2SeqLM, folder)
      model = model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
      self._model = (folder, model)
    return self._model[1]


@dataclasses.dataclass(frozen=True)
class _Languages:
  """How source and target language are passed to a checkpoint; empty if it has one direction."""

  prefix: str = ""
  source: str | None = None  # code, for the tokenizer
  target: int | None = None  # id of the token that the translation begins with


def _transformers() -> Any:
  require("torch", extra="hf", why="--provider hf")  # transformers has no models without it
  transformers = require("transformers", extra="hf", why="--provider hf")
  transformers.logging.set_verbosity_error()
  transformers.logging.disable_progress_bar()
  return transformers


def _load(kind: Any, folder: pathlib.Path) -> Any:
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # sacremoses is recommended, and then not used
      return kind.from_pretrained(folder, local_files_only=True)
  except Exception as e:  # many kinds: missing or truncated files, a missing package
    raise SgdxError(
      f"{folder}: {type(e).__name__}: {first_line(e)}",
      expected="a complete checkpoint: config.json, weights, and the files of its tokenizer",
      available=nearest("", [path.name for path in sorted(folder.iterdir())]),
      fix='download it again; tokenizers of Marian and M2M100 need `pip install "sgdx_t5x[hf]"`',
    ) from e


def _config(folder: pathlib.Path) -> Mapping[str, Any]:
  try:
    return json.loads((folder / "config.json").read_text("utf-8"))
  except (OSError, ValueError) as e:
    raise SgdxError(
      f"{folder}/config.json: {e}",
      expected="the configuration of a checkpoint, as JSON",
      fix="download the checkpoint again",
    ) from None


def _room(config: Any, length: int, texts: Sequence[str]) -> int:
  """Returns how many tokens a translation may have. Raises SgdxError if a text is too long."""
  most = config.max_position_embeddings
  if length > most:
    raise SgdxError(
      f"hf: a text of {length} tokens: {max(texts, key=len)[:60]!r} ...",
      expected=f"at most {most}, the checkpoint's maximum",
      fix="shorten the description, or use another checkpoint",
    )
  return min(_MOST_TOKENS, most - 2)


def _seed(seed: int, texts: Sequence[str], source: str, target: str) -> int:
  """The seed of a batch: the same whether or not the command was interrupted before it.

  Texts that the cache already has are in no batch, so that the others' seeds depend on them.
  """
  data = json.dumps([seed, source, target, *texts]).encode()
  return int.from_bytes(hashlib.sha256(data).digest()[:7], "big")


def _no_language(folder: pathlib.Path, language: str, known: Sequence[str]) -> SgdxError:
  return SgdxError(
    f"{folder}: unsupported language {language!r}",
    expected="a language of the checkpoint",
    available=nearest(language, known),
    fix=f"choose other pivots, or pass the checkpoint's code to `sgdx backtranslate`: "
    f"--language-codes {language}=CODE",
  )
