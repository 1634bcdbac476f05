"""SeqIO tasks and mixtures of SGP-DST's four sub-models.

Their metrics cover single questions, given the gold states before the turn and, for copy and cross,
the gold intent; `sgdx track` gives the joint goal accuracy of whole dialogues, from predictions
alone. Importing this module registers them.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import seqio

from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.sgpdst import sgpdst_answers as a
from sgdx_t5x.papers.sgpdst.sgpdst import PARTS, SAMPLING
from sgdx_t5x.papers.sgpdst.sgpdst_examples import sgpdst_examples
from sgdx_t5x.papers.sgpdst.sgpdst_features import FEATURES, SgpStyle
from sgdx_t5x.tasks.registration import register_encoder_task, register_mixtures
from sgdx_t5x.tasks.vocabularies import encoder_vocabulary_later, sample_encoder_vocabulary

NAME = "sgpdst"


def register_sgpdst(
  name: str,
  part: str,
  *,
  data: str,
  variants: Sequence[str],
  vocabulary: Callable[[], seqio.Vocabulary],
  style: SgpStyle | None = None,
  folders: Mapping[str, Any] | None = None,
) -> seqio.Task:
  """Registers a task of a sub-model.

  Args:
    part: the sub-model: "intent", "combine", "copy" or "cross".
    name, data, variants, vocabulary, folders: see `registration.register`.
    style: of the input and of training.

  Raises:
    SgdxError: there is no such part, or no such sampling.
  """
  style = style or SgpStyle()
  for found, known in ((part, PARTS), (style.sampling, SAMPLING)):
    if found not in known:
      raise SgdxError(
        f"task {name!r} of SGP-DST with {found!r}",
        expected="one of its sub-models and sampling methods",
        available=", ".join(known),
        fix="call register_sgpdst(name, 'combine', style=SgpStyle(sampling='meant'), ...)",
      )
  metrics = {"intent": intent_accuracy, "combine": slot_accuracies}
  return register_encoder_task(
    name,
    tracker="SGP-DST",
    format=f"{NAME}_{part}",
    data=data,
    variants=variants,
    vocabulary=vocabulary,
    features=FEATURES,
    examples=sgpdst_examples,
    metric=metrics.get(part, copy_scores),
    folders=folders,
    needs=("acts", "spans"),
    part=part,
    style=style,
  )


def register_sgpdst_families(
  prefix: str,
  *,
  data: str,
  vocabulary: Callable[[], seqio.Vocabulary],
  style: SgpStyle | None = None,
) -> None:
  """Registers the tasks and mixtures of one data set: per sub-model, those of a prompt format."""
  for part in PARTS:
    task = functools.partial(register_sgpdst, part=part, vocabulary=vocabulary, style=style)
    register_mixtures(f"{prefix}{NAME}_{part}", data, task)


def intent_accuracy(targets: Sequence, predictions: Sequence) -> dict[str, float]:
  """SeqIO metric of intent. Args: targets and the model's answers, one per frame."""
  pairs = zip(targets, predictions, strict=True)
  return {"intent_accuracy": _mean([_at(t, 0) == _at(p, 0) for t, p in pairs])}


def slot_accuracies(targets: Sequence, predictions: Sequence) -> dict[str, float]:
  """SeqIO metric of combine.

  Args:
    targets: of the combine model, one per slot.
    predictions: its answers.

  Returns:
    span_accuracy and option_accuracy over slots with a gold span or option, none_accuracy over
    those with neither, requested_f1.
  """
  spans, options, nothing = [], [], []
  asked, said = [], []
  for target, vector in zip(targets, predictions, strict=True):
    first, last, option, requested, has_span = (_at(target, i) for i in range(5))
    found = a.read_slot(vector)
    span_right = (found.first, found.last) == (first, last)
    option_right = found.option + 1 == option
    asked.append(requested == a.YES)
    said.append(found.requested > 0.5)
    if has_span == a.YES:
      spans.append(span_right)
    elif option > 1:
      options.append(option_right)
    else:
      nothing.append(span_right and option_right)
  return {
    "span_accuracy": _mean(spans),
    "option_accuracy": _mean(options),
    "none_accuracy": _mean(nothing),
    "requested_f1": _f1(asked, said),
  }


def copy_scores(targets: Sequence, predictions: Sequence) -> dict[str, float]:
  """SeqIO metric of copy and cross. Args: targets and answers, one per slot or pair."""
  right = [_at(target, 0) == a.YES for target in targets]
  said = [a.read_copy(vector) > 0.5 for vector in predictions]
  both = sum(x and y for x, y in zip(right, said, strict=True))
  return {
    "accuracy": _mean([x == y for x, y in zip(right, said, strict=True)]),
    "precision": both / sum(said) if any(said) else float("nan"),
    "recall": both / sum(right) if any(right) else float("nan"),
    "f1": _f1(right, said),
  }


def _at(vector: Any, place: int) -> int:
  return int(np.asarray(vector).reshape(-1)[place])


def _mean(found: list[bool]) -> float:
  return float(np.mean(found)) if found else float("nan")


def _f1(right: list[bool], said: list[bool]) -> float:
  """Returns F1; NaN if there are neither gold nor predicted positives."""
  both = sum(x and y for x, y in zip(right, said, strict=True))
  total = sum(right) + sum(said)
  return 2 * both / total if total else float("nan")


register_sgpdst_families("", data="full", vocabulary=encoder_vocabulary_later)
register_sgpdst_families(
  "sample_",
  data="sample",
  vocabulary=sample_encoder_vocabulary,
  # Its small vocabulary cuts words into many pieces.
  style=SgpStyle(utterance=120, sampling="mild"),
)
