"""Registration of tasks, built from records, schema variants and a prompt format."""

import dataclasses
import functools
import itertools
import numbers
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import seqio

from sgdx_t5x.corpus.variants import (
  BACK_TRANSLATIONS,
  FIVE_PARAPHRASES,
  ORIGINAL,
  PARAPHRASES,
  SGDX_VARIANTS,
)
from sgdx_t5x.errors import SgdxError, nearest
from sgdx_t5x.metrics.seqio_metrics import joint_goal_accuracy, schema_sensitivity
from sgdx_t5x.prompts import load_format
from sgdx_t5x.prompts.protocol import PromptFormat
from sgdx_t5x.prompts.seqio_steps import RecordTask, task_steps
from sgdx_t5x.records.frame_examples import frame_examples
from sgdx_t5x.records.source import RecordSchemas, RecordSource, split_of
from sgdx_t5x.spandst.features import numbers as number_vocabulary
from sgdx_t5x.variants.variant_schemas import VariantSchemas


@dataclasses.dataclass(frozen=True)
class Registered:
  """A registered task or mixture, as listed by `sgdx ls tasks`.

  Attributes:
    name: value of MIXTURE_OR_TASK_NAME.
    data: configuration of the record data set.
    variants: schema variants; for a mixture, those of all its tasks.
    mixture: whether it is a mixture.
    format: name of the prompt format or tracker; for a mixture of several, all joined by "+".
    style_or_format: the style of the tracker, or the prompt format with its own, for `sgdx track`;
      None for a mixture of tasks that differ in it.
  """

  name: str
  data: str
  variants: tuple[str, ...]
  mixture: bool = False
  format: str = "t5dst"
  style_or_format: Any = None


REGISTERED: dict[str, Registered] = {}  # in order of registration


@dataclasses.dataclass(frozen=True)
class Family:
  """The tasks of one data set and format, to which annexes add tasks of their own.

  Attributes:
    data: configuration of the record data set, "full" or "sample".
    tasks: names of the tasks with the original schemas and with v1 to v5, in this order.
    register: called with a task's name, its `data` and its `variants`.
  """

  data: str
  tasks: tuple[str, ...]
  register: Callable[..., seqio.Task]


FAMILIES: dict[str, Family] = {}  # by the prefix of their names, such as "sample_t5dst"


def register(
  name: str,
  *,
  data: str,
  variants: Sequence[str],
  vocabulary: Callable[[], seqio.Vocabulary],
  style: Any = None,
  folders: Mapping[str, str | os.PathLike] | None = None,
  prompt_format: PromptFormat | None = None,
) -> seqio.Task:
  """Registers a task.

  Args:
    name: name of the task, for MIXTURE_OR_TASK_NAME.
    data: configuration of the record data set: "full" or "sample", or of a perturbed corpus,
      "KIND" or "sample_KIND".
    variants: schema variants, of a perturbed corpus "KIND" or "KIND+v3"; with several, each record
      yields examples for all of them, and the metrics are JGA per variant, its average, and schema
      sensitivity.
    vocabulary: a function of `vocabularies.py`, the same as in the gin file.
    style: a `PromptStyle` of T5DST; default: the paper's Figure 3, plus values.
    folders: custom variants: name -> folder with {split}/schema.json, aligned by position with the
      original.
    prompt_format: alternative to `style`: another prompt format, or T5DST with its style.

  Returns:
    The task. Nothing is read from disk until it is used.

  Raises:
    SgdxError: both `style` and `prompt_format` are given, the name is registered already, or
      `variants` is no list, is empty, or has a variant twice.
  """
  if style is not None and prompt_format is not None:
    raise SgdxError(
      f"task {name!r} with both a style and a prompt format",
      expected="only one of them, since the style is part of the format",
      fix="pass prompt_format=T5DST(style)",
    )
  check_new(name)
  _check_variants(name, variants)
  prompt_format = prompt_format or load_format(style=style)
  source = RecordSource(data, name)
  schemas = VariantSchemas(RecordSchemas(source), folders)  # read when a task is used
  steps, read_back = task_steps(prompt_format, schemas, variants)
  feature = seqio.Feature(vocabulary=vocabulary(), add_eos=True)
  task = seqio.TaskRegistry.add(
    name,
    source=source,
    preprocessors=[source.batches, *steps],
    postprocess_fn=read_back,
    output_features={"inputs": feature, "targets": feature},
    metric_fns=[joint_goal_accuracy if len(variants) == 1 else schema_sensitivity],
    task_cls=RecordTask,
  )
  REGISTERED[name] = Registered(
    name, data, tuple(variants), format=prompt_format.name, style_or_format=prompt_format
  )
  return task


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
  **settings: Any,
) -> seqio.Task:
  """Registers a task of a tracker with an encoder, whose features are all integers.

  Args:
    name: name of the task, for MIXTURE_OR_TASK_NAME.
    tracker: its name in errors.
    format: its name in `sgdx ls tasks`.
    data, variants, folders: see `register`.
    vocabulary: of the feature `inputs`; all others are integers.
    features: names of the task's features.
    examples: callable that returns what makes a frame's examples (`frame_examples.Make`), given the
      split, its original services, variant -> schema, the vocabulary, lengths of features as far as
      they are set, and `settings` as keyword arguments.
    metric: SeqIO metric function.
    needs: see `RecordSource`.
    settings: further arguments of `examples`; `sgdx track` needs `style`.
  """
  source = RecordSource(data, name, tracker, needs)
  schemas = VariantSchemas(RecordSchemas(source), folders)

  # SeqIO goes by the names of the parameters.
  def make(batches, sequence_length, output_features):
    split = split_of(batches)
    if split is None:  # there are no records
      return batches
    original = schemas.get(split).services
    shown = {variant: schemas.get(split, variant) for variant in variants}
    vocabulary, lengths = output_features["inputs"].vocabulary, sequence_length or {}
    of_frame = examples(split, original, shown, vocabulary, lengths, **settings)
    return frame_examples(batches, original, features, of_frame)

  check_new(name)
  _check_variants(name, variants)
  integers = seqio.Feature(number_vocabulary(), add_eos=False)
  texts = seqio.Feature(vocabulary(), add_eos=False)
  task = seqio.TaskRegistry.add(
    name,
    source=source,
    preprocessors=[source.batches, make],
    output_features={**dict.fromkeys(features, integers), "inputs": texts},
    metric_fns=[metric],
    task_cls=RecordTask,
  )
  style = settings.get("style")
  REGISTERED[name] = Registered(name, data, tuple(variants), format=format, style_or_format=style)
  return task


