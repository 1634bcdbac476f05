"""Registration of tasks for encoder-based trackers, whose features are all integers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import seqio

from sgdx_t5x.prompts.seqio_steps import RecordTask
from sgdx_t5x.records.source import RecordSchemas, RecordSource
from sgdx_t5x.spandst.features import numbers
from sgdx_t5x.tasks.registration import REGISTERED, Registered, check_new
from sgdx_t5x.variants.variant_schemas import VariantSchemas


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
    tracker: its name in errors.
    format: its name in `sgdx ls tasks`.
    data, variants, folders: see `registration.register`.
    vocabulary: of the feature `inputs`; all others are integers.
    features: names of the task's features.
    examples: callable that makes the examples from batches of records, lengths and SeqIO's
      features, with `schemas`, `variants` and `how` as keyword arguments.
    metric: SeqIO metric function.
    needs: see `RecordSource`.
    how: further arguments of `examples`; `sgdx track` needs `style`.
  """
  source = RecordSource(data, name, tracker, needs)
  how |= {"schemas": VariantSchemas(RecordSchemas(source), folders), "variants": tuple(variants)}

  # SeqIO goes by the names of the parameters.
  def make(batches, sequence_length, output_features):
    return examples(batches, sequence_length, output_features, **how)

  check_new(name)
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
