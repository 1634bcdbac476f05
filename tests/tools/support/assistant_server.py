"""A chat completions server on loopback that returns the gold calls, with faults on request."""

import asyncio
import collections
import contextlib
import json
import threading

from aiohttp import web

MODELS = ("small-1", "small-2")


def key_of(body):
  """Identifies a request by its messages and tools, whatever the model and parameters."""
  return json.dumps([body["messages"], body.get("tools")])


def know_gold(rows):
  """Maps request keys to gold calls, from rows of `sgdx tools requests --targets`."""
  return {key_of(row): row["target"] for row in rows}


class AssistantServer:
  """Runs in a thread for the duration of its `with` block.

  Attributes:
    asked: request key -> how often it was received.
    answered: request key -> how often its whole answer was handed to the connection.
    headers: those of the last request.
    most: maximum number of concurrent requests.
  """

  def __init__(self, gold, fault=lambda number, body: None, latency=0.0):
    """Prepares a server.

    Args:
      gold: as returned by `know_gold`.
      fault: maps (request number, body) to None to answer, a web.Response to send instead, or
        "cut", "broken" or "hang".
      latency: seconds before an answer.
    """
    self.gold, self.fault, self.latency = gold, fault, latency
    self.asked, self.answered = collections.Counter(), collections.Counter()
    self.headers, self.times, self.most, self._inside = {}, [], 0, 0
    self.changed = threading.Condition()

  def __enter__(self):
    started = threading.Event()
    self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True)
    self._thread.start()
    started.wait()
    self.url = f"http://127.0.0.1:{self.port}/v1"
    return self

  def __exit__(self, *_):
    self._loop.call_soon_threadsafe(self._over.set)
    self._thread.join()

  def wait_for_answers(self, number):
    """Waits until this many answers were sent, over all runs."""
    with self.changed:
      self.changed.wait_for(lambda: self.answered.total() >= number)

  async def _serve(self, started):
    self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
    app = web.Application(client_max_size=2**26)
    app.router.add_post("/v1/chat/completions", self._chat)
    app.router.add_get("/v1/models", self._models)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    self.port = runner.addresses[0][1]
    started.set()
    await self._over.wait()
    await runner.cleanup()

  async def _models(self, request):
    return web.json_response({"data": [{"id": name} for name in MODELS]})

  async def _chat(self, request):
    body = await request.json()
    key, number = key_of(body), self.asked.total()
    self.asked[key] += 1
    self.headers = dict(request.headers)
    self.times.append(self._loop.time())
    self._inside += 1
    self.most = max(self.most, self._inside)
    with contextlib.ExitStack() as stack:
      stack.callback(self._leave)
      fault = self.fault(number, body)
      if isinstance(fault, web.Response):
        return fault
      if fault == "hang":
        await self._over.wait()
      await asyncio.sleep(self.latency)
      return await self._answer(request, key, body, fault)

  def _leave(self):
    self._inside -= 1

  async def _answer(self, request, key, body, fault):
    text = json.dumps(completion(self.gold[key], body["model"]), indent=1).encode()
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    if fault is None:
      response.content_length = len(text)
    if fault == "cut":
      response.content_length, text = len(text), text[:100]
    if fault == "broken":
      response.content_length, text = 100, text[:100]
    await response.prepare(request)
    await response.write(text)
    if fault == "cut":
      request.transport.abort()
      return response
    await response.write_eof()
    if fault is None:
      with self.changed:
        self.answered[key] += 1
        self.changed.notify_all()
    return response


def completion(calls, model):
  """A chat completion that makes these calls."""
  functions = [{**call, "arguments": json.dumps(call["arguments"])} for call in calls]
  tool_calls = [{"id": "c", "type": "function", "function": x} for x in functions]
  message = {"role": "assistant", "content": None, "tool_calls": tool_calls}
  choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
  usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
  head = {"id": "x", "object": "chat.completion", "created": 0, "model": model}
  return {**head, "choices": [choice], "usage": usage}


def error(status, message, **headers):
  """An error in OpenAI's format."""
  return web.json_response(
    {"error": {"message": message, "type": "t", "code": None}}, status=status, headers=headers
  )