def check_new(name: str) -> None:
  """Refuses the name of a task or mixture that is registered already, or is not one for SeqIO."""
  if not re.fullmatch(r"[\w.:]+", name):
    raise SgdxError(
      f"a task named {name!r}",
      expected="letters, digits, underscores, dots and colons",
      fix="choose another name",
    )
  if name in REGISTERED:
    raise SgdxError(
      f"task {name!r} is already registered", expected="an unused name", fix="choose another name"
    )


def _check_variants(name: str, variants: Sequence[str]) -> None:
  """Refuses variants of which the task would have no examples, or every example twice."""
  if isinstance(variants, str) or not variants or len(set(variants)) < len(variants):
    raise SgdxError(
      f"task {name!r} with variants={variants!r}",
      expected="a list of one or more variants, each once",
      fix='pass, for example, variants=["v3"]',
    )


def _check_features(name: str, tasks: Sequence[str]) -> None:
  """Refuses tasks of which no model reads all."""
  by_features = {tuple(seqio.TaskRegistry.get(task).output_features): task for task in tasks}
  if len(by_features) > 1:
    raise SgdxError(
      f"mixture {name!r} of {' and '.join(by_features.values())}, whose features differ",
      expected="tasks of prompts, or of one tracker with an encoder",
      fix="register a mixture for each; a model reads only one of them",
    )


def _tasks_of(name: str) -> list[str]:
  """Returns the tasks that a registered name stands for."""
  if not REGISTERED[name].mixture:
    return [name]
  return [task.name for task in seqio.get_subtasks(seqio.MixtureRegistry.get(name))]


def register_mixture(
  name: str, tasks: Sequence[str], maximum: float | None = None
) -> seqio.Mixture:
  """Registers a mixture of tasks of this module, with rates proportional to their size.

  In an epoch, each example of a dialogue then occurs once per variant (SGD-X paper, section 5: the
  same dialogues with different schema inputs).

  Args:
    name: of the mixture.
    tasks: names of its tasks; a mixture's name stands for the tasks of that.
    maximum: limit on a task's size when computing rates, as in the T5 paper's mixing (section
      3.5.2); None: no limit.
  """
  if isinstance(tasks, str):
    tasks = [tasks]
  unknown = [task for task in tasks if task not in REGISTERED]
  if unknown or not tasks:
    raise SgdxError(
      f"mixture {name!r} of {', '.join(unknown) or 'no tasks'}",
      expected="tasks registered by `register` or `register_variant`",
      available=nearest(unknown[0], REGISTERED) if unknown else "",
      fix="register the task first; `sgdx ls tasks` lists the registered ones",
    )
  check_new(name)
  # SeqIO has no mixtures of mixtures; a task that is in two of them counts once.
  tasks = list(dict.fromkeys(itertools.chain.from_iterable(map(_tasks_of, tasks))))
  # What the mixture is listed with, each once and in the order of the tasks.
  data: dict[str, None] = {}
  formats: dict[str, None] = {}
  variants: dict[str, None] = {}
  for task in map(REGISTERED.__getitem__, tasks):
    data[task.data] = formats[task.format] = None
    variants |= dict.fromkeys(task.variants)
  if len({name.split("_")[0] == "sample" for name in data}) > 1:
    raise SgdxError(
      f"mixture {name!r} of tasks on {', '.join(sorted(data))} data",
      expected="tasks on one corpus and its perturbations, with a shared vocabulary",
      fix='mix only tasks on sample data (named "sample_..."), or only others',
    )
  _check_features(name, tasks)
  if maximum is not None and not (isinstance(maximum, numbers.Real) and maximum > 0):
    raise SgdxError(
      f"mixture {name!r} with maximum={maximum!r}",
      expected="a number of examples above 0, or None",
      fix="pass, for example, maximum=50_000, which counts larger tasks as 50,000 examples",
    )
  # A function, since sizes are known only once records are prepared.
  rate = functools.partial(_size, maximum=maximum)
  mixture = seqio.MixtureRegistry.add(name, tasks, default_rate=rate)
  style = REGISTERED[tasks[0]].style_or_format
  if any(REGISTERED[task].style_or_format != style for task in tasks):
    style = None
  REGISTERED[name] = Registered(
    name,
    "+".join(data),
    tuple(variants),
    mixture=True,
    format="+".join(formats),
    style_or_format=style,
  )
  return mixture


