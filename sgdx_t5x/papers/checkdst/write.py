"""Writes a perturbed corpus in the official layout, all of it or nothing."""

import collections
import json
import pathlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.corpus import PERTURBATION, Corpus
from sgdx_t5x.corpus.dialogue import USER, decode_dialogues, frame_id
from sgdx_t5x.corpus.manifest import Manifest
from sgdx_t5x.corpus.sources import is_schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.locks import lock
from sgdx_t5x.files.writing import atomic_folder, check_folder, json_line
from sgdx_t5x.papers.checkdst.changes import changes_name
from sgdx_t5x.papers.checkdst.contract import Contract
from sgdx_t5x.papers.checkdst.split import Line, Perturber, Split, changed
from sgdx_t5x.signature import package_version


def write_perturbed(
  perturber: Perturber,
  split: Split,
  seed: int,
  out: str | pathlib.Path,
  on_dialogue: Callable[[int], None] = lambda dialogues_done: None,
) -> Manifest:
  """Perturbs a split and writes it as a corpus, with all schemas, a manifest and the changes.

  Args:
    perturber: what changes the dialogues.
    split: what is perturbed.
    seed: for the manifest.
    out: a folder that is new or empty.
    on_dialogue: called with the number of dialogues done.

  Returns:
    The manifest.

  Raises:
    SgdxError: the folder is not empty or cannot be written, the corpus lacks what the kind
      needs, or a dialogue would break the `Contract`. Nothing is left on disk then.
  """
  corpus = split.corpus
  with lock(out), atomic_folder(check_folder(out)) as folder:
    folder.mkdir()
    counts, files, lines = collections.Counter(), {}, []
    contract = Contract(split.schema)
    for name, raw, dialogues in split.files():
      originals = decode_dialogues(raw, name)  # again, as the others are changed in place
      for data, original in zip(dialogues, originals, strict=True):
        if changes := changed(perturber, data, counts):
          contract.check(data, original, f"{corpus.origin}: {name}")
          lines += changes
        count(counts, data, original, by_state=bool(perturber.slots))
        on_dialogue(counts["dialogues"])
      files[name] = checksum(raw)
      write_file(folder / name, encode_like(raw, dialogues))
    _check_annotated(perturber, split, counts)
    return finish(
      folder,
      split,
      lines,
      kind=perturber.kind,
      options=perturber.options,
      seed=seed,
      counts=_shown_counts(counts),
      files=files,
      complete=corpus.is_complete(split.name, counts["dialogues"]),
      slots=perturber.slots,
    )


def finish(folder: pathlib.Path, split: Split, lines: Iterable[Line], **fields: Any) -> Manifest:
  """Writes all but the dialogues of a set: schemas, changes, manifest.

  Args:
    folder: of the set.
    split: of the original.
    lines: of changes.jsonl.
    **fields: of the manifest, without those that follow from the split.

  Returns:
    The manifest.
  """
  corpus = split.corpus
  for name in filter(is_schema, corpus.source.names()):
    write_file(folder / name, corpus.source.read(name))
  write_file(folder / changes_name(split.name), "".join(map(json_line, lines)).encode())
  origin = {"corpus": corpus.name, "checksum": corpus.checksum()}
  manifest = Manifest(split=split.name, of=origin, version=package_version(), **fields)
  write_file(folder / PERTURBATION.format(split=split.name), manifest.text().encode())
  return manifest


_BASIC = ("dialogues", "user_turns", "turns_changed", "frames", "frames_changed")
_ONLY_TO_CHECK = ("spans", "acts", "values")


def _shown_counts(counts: collections.Counter) -> dict[str, Any]:
  statistics: dict[str, Any] = {name: counts[name] for name in _BASIC}
  statistics["kept"] = {k[1]: n for k, n in sorted(counts.items(), key=str) if isinstance(k, tuple)}
  for name, number in counts.items():
    if isinstance(name, str) and name not in (*_BASIC, *_ONLY_TO_CHECK):
      is_sum = name == "overlap"  # over the turns that pi changed, of which a set has the mean
      statistics[name] = round(number / counts["turns_changed"], 4) if is_sum else number
  return statistics


