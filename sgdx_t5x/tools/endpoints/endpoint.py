"""An OpenAI-compatible endpoint for chat completions: sends a request and interprets its answer."""

import contextlib
import json
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, NoReturn

import aiohttp

from sgdx_t5x.errors import SgdxError, UsageError
from sgdx_t5x.files.reading import decode_json
from sgdx_t5x.tools.endpoints.request_file import to_json
from sgdx_t5x.tools.messages import NoAnswer, has_plain_calls, malformed_call, read_answer

KEY = "OPENAI_API_KEY"  # environment variable
TIMEOUT_S = 600.0  # for a request, from its start to the end of the answer
_PATH = "/chat/completions"
_SHORTEST_SECRET = 8  # shorter keys, as of local servers, may occur as words in answers
_TEMPORARY = (408, 409, 425, 429)  # and 500 or above
_LONGEST_WAIT_S = 3600.0  # that a service may ask for
_LONGEST_QUOTE = 300  # characters of what a service says
LARGEST_ANSWER = 32 * 2**20  # bytes: a thousand times that of a long answer


class Failed(Exception):
  """A request that failed, and may succeed if it is retried.

  Attributes:
    wait: seconds that the service asks for.
  """

  def __init__(self, why: str, wait: float = 0.0):
    super().__init__(why)
    self.wait = wait


class Refused(Exception):
  """A request that the service rejects, however often it is retried."""


def chat_url(endpoint: str) -> str:
  """Returns the URL that requests are sent to.

  Args:
    endpoint: http://HOST:PORT, the base URL of an API such as http://HOST/v1, or the full URL.

  Raises:
    UsageError: not such a URL, or one with a name or password, which is not shown.
  """
  found, host = urllib.parse.urlsplit(""), None
  try:
    found = urllib.parse.urlsplit(endpoint)
    host, _ = found.hostname, found.port
  except ValueError:
    pass
  if found.scheme not in ("http", "https") or not host or found.username or found.password:
    secret = found.username or found.password
    raise UsageError(
      "--endpoint contains a user name or password" if secret else f"--endpoint {endpoint!r}",
      expected="http://HOST:PORT/v1 or https://HOST/v1, of an OpenAI-compatible API",
      fix=f"put the key into {KEY}" if secret else "pass its URL",
    )
  path = found.path.rstrip("/")
  if not path.endswith(_PATH):
    path = f"{path or '/v1'}{_PATH}"
  return found._replace(path=path, fragment="").geturl()


class Endpoint:
  """Sends requests. Use it as an asynchronous context manager.

  Attributes:
    shown: its address, for messages.
    has_answered: whether it answered any request, in this run or before.
  """

  def __init__(self, url: str, key: str, connections: int):
    """Opens no connection yet.

    Args:
      url: as returned by `chat_url`.
      key: sent with every request; "" for none.
      connections: maximum number at once.
    """
    self._url, self._key, self._connections = url, key, connections
    self._secret = key if len(key) >= _SHORTEST_SECRET else ""
    self.shown, self.has_answered, self._is_there = url.partition("?")[0], False, False

  async def __aenter__(self) -> "Endpoint":
    self._proxy = _proxy(self._url)
    headers = {"Content-Type": "application/json"}
    if self._key:
      headers["Authorization"] = f"Bearer {self._key}"
    self._session = aiohttp.ClientSession(
      connector=aiohttp.TCPConnector(limit=self._connections),
      timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
      headers=headers,
    )
    return self

  async def __aexit__(self, *_: object) -> None:
    await self._session.close()

  async def ask(self, body: bytes) -> tuple[dict[str, Any], int]:
    """Sends a request and returns the decoded answer and its status.

    The status is not 200 if the service returns a call of the model that it could not parse.

    Raises:
      Failed, Refused: no answer.
      SgdxError: no request will get one: no server, wrong key, wrong model.
    """
    try:
      async with self._session.post(
        self._url, data=body, proxy=self._proxy, allow_redirects=False
      ) as response:
        text = await _read(response)
    except TimeoutError:
      raise Failed(f"no answer within {TIMEOUT_S:g} s") from None
    except (aiohttp.ClientError, OSError, UnicodeError) as e:  # the last: of a host's name
      raise self._lost(e) from None
    self._is_there = True
    text = self._without_key(text)
    found = _completion(text) if response.status == 200 else _malformed_call(text)
    if found is None:
      self._raise_for(response.status, response.headers, text)
    self.has_answered = True
    return found, response.status

  def _lost(self, error: Exception) -> Exception:
    """Returns the error for a connection that failed: fatal if there has never been one."""
    # The texts of aiohttp's errors have URLs, with any secrets in them.
    why = type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError):
      why = error.os_error.strerror or str(error.os_error)
      if isinstance(error.os_error, ConnectionRefusedError):
        why = "connection refused"  # for which aiohttp lists the addresses it tried
    elif isinstance(error, aiohttp.ClientResponseError):
      why = f"status {error.status}"
    if self._proxy:
      why += ", through the proxy of http_proxy or https_proxy"
    if self._is_there or not isinstance(
      error, aiohttp.ClientConnectorError | aiohttp.InvalidURL | UnicodeError
    ):
      return Failed(f"connection lost: {why}")
    return SgdxError(
      f"{self.shown}: {why}",
      expected="a server listening at this address; with https, one whose certificate this machine "
      "trusts (SSL_CERT_FILE)",
      fix="start the server, or check --endpoint, and http_proxy and https_proxy if they are set",
    )

  def _raise_for(self, status: int, headers: Mapping[str, str], text: bytes) -> NoReturn:
    """Raises the error for a status other than 200."""
    said = f"status {status}: {' '.join(_message(text).split())[:_LONGEST_QUOTE]}"
    unpaid = status == 402 or (status == 429 and b"insufficient_quota" in text)
    if (status in _TEMPORARY or status >= 500) and not unpaid:
      raise Failed(said, _retry_after(headers.get("Retry-After", "")))
    where = f"{self.shown}: {said}"
    if status in (401, 403) or unpaid:
      raise SgdxError(
        where,
        expected="a valid API key of an account with sufficient credit",
        available=f"the environment variable {KEY} is {'set' if self._key else 'not set'}",
        fix=f"export {KEY}=..., or check the account's billing",
      )
    if status < 400 or status in (404, 405):
      raise SgdxError(
        where,
        expected="the address of an OpenAI-compatible API, which answers POST requests, and a "
        "model that it has",
        available="it redirects" if status < 400 else "",
        fix="pass another --endpoint or --model",
      )
    raise Refused(said)

  def _without_key(self, text: bytes) -> bytes:
    """Returns a service's answer without the key that it may repeat, however JSON escapes it."""
    if not self._secret:
      return text
    if b"\\" in text:
      with contextlib.suppress(SgdxError, RecursionError):
        text = to_json(decode_json(text, "answer", "JSON"))
    for form in (self._secret, json.dumps(self._secret)[1:-1]):
      text = text.replace(form.encode(), b"[key]")
    return text


