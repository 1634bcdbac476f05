"""The provider `google`: Google Cloud Translation (v3), through its official client.

Its general neural model is that of Google Translate, which made the paper's back-translations. The
client is the extra `google`.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from sgdx_t5x.errors import SgdxError, first_line, nearest, require
from sgdx_t5x.variants.translations import Notify

_T = TypeVar("_T")
_MODEL = "general/nmt"
_CODES = {"zh": "zh-CN"}
_TEMPORARY = (429, 500, 502, 503, 504)  # 429: a quota per minute is used up
_TRIES = 9  # waits of 1, 2, 4 ... 64, 64 s at most: quotas come back after a minute
_LONGEST_WAIT_S = 64.0
_ONE_TRY = {"retry": None, "timeout": 60.0}  # per call; the client's own retries are silent


class GoogleTranslator:
  """Translates with Google's general model; retries after temporary errors."""

  name = "google"
  is_paid = True
  batch_texts = 128  # at most 1,024 texts and 30,000 characters in a request
  batch_characters = 5_000

  def __init__(
    self,
    project: str | None = None,
    *,
    notify: Notify = lambda _: None,
    client: Any = None,
    sleep: Callable[[float], None] = time.sleep,
  ):
    """Args: project to charge, the credentials' own if None; client and sleep are for tests."""
    self._project, self._notify, self._client, self._sleep = project, notify, client, sleep
    self._random = random.Random()

  def check(self, pivots: Sequence[str]) -> None:
    """Requests the supported languages, free of charge. Raises SgdxError if a pivot is not one."""
    request = {"parent": self._parent(), "model": f"{self._parent()}/models/{_MODEL}"}
    found = self._patiently(
      lambda: self._client.get_supported_languages(request=request, **_ONE_TRY)
    )
    codes = [x.language_code for x in found.languages if x.support_source and x.support_target]
    for pivot in pivots:
      if _CODES.get(pivot, pivot) not in codes:
        raise SgdxError(
          f"google: unsupported language {pivot!r}",
          expected="a language that Google translates in both directions",
          available=nearest(pivot, codes),
          fix="choose other pivot languages",
        )

  def settings(self, source: str, target: str) -> Mapping[str, Any]:
    """Returns the settings that determine a translation."""
    return {"api": "v3", "model": _MODEL}

  def label(self, pivot: str) -> str:
    """Names the API and the model."""
    return f"Google Cloud Translation v3, {_MODEL}"

  def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
    """Translates a batch. Raises the client's error if it is permanent or outlasts the retries."""
    request = {
      "parent": self._parent(),
      "model": f"{self._parent()}/models/{_MODEL}",
      "contents": list(texts),
      "mime_type": "text/plain",  # else HTML is expected, and quotes come back escaped
      "source_language_code": _CODES.get(source, source),
      "target_language_code": _CODES.get(target, target),
    }
    found = self._patiently(lambda: self._client.translate_text(request=request, **_ONE_TRY))
    return [translation.translated_text for translation in found.translations]

  def _parent(self) -> str:
    """The project's resource name; opens the client when first called."""
    if self._client is None:
      self._client, self._project = _open_client(self._project)
    return f"projects/{self._project}/locations/global"

  def _patiently(self, call: Callable[[], _T]) -> _T:
    """Calls, retrying after temporary errors with exponential backoff and jitter."""
    for attempt in range(1, _TRIES):
      try:
        return call()
      except Exception as e:
        code = getattr(e, "code", None)  # HTTP status, on errors of google.api_core
        if code not in _TEMPORARY:
          raise
        wait = min(2.0 ** (attempt - 1), _LONGEST_WAIT_S) * self._random.uniform(0.5, 1)
        self._notify(f"google: {type(e).__name__} ({int(code)}); retrying in {wait:.0f} s")
        self._sleep(wait)
    return call()


def _open_client(project: str | None) -> tuple[Any, str]:
  """Returns a client and the project to charge."""
  translate = require("google.cloud.translate_v3", extra="google", why="--provider google")
  auth = require("google.auth", extra="google", why="--provider google")
  try:
    credentials, own_project = auth.default()
  except auth.exceptions.GoogleAuthError as e:
    raise SgdxError(
      f"google: {first_line(e)}",
      expected="credentials for a project with the Cloud Translation API",
      fix="run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to "
      "the key file of a service account",
    ) from None
  if not (project or own_project):
    raise SgdxError(
      "google: the credentials do not name a project",
      expected="the project to bill for the translations",
      fix="pass --project ID",
    )
  client = translate.TranslationServiceClient(credentials=credentials)
  return client, project or own_project
