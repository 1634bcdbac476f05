"""Registration of the tasks of trackers that read with an encoder: all features are numbers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import seqio

from sgdx_t5x.augment.variant_schemas import VariantSchemas
from sgdx_t5x.encoder.features import numbers
from sgdx_t5x.prompts.seqio_steps import RecordTask
from sgdx_t5x.records.source import RecordSchemas, RecordSource
from sgdx_t5x.tasks.registration import REGISTERED, Registered


def register_encoder_task(
  name: str,
  *,
  tracker: str,
  format: str,
  data: str,
  variants: Sequence[str],
  vocabulary: Callable[[], seqio.Vocabulary],
  features: Sequence[str],
  examples: Callable[..., Any],
  metric: Callable[[Sequence, Sequence], Mapping[str, float]],
  folders: Mapping[str, Any] | None = None,
  needs: Sequence[str] = ("acts",),
  **how: Any,
) -> seqio.Task:
  """Registers a task.

  Args:
    name: name of the task, for MIXTURE_OR_TASK_NAME.
    tracker: as errors name it.
    format: as `sgdx ls tasks` names it.
    data: see `registration.register`.
    variants: see `registration.register`.
    vocabulary: of the feature `inputs`; all others are numbers.
    features: of the task.
    examples: makes them, called with batches of records, lengths, SeqIO's features, and by name
      `schemas`, `variants` and `how`.
    metric: SeqIO's metric function.
    folders: see `registration.register`.
    needs: see `RecordSource`.
    how: further arguments of `examples`; `style` is what `sgdx track` needs to know of the task.
  """
  source = RecordSource(data, name, tracker, needs)
  how |= {"schemas": VariantSchemas(RecordSchemas(source), folders), "variants": tuple(variants)}

  # SeqIO goes by the names of the parameters.
  def make(batches, sequence_length, output_features):
    return examples(batches, sequence_length, output_features, **how)

  others = seqio.Feature(numbers(), add_eos=False)
  texts = seqio.Feature(vocabulary(), add_eos=False)
  task = seqio.TaskRegistry.add(
    name,
    source=source,
    preprocessors=[source.batches, make],
    output_features={f: texts if f == "inputs" else others for f in features},
    metric_fns=[metric],
    task_cls=RecordTask,
  )
  REGISTERED[name] = Registered(name, data, tuple(variants), format=format, how=how.get("style"))
  return task
