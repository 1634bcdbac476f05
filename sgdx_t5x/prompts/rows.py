"""Prompts as rows {"id", "prompt"}, for models that are not trained with SeqIO.

Ids and texts are those of the SeqIO tasks (`example_id_pretokenized`, `inputs_pretokenized`).
A row does not reveal the gold state, unless its target is asked for (`targets_pretokenized`).
"""

import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

from sgdx_t5x.arguments import PATH, checked_arguments
from sgdx_t5x.corpus.corpus import Corpus
from sgdx_t5x.corpus.dialogue import Dialogue, frame_id
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Schema
from sgdx_t5x.corpus.variants import ORIGINAL
from sgdx_t5x.prompts import DEFAULT, load_format
from sgdx_t5x.prompts.protocol import (
  PromptFormat,
  ServicePair,
  prompts_without_history,
  service_pairs,
)
from sgdx_t5x.variants.variant_schemas import VariantSchemas

Pairs = Mapping[str, ServicePair]  # service, by its original name -> its schemas


@checked_arguments(
  corpus=(Corpus, *PATH), split=str, variant=str, targets=bool, schemas=(Mapping, type(None))
)
def make_prompts(
  corpus: Corpus | str | os.PathLike,
  split: str,
  *,
  variant: str = ORIGINAL,
  format: str | PromptFormat = DEFAULT,
  style: Any = None,
  targets: bool = False,
  schemas: Mapping[str, str | os.PathLike] | None = None,
) -> Iterator[dict[str, Any]]:
  """Returns the prompts of a split's dialogues, for any model to answer.

      rows = sgdx_t5x.make_prompts(corpus, "train", format="d3st", targets=True)

  Args:
    corpus: an open corpus, or an argument of `open_corpus`.
    split: "train", "dev" or "test".
    variant: whose schema the prompts show.
    format: "t5dst", "d3st", "sdt" or "state", or a format of your own.
    style: of the format, such as `PromptStyle`; None for its default.
    targets: whether to add the gold answers, to train a model.
    schemas: own variant -> folder of its schemas.

  Returns:
    An iterator of {"id": str, "prompt": str}, with "target" if asked for. `score` takes rows
    {"id", "prediction"}.

  Raises:
    SgdxError: no such split, variant or format, or one whose style cannot show a service.
  """
  corpus = corpus if isinstance(corpus, Corpus) else open_corpus(corpus)
  prompt_format = load_format(format, style)
  schema = VariantSchemas(corpus, schemas).get(split, variant)
  reworded = {corpus.name_in_ids(split, variant): schema}
  services = services_of(prompt_format, split, corpus.schema(split), reworded)
  return itertools.chain.from_iterable(
    dialogue_rows(prompt_format, dialogue, split, services, targets) for dialogue in corpus[split]
  )


def services_of(
  prompt_format: PromptFormat, split: str, original: Schema, variants: Mapping[str, Schema]
) -> dict[str, Pairs]:
  """Returns variant -> services to ask about, after trying the format on each of them.

  Raises:
    SgdxError: the format's style cannot show a service.
  """
  pairs_by_variant = {}
  for variant, schema in variants.items():
    pairs = service_pairs(original, schema)
    # Now, since an error among the rows would come after a part of them.
    for _ in prompts_without_history(prompt_format, split, variant, pairs):
      pass
    pairs_by_variant[variant] = pairs
  return pairs_by_variant


def dialogue_rows(
  prompt_format: PromptFormat,
  dialogue: Dialogue,
  split: str,
  services: Mapping[str, Pairs],
  targets: bool = False,
) -> Iterator[dict[str, Any]]:
  """Yields the prompts of a dialogue: frame by frame, then by variant, then by example.

  Args:
    prompt_format, split: of the prompts; the ids name the split.
    dialogue: in original names.
    services: variant -> its services, see `services_of`.
    targets: whether to add the targets.

  Yields:
    {"id": "v3/test/1_00000-002-Banks_2/amount", "prompt": str}, "target" if requested, and
    any further keys of the format. Ids of a perturbed corpus begin with "ned+v3".
  """
  turns = [(turn.speaker, turn.utterance) for turn in dialogue.turns]
  # A format may show other states or frames than the user frames themselves.
  shown_frames = getattr(prompt_format, "shown_frames", Dialogue.user_frames)
  for turn, frame in shown_frames(dialogue):
    name = frame_id(dialogue.dialogue_id, turn, frame.service)
    history = tuple(turns[: turn + 1])
    for variant, pairs in services.items():
      example, pair = ExampleId(variant, split, name), pairs[frame.service]
      slots = prompt_format.asked(pair.original)
      prompts = prompt_format.prompts(example, pair, history)
      answers = prompt_format.targets(example, pair, frame.user_state) if targets else ()
      for i, (slot, prompt) in enumerate(zip(slots, prompts, strict=True)):
        row = {"id": str(example.with_slot(slot)), "prompt": prompt.text}
        if targets:
          row["target"] = answers[i]
        yield {**row, **prompt.row}
