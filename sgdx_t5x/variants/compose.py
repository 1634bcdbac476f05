"""Composes variant schemas from paraphrases, each farther from the original, as SGD-X was composed.

For every element the paraphrases are sorted by distance to the original, and variant k takes the
k-th (SGD-X paper, section 3.2). The released variants are sorted by these distances:

- names: Levenshtein distance, in edits, of the names as written. From v1 to v5 of SGD-X it never
  falls, for all 453 slot and intent names; divided by the longer name's length, for only 133.
- descriptions: Jaccard distance of sets of lemmas, lower-cased, without punctuation and stop
  words. With determiners as the stop words it never falls for 435 of the 498 descriptions; with
  spaCy's own list of 326 stop words, for 143.
"""

import dataclasses
import json
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.schema import Schema, Service
from sgdx_t5x.errors import SgdxError, nearest, require
from sgdx_t5x.files.reading import decode_lines, is_text, read_input
from sgdx_t5x.files.writing import atomic_folder, check_folder, json_line
from sgdx_t5x.variants.wording import NAME, REPAIRS, SERVICE, Element, join_words, reword, wording

RECORD = "paraphrases.jsonl"
# Why a paraphrase is not used, or changed.
PLACEMENT_RULES = {
  "same": "equal to the original or to an earlier paraphrase: not used",
  "surplus": "closer paraphrases fill all variants: not used",
  "filled": "too few paraphrases: the most distant one is reused",
  "none": "no paraphrase: the original is kept",
  **REPAIRS,
}
DETERMINERS = frozenset(
  {"a", "an", "the", "this", "that", "these", "those", "which", "what", "whose", "any", "all"}
  | {"some", "each", "every", "both", "no", "another", "either", "neither", "such"}
)
_NUMBER = re.compile(r"_\d+$")

