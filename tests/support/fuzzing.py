"""A fuzzer for readers: given corrupted input, a reader must return or raise a proper SgdxError.

The input of a case depends only on the seed, the reader's name and the number of the case, so that
any failure can be reproduced alone. The structure is corrupted (other types, keys missing, renamed,
unknown) and so are the bytes (truncation, other encodings, duplicated keys, deep nesting).
"""

import json
import marshal
import math
import os
import random
import re
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from sgdx_t5x.errors import SgdxError

SEED = os.environ.get("SGDX_FUZZ_SEED", "0")
CASES = int(os.environ.get("SGDX_FUZZ_CASES", "10000"))
FIRST = int(os.environ.get("SGDX_FUZZ_FIRST", "0"))  # number of the first case
# Time limits of a case in seconds: of CPU time and, if it waits, of wall-clock time.
_TIMERS = ((signal.ITIMER_VIRTUAL, signal.SIGVTALRM, 5), (signal.ITIMER_REAL, signal.SIGALRM, 20))
_LONGEST_LINE, _LONGEST = 1_500, 60_000  # characters of an error
_SHOWN = int(os.environ.get("SGDX_FUZZ_SHOWN", "5"))  # failures printed

_DEEP, _DEEPER, _LARGE = "@deep@", "@deeper@", "@large@"
_RAW = {  # what `json.dumps` cannot write
  f'"{_DEEP}"': "[" * 900 + "]" * 900,
  f'"{_DEEPER}"': '{"a":' * 20_000 + "1" + "}" * 20_000,
  f'"{_LARGE}"': "1e999",
}
_NUMBERS = (0, -1, 1, 2, 1.5, -0.0, 2**31, 2**63, -(2**63), 10**18, 10**400, -(10**400), 1e308,
            math.nan, math.inf, -math.inf)  # fmt: skip
TEXTS = ("", " ", "\t", "\n", "\0", "a\0b", "\x1b[2J", "\x7f", "\x85", "\u2028", "\ufeff",
          "\ud800", "a\udfff", "é", "e\u0301", "日本", "𝟘", "²", "٣", "NONE", "none", "dontcare",
          "True", "../../x", "/", "a/b", "a/b/c/d", "..", "\\", "C:\\x", "{", "}", "{}", "{value}",
          "{0}", "%s", "=1+1", "#ALL_SERVICES", "USER", "|", ":", "-", "1", "-1", "1e5", "nan", "[",
          '"', "x" * 3_000)  # fmt: skip
_BYTES = (b"\0", b"\xff", b"\x80", b"\xc3", b"\r", b"\n", b"{", b"]", b'"', b"\\", b"\x1b", b"NaN",
          b",", b"\\u12")  # fmt: skip
_OTHERS = (None, True, False, [], {}, [[]], [None], [{}], [0], [""], ["a", "a"], {"": None},
           {"a": {}}, {"a": []}, _DEEP, _DEEPER, _LARGE)  # fmt: skip
_UNPRINTABLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # line feeds separate lines
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_KEY = re.compile(rb'"[a-z_0-9]+": ')


def run(
  name: str, make: Callable[[random.Random], Any], read: Callable[[Any], Any], folder=None
) -> None:
  """Reads CASES inputs; fails with those on which the reader neither returned nor explained.

  Args:
    name: name of the reader; with the seed and the number of a case, it determines the input.
    make: makes an input.
    read: the reader.
    folder: folder whose files it reads, if any; it must leave no others there.
  """
  before = None if folder is None else _paths(folder)
  failures: dict[str, tuple[int, Any]] = {}
  counts = {True: 0, False: 0}
  for _, number, _ in _TIMERS:
    signal.signal(number, _too_long)
  start = time.process_time()
  for number in range(FIRST, FIRST + CASES):
    data = make(random.Random(f"{SEED}/{name}/{number}"))
    problem = _problem(read, data, counts)
    if problem and len(failures) < 200:
      failures.setdefault(problem, (number, data))
  seconds = time.process_time() - start
  print(f"{name}: {CASES:,} cases, {counts[True]:,} accepted, {CASES / seconds:,.0f} a second")
  lines = [f"{name}: {len(failures)} kinds of failures"] if failures else []
  for problem, (number, data) in list(failures.items())[:_SHOWN]:
    again = f"SGDX_FUZZ_SEED={SEED} SGDX_FUZZ_FIRST={number} SGDX_FUZZ_CASES=1"
    lines.append(f"\n{problem}\n  input: {data!r:.3000}\n  again: {again} pytest -m long -k {name}")
  assert not failures, "\n".join(lines)
  assert folder is None or _paths(folder) == before, "the reader left files behind"
  if CASES >= 1_000:  # the damage is neither too slight nor too heavy
    assert min(counts.values()) > CASES / 100, counts


