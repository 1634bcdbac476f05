"""Writes a model's predictions or scores for a task or mixture.

  python -m t5x.infer --gin_file=FILE.gin \\
    --gin.CHECKPOINT_PATH="'/tmp/run/checkpoint_1000'" \\
    --gin.INFER_OUTPUT_DIR="'/tmp/predictions'"

Writes INFER_OUTPUT_DIR/<task>-<mode>.jsonl-00000-of-00001, one JSON object per
example in the task's order, and the same name with .COMPLETED when it is
complete; if the model's inputs have changed, it is written anew. Until then
results are in INFER_OUTPUT_DIR/partial as they come; the same command goes on
from there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from t5x._process.log import log
from t5x._script import cli
from t5x._settings import defaults
from t5x.errors import T5XError, not_in_lite


def _until_padding(ids: Any) -> Any:
  """Cuts (lists of) ids at the first 0."""
  if ids and isinstance(ids[0], (list, tuple)):
    return [_until_padding(i) for i in ids]
  return ids[: ids.index(0)] if 0 in ids else ids


def _of_row(aux: Mapping[str, Any], row: int) -> dict[str, Any]:
  """Takes one row's values out of {name: values in order}, or nested such."""
  return {k: _of_row(v, row) if isinstance(v, Mapping) else v[row] for k, v in aux.items()}


def write_inferences_to_file(
  path: str,
  inferences: tuple[Sequence[Any], Mapping[str, Any]],
  task_ds: Any,
  mode: str,
  vocabulary=None,
  json_encoder_cls=None,
  include_all_inputs: bool = False,
  input_fields_to_include: Sequence[str] | None = None,
  output_ids: bool = False,
) -> None:
  """Writes one JSON line per example.

  Args:
      path: file to write (through a temporary name).
      inferences: (outputs in the dataset's order, {aux name: values in that order}).
      task_ds: the task's examples in order: a `tf.data.Dataset`, or as numpy.
      mode: 'predict', 'score' or 'predict_with_aux'.
      vocabulary: decodes predicted ids; None leaves them out of text.
      json_encoder_cls: encoder for values json cannot write.
      include_all_inputs: write every feature, not only `*_pretokenized` ones.
      input_fields_to_include: write exactly these features, with their `*_pretokenized` ones.
      output_ids: write the ids too, as `prediction_tokens`.

  Raises:
      T5XError: both all features and some of them are to be written.
  """
  from etils import epath

  from t5x._infer.journal import decoder, json_value

  if include_all_inputs and input_fields_to_include is not None:
    raise T5XError(
      "write_inferences_to_file is to write all features, and some of them.",
      found=f"include_all_inputs = True, input_fields_to_include = {input_fields_to_include!r}",
      expected="at most one of the two",
      fix="infer_script.write_inferences_to_file.include_all_inputs = False",
    )
  outputs, aux = inferences

  def inputs_of(example):
    if input_fields_to_include is not None:
      names = set(input_fields_to_include)
      return {k: v for k, v in example.items() if {k, k.removesuffix("_pretokenized")} & names}
    if include_all_inputs:
      return example
    pretokenized = {k: v for k, v in example.items() if k.endswith("_pretokenized")}
    return pretokenized or example

  text = decoder(vocabulary)
  examples = task_ds.as_numpy_iterator() if hasattr(task_ds, "as_numpy_iterator") else task_ds
  temporary = epath.Path(path + ".tmp")
  with temporary.open("w") as f:
    for i, (example, output) in enumerate(zip(examples, outputs, strict=True)):
      row: dict[str, Any] = {"inputs": json_value(inputs_of(example))}
      if mode == "score":
        row["score"] = json_value(output)
      else:
        row["prediction"] = text(output) if vocabulary is not None else output
        if output_ids:
          row["prediction_tokens"] = _until_padding(output)
      if aux:
        row["aux"] = json_value(_of_row(aux, i))
      f.write(json.dumps(row, cls=json_encoder_cls) + "\n")
  temporary.replace(path)


