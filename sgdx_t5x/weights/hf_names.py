"""Which arrays of Hugging Face files are a network's, and their names in the network.

Files have more than the network: heads, counters, buffers of positions. Training frameworks wrap a
model and put words into its names: `module.` (data parallelism), `_orig_mod.` (a compiled model),
`0.auto_model.` (sentence-transformers), `model.` (trainers). Which words stand before the names is
read from the names themselves.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

from sgdx_t5x.errors import SgdxError

FLOATS = ("F32", "BF16", "F16")  # the types of parameters that can be read, as safetensors says
# Words of wrappers, which may stand anywhere in a name; no array of T5 or BERT has one in its own.
_WRAPPERS = frozenset(("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"))
_BUFFERS = ("position_ids", "token_type_ids", "num_batches_tracked")  # last words, of any type
_PARAMETERS = (".weight", ".bias")  # last words of parameters, also of quantized ones


@dataclasses.dataclass(frozen=True)
class Network:
  """What a network's arrays are called.

  Args:
    names: of all its arrays.
    aliases: other name of an array -> name.
    modules: first words of names; arrays of other modules are no part of the network.
    prefix: what `transformers` puts before the names in models that have a head, too.
    outside: names that may stand without the prefix of the others.
    unused: arrays inside these modules that nothing reads.
    alias_fix: the fourth part of the error if the array of an alias differs from that of its name.
  """

  names: frozenset[str]
  aliases: Mapping[str, str]
  modules: tuple[str, ...]
  prefix: str = ""
  outside: tuple[str, ...] = ()
  unused: tuple[str, ...] = ()
  alias_fix: str = "save the model again: model.save_pretrained(DIR)"


def own_names(stored: Iterable[str], network: Network, origin: str) -> dict[str, str]:
  """Returns {stored name: name in the network, or an alias} of all arrays in its modules.

  Args:
    stored: names in a file or an index.
    network: what to look for.
    origin: the file or folder, for error messages.

  Raises:
    SgdxError: there are several networks, or two arrays of one name.
  """
  unwrapped = {}
  for name in stored:
    unwrapped[name] = ".".join(word for word in name.split(".") if word not in _WRAPPERS)
  prefix = _prefix(unwrapped.values(), network, origin)
  stored_by_name: dict[str, str] = {}
  for name, bare in unwrapped.items():
    inner = bare.removeprefix(prefix)
    is_inside = bare.startswith(prefix) and inner.split(".")[0] in network.modules
    if not is_inside and inner not in network.outside:
      continue
    if inner in stored_by_name:
      raise SgdxError(
        f"{origin}: {stored_by_name[inner]} and {name} are both {inner}",
        expected="one array of each name",
        fix="save the model again, without what wraps it: model.save_pretrained(DIR)",
      )
    stored_by_name[inner] = name
  return {name: inner for inner, name in stored_by_name.items()}


def _prefix(names: Iterable[str], network: Network, origin: str) -> str:
  """Returns what stands before the network's names, for example "" or "0.auto_model."."""
  counts: collections.Counter[str] = collections.Counter()
  for name in names:
    words = name.split(".")
    # Where a name ends like one of the network's, the words before that may be the prefix.
    for i in range(len(words)):
      inner = ".".join(words[i:])
      if inner in network.names or inner in network.aliases:
        counts["".join(f"{word}." for word in words[:i])] += 1
  # A head can have an array or two whose names end like the network's; a network has many.
  largest_count = max(counts.values(), default=0)
  prefixes = [prefix for prefix, count in counts.items() if 2 * count >= largest_count]
  for prefix in ("", network.prefix):  # beside which `transformers` ignores the others, too
    if prefix in prefixes:
      return prefix
  if len(prefixes) > 1:
    raise SgdxError(
      f"{origin}: arrays of {len(prefixes)} networks, whose names begin with "
      + ", ".join(repr(prefix) for prefix in prefixes[:4]),
      expected="the arrays of one network",
      fix="save the network to import alone: its .save_pretrained(DIR)",
    )
  return prefixes[0] if prefixes else ""


def arrays_to_read(types: Mapping[str, str], network: Network, origin: str) -> dict[str, str]:
  """Decides by name and type which arrays of a file are read.

  Args:
    types: stored name -> type, as safetensors calls it.
    network: what to look for.
    origin: the file or folder, for error messages.

  Returns:
    {stored name: inner name}, with unknown parameters inside the network's modules, which the
    caller refuses.

  Raises:
    SgdxError: see `own_names`.
  """
  names_to_read = {}
  for name, inner in own_names(types, network, origin).items():
    if inner not in network.names and inner not in network.aliases:
      # An unknown parameter belongs to another network, which must not be read as this one.
      could_be_parameter = types[name] in FLOATS or inner.endswith(_PARAMETERS)
      if inner in network.unused or inner.split(".")[-1] in _BUFFERS or not could_be_parameter:
        continue
    names_to_read[name] = inner
  return names_to_read


def without_aliases(
  arrays: Mapping[str, np.ndarray], network: Network, origin: str
) -> dict[str, np.ndarray]:
  """Returns arrays by their names, without their aliases.

  Args:
    arrays: by name or alias, or both.
    network: what they are called.
    origin: the file or folder, for error messages.

  Raises:
    SgdxError: an array differs under two names.
  """
  arrays = dict(arrays)
  for alias, name in network.aliases.items():
    if alias not in arrays:
      continue
    array = arrays.pop(alias)
    if not np.array_equal(array, arrays.setdefault(name, array)):
      raise SgdxError(
        f"{origin}: {alias} differs from {name}",
        expected="one array under both names",
        fix=network.alias_fix,
      )
  return arrays
