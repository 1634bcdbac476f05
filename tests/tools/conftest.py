"""Requests for the tests of `sgdx tools run` that do not make their own."""

import json

import pytest
from commands import sgdx


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
  out = tmp_path_factory.mktemp("requests") / "requests.jsonl"
  args = ("--variant", "v1", "v2", "--limit", "5", "--targets", "--out", out)
  assert not sgdx("tools", "requests", "--corpus", "sample", *args)
  return out


@pytest.fixture(scope="module")
def rows(requests):
  return [json.loads(line) for line in requests.read_text().splitlines()]
