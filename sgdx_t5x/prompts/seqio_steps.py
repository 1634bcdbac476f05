"""Pre- and postprocessing shared by the SeqIO tasks of all prompt formats."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import seqio
import tensorflow as tf

from sgdx_t5x.corpus.example_id import SLOT, ExampleId
from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.prompts.protocol import PromptFormat, Schemas, service_pairs
from sgdx_t5x.records.unbatching import unbatched


def task_steps(
  prompt_format: PromptFormat, schemas: Schemas, variants: Sequence[str]
) -> tuple[list, functools.partial]:
  """Returns what a `RecordTask` needs, after its records: (preprocessors, postprocess_fn)."""

  # SeqIO inspects the names of the parameters, which a format need not repeat.
  def examples(batches, sequence_length, output_features):
    settings = {"schemas": schemas, "variants": tuple(variants)}
    return prompt_format.examples(batches, sequence_length, output_features, **settings)

  back = functools.partial(read_back, prompt_format=prompt_format, schemas=schemas)
  return [examples, one_by_one], back


class RecordTask(seqio.Task):
  """A task whose preprocessors end with `one_by_one`: SeqIO need not trim its examples again."""

  def get_dataset(self, sequence_length=None, *args, trim_output_features=True, **settings):
    """Like `seqio.Task.get_dataset`, but inputs are always cut: they lose their oldest turns."""
    if not trim_output_features:
      sequence_length = {k: n for k, n in (sequence_length or {}).items() if k == "inputs"}
    return super().get_dataset(sequence_length, *args, trim_output_features=False, **settings)


def one_by_one(
  batches: tf.data.Dataset,
  sequence_length: Mapping[str, int] | None,
  output_features: Mapping[str, seqio.Feature],
) -> tf.data.Dataset:
  """SeqIO preprocessor: appends EOS to batched examples, trims them to length and unbatches.

  Does to a batch what `seqio.preprocessors.append_eos` and `seqio.utils.trim_dataset` do to each
  example, where each of them takes as long as everything that makes an example here.
  """
  lengths, ends = sequence_length or {}, []
  for name, feature in output_features.items():
    eos = feature.vocabulary.eos_id if feature.add_eos else None
    ends.append((name, eos, lengths.get(name)))
  return unbatched(batches.map(_finisher(tuple(ends), tuple(batches.element_spec.items()))))


@functools.cache
def _finisher(
  ends: tuple[tuple[str, int | None, int | None], ...], spec: tuple[tuple[str, tf.TypeSpec], ...]
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
  """Returns the function that ends and trims a batch, traced once for all variants' tasks.

  Args: ends, (feature, its EOS, its length, or None); spec, (feature, type) of a batch.
  """

  @tf.function(input_signature=[dict(spec)], autograph=False)
  def finished(batch):
    # Where the length is None, the slice keeps everything.
    tokens = {name: _with_eos(batch[name], eos)[:, :length] for name, eos, length in ends}
    return {**batch, **tokens}

  return finished


def _with_eos(tokens: tf.RaggedTensor, eos: int | None) -> tf.RaggedTensor:
  if eos is None:
    return tokens
  return tf.concat([tokens, tf.fill([tokens.nrows(), 1], tf.cast(eos, tokens.dtype))], axis=1)


def read_back(
  output: str,
  example: Mapping[str, Any],
  is_target: bool = False,
  *,
  prompt_format: PromptFormat,
  schemas: Schemas,
) -> Any:
  """SeqIO postprocessor: turns targets into gold data, and predictions into values or states.

  Returns:
    The input of `metrics.seqio_metrics`: a dict for a target, the result of the format's `read`
    for a prediction.
  """
  example_id = example["example_id_pretokenized"]
  example_id = example_id.decode() if isinstance(example_id, bytes) else str(example_id)
  parsed = ExampleId.parse(example_id)
  original = schemas.get(parsed.split)
  if not is_target:
    pairs = service_pairs(original, schemas.get(parsed.split, parsed.variant))
    return prompt_format.read(output, parsed, pairs[parsed.service])
  if prompt_format.unit == SLOT:
    return {
      "id": example_id,
      "values": _texts(example["gold"]),
      "service_slots": int(example["num_slots"]),
      "categorical": bool(example["categorical"]),
      "seen": bool(example["seen"]),
    }
  return {"id": example_id, **_frame_facts(example, original[parsed.service])}


def _frame_facts(example: Mapping[str, Any], service: Service) -> dict[str, Any]:
  state: dict[str, list[str]] = {}
  positions = np.asarray(example["gold_slot"]).tolist()
  for position, value in zip(positions, _texts(example["gold_value"]), strict=True):
    state.setdefault(service.slots[position].name, []).append(value)
  # Metrics of a slot need all slots that a state can have, also those that this one lacks.
  slots = {}
  for i, (name, is_categorical) in enumerate(service.slot_kinds):
    if i in service.tracked_slots or name in state:
      slots[name] = is_categorical
  intent = np.asarray(example["active_intent"]).item()
  return {
    "state": state,
    "slots": slots,
    "has_slots": bool(service.slots),
    "active_intent": intent.decode() if isinstance(intent, bytes) else intent,
    "requested_slots": _texts(example["requested_slots"]),
    "seen": bool(example["seen"]),
  }


def _texts(values: Any) -> list[str]:
  return [value.decode() for value in np.asarray(values).tolist()]
