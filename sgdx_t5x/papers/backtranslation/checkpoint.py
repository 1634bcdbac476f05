"""The provider `hf`: any sequence-to-sequence checkpoint that `transformers` can load.

The user names the checkpoint and the codes of the languages as its tokenizer calls them: `zho_Hans`
for NLLB, `zh` for M2M100, `zh_CN` for mBART-50. Checkpoints without codes, such as Marian's,
translate in one direction, and two of them make a round trip. The extra `hf` installs the library.
"""

import pathlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from sgdx_t5x.errors import SgdxError, UsageError, first_line, nearest, require
from sgdx_t5x.papers.backtranslation.translations import SOURCE

_BEAMS = 4  # width of the beam search
_MOST_TOKENS = 200  # of a translation: some never end on their own


class CheckpointTranslator:
  """Translates with checkpoints on this machine, on its GPU if there is one.

  Attributes:
    name: of the provider.
    batch_texts: number of texts in a batch.
  """

  name = "hf"
  batch_texts = 16

  def __init__(
    self,
    model: str,
    model_back: str | None = None,
    codes: Mapping[str, str] | None = None,
  ):
    """Args:
    model: folder of a checkpoint from English to the pivots.
    model_back: of one from the pivots to English; None if `model` translates both ways.
    codes: language ("en", "zh") -> the tokenizer's code; empty for checkpoints without codes.
    """
    self._to, self._back = pathlib.Path(model), pathlib.Path(model_back or model)
    self._codes = codes or {}
    self._tokenizers: dict[pathlib.Path, Any] = {}
    self._model: tuple[pathlib.Path | None, Any] = (None, None)  # one at a time: they are large

  def check(self, pivots: Sequence[str]) -> None:
    """Refuses checkpoints that lack, and codes that their tokenizers do not know."""
    for folder in dict.fromkeys((self._to, self._back)):
      codes = _language_ids(self._tokenizer(folder))
      for language in (SOURCE, *pivots):
        code = self._codes.get(language)
        if code not in codes and (code or codes):  # without codes on both sides none is needed
          raise UsageError(
            f"{folder}: " + (f"no language {code!r}" if code else f"no code given for {language}"),
            expected="codes of its tokenizer" if codes else "no codes: its tokenizer has none",
            available=nearest(code or language, codes),
            fix="pass --source CODE --target CODE" if codes else "leave out --source, --target",
          )
      if not codes and (self._to == self._back or len(pivots) > 1):
        raise UsageError(
          f"{folder} has no language codes: it translates in one direction",
          expected="one pivot, a checkpoint for each direction",
          fix="pass --model DIR --model-back DIR, with one of --pivots at a time",
        )

  def settings(self, source: str, target: str) -> Mapping[str, Any]:
    """What determines a translation, as JSON: files by size and modification time, and decoding."""
    folder = self._folder(source)
    files = sorted(path for path in folder.glob("*") if path.is_file())
    return {
      "model": str(folder.resolve()),
      "files": [[path.name, path.stat().st_size, path.stat().st_mtime_ns] for path in files],
      "codes": [self._codes.get(source), self._codes.get(target)],
      "beams": _BEAMS,
    }

  def label(self, pivot: str) -> str:
    """Names the checkpoints and the decoding, for records."""
    names = dict.fromkeys(folder.resolve().name for folder in (self._to, self._back))
    return f"{' + '.join(names)}, {_BEAMS} beams"

  def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
    """Translates a batch."""
    import torch

    folder = self._folder(source)
    tokenizer, model = self._tokenizer(folder), self._load_model(folder)
    options = {}
    if target in self._codes:
      tokenizer.src_lang = self._codes[source]
      options["forced_bos_token_id"] = _language_ids(tokenizer)[self._codes[target]]
    inputs = tokenizer(list(texts), return_tensors="pt", padding=True).to(model.device)
    with torch.inference_mode():
      output = model.generate(
        **inputs, **options, num_beams=_BEAMS, do_sample=False, max_new_tokens=_MOST_TOKENS
      )
    return tokenizer.batch_decode(output, skip_special_tokens=True)

  def _folder(self, source: str) -> pathlib.Path:
    return self._to if source == SOURCE else self._back

  def _tokenizer(self, folder: pathlib.Path) -> Any:
    if folder not in self._tokenizers:
      self._tokenizers[folder] = _load("AutoTokenizer", folder)
    return self._tokenizers[folder]

  def _load_model(self, folder: pathlib.Path) -> Any:
    if self._model[0] != folder:
      import torch

      self._model = (None, None)  # free the other before loading this one
      model = _load("AutoModelForSeq2SeqLM", folder)
      self._model = folder, model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
    return self._model[1]


def _language_ids(tokenizer: Any) -> Mapping[str, int]:
  """Returns {language code: id of its token}; empty if the tokenizer has no codes."""
  ids = getattr(tokenizer, "lang_code_to_id", None)  # M2M100, mBART-50
  if ids is None:  # NLLB: special tokens; the others are no words: "</s>"
    codes = [token for token in tokenizer.all_special_tokens if token.isidentifier()]
    ids = dict(zip(codes, tokenizer.convert_tokens_to_ids(codes), strict=True))
  return ids


def _load(kind: str, folder: pathlib.Path) -> Any:
  """Loads a tokenizer or model. Raises SgdxError: no library, no complete checkpoint."""
  require("torch", extra="hf", why="--provider hf")  # transformers has no models without it
  transformers = require("transformers", extra="hf", why="--provider hf")
  transformers.logging.set_verbosity_error()
  transformers.logging.disable_progress_bar()
  try:
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # sacremoses is recommended, and then not used
      return getattr(transformers, kind).from_pretrained(folder, local_files_only=True)
  except Exception as e:  # many kinds: missing or truncated files, a missing package
    raise SgdxError(
      f"{folder}: {type(e).__name__}: {first_line(e)}",
      expected="a folder as `save_pretrained` writes it: config.json, weights, tokenizer",
      available=nearest("", sorted(path.name for path in folder.glob("*"))),
      fix="download the checkpoint again",
    ) from e
