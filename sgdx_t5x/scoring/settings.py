"""Scoring settings: what scores depend on besides corpus and predictions."""

import dataclasses
import os
from collections.abc import Collection, Mapping
from typing import Any

from sgdx_t5x.arguments import NUMBER, check_bootstrap, check_choice, checked_arguments
from sgdx_t5x.errors import UsageError
from sgdx_t5x.metrics.bootstrap import NUM_BOOTSTRAP_SAMPLES
from sgdx_t5x.metrics.frames import OFFICIAL_METRICS
from sgdx_t5x.metrics.fuzzy import BACKENDS
from sgdx_t5x.metrics.sensitivity import ZERO_MEAN_RULES
from sgdx_t5x.prompts import DEFAULT, FORMATS, load_format
from sgdx_t5x.prompts.protocol import PromptFormat


@dataclasses.dataclass(frozen=True)
class Settings:
  """What a score depends on besides corpus and predictions.

  Attributes:
    fuzzy: how non-categorical values are compared, see `metrics.fuzzy.match`.
    zero_mean: how SS treats frames that every variant gets wrong: "zero" or "exclude".
    across_turn: multiply joint metrics over the frames of a turn (official, for MultiWOZ).
    metrics: official keys, and those of the prompt format, to summarise over variants, besides JGA.
    allow_missing: score what is there if frames are missing or dialogues unknown.
    prompt_format: format of the prompts behind JSONL predictions, to parse the output text.
    bootstrap_samples: how many samples of dialogues to draw for 95% intervals; 0: no intervals.
    seed: random seed of the bootstrap.
    provenance: also score by the source of state values, see `corpus.provenance`.
    schemas: variant -> folder of its schemas, for variants of one's own.
  """

  fuzzy: str = "difflib"
  zero_mean: str = "zero"
  across_turn: bool = False
  metrics: Collection[str] = ()
  allow_missing: bool = False
  prompt_format: PromptFormat = dataclasses.field(default_factory=load_format)
  bootstrap_samples: int = NUM_BOOTSTRAP_SAMPLES
  seed: int = 0
  provenance: bool = False
  schemas: Mapping[str, str | os.PathLike] = dataclasses.field(default_factory=dict)

  @classmethod
  def of(cls, settings: Mapping[str, Any]) -> "Settings":
    """Returns those of keyword arguments.

    Args:
      settings: attributes; style=PromptStyle(...) is short for
        prompt_format=T5DST(PromptStyle(...)), prompt_format="d3st" for D3ST().

    Raises:
      UsageError: an unknown name, or a value of another kind.
    """
    attributes = dict(settings)
    style, name = attributes.pop("style", None), attributes.get("prompt_format", DEFAULT)
    if style is not None or isinstance(name, str):
      attributes["prompt_format"] = load_format(name, style)
    return cls(**attributes)

  def __post_init__(self):
    if not hasattr(self.prompt_format, "asked"):  # a protocol
      raise UsageError(
        f"prompt_format is of type {type(self.prompt_format).__name__}",
        expected="a prompt format, or its name",
        available=", ".join(FORMATS),
        fix="pass one of these names, or style=PromptStyle(...)",
      )
    check_choice(self.fuzzy, "fuzzy", BACKENDS)
    check_choice(self.zero_mean, "zero_mean", ZERO_MEAN_RULES)
    check_bootstrap(self.bootstrap_samples, self.seed, "0 (no intervals) or ")
    metrics = (*OFFICIAL_METRICS, *getattr(self.prompt_format, "own_metrics", ()))
    for name in self.metrics:
      check_choice(name, "metric", metrics)


# A dataclass writes its own constructor, so there is none to decorate in the class.
Settings.__init__ = checked_arguments(  # type: ignore[method-assign]
  "the scoring",
  fuzzy=str,
  zero_mean=str,
  across_turn=bool,
  metrics=Collection,
  allow_missing=bool,
  bootstrap_samples=NUMBER,
  seed=NUMBER,
  provenance=bool,
  schemas=Mapping,
)(Settings.__init__)
