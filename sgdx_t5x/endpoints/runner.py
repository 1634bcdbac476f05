"""Asks many requests at once: retries, waits, and what ends a run before it is through."""

import asyncio
import collections
import contextlib
import dataclasses
import random
import time
from collections.abc import Callable, Iterator, Sequence

from sgdx_t5x.endpoints.answer_file import AnswerFile
from sgdx_t5x.endpoints.endpoint import Endpoint, Failed, Refused
from sgdx_t5x.endpoints.request_file import Request, RequestFile
from sgdx_t5x.errors import SgdxError

_LONGEST_BACKOFF_S = 60.0
_HOPELESS = 16  # requests in a row that got no answer: the others will not, either
_SECONDS_BETWEEN_SYNCS = 5.0
_SECONDS_BETWEEN_CALLS = 0.1


@dataclasses.dataclass(frozen=True)
class RetryPolicy:
  """How requests are asked.

  Attributes:
    concurrency: in flight at once.
    retries: of a request, after the first time.
    backoff: seconds before the first retry, then twice as many each time up to a minute; a
      random part of up to a half is left out, so that requests do not come back together.
  """

  concurrency: int
  retries: int
  backoff: float


def pending(
  requests: Sequence[Request], answers: AnswerFile, *, write: bool
) -> list[list[Request]]:
  """Returns what there is to ask: requests with one text are one question.

  Args:
    requests: all that are wanted.
    answers: of which requests need none.
    write: known answers to equal requests, for requests that lack one.
  """
  waiting: dict[str, list[Request]] = {}
  for request in requests:
    if request.id not in answers.ids:
      waiting.setdefault(request.digest, []).append(request)
  for digest in [digest for digest in waiting if answers.has(digest)]:
    equal = waiting.pop(digest)
    if write:
      answers.add(equal, answers.known(digest))
  return list(waiting.values())


class Runner:
  """A run over requests.

  Attributes:
    retried: how often.
    unanswered: why -> the ids of requests that got no answer for this reason.
    on_progress: called ten times a second while answers come.
  """

  def __init__(
    self, endpoint: Endpoint, file: RequestFile, answers: AnswerFile, policy: RetryPolicy
  ):
    """Args: endpoint, that is asked; file, of the requests; answers, written; policy."""
    self._endpoint, self._file, self._answers = endpoint, file, answers
    self._policy = policy
    self.retried = 0
    self.on_progress: Callable[[], None] = lambda: None
    self.unanswered: dict[str, list[str]] = collections.defaultdict(list)
    self._failed_in_a_row = 0
    self._not_before, self._called = 0.0, 0.0  # of time.monotonic
    self._error: SgdxError | None = None
    self._stopped = asyncio.Event()

  async def run(self, asked: Sequence[list[Request]]) -> None:
    """Asks all. What came in before an error, and is in flight then, is kept.

    Args:
      asked: of `pending`.

    Raises:
      SgdxError: asking on is no use, or answers cannot be written.
    """
    waiting = iter(asked)
    async with self._endpoint:
      syncing = asyncio.create_task(self._sync())
      try:
        await asyncio.gather(*(self._worker(waiting) for _ in range(self._policy.concurrency)))
      finally:
        syncing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
          await syncing
    if self._error:
      raise self._error

  async def _worker(self, waiting: Iterator[list[Request]]) -> None:
    for equal in waiting:
      try:
        await self._ask(equal)
      except SgdxError as e:
        self._error = self._error or e
        self._stopped.set()
      if self._stopped.is_set():
        return

  async def _ask(self, equal: list[Request]) -> None:
    """Asks until there is an answer, and writes it. Raises SgdxError."""
    body, why = self._file.body(equal[0]), ""
    for tries in range(self._policy.retries + 1):
      while (wait := self._not_before - time.monotonic()) > 0 and not self._stopped.is_set():
        await self._sleep(wait)
      if self._stopped.is_set():
        return None
      self.retried += tries > 0
      try:
        answer = await self._endpoint.ask(body)
      except Refused as e:
        return self._give_up(equal, str(e), hopeless=not self._endpoint.has_answered)
      except Failed as e:
        why = str(e)
        self._not_before = max(self._not_before, time.monotonic() + e.wait)  # for all
        if tries < self._policy.retries:
          longest = min(_LONGEST_BACKOFF_S, self._policy.backoff * 2**tries)
          await self._sleep(longest * random.uniform(0.5, 1.0))
      else:
        self._answers.add(equal, answer)
        self._failed_in_a_row = 0
        if (now := time.monotonic()) - self._called > _SECONDS_BETWEEN_CALLS:
          self._called = now
          self.on_progress()
        return None
    return self._give_up(equal, f"{why} ({self._policy.retries + 1} times)", hopeless=True)

  def _give_up(self, equal: list[Request], why: str, hopeless: bool) -> None:
    """Leaves requests without an answer. Raises SgdxError if the others will get none, too."""
    self.unanswered[why] += [request.id for request in equal]
    self._failed_in_a_row += hopeless
    if self._failed_in_a_row >= _HOPELESS:
      raise SgdxError(
        f"{self._endpoint.shown}: {self._failed_in_a_row} requests in a row without an answer; "
        f"the last: {why}",
        expected="an endpoint that answers",
        fix="see to it, or give it more time with --timeout, --retries and fewer --concurrency",
      )

  async def _sleep(self, seconds: float) -> None:
    """Waits; not when the run is stopped."""
    with contextlib.suppress(TimeoutError):
      await asyncio.wait_for(self._stopped.wait(), seconds)

  async def _sync(self) -> None:
    while True:
      await asyncio.sleep(_SECONDS_BETWEEN_SYNCS)
      await asyncio.to_thread(self._answers.sync)
