"""Sends many requests at once: retries, waits, and conditions that end a run early."""

import asyncio
import collections
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.tools.endpoints.answer_file import AnswerFile
from sgdx_t5x.tools.endpoints.endpoint import SUPPORT_TOOLS, Endpoint, Failed, Refused
from sgdx_t5x.tools.endpoints.request_file import Request, TooDeep

_LONGEST_BACKOFF_S = 60.0
_MOST_DOUBLINGS = 1_000  # of the backoff: a float holds 1,023
_HOPELESS = 16  # consecutive requests without an answer, after which a run gives up
_HOPELESS_REFUSALS = 256  # the same if the last was refused for its own length or content
_SECONDS_BETWEEN_CALLS = 0.1


class Runner:
  """A run over requests.

  Attributes:
    retried: number of retries.
    unanswered: why -> the ids of requests that got no answer for this reason.
    on_progress: called at most ten times a second while answers come in.
  """

  def __init__(
    self,
    endpoint: Endpoint,
    body: Callable[[Request], bytes],
    answers: AnswerFile,
    concurrency: int,
    retries: int,
    backoff: float,
  ):
    """Sends nothing yet.

    Args:
      endpoint: to ask.
      body: returns what is sent for a request.
      answers: to which new ones are added.
      concurrency: maximum number of requests in flight.
      retries: of a request, after the first attempt.
      backoff: seconds before the first retry, doubled each time up to a minute; a random part of
        up to half is subtracted, so that requests are not retried all at once.
    """
    self._endpoint, self._body, self._answers = endpoint, body, answers
    self._concurrency, self._retries, self._backoff = concurrency, retries, backoff
    self.retried = 0
    self.on_progress: Callable[[], None] = lambda: None
    self.unanswered: dict[str, list[str]] = collections.defaultdict(list)
    self._failed_in_a_row = 0
    self._not_before, self._called = 0.0, 0.0  # of time.monotonic
    self._error: SgdxError | None = None
    self._stopped = asyncio.Event()
    self._workers: list[asyncio.Task[None]] = []

  async def run(self, groups: Sequence[list[Request]]) -> None:
    """Sends all groups of `AnswerFile.pending`.

    Answers received before an error, or in flight at that time, are kept. Raises SgdxError: going
    on is useless, or answers cannot be written.
    """
    waiting = iter(groups)
    async with self._endpoint:
      number = min(self._concurrency, len(groups))
      self._workers = [asyncio.create_task(self._worker(waiting)) for _ in range(number)]
      ends = await asyncio.gather(*self._workers, return_exceptions=True)
    for end in ends:
      if isinstance(end, Exception):  # a fault of ours; the others are cancelled workers
        raise end
    if self._error:
      raise self._error

  def interrupt(self) -> None:
    """Gives up the requests in flight, so that `run` ends soon. Their answers are lost."""
    self._stopped.set()
    for worker in self._workers:
      worker.cancel()

  async def _worker(self, waiting: Iterator[list[Request]]) -> None:
    for group in waiting:
      try:
        await self._ask(group)
      except SgdxError as e:
        self._error = self._error or e
        self._stopped.set()
      if self._stopped.is_set():
        return

  async def _ask(self, group: list[Request]) -> None:
    """Sends until there is an answer, within the retries, and writes it. Raises SgdxError."""
    body, reason = self._body(group[0]), ""
    for tries in range(self._retries + 1):
      while (wait := self._not_before - time.monotonic()) > 0 and not self._stopped.is_set():
        await self._sleep(wait)
      if self._stopped.is_set():
        return None
      self.retried += tries > 0
      try:
        answer = await self._endpoint.ask(body)
      except Refused as e:
        most = _HOPELESS_REFUSALS if e.of_request else _HOPELESS
        return self._give_up(group, str(e), not self._endpoint.has_answered, most)
      except Failed as e:
        reason = str(e)
        self._not_before = max(self._not_before, time.monotonic() + e.wait)  # for all
        if tries < self._retries:
          doubled = self._backoff * 2.0 ** min(tries, _MOST_DOUBLINGS)
          longest = min(_LONGEST_BACKOFF_S, doubled)
          await self._sleep(longest * random.uniform(0.5, 1.0))
      else:
        try:
          self._answers.add(group, *answer)
        except TooDeep:
          return self._give_up(group, "the answer is nested too deeply", hopeless=True)
        self._failed_in_a_row = 0
        if time.monotonic() - self._called > _SECONDS_BETWEEN_CALLS:
          self._called = time.monotonic()
          self.on_progress()
        return None
    return self._give_up(group, f"{reason} ({self._retries + 1} times)", hopeless=True)

  def _give_up(
    self, group: list[Request], reason: str, hopeless: bool, most: int = _HOPELESS
  ) -> None:
    """Leaves requests unanswered. Raises SgdxError if too many in a row got no answer."""
    self.unanswered[reason] += [request.id for request in group]
    self._failed_in_a_row += hopeless
    if self._failed_in_a_row >= most:
      fix = "check the endpoint, or increase --timeout or --retries, or reduce --concurrency"
      if "tool" in reason.lower():
        fix += f"; if it is about tools: {SUPPORT_TOOLS}"
      raise SgdxError(
        f"{self._endpoint.shown}: {self._failed_in_a_row} consecutive requests without an answer; "
        f"the last: {reason}",
        expected="an endpoint that answers",
        fix=fix,
      )

  async def _sleep(self, seconds: float) -> None:
    """Waits, at most until the run is stopped."""
    with contextlib.suppress(TimeoutError):
      await asyncio.wait_for(self._stopped.wait(), seconds)