def register_variant(
  name: str,
  folder: str | os.PathLike,
  *,
  vocabulary: Callable[[], seqio.Vocabulary],
  prefix: str = "",
  data: str = "full",
  prompt_format: PromptFormat | None = None,
) -> seqio.Task:
  """Registers the task `{prefix}t5dst_sgd_{name}`: SGD's dialogues with a custom schema variant.

  Args:
    name: name of the variant.
    folder: folder with {split}/schema.json for the splits to use, as written by
      `sgdx compose`.
    vocabulary: see `register`.
    prefix: "sample_" with data "sample".
    data: see `register`.
    prompt_format: default T5DST; the name of another format replaces "t5dst" in the task's name.
  """
  prompt_format = prompt_format or load_format()
  return register(
    f"{prefix}{prompt_format.name}_sgd_{name}",
    data=data,
    variants=[name],
    vocabulary=vocabulary,
    folders={name: folder},
    prompt_format=prompt_format,
  )


def register_family(
  prefix: str,
  *,
  data: str,
  vocabulary: Callable[[], seqio.Vocabulary],
  prompt_format: PromptFormat | None = None,
) -> None:
  """Registers the tasks and mixtures of one data set and prompt format.

  Args:
    prefix: prefix of their names, "" or "sample_", before the name of the format.
    data, vocabulary: see `register`.
    prompt_format: default T5DST.
  """
  prompt_format = prompt_format or load_format()
  register_task = functools.partial(register, vocabulary=vocabulary, prompt_format=prompt_format)
  register_mixtures(f"{prefix}{prompt_format.name}", data, register_task)


def register_mixtures(family: str, data: str, register_task: Callable[..., seqio.Task]) -> None:
  """Registers the tasks of a family and the mixtures of them.

  Args:
    family: prefix of their names.
    data: see `register`.
    register_task: called with a task's name, its `data` and its `variants`.
  """

  def task(suffix: str, *variants: str) -> str:
    name = f"{family}_{suffix}"
    register_task(name, data=data, variants=variants)
    return name

  original = task("sgd", ORIGINAL)
  sgdx = [task(f"sgdx_{variant}", variant) for variant in SGDX_VARIANTS]
  # A record gives an example per variant, so that these two score schema sensitivity.
  task("sgdx", *SGDX_VARIANTS)
  task("sgd_sgdx", ORIGINAL, *SGDX_VARIANTS)
  back_translated = [task(f"sgd_{variant}", variant) for variant in BACK_TRANSLATIONS]
  corrupted = [task(f"sgd_corrupt_{seed}", f"corrupt_{seed}") for seed in (1, 2, 3)]
  register_mixture(f"{family}_backtrans", [original, *back_translated])
  register_mixture(f"{family}_oracle", [original, *sgdx])
  register_mixture(f"{family}_corrupt", [original, *corrupted])
  if data == "full":  # they exist only for SGD's train services
    paraphrased = [task(f"sgd_{variant}", variant) for variant in PARAPHRASES]
    five = paraphrased[: len(FIVE_PARAPHRASES)]
    register_mixture(f"{family}_paraphrase", [original, *five])
    # To tell number from distance: three, as there are back-translations, and all.
    register_mixture(f"{family}_paraphrase_3", [original, *five[::2]])
    register_mixture(f"{family}_paraphrase_15", [original, *paraphrased])
    register_mixture(f"{family}_reworded", [original, *back_translated, *five])
  register_mixture(f"{family}_all_variants", [original, *sgdx])
  FAMILIES[family] = Family(data, (original, *sgdx), register_task)


def _size(task: seqio.Task, maximum: float | None = None) -> float:
  """Number of records times variants, as SeqIO needs rates before any example exists.

  The records are train's; test sets, which have no train, are as large as their first split.
  """
  sizes = map(task.num_input_examples, ("train", "validation", "test"))
  size = float(next(filter(None, sizes), 1)) * len(REGISTERED[task.name].variants)
  return size if maximum is None else min(size, float(maximum))
