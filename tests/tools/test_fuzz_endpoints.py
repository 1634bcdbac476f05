"""Readers of `sgdx tools run`: see test_corpora.py. `sgdx score` reads every answer it accepts."""

import json

import pytest
from assistant_server import completion
from fuzz_folders import current_folder_stays_empty, folder_in_memory  # noqa: F401
from fuzzing import Document, run

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tools.call_predictions import call_rows
from sgdx_t5x.tools.delivery import ToolStyle
from sgdx_t5x.tools.endpoints.answer_file import AnswerFile
from sgdx_t5x.tools.endpoints.endpoint import Failed, _completion, _message
from sgdx_t5x.tools.endpoints.request_file import RequestFile, choose

pytestmark = pytest.mark.long
BODY = {"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": []}
IDS = [f"v1/test/1_0000{i}-000-Banks_1/*" for i in range(3)]
ROWS = [
  {"custom_id": name, "url": "/v1/chat/completions", "body": {**BODY, "n": name}} for name in IDS
]
ANSWER = completion([{"name": "Banks_11__Do", "arguments": {"to": "Anna"}}], "m")


@pytest.fixture
def files(folder):
  """Paths of requests and answers; the requests are valid."""
  paths = folder / "r.jsonl", folder / "a.jsonl"
  paths[0].write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
  paths[1].touch()
  return paths


def test_request_files(files, folder):
  def read(data):
    files[0].write_bytes(data)
    with RequestFile(files[0], "m" if len(data) % 2 else "", {}) as file:
      assert all(len(file.body(request).decode()) == request.size for request in file.requests)
      choose(file.requests, 2, {"Banks_1"}, 0)

  rows = [{"id": x["custom_id"], **x["body"], "tool_choice": "auto"} for x in ROWS]
  documents = Document(ROWS, True), Document(rows, True)
  run("request_files", lambda rng: rng.choice(documents)(rng), read, folder)


def test_answer_files(files, folder):
  with RequestFile(files[0], "", {}) as file:
    answers = AnswerFile(files[1], file)
    for request in file.requests:
      answers.add([request], ANSWER)
    answers.close()
    rows = [json.loads(line) for line in files[1].read_text().splitlines()]

    def read(data):
      files[1].write_bytes(data)
      answers = AnswerFile(files[1], file)
      answers.reuse([files[1]], {request.digest for request in file.requests})
      answers.pending(file.requests, write=True)
      answers.close()

    run("answer_files", Document(rows, True), read, folder)


def test_answers(files, folder):
  with RequestFile(files[0], "", {}) as file:

    def read(data):
      try:
        found = _completion(data)
      except Failed as e:
        raise SgdxError(str(e)[:300], expected="an answer", fix="ask again") from None
      finally:
        _message(data)
      files[1].write_bytes(b"")
      answers = AnswerFile(files[1], file)
      for request in file.requests:
        answers.add([request], found)
      answers.close()
      assert AnswerFile(files[1], file).ids == set(IDS)
      try:
        assert len(list(call_rows(files[1], ToolStyle(), False))) == len(ROWS)
      except SgdxError as e:
        raise AssertionError("an answer that cannot be scored") from e

    run("answers", Document(ANSWER), read, folder)
