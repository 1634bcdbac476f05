"""Labels of a check's predictions: for which set and which schema variant they are."""

from collections.abc import Iterable, Mapping

from sgdx_t5x.corpus.variants import ORIGINAL, in_order, tagged, untagged
from sgdx_t5x.errors import SgdxError, UsageError, nearest
from sgdx_t5x.papers.checkdst.checks.sets import TestSet
from sgdx_t5x.prompts.protocol import PromptFormat
from sgdx_t5x.scoring.predictions.files import Paths, find_files, is_rows
from sgdx_t5x.scoring.predictions.rows import read_rows
from sgdx_t5x.scoring.score import ALL
from sgdx_t5x.variants.variant_schemas import VariantSchemas


def labels(
  predictions: Mapping[str, Paths],
  sets: Mapping[str, TestSet],
  schemas: VariantSchemas,
  split: str,
  order: Iterable[str],
) -> dict[str, dict[str, str]]:
  """Returns set -> schema variant -> label of the predictions, the original set first.

  Args:
    predictions: label -> predictions, without "all", see `every_set`.
    sets: name -> set.
    schemas: of the original corpus, with those of the user's own.
    split: its split.
    order: names of variants in the user's order, see `variants.in_order`.

  Raises:
    UsageError: a label of no known set or variant, or two labels for the same; a set, or the
      original, without predictions.
  """
  labels_by_set: dict[str, dict[str, str]] = {name: {} for name in sets}
  for label in predictions:
    # "ned+v1" is a set with v1's schemas, "v1" alone the original dialogues with them.
    name, _, variant = label.partition("+")
    if name not in sets and not variant:
      name, variant = ORIGINAL, label
    variant = variant or ORIGINAL
    if name not in sets or untagged(variant)[0] or not schemas.has(split, variant):
      raise UsageError(
        f"predictions for {label}",
        expected="the name of a set, a schema variant, or SET+VARIANT",
        available=nearest(label, [*sets, *schemas.names(split)]),
        fix="add a set with --perturbed SET=DIR or a variant of your own with --schemas NAME=DIR, "
        "or correct the name",
      )
    if variant in labels_by_set[name]:
      raise UsageError(
        f"predictions for {label} and for {labels_by_set[name][variant]}, which mean the same",
        expected="one source of predictions per set and variant",
        fix="leave out one of the two",
      )
    labels_by_set[name][variant] = label
  if without_predictions := [name for name, by_variant in labels_by_set.items() if not by_variant]:
    raise UsageError(
      f"no predictions for {without_predictions[0]}",
      expected="those for the original dialogues, and for each perturbed set",
      available=", ".join(predictions) or "none",
      fix=f"add --predictions {without_predictions[0]}=DIR",
    )
  order = tuple(order)
  for name, by_variant in labels_by_set.items():
    labels_by_set[name] = {variant: by_variant[variant] for variant in in_order(by_variant, order)}
  return labels_by_set


def every_set(
  predictions: Mapping[str, Paths],
  sets: Mapping[str, TestSet],
  split: str,
  prompt_format: PromptFormat,
) -> dict[str, Paths]:
  """Returns the predictions with "all" replaced by the sets named in the ids of its rows.

  Raises:
    SgdxError: DSTC8 dialogues, which do not name their set.
    UsageError: sets whose ids cannot be told apart, or a set that is also given by name.
  """
  predictions = dict(predictions)
  if ALL not in predictions:
    return predictions
  files = find_files(predictions.pop(ALL), split)
  if not is_rows(files[0]):
    raise SgdxError(
      f"{files[0]}: DSTC8 dialogues do not state which set they were predicted for",
      expected="JSONL, in which the ids contain the set",
      fix="specify the sets: --predictions original=DIR ned=DIR ...",
    )
  kinds = {name: test_set.corpus.perturbed(split) for name, test_set in sets.items()}
  for name, test_set in sets.items():
    if name != ORIGINAL and not kinds[name]:
      raise SgdxError(
        f"{name}={test_set.corpus.origin}: no perturbed dialogues in split {split}",
        expected="a corpus written by `sgdx checkdst perturb`, with this split",
        available=test_set.corpus.file_counts(),
        fix=f"pass the perturbed corpus, or name the predictions of each set: {name}=DIR",
      )
  files_of_set: dict[str, dict[str, list]] = {name: {} for name in sets}
  for file in files:
    for tag in sorted({row.example.variant for row in read_rows(file, prompt_format.unit)}):
      kinds_of_tag, variant = untagged(tag)
      for name in [name for name in sets if kinds[name] == kinds_of_tag]:
        files_of_set[name].setdefault(variant, []).append(file)
  # Schema variants of the original that no perturbed set has are for `sgdx score`.
  crossed = {ORIGINAL}.union(*(files_of_set[name] for name in sets if name != ORIGINAL))
  for name, by_variant in files_of_set.items():
    for variant in [variant for variant in by_variant if variant in crossed]:
      label = variant if name == ORIGINAL else tagged([name], variant)
      if label in predictions or list(kinds.values()).count(kinds[name]) > 1:
        raise UsageError(
          f"all=DIR has predictions for {label}, also given by name, or the kind of two sets",
          expected="one source of predictions per set and variant; ids only contain a set's kind",
          fix="specify the predictions for each set: --predictions original=DIR ned=DIR ...",
        )
      predictions[label] = by_variant[variant]
  return predictions
