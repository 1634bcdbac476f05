"""A cache of a function's results."""

from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(dict[K, V]):
  """Argument -> cached result of a function; `memo[x]` and `map(memo.__getitem__, xs)`.

  Like `functools.lru_cache`, but a look-up takes half the time. When it is full, it is
  cleared.
  """

  def __init__(self, function: Callable[[K], V], size: int = 100_000):
    """Args: function, of one argument; size, maximum number of results kept."""
    super().__init__()
    self._function, self._size = function, size

  def __missing__(self, key: K) -> V:
    if len(self) >= self._size:
      self.clear()
    result = self[key] = self._function(key)
    return result
