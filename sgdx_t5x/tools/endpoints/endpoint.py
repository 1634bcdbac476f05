"""An OpenAI-compatible endpoint for chat completions: sends a request and interprets its answer."""

import contextlib
import email.utils
import json
import re
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, NoReturn

import aiohttp

from sgdx_t5x.errors import SgdxError, UsageError, nearest
from sgdx_t5x.files.reading import decode_json
from sgdx_t5x.tools.endpoints.request_file import to_json
from sgdx_t5x.tools.messages import NoAnswer, has_plain_calls, read_answer
from sgdx_t5x.tools.unparsed_calls import malformed_call

_PATH = "/chat/completions"
_SHORTEST_SECRET = 8  # shorter keys, as of local servers, may occur as words in answers
_TEMPORARY = (408, 409, 423, 424, 425, 429, 498, 499)  # and 500 or above
_LONGEST_WAIT_S = 3600.0  # that a service may ask for
_LONGEST_QUOTE = 300  # characters of what a service says
LARGEST_ANSWER = 32 * 2**20  # bytes: a thousand times that of a long answer
SUPPORT_TOOLS = (
  "start the server with tool calling (vLLM: --enable-auto-tool-choice), choose a model that "
  "supports it, or use `sgdx prompts --prompt-style format=tools` for text prompts"
)
# What servers say that were started without tool calling, or of models that do not support it. It
# decides nothing but whether the first such refusal ends a run, so it has to be about tools as
# such, not about an argument, a schema or a text of one request.
_TOOLS = r"[`'\"]?\b(tool|function)s?([ _-](calls?|calling|use|choice|support))?\b[`'\"]?"
_WITHOUT_TOOLS = re.compile(
  rf"{_TOOLS}( (param\w*|is|are|has|have|been|currently))* "
  r"(not (supported|available|enabled|allowed)|unsupported|requires?)\b|"
  rf"(\bnot|n't) (support|allow|have|accept)\w*( (the|any|native))* {_TOOLS}|"
  rf"no \w+ found that supports? {_TOOLS}|requires --.*tool|"
  r"un(supported|recogni[sz]ed|known)\b[^.]*[`'\": ]tools?(_choice)?\b(?![.\[])",
  re.I,
)
_TOO_LONG = re.compile(
  r"too (big|long|large|many)|context|length|size|limit|exceed|maximum|shorten|reduce|\btokens?\b",
  re.I,
)
# What services say of the content of one request, and of accounts that cannot pay.
_OF_CONTENT = re.compile(
  r"moderat|flagged|safety|guardrail|harm|violat|(content|usage)\W*(polic|filter|manage)|"
  r"you have been blocked|prohibited",
  re.I,
)
_UNPAID = re.compile(
  rb"insufficient_quota|exceeded_current_quota|billing_hard_limit|credit balance is too low|"
  rb"insufficient (account )?(balance|credit|fund)|arrearage",
  re.I,
)


class Failed(Exception):
  """A request that failed, and may succeed if retried. Attributes: wait, seconds asked for."""

  def __init__(self, reason: str, wait: float = 0.0):
    super().__init__(reason)
    self.wait = wait


class Refused(Exception):
  """A request that the service rejects, however often it is retried.

  Attributes:
    of_request: whether it is about this request's length or content, so that others may do.
  """

  def __init__(self, reason: str, of_request: bool = False):
    super().__init__(reason)
    self.of_request = of_request


def chat_url(endpoint: str) -> str:
  """Returns the URL that requests are sent to.

  Args: endpoint, http://HOST:PORT, the base URL of an API such as http://HOST/v1, or the full URL.
  Raises UsageError: not such a URL, or one with a name or password, which is not shown.
  """
  url, host = urllib.parse.urlsplit(""), None
  with contextlib.suppress(ValueError):
    url = urllib.parse.urlsplit(endpoint)
    host, _ = url.hostname, url.port  # a port that is no number raises only when it is read
  if url.scheme not in ("http", "https") or not host or url.username or url.password:
    secret = url.username or url.password
    raise UsageError(
      "--endpoint contains a user name or password" if secret else f"--endpoint {endpoint!r}",
      expected="http://HOST:PORT/v1 or https://HOST/v1, of an OpenAI-compatible API",
      fix="put the key into an environment variable, see --key-env" if secret else "pass its URL",
    )
  path = url.path.rstrip("/")
  if not path.endswith(_PATH):
    path = f"{path or '/v1'}{_PATH}"
  return url._replace(path=path, fragment="").geturl()


