"""Endpoint URLs, services' error messages, requested waiting times, and proxies."""

import email.utils
import time

import pytest

from sgdx_t5x.errors import UsageError
from sgdx_t5x.tools.endpoints.endpoint import _message, _proxy, _retry_after, chat_url


@pytest.mark.parametrize(
  ("endpoint", "url"),
  [
    ("http://localhost:8000", "http://localhost:8000/v1/chat/completions"),
    ("http://localhost:8000/v1/", "http://localhost:8000/v1/chat/completions"),
    ("https://host/api/v1/chat/completions", "https://host/api/v1/chat/completions"),
    ("https://host/x?api-version=1#y", "https://host/x/chat/completions?api-version=1"),
    ("http://[::1]:80/v1", "http://[::1]:80/v1/chat/completions"),
  ],
)
def test_addresses(endpoint, url):
  assert chat_url(endpoint) == url


@pytest.mark.parametrize("text", ["", "host", "ftp://host", "http://", "http://h:x", "http://[h"])
def test_what_is_no_address(text):
  with pytest.raises(UsageError):
    chat_url(text)


@pytest.mark.parametrize(
  ("text", "seconds"),
  [("3", 3), ("0.5", 0.5), ("", 0), ("-1", 0), ("nan", 0), ("soon", 0), ("9" * 400, 3600)],
)
def test_seconds_to_wait(text, seconds):
  assert _retry_after(text) == seconds


def test_a_date_to_wait_for():
  in_a_minute = email.utils.formatdate(time.time() + 60, usegmt=True)
  assert 55 < _retry_after(in_a_minute) <= 60
  assert _retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
  assert _retry_after("Mon, 01 Jan 2020 00:00:00 +99999999999999999999") == 0


@pytest.mark.parametrize(
  ("text", "said"),
  [
    (b'{"error": {"message": "no", "code": 1}}', "no"),  # OpenAI
    (b'{"error": "no"}', "no"),  # Ollama
    (b'{"object": "error", "message": "no"}', "no"),  # earlier vLLM
    (b'{"detail": [{"loc": 1}]}', '[{"loc": 1}]'),  # FastAPI
    (b"<html>no</html>", "<html>no</html>"),
    (b"\xff", "\ufffd"),
    (b"[" * 100_000, "[" * 100_000),
  ],
)
def test_what_services_say(text, said):
  assert _message(text) == said


def test_proxies_are_those_of_the_environment(monkeypatch):
  monkeypatch.setenv("http_proxy", "http://127.0.0.1:3128")
  monkeypatch.setenv("no_proxy", "localhost")
  assert _proxy("http://host:8000/v1") == "http://127.0.0.1:3128"
  assert _proxy("http://localhost:8000/v1") is None
  monkeypatch.setenv("http_proxy", "127.0.0.1:3128")
  assert _proxy("http://host:8000/v1") == "http://127.0.0.1:3128"
