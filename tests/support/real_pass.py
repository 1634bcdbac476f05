"""One pass over the real archive, which takes half a minute, for all tests that need it.

`sgdx data verify` reads and checks every dialogue; the pass counts what it reads.
"""

import contextlib
import dataclasses
import io
import pathlib
from collections.abc import Mapping

from commands import sgdx

from sgdx_t5x.corpus import annotation
from sgdx_t5x.corpus import corpus as corpora
from sgdx_t5x.corpus.corpus import SplitCounts


@dataclasses.dataclass(frozen=True)
class RealPass:
  """What one pass found.

  Attributes:
    printed: output of `sgdx data verify --corpus`.
    counts: split -> its counts.
    remarks: split -> rule -> number of violations.
    untracked: split -> untracked (service, slot) pairs that occur in user states.
  """

  printed: str
  counts: Mapping[str, SplitCounts]
  remarks: Mapping[str, Mapping[str, int]]
  untracked: Mapping[str, frozenset[tuple[str, str]]]


def read_real(archive: pathlib.Path) -> RealPass:
  """Runs the command and returns what it printed and what it read."""
  counts, remarks, untracked = {}, {}, {}
  count, validate_annotation = corpora.count, annotation.validate_annotation
  splits, split_remarks = [], {}  # those read so far: the last is being read

  def spied_validation(schema, found):
    splits.append(schema.origin.rpartition(" ")[2].partition("/")[0])  # "sgd.zip: dev/schema.json"
    split_remarks[splits[-1]], untracked[splits[-1]] = found, set()
    tracked = {s.name: {s.slots[i].name for i in s.tracked_slots} for s in schema}
    check = validate_annotation(schema, found)

    def checked(dialogue, schema, origin):
      check(dialogue, schema, origin)
      for _, frame in dialogue.user_frames():
        slots = frame.state.slot_values.keys() - tracked[frame.service]
        untracked[splits[-1]].update((frame.service, slot) for slot in slots)

    return checked

  def spied_count(dialogues):
    split = splits[-1]
    counts[split] = count(dialogues)
    remarks[split] = {rule: remark.count for rule, remark in split_remarks[split].items()}
    return counts[split]

  printed = io.StringIO()
  corpora.count, annotation.validate_annotation = spied_count, spied_validation
  try:
    with contextlib.redirect_stdout(printed):
      assert sgdx("data", "verify", "--corpus", archive) == 0
  finally:
    corpora.count, annotation.validate_annotation = count, validate_annotation
  return RealPass(printed.getvalue(), counts, remarks, untracked)