class Endpoint:
  """Sends requests. Use it as an asynchronous context manager.

  Attributes:
    shown: its address, for messages.
    has_answered: whether it answered any request, in this run or before.
  """

  def __init__(self, url: str, key: str, key_name: str, timeout: float):
    """Opens no connection yet.

    Args:
      url: as returned by `chat_url`.
      key: sent with every request; "" for none.
      key_name: environment variable that holds the key.
      timeout: seconds for a request, from its start to the end of the answer.
    """
    self._url, self._key, self._key_name = url, key, key_name
    self._secret = key if len(key) >= _SHORTEST_SECRET else ""
    self._timeout, self.shown = timeout, url.partition("?")[0]
    self.has_answered = self._is_there = False

  async def __aenter__(self) -> "Endpoint":
    self._proxy = _proxy(self._url)
    headers = {"Content-Type": "application/json"}
    if self._key:
      headers["Authorization"] = f"Bearer {self._key}"
    self._session = aiohttp.ClientSession(
      connector=aiohttp.TCPConnector(limit=0),  # the runner says how many requests are in flight
      timeout=aiohttp.ClientTimeout(total=self._timeout),
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
      SgdxError: no request will get one: no server, wrong key, wrong model, no tools.
    """
    try:
      async with self._session.post(
        self._url, data=body, proxy=self._proxy, allow_redirects=False
      ) as response:
        text = await _read(response)
    except TimeoutError:
      raise Failed(f"no answer within {self._timeout:g} s") from None
    except UnicodeError as e:  # of a host's name, in --endpoint or in a proxy's address
      raise SgdxError(
        f"{self.shown}: {e}",
        expected="host names with 1 to 63 characters between dots",
        fix="check --endpoint, and http_proxy and https_proxy if they are set",
      ) from None
    except (aiohttp.ClientError, OSError) as e:
      raise self._lost(e) from None
    self._is_there = True
    text = self._without_key(text)
    answer = _completion(text) if response.status == 200 else _malformed_call(text)
    if answer is None:
      await self._raise_for(response.status, response.headers, text)
    self.has_answered = True
    return answer, response.status

  def _lost(self, error: Exception) -> Exception:
    """Returns the error for a connection that failed."""
    reason = self._said(str(error) or type(error).__name__)
    if isinstance(error, aiohttp.ClientResponseError):  # its text has the URL, with any secrets
      reason = self._said(f"status {error.status}: {error.message}")
    by_proxy = isinstance(error, aiohttp.ClientProxyConnectionError | aiohttp.ClientHttpProxyError)
    if isinstance(error, aiohttp.ClientConnectorError) and self._proxy:
      proxy = urllib.parse.urlsplit(self._proxy)
      by_proxy = by_proxy or (error.host, error.port) == (proxy.hostname, proxy.port)
    if by_proxy:
      reason = f"the proxy of http_proxy or https_proxy: {reason}"
    if not isinstance(error, aiohttp.ClientConnectorError):
      return Failed(f"connection lost: {reason}")
    if isinstance(error.os_error, ConnectionRefusedError):
      reason = "connection refused"  # for which aiohttp lists the addresses it tried
    if self._is_there:
      return Failed(f"connection lost: {reason}")
    expected, fix = "a server listening at this address", "start the server, or check --endpoint"
    if isinstance(error, aiohttp.ClientSSLError):
      expected = "a server that speaks TLS, with a certificate that this machine trusts"
      fix = "trust the certificate's authority: export SSL_CERT_FILE=CA.pem; without TLS: http://"
    elif by_proxy:
      reason = f"the proxy {error.host}:{error.port}: {reason}"
      expected = "a proxy listening at the address in http_proxy or https_proxy"
      fix = "correct the variable, or add the endpoint's host to no_proxy"
    return SgdxError(f"{self.shown}: {reason}", expected=expected, fix=fix)

  async def _raise_for(self, status: int, headers: Mapping[str, str], text: bytes) -> NoReturn:
    """Raises the error for a status other than 200."""
    fault = f"status {status}: {self._said(_message(text))}"
    unpaid = status == 402 or (status in (400, 403, 429) and _UNPAID.search(text))
    if (status in _TEMPORARY or status >= 500) and not unpaid:
      raise Failed(fault, _retry_after(headers.get("Retry-After", "")))
    message, available = f"{self.shown}: {fault}", ""
    is_without_tools = _WITHOUT_TOOLS.search(fault) and not _TOO_LONG.search(fault)
    if unpaid:
      expected, fix = "an account with sufficient credit", "check the account's billing"
    elif status == 403 and _OF_CONTENT.search(fault):
      raise Refused(fault, of_request=True)  # as routers do: the key is valid
    elif status in (401, 403):
      expected = f"a valid API key in the environment variable {self._key_name}"
      available = f"{self._key_name} is {'set' if self._key else 'not set'}"
      fix = f"export {self._key_name}=..., or name another variable with --key-env"
    elif status == 404 and not is_without_tools:
      expected = "a model of the endpoint, and the address of an OpenAI-compatible API"
      available, fix = await self._models(), "pass another --model or --endpoint"
    elif status < 400 or status == 405:
      expected = "the address of an OpenAI-compatible API, which answers POST requests"
      fix = "check --endpoint"
      if to := headers.get("Location", ""):
        message += f"; redirects to {self._said(to)}"
        fix = "pass the address that it redirects to as --endpoint"
    elif is_without_tools and (status == 404 or not self.has_answered):
      expected = "a model and a server that support tools and tool_choice"
      fix = SUPPORT_TOOLS
    else:
      is_too_long = status == 413 or _TOO_LONG.search(fault)  # 413: content too large
      raise Refused(fault, bool(is_too_long or _OF_CONTENT.search(fault)))
    raise SgdxError(message, expected=expected, available=available, fix=fix)

  async def _models(self) -> str:
    """Returns the names of the endpoint's models, for an error; "" if it does not list them."""
    url = self._url.replace(_PATH, "/models", 1)
    try:
      async with self._session.get(url, proxy=self._proxy, allow_redirects=False) as response:
        data = json.loads(await _read(response))["data"]
      return self._said(f"models: {nearest('', [str(model['id']) for model in data])}")
    except Exception:  # whatever is wrong with it, the error that it completes is told
      return ""

  def _without_key(self, text: bytes) -> bytes:
    """Returns a service's answer without the key that it may repeat, however JSON escapes it."""
    if not self._secret:
      return text
    if b"\\" in text:
      with contextlib.suppress(SgdxError):
        text = to_json(decode_json(text, "answer", "JSON"), "an answer")
    for form in (self._secret, json.dumps(self._secret)[1:-1]):
      text = text.replace(form.encode(), b"[key]")
    return text

  def _said(self, text: str) -> str:
    """Returns a message, shortened and without the key, or the rest of the URL, in it."""
    text = " ".join(text.split()).replace(self._url, self.shown)
    if query := urllib.parse.urlsplit(self._url).query:
      text = text.replace(query, "[query]")
    return (text.replace(self._secret, "[key]") if self._secret else text)[:_LONGEST_QUOTE]


async def _read(response: aiohttp.ClientResponse) -> bytes:
  """Returns a response's body. Raises Refused if it becomes too large, also decompressed."""
  chunks, size = [], 0
  async for chunk in response.content.iter_any():
    chunks.append(chunk)
    size += len(chunk)
    if size > LARGEST_ANSWER:
      response.close()
      raise Refused(f"the answer has more than {LARGEST_ANSWER // 2**20} MiB")
  return b"".join(chunks)


def _completion(text: bytes) -> dict[str, Any]:
  """Returns a chat completion. Raises Failed, Refused for anything else."""
  try:
    body = decode_json(text, "answer", "JSON")
  except SgdxError:
    raise Failed("the answer is not JSON") from None
  with contextlib.suppress(SgdxError):
    try:
      if isinstance(body, dict) and has_plain_calls(body):
        return body
      answer = read_answer(body, "") if isinstance(body, dict) else None
    except NoAnswer as e:
      reason = str(e)[:_LONGEST_QUOTE]
      raise (Failed(reason) if e.asked_again else Refused(reason, of_request=True)) from None
    # The forms of other services are read as well, but not expected here.
    if answer and (answer.calls is None or body.get("choices")):
      return body
  raise Failed(f"not a chat completion: {_message(text)[:_LONGEST_QUOTE]}")


def _malformed_call(text: bytes) -> dict[str, Any] | None:
  """Returns an error response if it has a call of the model that the service could not parse."""
  body: Any = text.decode("utf-8", "replace")
  with contextlib.suppress(SgdxError):
    body = decode_json(text, "answer", "JSON")
  body = body if isinstance(body, dict) else {"error": body}
  return body if malformed_call(body) is not None else None


def _message(text: bytes) -> str:
  """Returns the message in a service's error response, or all of it if the form is unknown."""
  try:
    message = json.loads(text)
    while isinstance(message, dict) and (keys := message.keys() & {"error", "message", "detail"}):
      message = message[min(keys, key=("error", "message", "detail").index)]
    return message if isinstance(message, str) else json.dumps(message)
  except (ValueError, RecursionError):
    return text.decode("utf-8", "replace")


def _retry_after(text: str) -> float:
  """Returns the seconds of a header Retry-After, which has seconds or a date (RFC 9110, 10.2.3)."""
  try:
    seconds = float(text)
  except ValueError:
    try:
      seconds = email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, OverflowError):
      return 0.0
  return min(seconds, _LONGEST_WAIT_S) if seconds > 0 else 0.0


def _proxy(url: str) -> str | None:
  """Returns the proxy that the environment names for a URL (http_proxy, https_proxy, no_proxy).

  Raises SgdxError: it is not a URL; it is not shown, since it may have a password.
  """
  url_parts = urllib.parse.urlsplit(url)
  if urllib.request.proxy_bypass(url_parts.netloc.rpartition("@")[2]):
    return None
  proxy = urllib.request.getproxies().get(url_parts.scheme)
  if not proxy:
    return None
  proxy = proxy if "://" in proxy else f"http://{proxy}"
  try:
    proxy_parts = urllib.parse.urlsplit(proxy)
    is_url = proxy_parts.hostname and proxy_parts.port != 0 and proxy_parts.path in ("", "/")
    is_url = is_url and not (proxy_parts.query or proxy_parts.fragment)
  except ValueError:
    is_url = False
  if not is_url:
    raise SgdxError(
      f"the environment variable {url_parts.scheme}_proxy is not a proxy's URL",
      expected="http://HOST:PORT or http://USER:PASSWORD@HOST:PORT",
      fix="percent-encode # / ? @ and : in the password (# is %23)",
    )
  return proxy
