"""The numbers of a check, and their names in tables and plots."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class CheckColumn:
  """A number of a set.

  Attributes:
    key: key in JSON and CSV, see `metrics.perturbed`.
    heading: heading in tables.
    counted: key of the count that the number is over.
  """

  key: str
  heading: str
  counted: str

  @property
  def row_label(self) -> str:
    """Its name where each number has a row, among those of other tables: not "JGA" but its key."""
    return self.heading if self in CHANGED else self.key


def _over(counted: str, *names: str) -> tuple[CheckColumn, ...]:
  pairs = (name.partition("=")[::2] for name in names)
  return tuple(CheckColumn(key, name or key, counted) for key, name in pairs)


CHANGED = _over(
  "num_changed",
  "before",
  "perturbed",
  "cjga=cJGA",
  "broken",
  "fixed",
  "retained",
  "agreement=agree",
  "drop",
)
CONDITIONAL = _over("num_changed", "conditional")
MEMORY = (
  *_over("num_entities", "factuality"),
  *_over("num_hallucinated", "from_train"),
  *_over("num_changed_entities", "reverted"),
  *_over("num_repairs", "repair_taken"),
)
SLOTS = _over("num_frames", "slot_precision=precision", "slot_recall=recall", "slot_f1=F1")
COREFERENCE = (
  *_over("num_coref_frames", "coref_jga=JGA"),
  *_over("num_carried", "coref_slot_accuracy=slots"),
  *_over("num_carried_new", "coref_new_slot_accuracy=new"),
  *_over("num_accepted_frames", "accepted_jga=accepted"),
)
CHECKDST = (
  *_over("num_frames", "jga=JGA"),
  *CONDITIONAL,
  *_over("num_coref_frames", "coref_jga_sticky=CorefJGA"),
  *_over("num_entities", "factuality_part=factuality"),
)
GOALS = _over(
  "num_changed",
  "kept_accuracy=kept",
  "changed_accuracy=changed",
  "added_accuracy=added",
  "rest_accuracy=rest",
  "dropped_left=dropped, left",
  "goal_reverted=reverted",
)
JGA = _over("num_frames", "jga=JGA")[0]
ALL = (JGA, *CHANGED, *CONDITIONAL, *MEMORY, *SLOTS, *COREFERENCE, *CHECKDST[2:], *GOALS)
