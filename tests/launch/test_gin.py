"""Every gin file of the core parses, alone or on top of the experiment it is made for."""

import json

import pytest
from gin_cases import (
  EVAL,
  INFER,
  START,
  TRAIN,
  encoder_cases,
  files_below,
  names,
  parse,
  tracker_cases,
  tried_files,
)

from sgdx_t5x.weights import gin_files

FRAME_FORMATS = ["d3st", "sdt", "state"]
EXPERIMENTS = ["t5dst", "t5dst_backtrans", *FRAME_FORMATS]
V3 = "--gin.MIXTURE_OR_TASK_NAME='t5dst_sgdx_v3'"
SPANDST = ["gin/spandst.gin"]
STUDY = ["gin/study/model.gin", "gin/study/train.gin"]
MINILM_T5 = "gin/models/minilm_t5.gin"

CASES = {
  **{name: ([f"gin/{name}.gin"], TRAIN) for name in EXPERIMENTS},
  **{f"sample/{name}": ([f"gin/sample/{name}.gin"], TRAIN) for name in EXPERIMENTS},
  "eval": (["gin/eval.gin"], [*EVAL, V3]),
  "infer": (["gin/infer.gin"], [*INFER, V3]),
  "sample/eval": (["gin/sample/eval.gin"], EVAL),
  "sample/infer": (["gin/sample/infer.gin"], INFER),
  **{f"models/{name}": (["gin/t5dst_backtrans.gin", f"gin/models/{name}.gin"], TRAIN)
     for name in names("models")},
  **{f"scale/{name}": (["gin/t5dst.gin", f"gin/scale/{name}.gin"], TRAIN)
     for name in names("scale")},
  **{f"{name} {folder}/{file}": ([f"gin/{name}.gin", f"gin/{folder}/{file}.gin"], TRAIN)
     for name in FRAME_FORMATS for folder in ("models", "scale") for file in names(folder)},
  **{f"{folder}{run} {name}": ([f"gin/{folder}{run}.gin", f"gin/{folder}formats/{name}.gin"], last)
     for name in FRAME_FORMATS for folder in ("", "sample/")
     for run, last in (("eval", EVAL), ("infer", INFER))},
  **{f"{run} minilm_t5": ([f"gin/{run}.gin", MINILM_T5], [*last, V3])
     for run, last in (("eval", EVAL), ("infer", INFER))},
  **{f"{run} {name} minilm_t5": ([f"gin/{run}.gin", f"gin/formats/{name}.gin", MINILM_T5], last)
     for name in FRAME_FORMATS for run, last in (("eval", EVAL), ("infer", INFER))},
  **tracker_cases("gin", "spandst", start=True),
  **tracker_cases("gin/sample", "spandst", start=False),
  **encoder_cases("gin/spandst.gin"),
  "study/spandst": ([*SPANDST, "gin/study/spandst.gin", "gin/study/spandst_overfit.gin"],
                    [*TRAIN, START]),
  "study/spandst_two_ninths": ([*SPANDST, "gin/study/spandst_two_ninths.gin"],
                               [*TRAIN, START, "--gin.MIXTURE_OR_TASK_NAME='spandst_reworded'"]),
  "study/spandst_gpu": ([*SPANDST, "gin/study/spandst_gpu.gin"], [*TRAIN, START]),
  "study/train": (["gin/t5dst.gin", *STUDY], [*TRAIN, "--gin.MIXTURE_OR_TASK_NAME='t5dst_oracle'"]),
  "study/overfit": (["gin/t5dst.gin", *STUDY, "gin/study/overfit.gin"], TRAIN),
  "study/model": (["gin/eval.gin", "gin/study/model.gin"], [*EVAL, V3]),
  "study/t5dst_minilm": (["gin/t5dst.gin", MINILM_T5, "gin/study/t5dst_minilm.gin"], TRAIN),
}  # fmt: skip
INCLUDED = {
  "gin/sample/encoder.gin",
  "gin/sample/model.gin",
  "gin/sample/span_encoder.gin",
  "gin/spandst_model.gin",
}

LENGTHS = "utils.DatasetConfig.task_feature_lengths"
LENGTH_MACROS = ("FRAME_LENGTHS", "TASK_FEATURE_LENGTHS")
TRAINING = ("train", "train_eval", "infer_eval")  # scopes of its data sets
RESTORE = {  # of what training starts from, and of what evaluation and inference run
  "used": "utils.CheckpointConfig.restore",
  "start": "start/utils.RestoreCheckpointConfig.fallback_to_scratch",
  "others": "utils.RestoreCheckpointConfig.fallback_to_scratch",
}