class _Hang(BaseException):
  """Not an Exception: no reader can catch it by accident."""


def _set_timers(on: bool) -> None:
  for timer, _, seconds in _TIMERS:
    signal.setitimer(timer, seconds if on else 0)


def _too_long(*_):
  raise _Hang


def _problem(read: Callable[[Any], Any], data: Any, counts: dict[bool, int]) -> str:
  """What went wrong in reading a case, and where; "" if nothing did."""
  _set_timers(on=True)
  try:
    read(data)
    counts[True] += 1
  except SgdxError as e:
    counts[False] += 1
    return _bad_error(e)
  except (Exception, _Hang) as e:
    _set_timers(on=False)
    frames = [
      f for f in traceback.extract_tb(e.__traceback__) if "/site-packages/" not in f.filename
    ][-2:]
    where = " < ".join(f"{f.filename.rpartition('/')[2]}:{f.lineno}" for f in reversed(frames))
    return f"{type(e).__name__} at {where}: {str(e)[:40]}"
  finally:
    _set_timers(on=False)
  return ""


def _bad_error(error: SgdxError) -> str:
  lines = error.text.split("\n")
  found = [
    word
    for word, is_bad in (
      ("a part is empty", not (error.found and error.expected and error.fix)),
      ("Traceback", "Traceback" in error.text),
      ("too long", len(error.text) > _LONGEST or max(map(len, lines)) > _LONGEST_LINE),
      ("unprintable", _UNPRINTABLE.search(error.text)),
      ("surrogates", _SURROGATE.search(error.text)),
      ("line breaks of the input", any(x.endswith("\r") for x in lines)),
    )
    if is_bad
  ]
  return f"error with {', '.join(found)}: {error.text[:200]!r}" if found else ""


def _paths(folder) -> list[str]:
  return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


# --- damage --------------------------------------------------------------------------------


class Document:
  """Makes corrupted versions of a valid JSON document, or JSON lines."""

  def __init__(self, data: Any, lines: bool = False):
    """Args: data, a list of rows if `lines`; lines, whether to write JSON lines."""
    # As JSON has it, without tuples; marshal copies faster.
    self._data, self._lines = marshal.dumps(json.loads(json.dumps(data))), lines
    self._places = list(_places(data))

  def __call__(self, rng: random.Random) -> bytes:
    """Returns a corrupted version of the document, sometimes the document as it is."""
    data = marshal.loads(self._data)
    for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2, 3)) if rng.random() < 0.9 else 0):
      data = self._change(rng, data)
    is_ascii = rng.random() < 0.5
    rows = data if self._lines and isinstance(data, list) else [data]
    text = "\n".join(json.dumps(row, ensure_ascii=is_ascii) for row in rows)
    if "@" in text:
      for name, raw in _RAW.items():
        text = text.replace(name, raw, 1)
    content = (text + "\n").encode("utf-8", "surrogatepass")
    return damaged(rng, content) if rng.random() < 0.2 else content

  def _change(self, rng: random.Random, data: Any) -> Any:
    path = rng.choice(self._places)
    try:
      return _changed(rng, data, path, self._places)
    except (AttributeError, IndexError, KeyError, TypeError):  # an earlier change removed it
      return data


def _places(data: Any, path: tuple = ()) -> Iterator[tuple]:
  yield path
  items = data.items() if isinstance(data, dict) else enumerate(data)
  for key, value in items:
    if isinstance(value, dict | list):
      yield from _places(value, (*path, key))
    else:
      yield (*path, key)


def _at(data: Any, path: tuple) -> Any:
  for key in path:
    data = data[key]
  return data


