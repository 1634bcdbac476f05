"""Tracks a split under variants of its schema into DSTC8 dialogues that `sgdx score` reads.

A folder per variant holds a file per block of dialogues, each written atomically; track.json beside
the folders records what the answers depend on. A killed run resumes after its last file.
"""

import dataclasses
import hashlib
import json
import pathlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import USER, Dialogue, Frame, frame_id
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.locks import lock
from sgdx_t5x.files.reading import decode_json
from sgdx_t5x.files.writing import atomic_write, check_folder, is_folder_name
from sgdx_t5x.records.turns import check_acts
from sgdx_t5x.signature import package_version
from sgdx_t5x.tracking.protocol import Shown, TrackedFrame, Tracker

MANIFEST = "track.json"
_FORMAT = "sgdx-track/1"
# Dialogues that are walked together, and per file: what a killed run can lose. With 64, the host of
# a GPU takes half as long again.
_BLOCK = 256
OnProgress = Callable[[int, int], None]  # frames done, total frames


@dataclasses.dataclass(frozen=True)
class Tracked:
  """What was tracked for a variant.

  Attributes:
    folder: of its predictions.
    frames: of all dialogues.
    resumed: frames that an earlier run had written.
  """

  folder: pathlib.Path
  frames: int
  resumed: int


def check_services(schema: Schema) -> None:
  """Raises SgdxError for a service without slots: there is nothing to track."""
  for service in schema:
    if not service.slots:
      raise SgdxError(
        f"{schema.origin}: service {service.name} has no slots",
        expected="slots whose values can be tracked",
        fix="add slots to it, or remove it from the schema; of a schema without a corpus, "
        "--service, or services= in Python, can name the others",
      )


def without_gold(dialogue: Dialogue) -> Dialogue:
  """Returns a dialogue with only what a tracker may know: utterances, services, system acts."""
  turns = []
  for turn in dialogue.turns:
    frames = []
    for frame in turn.frames:
      # The user's acts are labels, too: they name the values that a tracker is to predict.
      frames.append(Frame(frame.service, actions=None if turn.speaker == USER else frame.actions))
    turns.append(dataclasses.replace(turn, frames=tuple(frames)))
  return dataclasses.replace(dialogue, turns=tuple(turns))


def read_split(corpus: Corpus, split: str, tracker: Tracker) -> list[Dialogue]:
  """Returns the dialogues of a split, without gold unless the tracker reads it.

  Raises:
    SgdxError: there are none, or the tracker needs acts and a dialogue lacks them.
  """
  dialogues = []
  for dialogue in corpus.dialogues(split):
    if tracker.needs_acts:
      check_acts(dialogue, f"{corpus.origin}: {split}", tracker.name)
    dialogues.append(dialogue if tracker.reads_gold else without_gold(dialogue))
  if not _num_frames(dialogues):
    raise SgdxError(
      f"{corpus.origin}: nothing to track in split {split}",
      expected="dialogues with user frames",
      available=corpus.file_counts(),
      fix="choose a split with dialogues",
    )
  return dialogues


def _num_frames(dialogues: Sequence[Dialogue]) -> int:
  """Returns the number of frames to track: of user turns, of counterfactuals only the last."""
  return sum(len(list(dialogue.user_frames())) for dialogue in dialogues)


def track_split(
  tracker: Tracker,
  corpus: Corpus,
  split: str,
  schemas: Mapping[str, Schema],
  out: pathlib.Path,
  *,
  overwrite: bool = False,
  on_progress: OnProgress = lambda frames_done, total: None,
) -> Iterator[Tracked]:
  """Writes {out}/{variant}/dialogues_NNN.json for each variant.

  Args:
    tracker: the tracker.
    corpus: the corpus, or a part of it, `corpus.subset.Subset`.
    split: of the corpus.
    schemas: variant -> its schema.
    out: folder; new, empty, or of an earlier run with the same settings, which is resumed.
    overwrite: start over if `out` holds an earlier run.
    on_progress: called with the number of frames done and the total over all variants.

  Yields:
    What was tracked for each variant, once it is complete.

  Raises:
    SgdxError: a schema or dialogues that the tracker cannot read, or a folder of other predictions.
  """
  views = {}
  # All variants before the first dialogue: an hour later would be too late to learn that one fails.
  for variant, schema in schemas.items():
    view = Shown(split, corpus.name_in_ids(split, variant), corpus.schema(split), schema)
    check_services(schema)
    tracker.check(view)
    views[variant] = view
  dialogues = read_split(corpus, split, tracker)
  blocks, sizes = [], []
  for start in range(0, len(dialogues), _BLOCK):
    blocks.append(dialogues[start : start + _BLOCK])
    sizes.append(_num_frames(blocks[-1]))
  frames_done, total = 0, sum(sizes) * len(views)
  with lock(out):
    _begin(out, _manifest(tracker, corpus, split, dialogues, views), overwrite)
    for variant, view in views.items():
      folder, resumed = out / variant, 0
      for number, (block, size) in enumerate(zip(blocks, sizes, strict=True), start=1):
        path = folder / f"dialogues_{number:03d}.json"
        if path.exists():  # whole, and of the same settings and dialogues: see `_begin`
          resumed, frames_done = resumed + size, frames_done + size
          on_progress(frames_done, total)
          continue
        predictions: dict[str, TrackedFrame] = {}
        for portion in tracker.track(block, view):
          predictions.update(portion)
          # Some trackers also track what is not scored.
          on_progress(frames_done + min(len(predictions), size), total)
        frames_done += size
        folder.mkdir(exist_ok=True)
        with atomic_write(path, "--out") as file:
          file.write(_text(block, predictions, {"history": "gold"} if tracker.reads_gold else {}))
      yield Tracked(folder, sum(sizes), resumed)