def infer(
  *,
  mode: str,
  model,
  dataset_cfg,
  restore_checkpoint_cfg,
  partitioner,
  output_dir: str,
  checkpoint_period: int | None = None,
  shard_id: int = 0,
  num_shards: int = 1,
  merge_chunked_results: bool = True,
  write_fn: Callable = write_inferences_to_file,
  merge_fn: Callable | None = None,
  checkpoint_ds_iter: bool = True,
  fallback_init_rng: int | None = None,
  summarize_config_fn: Callable | None = None,
  verify_matching_vocabs_fn: Callable | None = defaults.verify_matching_vocabs,
  output_vocab_feature_name: str = "targets",
  file_extension: str = "jsonl",
  keep_aux_as_numpy: bool = False,
  train_state_initializer_cls: Any = None,
  use_orbax: bool = True,
) -> list[str]:
  """Runs a model over a dataset (gin: `infer_script.infer`).

  Args:
      mode: 'predict', 'score' or 'predict_with_aux'.
      model: the model.
      dataset_cfg: what to run on; task_feature_lengths are required.
      restore_checkpoint_cfg: which checkpoint ('specific' or 'latest').
      partitioner: `partitioning.PjitPartitioner`.
      output_dir: folder of the results.
      checkpoint_period: accepted; every finished row is kept, so a restart loses none.
      shard_id: which of `num_shards` parts of each task this process does (--shard_id).
      num_shards: parts that separate processes do; each writes its own file.
      merge_chunked_results: accepted.
      write_fn: called as fn(path, (outputs, aux), dataset of the examples, mode, vocabulary).
      merge_fn: not covered, must be None.
      checkpoint_ds_iter: accepted.
      fallback_init_rng: seed for arrays the checkpoint does not have (else they are an error).
      summarize_config_fn: called as fn(output_dir, None, 0).
      verify_matching_vocabs_fn: called as fn(dataset_cfg, model), by default
          `utils.verify_matching_vocabs`; None checks nothing.
      output_vocab_feature_name: feature whose vocabulary decodes predictions.
      file_extension: of the files.
      keep_aux_as_numpy: give write_fn auxiliary values as arrays.
      train_state_initializer_cls: replaces `utils.TrainStateInitializer`.
      use_orbax: accepted; both layouts are recognised.

  Returns:
      The files written.
  """
  from t5x import gin_utils, utils
  from t5x._checkpoint.choose import chosen
  from t5x._infer import setup
  from t5x._infer.journal import config_hash
  from t5x._process import folder_lock
  from t5x._process.read_ahead import ReadAhead
  from t5x._process.stop import StopRequest
  from t5x._settings.model import check_model
  from t5x._settings.parts import check_parts

  del checkpoint_period, merge_chunked_results, checkpoint_ds_iter, use_orbax
  if merge_fn is not None:
    raise not_in_lite("infer.merge_fn", "leave it unset")
  if cli.FLAGS.is_parsed() and getattr(cli.FLAGS, "shard_id", None) is not None:
    shard_id = cli.FLAGS.shard_id  # the shards' commands differ in this flag alone
  folder_lock.check_folder_name(output_dir, "INFER_OUTPUT_DIR")
  parts = {"dataset_cfg": dataset_cfg, "restore_checkpoint_cfg": restore_checkpoint_cfg}
  check_parts("infer", {**parts, "partitioner": partitioner})
  setup.check_settings(mode, dataset_cfg, restore_checkpoint_cfg, shard_id, num_shards)
  check_model(model)
  utils.import_module(dataset_cfg.module)
  if verify_matching_vocabs_fn is not None:
    verify_matching_vocabs_fn(dataset_cfg, model)
  utils.check_lengths(dataset_cfg, model.FEATURE_CONVERTER_CLS)
  tasks = setup.tasks_of(dataset_cfg)
  setup.check_vocabulary_feature(tasks, output_vocab_feature_name)
  part = f"{mode}.{file_extension}-{shard_id:05}-of-{num_shards:05}"
  paths = [os.path.join(output_dir, f"{task.name}-{part}") for task in tasks]
  if fallback_init_rng is not None:
    restore_checkpoint_cfg.fallback_to_scratch = True
  with folder_lock.held([f"{path}.lock" for path in paths], "INFER_OUTPUT_DIR"):
    choice = chosen(restore_checkpoint_cfg)  # before the model, which takes its time
    (summarize_config_fn or gin_utils.summarize_gin_config)(output_dir, None, 0)
    # A task's examples are read while the model is restored, or applied to those before.
    datasets = ReadAhead(
      (setup.datasets_of(model, task, dataset_cfg, shard_id, num_shards) for task in tasks), ahead=1
    )
    state, axes = setup.restore(
      model,
      dataset_cfg,
      choice,
      restore_checkpoint_cfg,
      partitioner,
      train_state_initializer_cls or utils.TrainStateInitializer,
      fallback_init_rng or 0,
    )
    utils.log_model_info(os.path.join(output_dir, "model-info.txt"), state)
    stop = StopRequest()
    infer_fn = utils.get_infer_fn(
      getattr(model, setup.STEPS[mode]),
      dataset_cfg.batch_size,
      axes,
      partitioner,
      keep_aux_as_numpy=keep_aux_as_numpy,
      check_stop=stop.check,
    )
    # Names the files of results: those of other weights or settings are never taken for ours.
    settings_hash = config_hash(state.params, {"mode": mode, "split": dataset_cfg.split})
    written_paths = []
    with stop.listening():
      for task, path, (task_ds, rows) in zip(tasks, paths, datasets, strict=True):
        vocabulary = task.output_features[output_vocab_feature_name].vocabulary
        if _infer_task(
          path, task_ds, rows, infer_fn, state, settings_hash, mode, vocabulary, write_fn
        ):
          written_paths.append(path)
  return written_paths


