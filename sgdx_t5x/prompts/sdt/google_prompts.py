"""Demonstrations from a copy of Google's sdt_prompts.py, read as literals and never imported.

They are not part of this package: 59% of their utterances are SGD's (docs/demonstrations.md).
"""

import ast

from sgdx_t5x.corpus.schema import NO_INTENT
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.sdt.demonstrations import Demonstration

SOURCE = "google-sdt"
_TABLE = "SGD_SEPARATED_ANNOTATION_PROMPTS"
_CHOICES = " of possible values "


def read_google_prompts(text: str | bytes, origin: str) -> list[Demonstration]:
  """Returns the demonstrations of SGD's services, in the file's order. Args: origin, its path.

  Raises:
    SgdxError: it is not Python, has no such table, or an entry is not a literal.
  """
  try:
    table = _table(ast.parse(text))
  except (SyntaxError, ValueError, RecursionError, MemoryError) as e:  # NUL bytes, deep nesting
    raise _unreadable(f"{origin}: not Python source ({e})") from None
  if table is None:
    raise _unreadable(f"{origin}: no dictionary {_TABLE}")
  demos = []
  for key, entry in zip(table.keys, table.values, strict=True):
    try:
      if key is None or not isinstance(entry, ast.List):
        raise TypeError("not a name and a list")
      service = _text(ast.literal_eval(key))
      demos += [_demonstration(service, _call(item)) for item in entry.elts]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as e:
      line = getattr(entry, "lineno", "?")
      raise _unreadable(f"{origin}, line {line}: unreadable entry ({e})") from None
  return demos


def _table(module: ast.Module) -> ast.Dict | None:
  for statement in module.body:  # only an assignment has both a value and targets
    value = getattr(statement, "value", None)
    names = [getattr(name, "id", "") for name in getattr(statement, "targets", ())]
    if _TABLE in names and isinstance(value, ast.Dict):
      return value
  return None


def _demonstration(service: str, call: ast.Call) -> Demonstration:
  """Reads Prompt(utt=..., slots=OrderedDict([(slot, value), ...]), intents=[...], intent_idx=0)."""
  fields = {keyword.arg: keyword.value for keyword in call.keywords}
  values = _call(fields["slots"]).args
  pairs = ast.literal_eval(values[0]) if values else []
  intents = tuple(map(_text, ast.literal_eval(fields["intents"])))
  index = ast.literal_eval(fields["intent_idx"])
  intent = NO_INTENT if index is None or index < 0 else intents[index]
  slots = {}
  for slot, value in pairs:  # the schema has the possible values, in the same order
    slots[_text(slot)] = _text(value).partition(_CHOICES)[0]
  text = _text(ast.literal_eval(fields["utt"]))
  return Demonstration(service, text, slots, intent, intents, SOURCE)


def _call(value: ast.expr) -> ast.Call:
  if not isinstance(value, ast.Call):
    raise TypeError("not a call")
  return value


def _text(value: object) -> str:
  if not isinstance(value, str):
    raise TypeError(f"{value!r} is not a string")
  return value


def _unreadable(problem: str) -> SgdxError:
  return SgdxError(
    problem,
    expected="sdt_prompts.py of google-research/task-oriented-dialogue, "
    "state_tracking/show_dont_tell",
    fix="download the file again; `sgdx data demos make` makes some from a corpus",
  )
