"""Defaults of the scripts that are functions of modules which are slow to import."""

from __future__ import annotations

from typing import Any


def verify_matching_vocabs(dataset_cfg: Any, model: Any) -> None:
  """`utils.verify_matching_vocabs`, which scripts import only when they run."""
  from t5x import utils

  utils.verify_matching_vocabs(dataset_cfg, model)


def evaluator(**kwargs: Any) -> Any:
  """A `seqio.Evaluator` that writes TensorBoard events and JSON files."""
  import seqio

  return seqio.Evaluator(logger_cls=[seqio.TensorBoardLogger, seqio.JSONLogger], **kwargs)