@pytest.fixture(scope="module")
def parsed():
  """What the configuration of each case and each model resolves to."""
  others = []
  for name, sizes in gin_files.MODELS.items():
    files = ["gin/t5dst.gin", *([name] if name else [])]
    fields = {field: f"network.T5Config.{field}" for field in sizes.gin()}
    others.append((f"sizes of {name}", files, TRAIN, fields))
  for name, sizes in gin_files.ENCODERS.items():
    fields = {field: f"encoder.BertConfig.{field}" for field in sizes.gin()}
    others.append((f"sizes of {name}", [*SPANDST, name], [*TRAIN, START], fields))
  for name in FRAME_FORMATS:
    lengths = {scope: f"{scope}/{LENGTHS}" for scope in TRAINING}
    for scale in names("scale"):
      files = [f"gin/{name}.gin", f"gin/scale/{scale}.gin"]
      others.append((f"lengths of {name} {scale}", files, TRAIN, lengths))
  for name, (files, flags) in CASES.items():
    if MINILM_T5 in files:
      scopes = [f"{scope}/" for scope in TRAINING] if flags == TRAIN else [""]
      lengths = {scope or "all": f"{scope}{LENGTHS}" for scope in scopes}
      lengths |= {f"%{macro}": f"{macro}/macro.value" for macro in LENGTH_MACROS}
      others += [(f"lengths of {name}", files, flags, lengths)]
      others += [(f"restored by {name}", files, flags, RESTORE)]
  return parse(CASES, others)


@pytest.mark.parametrize("name", CASES)
def test_parses(parsed, name):
  assert isinstance(parsed[name], dict), parsed[name]


def test_every_file_is_tried():
  assert tried_files(CASES) | INCLUDED == files_below("gin") - files_below("gin/papers")


def test_the_papers_settings(parsed):
  """SGD-X paper, section 4.1: batch 16, 50,000 steps after the checkpoint."""
  assert parsed["t5dst"] == {
    "MIXTURE_OR_TASK_NAME": "t5dst_sgd",
    "BATCH_SIZE": 16,
    "TRAIN_STEPS": 1_049_900,
    "INITIAL_CHECKPOINT_PATH": "gs://t5-data/pretrained_models/t5x/t5_base/checkpoint_999900",
  }
  for name in names("models"):
    settings = parsed[f"models/{name}"]
    if settings["INITIAL_CHECKPOINT_PATH"]:
      start = int(settings["INITIAL_CHECKPOINT_PATH"].rsplit("_", 1)[1])
      assert settings["TRAIN_STEPS"] == start + 50_000
    assert settings["MIXTURE_OR_TASK_NAME"] == "t5dst_backtrans"


@pytest.mark.parametrize("name", FRAME_FORMATS)
def test_machines_do_not_cut_frames_to_the_lengths_of_slots(parsed, name):
  """gin/scale has 512 and 64 tokens; the longest target of a frame has more."""
  for scale in names("scale"):
    for lengths in parsed[f"lengths of {name} {scale}"].values():
      assert lengths == "%FRAME_LENGTHS"


@pytest.mark.parametrize("name", [name for name in CASES if MINILM_T5 in CASES[name][0]])
def test_no_input_has_more_tokens_than_minilm_has_positions(parsed, name):
  lengths = parsed[f"lengths of {name}"]
  for found in lengths.values():
    while isinstance(found, str):
      found = lengths[found]
    assert found["inputs"] <= 512
    longest_answer = 17 if "t5dst" in name else 77  # D3ST's
    assert found["targets"] >= longest_answer


def test_only_training_starts_with_a_random_decoder(parsed):
  """Regression: `t5x.eval` scored a random decoder if a checkpoint had none."""
  for name in ("models/minilm_t5", "eval minilm_t5", "infer minilm_t5"):
    found = {"used": "@start/utils.RestoreCheckpointConfig()", "start": True, "others": None}
    assert parsed[f"restored by {name}"] == found


def test_machines_leave_trackers_with_an_encoder_their_batch(parsed):
  """Their numbers of steps count on it. Regression: a scale file halved a tracker's."""
  for scale in names("scale/encoders"):
    assert parsed[f"gin/spandst.gin gin/scale/encoders/{scale}.gin"] == parsed["gin/spandst"]


def test_the_batch_divides_over_the_gpus_of_a_machine(parsed):
  assert all(parsed["scale/gpu"]["BATCH_SIZE"] % gpus == 0 for gpus in (1, 2, 4, 8))


def test_model_files_have_the_sizes_they_are_named_for(parsed):
  """The sizes by which `sgdx weights` chooses a model file."""
  for name, sizes in {**gin_files.MODELS, **gin_files.ENCODERS}.items():
    assert parsed[f"sizes of {name}"] == json.loads(json.dumps(sizes.gin()))
