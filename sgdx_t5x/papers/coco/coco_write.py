"""Writes counterfactuals and their control: two corpora in the official layout, or nothing."""

import collections
import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.manifest import SCORED_LAST, Manifest
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.locks import lock
from sgdx_t5x.files.writing import atomic_folder, atomic_write, check_folder, json_line
from sgdx_t5x.papers.checkdst.split import Line, Split, annotation_of
from sgdx_t5x.papers.checkdst.write import (
  check_has_dialogues,
  checksum,
  encode_on_lines,
  finish,
  write_file,
)
from sgdx_t5x.papers.coco.coco import Coco, Counterfactual, counterfactuals
from sgdx_t5x.papers.coco.register import CONTROL_KIND, COUNTERFACTUAL_KIND

CONTROL_SUFFIX = "_ori"  # suffix of the control's folder
COMBINATIONS = "{split}/combinations.json"


@dataclasses.dataclass
class _Set:
  """One of the two corpora, while it is written."""

  kind: str
  folder: pathlib.Path
  lines: list[Line] = dataclasses.field(default_factory=list)
  frames: int = 0

  def add(self, name: str, cut: Sequence[tuple[Mapping[str, Any], Line]]) -> None:
    """Writes a file of dialogues cut after the turn that is scored; the lines say what changed."""
    write_file(self.folder / name, encode_on_lines([dialogue for dialogue, _ in cut]))
    for dialogue, line in cut:
      self.lines.append(line)
      self.frames += len(dialogue["turns"][-1]["frames"])


def control_folder(out: str | pathlib.Path) -> pathlib.Path:
  """Returns the folder of the control of a set, which is next to it."""
  out = pathlib.Path(out).resolve()
  return out.with_name(out.name + CONTROL_SUFFIX)


def write_coco(
  coco: Coco,
  split: Split,
  out: str | pathlib.Path,
  on_dialogue: Callable[[int], None] = lambda dialogues_done: None,
) -> Manifest:
  """Writes the counterfactuals of a split to a folder, and their control to `control_folder`.

  Each is a dialogue that ends with the turn that is scored, named after the turn: "1_00000.t04".

  Args:
    coco: how they are made.
    split: of the original.
    out: a folder that is new or empty, like the control's.
    on_dialogue: called with the number of dialogues done.

  Returns:
    The manifest of the counterfactuals.

  Raises:
    SgdxError: a folder is not empty or cannot be written, or no turn has a counterfactual.
      Nothing is left on disk then.
  """
  corpus, counts, files = split.corpus, collections.Counter(), {}
  with contextlib.ExitStack() as stack:
    sets = []
    for kind, path in ((COUNTERFACTUAL_KIND, out), (CONTROL_KIND, control_folder(out))):
      stack.enter_context(lock(path))
      folder = stack.enter_context(atomic_folder(check_folder(path)))
      folder.mkdir()
      sets.append(_Set(kind, folder))
    for name, raw, dialogues in split.files():
      turns: list[Counterfactual] = []
      for data in dialogues:
        with annotation_of(data):
          turns += counterfactuals(coco, data, counts)
        counts["read"] += 1
        on_dialogue(counts["read"])
      sets[0].add(name, [(turn.dialogue, turn.change) for turn in turns])
      sets[1].add(name, [(turn.control, turn.control_change) for turn in turns if turn.control])
      files[name] = checksum(raw)
    check_has_dialogues(corpus, split.name, counts["read"])
    if not sets[0].lines:
      numbers = reasons(counts, "kept")
      options = "choose other options: --generator, --slots, --values"
      eligible = f"{counts['eligible']:,} turns of {split.name}"
      raise SgdxError(
        f"{corpus.origin}: no counterfactual for any of {eligible}",
        expected="turns in which users inform slots (INFORM), and utterances for new goals",
        available=", ".join(f"{number:,} {reason}" for reason, number in numbers.items()),
        fix=options if numbers else "choose a split whose users' turns have acts, or add them",
      )
    manifests = [_finished(opened, coco, split, counts, files) for opened in sets]
    text = coco.combinations.text().encode()
    write_file(sets[0].folder / COMBINATIONS.format(split=split.name), text)
  return manifests[0]


def _finished(
  corpus_set: _Set,
  coco: Coco,
  split: Split,
  counts: collections.Counter,
  files: Mapping[str, str],
) -> Manifest:
  """Writes the schemas, the changes and the manifest of a set."""
  turns = len(corpus_set.lines)
  statistics: dict[str, Any] = {
    "dialogues": turns, "user_turns": turns, "turns_changed": turns,
    "frames": corpus_set.frames, "frames_changed": corpus_set.frames,
    "eligible": counts["eligible"], "generated": turns,
    "source": reasons(counts, "source"), "kept": reasons(counts, "kept"),
  }  # fmt: skip
  if corpus_set.kind == COUNTERFACTUAL_KIND:
    names = ("slots_dropped", "slots_changed", "slots_added")
    statistics |= {name: counts[name] for name in (*names, "controls")}
    if coco.values.fallbacks:
      statistics["slots_with_few_values"] = len(coco.values.fallbacks)
  return finish(
    corpus_set.folder,
    split,
    corpus_set.lines,
    kind=corpus_set.kind,
    options=coco.options,
    seed=coco.seed,
    counts=statistics,
    files=files,
    complete=split.corpus.is_complete(split.name, counts["read"]),
    scored=SCORED_LAST,
  )


def reasons(counts: collections.Counter, category: str) -> dict[str, int]:
  """Returns name -> number of the counts ("kept", name) or ("source", name), largest first."""
  numbers = {k[1]: n for k, n in counts.items() if isinstance(k, tuple) and k[0] == category}
  return dict(sorted(numbers.items(), key=lambda item: (-item[1], item[0])))


def write_lines(path: str, option: str, lines: Iterable[Mapping[str, Any]]) -> int:
  """Writes JSON lines. Returns how many. Args: option, the one that named the file."""
  with atomic_write(path, option) as file:
    texts = [json_line(line) for line in lines]
    file.writelines(texts)
  return len(texts)
