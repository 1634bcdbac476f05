"""T5DST tasks: what `register` makes of records, a variant's schema and a prompt style."""

from collections.abc import Callable, Sequence

import seqio

from sgdx_t5x.datasets.examples import RecordSource, preprocessors
from sgdx_t5x.metrics.seqio_metrics import joint_goal_accuracy, schema_sensitivity
from sgdx_t5x.prompts.t5dst import PromptStyle


def register(
  name: str,
  *,
  data: str,
  variants: Sequence[str],
  vocabulary: Callable[[], seqio.Vocabulary],
  style: PromptStyle | None = None,
) -> seqio.Task:
  """Registers a T5DST task.

  Args:
    name: the task's name, for MIXTURE_OR_TASK_NAME.
    data: config of the record data set, "full" or "sample".
    variants: schema versions; with several, each record gives examples for all of them and
      the metrics are per variant, their average, and schema sensitivity.
    vocabulary: a function of `vocabularies.py`, the same as in the gin file.
    style: the prompt style; default the paper's Figure 3, plus values.

  Returns:
    The task. Nothing is read from disk until it is used.
  """
  source = RecordSource(data, name)
  steps, read_back = preprocessors(source, variants, style or PromptStyle())
  feature = seqio.Feature(vocabulary=vocabulary(), add_eos=True)
  return seqio.TaskRegistry.add(
    name,
    source=source,
    preprocessors=steps,
    postprocess_fn=read_back,
    output_features={"inputs": feature, "targets": feature},
    metric_fns=[joint_goal_accuracy if len(variants) == 1 else schema_sensitivity],
  )


def register_family(prefix: str, *, data: str, vocabulary: Callable[[], seqio.Vocabulary]) -> None:
  """Registers the tasks and mixtures of one data set; `prefix` is "" or "sample_".

  Mixing rates are proportional to size: each example of a dialogue comes once per schema
  version in an epoch (SGD-X paper, section 5: the same dialogues, other schema inputs).
  """

  def task(suffix: str, *variants: str) -> str:
    name = f"{prefix}t5dst_{suffix}"
    register(name, data=data, variants=variants, vocabulary=vocabulary)
    return name

  original = task("sgd", "original")
  sgdx = [task(f"sgdx_v{k}", f"v{k}") for k in range(1, 6)]
  task("sgdx", *(f"v{k}" for k in range(1, 6)))
  back_translated = [task(f"sgd_bt_{pivot}", f"bt_{pivot}") for pivot in ("zh", "ja", "ko")]

  def mixture(suffix: str, names: Sequence[str]) -> None:
    seqio.MixtureRegistry.add(f"{prefix}t5dst_{suffix}", names, default_rate=_size)

  mixture("backtrans", [original, *back_translated])
  mixture("oracle", [original, *sgdx])
  mixture("all_variants", [original, *sgdx])


def _size(task: seqio.Task) -> float:
  return float(task.num_input_examples("train") or 1)