async def _read(response: aiohttp.ClientResponse) -> bytes:
  """Returns a response's body. Raises Refused if it becomes too large, also decompressed."""
  parts, size = [], 0
  async for part in response.content.iter_any():
    parts.append(part)
    size += len(part)
    if size > LARGEST_ANSWER:
      response.close()
      raise Refused(f"the answer has more than {LARGEST_ANSWER // 2**20} MiB")
  return b"".join(parts)


def _completion(text: bytes) -> dict[str, Any]:
  """Returns a chat completion. Raises Failed, Refused for anything else."""
  try:
    found = decode_json(text, "answer", "JSON")
  except SgdxError:
    raise Failed("the answer is not JSON") from None
  with contextlib.suppress(SgdxError):
    try:
      if isinstance(found, dict) and has_plain_calls(found):
        return found
      answer = read_answer(found, "") if isinstance(found, dict) else None
    except NoAnswer as e:
      raise (Failed if e.asked_again else Refused)(str(e)[:_LONGEST_QUOTE]) from None
    # The forms of other services are read as well, but not expected here.
    if answer and (answer.calls is None or found.get("choices")):
      return found
  raise Failed(f"not a chat completion: {_message(text)[:_LONGEST_QUOTE]}")


def _malformed_call(text: bytes) -> dict[str, Any] | None:
  """Returns an error response if it has a call of the model that the service could not parse."""
  try:
    found = decode_json(text, "answer", "JSON")
  except SgdxError:
    return None
  return found if isinstance(found, dict) and malformed_call(found) is not None else None


def _message(text: bytes) -> str:
  """Returns the message in a service's error response, or all of it if the form is unknown."""
  try:
    found = json.loads(text)
    while isinstance(found, dict) and (keys := found.keys() & {"error", "message", "detail"}):
      found = found[min(keys, key=("error", "message", "detail").index)]
    return found if isinstance(found, str) else json.dumps(found)
  except (ValueError, RecursionError):
    return text.decode("utf-8", "replace")


def _retry_after(text: str) -> float:
  """Returns the seconds of a header Retry-After; 0 if it has a date, which is rare."""
  try:
    seconds = float(text)
  except ValueError:
    return 0.0
  return min(seconds, _LONGEST_WAIT_S) if seconds > 0 else 0.0


def _proxy(url: str) -> str | None:
  """Returns the proxy that the environment names for a URL (http_proxy, https_proxy, no_proxy)."""
  found = urllib.parse.urlsplit(url)
  if urllib.request.proxy_bypass(found.netloc.rpartition("@")[2]):
    return None
  proxy = urllib.request.getproxies().get(found.scheme)
  return f"http://{proxy}" if proxy and "://" not in proxy else proxy