def check_has_dialogues(corpus: Corpus, split: str, number: int) -> None:
  """Refuses a split without dialogues. Args: number, of those that were read."""
  if not number:
    raise SgdxError(
      f"{corpus.origin}: {split} has no dialogues",
      expected="dialogues_*.json in the folder of the split",
      available=corpus.file_counts(),
      fix="choose a split that has some: --split",
    )


def _check_annotated(perturber: Perturber, split: Split, counts: collections.Counter) -> None:
  """Refuses a split without dialogues, or without the annotation that the kind needs."""
  check_has_dialogues(split.corpus, split.name, counts["dialogues"])
  lacks, fix = "", "add the annotation"
  if counts["values"] and not counts["spans"]:
    lacks = "spans: slots with start and exclusive_end"
  elif perturber.needs_acts and not counts["acts"]:
    lacks, fix = (
      "user acts: actions in user frames",
      f"{fix}, or choose ned, vs or sdi, which need none",
    )
  if lacks:
    raise SgdxError(
      f"{split.corpus.origin}: {split.name} has no {lacks}",
      expected=f"this annotation, as in SGD, for {perturber.kind}",
      fix=fix,
    )


def checksum(content: bytes) -> str:
  """Returns the CRC-32 of a file's content in the form of a manifest."""
  return f"{zlib.crc32(content):08x}"


def write_file(path: pathlib.Path, content: bytes) -> None:
  """Writes a file, and creates its parent folders."""
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_bytes(content)


# --- which user frames changed: those on which both sets are compared --------------------------


def changed_frames(
  data: Mapping[str, Any], original: Mapping[str, Any], by_state: bool
) -> list[str]:
  """Returns the ids of the user frames that differ from the original.

  Args:
    data: the perturbed dialogue, decoded.
    original: the dialogue before.
    by_state: whether the gold state is compared (ned, vs) or the frame's utterance (pi, sdi).
  """
  frame_ids = []
  for number, (turn, before) in enumerate(zip(data["turns"], original["turns"], strict=True)):
    for frame, frame_before in zip(turn["frames"], before["frames"], strict=True):
      is_changed = turn["utterance"] != before["utterance"]
      if by_state:
        is_changed = frame.get("state") != frame_before.get("state")
      if is_changed and turn["speaker"] == USER:
        frame_ids.append(frame_id(data["dialogue_id"], number, frame["service"]))
  return frame_ids


def count(
  counts: collections.Counter,
  data: Mapping[str, Any],
  original: Mapping[str, Any],
  by_state: bool,
) -> None:
  """Adds a dialogue to a manifest's counts, and to those that show what is annotated."""
  counts["dialogues"] += 1
  counts["frames_changed"] += len(changed_frames(data, original, by_state))
  for turn, before in zip(data["turns"], original["turns"], strict=True):
    counts["spans"] += sum(len(frame.get("slots") or ()) for frame in turn["frames"])
    if turn["speaker"] == USER:
      counts["user_turns"] += 1
      counts["turns_changed"] += turn["utterance"] != before["utterance"]
      for frame in turn["frames"]:
        counts["frames"] += 1
        counts["values"] += bool(frame["state"]["slot_values"])
        counts["acts"] += len(frame.get("actions") or ())


# --- the layouts of dialogue files ---------------------------------------------------------------

_LIKE_SGD = json.JSONEncoder(indent=2, sort_keys=True).encode
_ON_A_LINE = json.JSONEncoder(sort_keys=True).encode


def encode_like(original: bytes, dialogues: list[dict[str, Any]]) -> bytes:
  """Encodes dialogues in the layout of the file that they are from.

  SGD indents by two and sorts keys; `sgdx simulate` writes one dialogue per line. Other layouts
  become SGD's: their content is the same, their bytes are not.
  """
  if original.startswith(b"[\n{") and dialogues:
    return encode_on_lines(dialogues)
  end = "\n" if original.endswith(b"\n") else ""
  return f"{_LIKE_SGD(dialogues)}{end}".encode()


def encode_on_lines(dialogues: Sequence[Mapping[str, Any]]) -> bytes:
  """Encodes dialogues as a list, one per line."""
  return ("[\n" + ",\n".join(map(_ON_A_LINE, dialogues)) + "\n]\n").encode()