Lemmas = Callable[[str], frozenset[str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Placement:
  """Where a paraphrase went.

  Attributes:
    element: what it paraphrases.
    variant: 1 to K; None if it is not used.
    text: as given, a name as words; the original if there is none.
    distance: to the original, in edits for names, 0 to 1 for descriptions.
    rules: those of `PLACEMENT_RULES` that apply, if it is not used or changed.
    made: the name in the schema if it was repaired.
  """

  element: Element
  variant: int | None
  text: str
  distance: float
  rules: tuple[str, ...] = ()
  made: str | None = None

  def to_json(self) -> dict[str, Any]:
    """Returns a line of the record."""
    line = {
      "element": self.element.key,
      "variant": None if self.variant is None else f"v{self.variant}",
      "text": self.text,
      "distance": round(self.distance, 4),
      "rules": list(self.rules),
    }
    return line if self.made is None else {**line, "made": self.made}


@dataclasses.dataclass(frozen=True)
class Composition:
  """Variants 1 to K of a schema, and where every paraphrase went, by element and variant."""

  variants: tuple[Schema, ...]
  placements: tuple[Placement, ...]


def read_paraphrases(
  path: str | pathlib.Path, schemas: Sequence[Schema]
) -> dict[Element, tuple[str, ...]]:
  """Reads lines {"element": "Banks_1/slot/account_type/name", "paraphrases": ["type", ...]}.

  Raises:
    SgdxError: a malformed line, a duplicate element, or one that no schema has.
  """
  elements: dict[Element, str] = {}
  for schema in schemas:
    elements.update(wording(schema))
  paraphrases: dict[Element, tuple[str, ...]] = {}
  expected = '{"element": "SERVICE/slot/NAME/name", "paraphrases": ["...", ...]}'
  content = read_input(path, "paraphrases, a line per element")
  for place, row in decode_lines(content, str(path), expected, "correct the line"):
    if not (
      isinstance(row, dict)
      and is_text(row.get("element"))
      and isinstance(texts := row.get("paraphrases"), list)
      and all(map(is_text, texts))
    ):
      raise SgdxError(f"{place}: {str(row)[:60]}", expected=expected, fix="correct the line")
    element = Element.from_key(row["element"], place)
    if element not in elements or element in paraphrases:
      twice = element in paraphrases
      raise SgdxError(
        f"{place}: {'duplicate' if twice else 'unknown'} element {element.key}",
        expected="each element once" if twice else "an element of the corpus",
        available="" if twice else nearest(element.key, (x.key for x in elements)),
        fix="merge the two lines" if twice else "use the names of the original schema",
      )
    paraphrases[element] = tuple(texts)
  return paraphrases


def blank_lines(schema: Schema) -> Iterator[str]:
  """Yields a line per element to paraphrase, as `read_paraphrases` reads it once it is filled in.

  The line also gives the original text, which is not read. Names of services need no paraphrase
  and have no line.
  """
  for element, original in wording(schema).items():
    if not _is_service_name(element):
      row = {"element": element.key, "original": original, "paraphrases": []}
      yield json_line(row)


def union(schemas: Sequence[Schema], origin: str) -> Schema:
  """Returns the services of several splits, each once.

  Raises:
    SgdxError: a service that is not the same in two of them.
  """
  services: dict[str, Service] = {}
  for schema in schemas:
    for service in schema:
      if services.setdefault(service.name, service) != service:
        raise SgdxError(
          f"{schema.origin}: service {service.name} differs from that of another split",
          expected="a service with the same names and descriptions in all splits",
          fix="compose the splits separately with --split",
        )
  return Schema(list(services.values()), origin)


def compose(
  schema: Schema,
  paraphrases: Mapping[Element, Sequence[str]],
  num_variants: int = 5,
  *,
  fill: bool = False,
  lemmas: Lemmas | None = None,
  on_progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Composition:
  """Composes variants. Names of services are paraphrased only if paraphrases are given.

  Whatever its words, a service gets the variant's digit, as in SGD-X: Banks_2 is Banks_21 in v1.

  Args:
    paraphrases: element -> texts, names as words; ties in distance keep their order.
    fill: where there are too few, use the farthest again, and where there is none, keep the
      original; instead of refusing.
    lemmas: of a description; `lemmatizer()` by default.
    on_progress: called with a task, the number of elements placed, and the total.

  Raises:
    SgdxError: too few paraphrases of an element, one that is empty or cannot be a name, or
      spaCy is not installed.
  """
  if lemmas is None:
    # Names are compared without lemmas, so that spaCy is needed for descriptions only.
    has_descriptions = any(element.field != NAME for element in paraphrases)
    lemmas = lemmatizer() if has_descriptions else lambda text: frozenset()
  placements: list[Placement] = []
  too_few = []
  elements = wording(schema)
  for number, (element, original) in enumerate(elements.items(), start=1):
    on_progress("ranking paraphrases", number, len(elements))
    ranked, unused = _rank(element, original, paraphrases.get(element, ()), lemmas)
    # SGD-X leaves the names of services as they are, but for the digit.
    if len(ranked) < num_variants and (ranked or not _is_service_name(element)):
      too_few.append((element, len(ranked)))
    placements += _place(element, original, ranked, num_variants) + unused
  if too_few and not fill:
    raise _too_few(too_few, num_variants, schema.origin)
  return _apply(schema, placements, num_variants)


def _apply(schema: Schema, placements: list[Placement], num_variants: int) -> Composition:
  """Returns the schemas that the placements say; in `placements`, notes what was repaired."""
  positions: dict[tuple[int, Element], int] = {}  # in `placements`
  texts_by_variant: dict[int, dict[Element, str]] = {k: {} for k in range(1, num_variants + 1)}
  for i, placement in enumerate(placements):
    if placement.variant is not None:
      positions[placement.variant, placement.element] = i
      if "none" not in placement.rules:
        texts_by_variant[placement.variant][placement.element] = placement.text
  variants = []
  for k, texts in texts_by_variant.items():
    variant, repairs = reword(schema, texts, f"v{k} of {schema.origin}")
    variants.append(with_digit(variant, k))
    for repair in repairs:  # an original that stays may collide too
      i = positions[k, repair.element]
      rules = (*placements[i].rules, repair.rule)
      placements[i] = dataclasses.replace(placements[i], rules=rules, made=repair.made)
  # A service whose name is not paraphrased has no line in the record.
  recorded = [p for p in placements if p.rules != ("none",) or not _is_service_name(p.element)]
  return Composition(tuple(variants), tuple(recorded))


def lemmatizer() -> Lemmas:
  """Returns a function from a text to its lemmas, without stop words. Downloads nothing.

  Raises:
    SgdxError: spaCy or its look-up tables are not installed.
  """
  spacy = require("spacy", extra="compose", why="lemmatizing descriptions")
  # spaCy finds its look-up tables through entry points.
  require("spacy_lookups_data", extra="compose", why="lemmatizing descriptions")
  nlp = spacy.blank("en")
  nlp.add_pipe("lemmatizer", config={"mode": "lookup"})
  nlp.initialize()

  def lemmas(text: str) -> frozenset[str]:
    tokens = (token for token in nlp(text.lower()) if not (token.is_punct or token.is_space))
    return frozenset(token.lemma_ for token in tokens if token.text not in DETERMINERS)

  return lemmas


def write_variants(
  composition: Composition,
  originals: Mapping[str, Schema],
  folder: str | pathlib.Path,
  header: Mapping[str, Any],
) -> None:
  """Writes folder/v{k}/{split}/schema.json and the record, all or nothing.

  Args:
    composition: of the union of `originals`.
    originals: split -> original schema.
    folder: must not exist, or be empty.
    header: describes the record; its first line.

  Raises:
    SgdxError: the folder is not empty, or cannot be written.
  """
  folder = check_out(folder)
  names = union(list(originals.values()), "originals").names  # in the order of the composition
  with atomic_folder(folder) as temporary:
    for k, variant in enumerate(composition.variants, start=1):
      service_by_name = dict(zip(names, variant, strict=True))
      for split, original in originals.items():
        path = temporary / f"v{k}" / split / "schema.json"
        path.parent.mkdir(parents=True)
        services = [service_by_name[service.name].to_json() for service in original]
        path.write_text(json.dumps(services, indent=2) + "\n", encoding="utf-8")
    rows = ({"format": "sgdx-compose/1", **header}, *map(Placement.to_json, composition.placements))
    text = "".join(map(json_line, rows))
    (temporary / RECORD).write_text(text, encoding="utf-8")


def check_out(folder: str | pathlib.Path) -> pathlib.Path:
  """Returns the absolute path of the folder to write. Raises SgdxError if it is not empty."""
  expected = "a folder that is new or empty: variants of different compositions must not be mixed"
  return check_folder(folder, expected=expected)


# --- parts ---------------------------------------------------------------------------------


def _is_service_name(element: Element) -> bool:
  return element.kind == SERVICE and element.field == NAME


def _rank(
  element: Element, original: str, texts: Sequence[str], lemmas: Lemmas
) -> tuple[list[tuple[str, float]], list[Placement]]:
  """Returns (text, distance) of different paraphrases, nearest first, and those not used."""
  from rapidfuzz.distance import Levenshtein

  is_name = element.field == NAME
  used = {element.name if is_name else " ".join(original.split())}  # a paraphrase in it is dropped
  original_lemmas = lemmas(original) if texts and not is_name else frozenset()
  ranked, unused = [], []
  for text in texts:
    if is_name:
      name_or_text = join_words(text, element.kind, element.name)
      distance = float(Levenshtein.distance(element.name, name_or_text))
      expected = "words in ASCII letters that form a name, not starting with a digit"
    else:
      name_or_text = " ".join(text.split())
      text_lemmas = lemmas(name_or_text)
      all_lemmas = original_lemmas | text_lemmas
      distance = 1 - len(original_lemmas & text_lemmas) / len(all_lemmas) if all_lemmas else 0.0
      expected = "a non-empty text"
    if not name_or_text:
      fix = "correct the paraphrase, or remove it"
      raise SgdxError(f"{element.key}: paraphrase {text!r}", expected=expected, fix=fix)
    if name_or_text in used:
      unused.append(Placement(element, None, text, distance, ("same",)))
    else:
      used.add(name_or_text)
      ranked.append((text, distance))
  ranked.sort(key=lambda item: item[1])  # stable: ties keep their order
  return ranked, unused


def _place(
  element: Element, original: str, ranked: Sequence[tuple[str, float]], num_variants: int
) -> list[Placement]:
  placed = []
  for k in range(1, num_variants + 1):
    if k <= len(ranked):
      placed.append(Placement(element, k, *ranked[k - 1]))
    elif ranked:
      placed.append(Placement(element, k, *ranked[-1], ("filled",)))
    else:
      placed.append(Placement(element, k, original, 0.0, ("none",)))
  return placed + [Placement(element, None, *x, ("surplus",)) for x in ranked[num_variants:]]


def with_digit(schema: Schema, k: int) -> Schema:
  """Names services as SGD-X does: Banks_2 is Banks_21 in v1."""
  services = []
  for service in schema:
    ending = f"{k}" if _NUMBER.search(service.name) else f"_{k}"
    services.append(dataclasses.replace(service, name=service.name + ending))
  return Schema(services, schema.origin)


def _too_few(counts: Sequence[tuple[Element, int]], num_variants: int, origin: str) -> SgdxError:
  element, count = counts[0]
  and_more = f" (and {len(counts) - 1:,} more elements)" if len(counts) > 1 else ""
  return SgdxError(
    f"{element.key}: {count} distinct paraphrases{and_more}",
    expected=f"{num_variants} for every slot and intent name and description, and every service "
    f"description, in {origin}",
    fix="add paraphrases, lower --variants, choose splits with --split, or reuse the most distant "
    "ones with --fill",
  )