# --- files ---------------------------------------------------------------------------------


def _text(
  dialogues: Sequence[Dialogue], predictions: Mapping[str, TrackedFrame], mark: Mapping[str, str]
) -> str:
  """Returns a file of DSTC8 dialogues with predictions; `mark` has further keys of each."""
  data = []
  for dialogue in dialogues:
    turns = []
    for number, turn in enumerate(dialogue.turns):
      frames = _frames(dialogue, number, predictions)
      turns.append({"speaker": turn.speaker, "utterance": turn.utterance, "frames": frames})
    services = list(dialogue.services)
    data.append({"dialogue_id": dialogue.dialogue_id, **mark, "services": services, "turns": turns})
  return json.dumps(data, indent=2, sort_keys=True) + "\n"


def _frames(
  dialogue: Dialogue, number: int, predictions: Mapping[str, TrackedFrame]
) -> list[dict[str, Any]]:
  """Returns the frames of a turn; none before the only one that is scored."""
  turn = dialogue.turns[number]
  if turn.speaker != USER:
    return [{"service": frame.service} for frame in turn.frames]
  frames = []
  for frame in turn.frames if dialogue.is_scored(number) else ():
    prediction = predictions[frame_id(dialogue.dialogue_id, number, frame.service)]
    state: dict[str, Any] = {"slot_values": dict(prediction.slot_values)}
    for key in ("active_intent", "requested_slots"):
      if (value := getattr(prediction, key)) is not None:  # else the tracker does not predict it
        state[key] = value
    frames.append({"service": frame.service, "state": state})
  return frames


def _manifest(
  tracker: Tracker,
  corpus: Corpus,
  split: str,
  dialogues: Sequence[Dialogue],
  views: Mapping[str, Shown],
) -> dict[str, Any]:
  """Returns track.json: what predictions depend on, so that none of other settings join them."""
  return {
    "format": _FORMAT,
    "version": package_version(),
    "tracker": dict(tracker.settings),
    "corpus": {
      "name": corpus.name,
      "checksum": corpus.checksum(),
      "split": split,
      "dialogues": len(dialogues),
      "dialogues_per_file": _BLOCK,
      "ids": _digest([dialogue.dialogue_id for dialogue in dialogues]),
    },
    "variants": {variant: _digest(view.schema.to_json()) for variant, view in views.items()},
  }


def _digest(data: Any) -> str:
  return hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=8).hexdigest()


def _begin(out: pathlib.Path, manifest: dict[str, Any], overwrite: bool) -> None:
  """Prepares the folder for predictions with these settings, and writes its manifest."""
  for name in manifest["variants"]:
    if not is_folder_name(name):
      raise SgdxError(f"variant {name!r}", expected="a folder's name", fix="rename the variant")
  earlier = _read_manifest(out)
  if earlier is None:
    check_folder(out, expected="a new or empty folder, or the output of an earlier `sgdx track`")
  else:
    unlisted = set(manifest["variants"]) - set(earlier["variants"])
    if foreign := sorted(name for name in unlisted if (out / name).exists()):
      raise SgdxError(
        f"--out {out}: {foreign[0]} is not the output of an earlier `sgdx track`: "
        f"{MANIFEST} lacks it",
        expected="no folder of that name",
        fix=f"remove {out / foreign[0]}, or choose another folder",
      )
    if overwrite:
      for name in earlier["variants"]:
        if (out / name).exists():  # what cannot be removed would pass for new predictions
          shutil.rmtree(out / name)
    elif differences := list(_differences(earlier, manifest)):
      raise SgdxError(
        f"--out {out} holds predictions made with different settings: " + "; ".join(differences),
        expected="a new folder, or predictions for the same checkpoint, settings and dialogues",
        fix="choose another folder, or add --overwrite to start over",
      )
    else:  # variants of earlier runs stay
      manifest["variants"] = {**earlier["variants"], **manifest["variants"]}
  out.mkdir(parents=True, exist_ok=True)
  with atomic_write(out / MANIFEST, "--out") as file:
    file.write(json.dumps(manifest, indent=2) + "\n")


def _read_manifest(out: pathlib.Path) -> dict[str, Any] | None:
  """Returns the manifest of an earlier run; None if there is none."""
  path = out / MANIFEST
  if not path.is_file():
    return None
  expected, fix = f"a {MANIFEST} written by `sgdx track`", "choose another folder"
  data = decode_json(path.read_bytes(), str(path), expected, fix)
  keys = ("tracker", "corpus", "variants")
  is_ours = isinstance(data, dict) and data.get("format") == _FORMAT
  is_ours = is_ours and all(isinstance(data.get(key), dict) for key in keys)
  # The variants' folders are removed to start over: a name must not lead out of this one.
  if not is_ours or not all(map(is_folder_name, data["variants"])):
    raise SgdxError(f"{path}: unknown format", expected=expected, fix=fix)
  return data


def _differences(earlier: Mapping[str, Any], current: Mapping[str, Any]) -> Iterator[str]:
  """Yields what differs between two manifests; variants that only one has do not."""
  if earlier.get("version") != current["version"]:
    yield f"version {earlier.get('version')} of sgdx_t5x, now {current['version']}"
  for part in ("tracker", "corpus"):
    for key in {**earlier[part], **current[part]}:
      old_value, new_value = earlier[part].get(key), current[part].get(key)
      if old_value != new_value:
        yield f"{part} {key} {old_value}, now {new_value}"
  for variant, digest in current["variants"].items():
    if earlier["variants"].get(variant, digest) != digest:
      yield f"the schema of {variant} differs"