def _changed(rng: random.Random, data: Any, path: tuple, places: list[tuple]) -> Any:
  if not path:
    return _junk(rng, data) if rng.random() < 0.1 else data
  holder, key = _at(data, path[:-1]), path[-1]
  what = rng.random()
  if what < 0.45:
    holder[key] = _junk(rng, holder[key])
  elif what < 0.6:
    del holder[key]
  elif what < 0.7:
    holder[key] = json.loads(json.dumps(_at(data, rng.choice(places))))
  elif isinstance(holder, dict):
    name = rng.choice((f"{key}x", key.upper(), key[:-1], *TEXTS))
    if what < 0.85:
      holder[name] = holder.pop(key)
    else:
      holder[name] = json.loads(json.dumps(holder[key]))
  elif what < 0.85:
    holder.insert(rng.randrange(len(holder) + 1), json.loads(json.dumps(holder[key])))
  else:
    rng.shuffle(holder)
  return data


def _junk(rng: random.Random, value: Any) -> Any:
  """A replacement for a value: one of another type, or a corrupted version of it."""
  what = rng.random()
  if what < 0.25:
    return rng.choice(_OTHERS)
  if what < 0.4:
    return rng.choice(_NUMBERS)
  if what < 0.6 or isinstance(value, dict | list):
    return rng.choice(TEXTS) if what < 0.75 else rng.choice(([value], {"a": value}))
  if isinstance(value, str):
    text = rng.choice(TEXTS)
    return rng.choice((value + text, text + value, value[1:], value.swapcase(), f" {value} "))
  return rng.choice((str(value), [value], {str(value): value}))


def damaged(rng: random.Random, content: bytes) -> bytes:
  """Returns a file with corrupted bytes: truncated, in another encoding, with duplicate keys ..."""
  at = rng.randrange(len(content) + 1)
  what = rng.randrange(16)
  if what < 3:
    return content[:at]
  if what == 3:
    return content[:at] + content[at + rng.randrange(20) :]
  if what == 4:
    return content[:at] + rng.choice(_BYTES) + content[at:]
  if what == 5:
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
  if what == 6:
    return b"\xef\xbb\xbf" + content
  if what == 7:
    return content.replace(b"\n", b"\r\n")
  if what == 8:
    text = content.decode("utf-8", "replace")
    encoding = rng.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7", "cp1252"))
    return text.encode(encoding, "replace")
  if what in (9, 10, 11):
    keys = list(_KEY.finditer(content))
    if keys:
      key = rng.choice(keys)
      value = rng.choice((b"null", b"[]", b"{}", b'""', b"0"))
      return content[: key.start()] + key[0] + value + b", " + content[key.start() :]
  if what == 12:
    return rng.choice((b"", b" ", b"\n", b"\n\n\n", b"null", b"[", b"\0", b"\xff\xfe", b'""', b"0"))
  if what == 13:
    return content + rng.choice((content, b"\n[]", b",", b"\0", b"x" * 2_000))
  if what == 14:
    return content[:at] + rng.choice((b"[", b'{"a":')) * rng.choice((100, 900, 3_000, 100_000))
  return content.replace(b"\n", b"\r")


class Table:
  """Makes corrupted versions of a valid CSV file."""

  def __init__(self, text: str):
    """Args: text, the content of the file, without quotes."""
    self._rows = [line.split(",") for line in text.splitlines()]

  def __call__(self, rng: random.Random) -> bytes:
    """Returns a corrupted table."""
    rows = [list(row) for row in self._rows]
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
      row = rng.choice(rows) if rows else []
      what = rng.randrange(8)
      if what == 0 and row:
        del row[rng.randrange(len(row))]
      elif what == 1:
        rows.insert(rng.randrange(len(rows) + 1), [rng.choice(TEXTS)] * rng.choice((0, 1, 9)))
      elif what == 2 and row:
        del rows[rng.randrange(len(rows))]
      elif row:
        text = rng.choice((*TEXTS, "*", "**", '"', '""', ",", ";", '"a,b"', '"\n"', "1" * 140_000))
        i = rng.randrange(len(row))
        row[i] = rng.choice((text, row[i] + text, text + row[i]))
    content = "\n".join(map(",".join, rows)).encode("utf-8", "surrogatepass") + b"\n"
    return damaged(rng, content) if rng.random() < 0.2 else content
