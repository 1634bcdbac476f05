"""Undoes a perturbation: from a perturbed corpus and its changes back to the original."""

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from sgdx_t5x.data.corpus import Corpus
from sgdx_t5x.errors import SgdxError, malformed
from sgdx_t5x.perturb.changes import read_changes
from sgdx_t5x.perturb.json_text import encode_like
from sgdx_t5x.perturb.manifest import SCORED_LAST, Manifest, read_manifests
from sgdx_t5x.perturb.mapping import undo_mapping
from sgdx_t5x.perturb.pi import undo_words
from sgdx_t5x.perturb.sdi import undo_insertions
from sgdx_t5x.perturb.split import Line, Split
from sgdx_t5x.perturb.vs import undo_values


def undo_dialogue(
  data: dict[str, Any], lines: Sequence[Line], manifest: Manifest
) -> dict[str, Any]:
  """Undoes the changes of one dialogue.

  Args:
    data: decoded, changed in place.
    lines: its lines of changes.jsonl.
    manifest: of the perturbation.

  Returns:
    `data`.

  Raises:
    SgdxError: the changes do not belong to this dialogue.
  """
  try:
    for line in lines:
      if manifest.kind == "ned":
        undo_mapping(data, manifest.slots, line)
      elif manifest.kind == "vs":
        undo_values(data, manifest.slots, line)
      elif manifest.kind == "sdi":
        undo_insertions(data["turns"][line["turn"]], line["insertions"])
      elif manifest.kind == "pi":
        undo_words(data["turns"][line["turn"]], line)
      else:
        raise SgdxError(
          f"dialogue {data.get('dialogue_id')}: no inverse of perturbation {manifest.kind!r}",
          expected="a kind with a line in `undo_dialogue`",
          fix="add it there (CONTRIBUTING.md)",
        )
  except (KeyError, TypeError, AttributeError, IndexError, ValueError) as e:
    raise SgdxError(
      f"dialogue {data.get('dialogue_id')}: its changes cannot be undone: {malformed(e)}",
      expected="the dialogue and the changes that one run of `sgdx perturb` wrote",
      fix="perturb the original again",
    ) from e
  return data


def undone_files(corpus: Corpus, split: str) -> Iterator[tuple[str, list[dict[str, Any]], bytes]]:
  """Yields name, decoded dialogues and content of each file as it was before the last step.

  Raises:
    SgdxError: the split was not perturbed, or its changes do not fit.
  """
  manifests = read_manifests(corpus, split)
  if not manifests:
    raise SgdxError(
      f"{corpus.origin}: {split} was not perturbed",
      expected=f"{split}/perturbation.json next to the dialogues",
      fix="pass a folder that `sgdx perturb` wrote",
    )
  if manifests[-1].scored == SCORED_LAST:
    raise SgdxError(
      f"{corpus.origin}: {split} has only counterfactual turns, not the rest of the dialogues",
      expected="a set with all turns of the original",
      fix="use the original corpus; `sgdx data verify --against` compares the turns with it",
    )
  changes = read_changes(corpus, split)
  for name, raw, dialogues in Split(corpus, split).files():
    for data in dialogues:
      undo_dialogue(data, changes.pop(data["dialogue_id"], ()), manifests[-1])
    yield name, dialogues, encode_like(raw, dialogues)
  if changes:
    raise SgdxError(
      f"{corpus.origin}: changes to dialogue {next(iter(changes))}, which does not exist",
      expected="the dialogues and the changes that one run of `sgdx perturb` wrote",
      fix="perturb the original again",
    )


def checksum(content: bytes) -> str:
  """Returns the CRC-32 of a file's content in the form of a manifest."""
  return f"{zlib.crc32(content):08x}"
