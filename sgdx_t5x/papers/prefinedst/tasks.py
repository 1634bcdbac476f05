"""Pre-finetuning, after PrefineDST: tasks for skills that a tracker needs, and their mixtures.

Importing this module registers them.
"""

import functools
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import seqio
import tensorflow as tf

from sgdx_t5x.papers.checkdst.entities import entity_slots
from sgdx_t5x.papers.coco import turn_examples
from sgdx_t5x.papers.coco.tasks import SPLITS, TurnSource, Vocabulary, register_texts
from sgdx_t5x.papers.prefinedst import prefine, prefine_turns
from sgdx_t5x.records.frame_examples import flat_columns, records_of
from sgdx_t5x.records.source import RecordSchemas, RecordSource, split_of
from sgdx_t5x.records.tracker_fields import read_frame
from sgdx_t5x.tasks.registration import register, register_mixture
from sgdx_t5x.tasks.vocabularies import sample_vocabulary, vocabulary
from sgdx_t5x.variants.variant_schemas import VariantSchemas

FORMAT = "prefine"  # in `sgdx ls tasks`
_KEYS = ("id", "history", "inputs", "targets")


def register_prefine_family(prefix: str, *, data: str, vocabulary: Vocabulary) -> None:
  """Registers the eleven pre-finetuning tasks and the mixtures `prefine` and `prefine_no_ned`.

  CoCo's annex registers two of them.

  Args:
    prefix: of their names, "" or "sample_".
    data: "sample", or "full" for prepared records and the corpus that SGDX_CORPUS names.
    vocabulary: a function of `vocabularies.py`, the same as in the gin file.
  """
  tasks: list[str] = []
  for task in prefine.FRAME_TASKS:
    tasks.append(_register_frames(f"{prefix}sgd_{task}", task, data, vocabulary))
  for task, make in (("same_meaning", prefine_turns.same_meaning), ("refers", _refers)):
    tasks.append(_register_turns(f"{prefix}sgd_{task}", data, vocabulary, make))
  simulated = register(
    f"{prefix}sim_t5dst_sgd", data=f"{prefix}sim", variants=["original"], vocabulary=vocabulary
  )
  tasks += [f"{prefix}sgd_user_turn", f"{prefix}sgd_turn_slots", simulated.name]
  register_mixture(f"{prefix}prefine", tasks)
  without_ned = [name for name in tasks if name != f"{prefix}sgd_copy_ned"]
  register_mixture(f"{prefix}prefine_no_ned", without_ned)


def _register_frames(name: str, task: str, data: str, vocabulary: Vocabulary) -> str:
  make, needs = prefine.FRAME_TASKS[task]
  source = RecordSource(data, name, "pre-finetuning", [needs])
  schemas = VariantSchemas(RecordSchemas(source))
  texts = functools.partial(_texts_of_records, schemas=schemas, make=make)
  steps: list[Callable] = [source.batches, texts, tokenized]
  return register_texts(name, data, FORMAT, source, steps, vocabulary).name


def _register_turns(
  name: str, data: str, vocabulary: Vocabulary, make: Callable[..., prefine_turns.Examples]
) -> str:
  def read(split: str) -> Iterator[turn_examples.Example]:
    for key, text in make(turn_examples.corpus_of_tasks(data), SPLITS[split]):
      yield _example(key, text)

  source = TurnSource(read, tuple(SPLITS))
  return register_texts(name, data, FORMAT, source, [tokenized], vocabulary).name


def _refers(corpus, split: str) -> prefine_turns.Examples:
  services = {service.name: service for service in corpus.schema(split)}
  for dialogue in corpus.dialogues(split):
    yield from prefine_turns.refers(dialogue, services)


def _example(key: str, text: prefine.Text) -> turn_examples.Example:
  name = f"{key}/{text.id_suffix}" if text.id_suffix else key
  return {"id": name, "history": text.history, "inputs": text.question, "targets": text.target}


def _texts_of_records(
  batches: tf.data.Dataset, *, schemas: VariantSchemas, make: prefine.Task
) -> tf.data.Dataset:
  """SeqIO preprocessor: batches of records -> examples of a frame task, as strings."""
  split = split_of(batches)
  if split is None:  # there are no records
    return batches
  schema = schemas.get(split)
  services, names = schema.services, entity_slots(schema)

  def columns(*arrays: np.ndarray) -> list[np.ndarray]:
    examples = []
    for record in records_of(arrays):
      fields = read_frame(record, services[record["service_index"]])
      utterances = [text.decode() for text in record["utterances"]]
      frame = prefine.Frame(services, utterances, *fields, names=names)
      examples += (_example(frame.context.frame_id, text) for text in make(frame))
    return [np.array([x[key] for x in examples], object) for key in _KEYS]

  @tf.autograph.experimental.do_not_convert
  def make_all(batch: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    filled = tf.numpy_function(columns, flat_columns(batch), [tf.string] * len(_KEYS))
    for column in filled:
      column.set_shape([None])
    return dict(zip(_KEYS, filled, strict=True))

  return batches.map(make_all).prefetch(1).unbatch()


def tokenized(
  dataset: tf.data.Dataset,
  sequence_length: Mapping[str, int] | None,
  output_features: Mapping[str, seqio.Feature],
) -> tf.data.Dataset:
  """SeqIO preprocessor: tokenizes texts; a history that is too long loses its oldest tokens.

  Args:
    dataset: of {id, history, inputs, targets}: `inputs` is what follows the history.
    sequence_length: of the features.
    output_features: with their vocabularies.
  """
  encode = {name: feature.vocabulary.encode_tf for name, feature in output_features.items()}
  room = (sequence_length or {}).get("inputs")

  def cut(x: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    history, question = encode["inputs"](x["history"]), encode["inputs"](x["inputs"])
    if room is not None:
      room_for_history = tf.maximum(room - 1 - tf.size(question), 0)  # 1 is EOS
      history = history[tf.maximum(tf.size(history) - room_for_history, 0) :]
    return {
      "inputs": tf.concat([history, question], 0),
      "targets": encode["targets"](x["targets"]),
      "inputs_pretokenized": tf.strings.strip(tf.strings.join([x["history"], x["inputs"]], " ")),
      "targets_pretokenized": x["targets"],
      "id_pretokenized": x["id"],
    }

  return dataset.map(cut)


register_prefine_family("", data="full", vocabulary=vocabulary)
register_prefine_family("sample_", data="sample", vocabulary=sample_vocabulary)