def _infer_task(
  path: str, task_ds, rows, infer_fn, state, settings_hash, mode, vocabulary, write_fn
) -> bool:
  """Writes the results of one task to `path`, unless they are there. Returns whether it did."""
  import jax
  from etils import epath

  from t5x._infer.journal import Journal, decoder

  completed = epath.Path(path + ".COMPLETED")
  if completed.exists() and epath.Path(path).exists():
    # Version 0.1 wrote no digest of the rows.
    settings, _, digest = completed.read_text().partition(" ")
    if settings == settings_hash and digest in ("", rows.read()):
      log(f"{path} is complete with these settings: skipped")
      return False
  folder, name = os.path.split(path)
  to_text = decoder(vocabulary) if mode != "score" else None
  journal = Journal(os.path.join(folder, "partial", name), settings_hash, to_text)
  try:
    label = name.split(".")[0]
    result = infer_fn(rows, state, label=label, journal=journal)
    indexed, aux = result if isinstance(result, tuple) else (result, {})
    outputs = [output for _, output in indexed]  # in the dataset's order, as the file
    if jax.process_index() == 0:
      completed.unlink(missing_ok=True)  # while it is written anew, it is not complete
      write_fn(path, (outputs, aux), task_ds, mode, vocabulary)
      completed.write_text(f"{settings_hash} {rows.digest}")
      log(f"wrote {len(outputs)} rows to {path}")
    journal.close(complete=True)
  finally:
    journal.close(complete=False)  # stopped or failed: what it holds is where the next run goes on
  return jax.process_index() == 0


def create_task_from_tfexample_file(*args, **kwargs):
  """Named by T5X's infer_from_tfexample_file.gin; not covered."""
  raise not_in_lite("infer_script.create_task_from_tfexample_file", "register a seqio task")


def define_flags() -> None:
  """Flags of this script alone."""
  from absl import flags

  flags.DEFINE_integer(
    "shard_id", None, "Index of the shard to run, from 0 to infer.num_shards - 1."
  )


if __name__ == "__main__":
  cli.define_flags()
  define_flags()
  cli.run(lambda argv: cli.run_configured(infer), __doc__)
