"""Every gin file parses and resolves, alone or on top of the experiment it is made for."""

import json

import pytest
from commands import python_code
from places import ROOT

from sgdx_t5x.papers.sgpdst.sgpdst import PARTS
from sgdx_t5x.weights import gin_files

FRAME_FORMATS = ["d3st", "sdt"]
TRACKERS = ["spandst", "baseline"]  # with an encoder
EXPERIMENTS = [
  f"{name}{suffix}"
  for name in ("t5dst", *FRAME_FORMATS)
  for suffix in ("", "_backtrans", "_oracle", "_corrupt")
] + ["t5dst_ned_aug", "t5dst_sdi_aug", "t5dst_coco_aug", "coco_generator", "coco_classifier"]
EXPERIMENTS += ["prefine", "t5dst_prefine"]

# Runs as __main__, where T5X's run files look for train, evaluate and infer.
PARSE = """
import json, sys
import gin
from t5x import gin_utils
from t5x.train import train
from t5x.eval import evaluate
from t5x.infer import infer


def value(parameter):
  try:
    found = gin.query_parameter(parameter)
    return repr(found) if isinstance(found, gin.config.ConfigurableReference) else found
  except ValueError:  # not bound: evaluation has no TRAIN_STEPS
    return None


found = {}
for name, files, bindings, parameters in json.load(sys.stdin):
  gin.clear_config()
  for function in (train, evaluate, infer):
    gin.external_configurable(function, module="__main__")
  try:
    gin_utils.parse_gin_flags([], files, bindings)
    found[name] = {key: value(parameter) for key, parameter in parameters.items()}
  except Exception as e:
    found[name] = f"{type(e).__name__}: {e}"
print(json.dumps(found))
"""


ENCODERS = sorted(name.removeprefix("gin/models/")[:-4] for name in gin_files.ENCODERS)


def names(folder):
  found = sorted(p.stem for p in (ROOT / "gin" / folder).glob("*.gin"))
  return [name for name in found if folder != "models" or name not in ENCODERS]


TRAIN = ["--gin.MODEL_DIR='/nowhere'"]
EVAL = ["--gin.CHECKPOINT_PATH='/c'", "--gin.EVAL_OUTPUT_DIR='/o'"]
INFER = ["--gin.CHECKPOINT_PATH='/c'", "--gin.INFER_OUTPUT_DIR='/o'"]
STUDY = ["gin/study/model.gin", "gin/study/train.gin"]
CASES = {
  **{name: ([f"gin/{name}.gin"], TRAIN) for name in EXPERIMENTS},
  **{f"sample/{name}": ([f"gin/sample/{name}.gin"], TRAIN) for name in EXPERIMENTS},
  "eval": (["gin/eval.gin"], ["--gin.MIXTURE_OR_TASK_NAME='t5dst_sgdx_v3'",
           "--gin.CHECKPOINT_PATH='/c'", "--gin.EVAL_OUTPUT_DIR='/o'"]),
  "infer": (["gin/infer.gin"], ["--gin.MIXTURE_OR_TASK_NAME='t5dst_sgdx_v3'",
            "--gin.CHECKPOINT_PATH='/c'", "--gin.INFER_OUTPUT_DIR='/o'"]),
  "sample/eval": (["gin/sample/eval.gin"],
                  ["--gin.CHECKPOINT_PATH='/c'", "--gin.EVAL_OUTPUT_DIR='/o'"]),
  "sample/infer": (["gin/sample/infer.gin"],
                   ["--gin.CHECKPOINT_PATH='/c'", "--gin.INFER_OUTPUT_DIR='/o'"]),
  **{f"{where}coco_{name}": ([f"gin/{where}coco_{name}.gin"], INFER)
     for where in ("", "sample/") for name in ("infer", "classify")},
  "checkdst_eval": (["gin/papers/checkdst/checkdst_eval.gin"], EVAL),
  "sample/checkdst_eval": (["gin/papers/checkdst/sample/checkdst_eval.gin"], EVAL),
  **{f"models/{name}": (["gin/t5dst_backtrans.gin", f"gin/models/{name}.gin"], TRAIN)
     for name in names("models")},
  **{f"scale/{name}": (["gin/t5dst.gin", f"gin/scale/{name}.gin"], TRAIN)
     for name in names("scale")},
  **{f"{name} {folder}/{file}": ([f"gin/{name}.gin", f"gin/{folder}/{file}.gin"], TRAIN)
     for name in FRAME_FORMATS for folder in ("models", "scale") for file in names(folder)},
  **{f"{folder}{run} {name}": ([f"gin/{folder}{run}.gin", f"gin/{folder}formats/{name}.gin"], last)
     for name in FRAME_FORMATS for folder in ("", "sample/")
     for run, last in (("eval", EVAL), ("infer", INFER))},
  **{f"{where}{name}": ([f"gin/{where}{name}.gin"], [*TRAIN, *START])
     for name in TRACKERS
     for where, START in (("", ["--gin.INITIAL_CHECKPOINT_PATH='/c'"]), ("sample/", []))},
  **{f"{name} models/{model}": ([f"gin/{name}.gin", f"gin/models/{model}.gin"],
                                [*TRAIN, "--gin.INITIAL_CHECKPOINT_PATH='/c'"])
     for name in TRACKERS for model in ENCODERS},
  **{f"{tracker} scale/{name}": ([f"gin/{tracker}.gin", f"gin/scale/encoders/{name}.gin"],
                                 [*TRAIN, "--gin.INITIAL_CHECKPOINT_PATH='/c'"])
     for tracker in (*TRACKERS, "sgpdst/copy") for name in names("scale/encoders")},
  **{f"{where}{name}_{run}": ([f"gin/{where}{name}_{run}.gin"],
                              [*last, f"--gin.MIXTURE_OR_TASK_NAME='{name}_sgdx_v3'"])
     for name in TRACKERS
     for where in ("", "sample/") for run, last in (("eval", EVAL), ("infer", INFER))},
  **{f"{where}sgpdst/{part}": ([f"gin/{where}sgpdst/{part}.gin"], [*TRAIN, *START])
     for where, START in (("", ["--gin.INITIAL_CHECKPOINT_PATH='/c'"]), ("sample/", []))
     for part in PARTS},
  "sgpdst/official": (["gin/papers/sgpdst/copy.gin", "gin/papers/sgpdst/official.gin"],
                      [*TRAIN, "--gin.INITIAL_CHECKPOINT_PATH='/c'"]),
  **{f"{where}sgpdst/{run}": ([f"gin/{where}sgpdst/{run}.gin"],
                              [*last, "--gin.MIXTURE_OR_TASK_NAME='sgpdst_copy_sgdx_v3'",
                               "--gin.PART='copy'"])
     for where in ("", "sample/") for run, last in (("eval", EVAL), ("infer", INFER))},
  "study/spandst": (["gin/spandst.gin", "gin/study/spandst.gin", "gin/study/spandst_overfit.gin"],
                    [*TRAIN, "--gin.INITIAL_CHECKPOINT_PATH='/c'"]),
  "study/spandst_seventh": (["gin/spandst.gin", "gin/study/spandst_seventh.gin"],
                            [*TRAIN, "--gin.INITIAL_CHECKPOINT_PATH='/c'"]),
  "study/spandst_two_ninths": (["gin/spandst.gin", "gin/study/spandst_two_ninths.gin"],
                               [*TRAIN, "--gin.INITIAL_CHECKPOINT_PATH='/c'",
                                "--gin.MIXTURE_OR_TASK_NAME='spandst_reworded'"]),
  "study/spandst_gpu": (["gin/spandst.gin", "gin/study/spandst_gpu.gin"],
                        [*TRAIN, "--gin.INITIAL_CHECKPOINT_PATH='/c'"]),
  "study/spandst_changes": (["gin/spandst.gin", "gin/study/spandst_changes.gin"],
                            [*TRAIN, "--gin.INITIAL_CHECKPOINT_PATH='/c'"]),
  "study/train": (["gin/t5dst_oracle.gin", *STUDY], TRAIN),
  "study/overfit": (["gin/t5dst.gin", *STUDY, "gin/study/overfit.gin"], TRAIN),
  "study/model": (["gin/eval.gin", "gin/study/model.gin"],
                  ["--gin.MIXTURE_OR_TASK_NAME='t5dst_sgdx_v3'",
                   "--gin.CHECKPOINT_PATH='/c'", "--gin.EVAL_OUTPUT_DIR='/o'"]),
}  # fmt: skip


MACROS = ("MIXTURE_OR_TASK_NAME", "BATCH_SIZE", "TRAIN_STEPS", "INITIAL_CHECKPOINT_PATH")
LENGTHS = "utils.DatasetConfig.task_feature_lengths"


@pytest.fixture(scope="module")
def parsed():
  """What the configuration of each case and each model resolves to, parsed in one process."""
  macros = {macro: f"{macro}/macro.value" for macro in MACROS}
  cases = [
    (name, files, [b.removeprefix("--gin.").replace("=", " = ", 1) for b in bindings], macros)
    for name, (files, bindings) in CASES.items()
  ]
  for name, sizes in gin_files.MODELS.items():
    files = ["gin/t5dst.gin", *([name] if name else [])]
    fields = {field: f"network.T5Config.{field}" for field in sizes.gin()}
    cases.append((f"sizes of {name}", files, ["MODEL_DIR = '/nowhere'"], fields))
  for name, sizes in gin_files.ENCODERS.items():
    fields = {field: f"encoder.BertConfig.{field}" for field in sizes.gin()}
    bound = ["MODEL_DIR = '/nowhere'", "INITIAL_CHECKPOINT_PATH = []"]
    cases.append((f"sizes of {name}", ["gin/spandst.gin", name], bound, fields))
  for name in FRAME_FORMATS:
    lengths = {scope: f"{scope}/{LENGTHS}" for scope in ("train", "train_eval", "infer_eval")}
    for scale in names("scale"):
      files = [f"gin/{name}.gin", f"gin/scale/{scale}.gin"]
      cases.append((f"lengths of {name} {scale}", files, ["MODEL_DIR = '/nowhere'"], lengths))
  found = python_code(PARSE, input=json.dumps(cases), cwd=ROOT)
  assert found.returncode == 0, found.stderr[-2000:]
  return json.loads(found.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CASES)
def test_parses(parsed, name):
  assert isinstance(parsed[name], dict), parsed[name]


def test_every_file_is_tried():
  tried = {file for files, _ in CASES.values() for file in files} | {"gin/sample/model.gin"}
  tried |= {"gin/sample/encoder.gin", "gin/spandst_model.gin"}  # included
  tried.add("gin/sample/span_encoder.gin")
  tried |= {
    "gin/papers/sgpdst/sgpdst_model.gin",
    "gin/papers/sgpdst/train.gin",
    "gin/papers/sgpdst/sample/train.gin",
  }
  tried |= {
    "gin/papers/sgd_baseline/sample/baseline_model.gin",
    "gin/papers/sgd_baseline/model.gin",
  }
  assert tried == {str(p.relative_to(ROOT)) for p in (ROOT / "gin").rglob("*.gin")}


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


def test_the_sgd_papers_settings(parsed):
  """SGD paper, section 5, baseline: batch 32, 80 epochs of 175,780 frames."""
  assert parsed["baseline"] == {
    "MIXTURE_OR_TASK_NAME": "baseline_sgd",
    "BATCH_SIZE": 32,
    "TRAIN_STEPS": 80 * 175_780 // 32,
    "INITIAL_CHECKPOINT_PATH": "/c",
  }


@pytest.mark.parametrize("tracker", [*TRACKERS, "sgpdst/copy"])
def test_machines_leave_trackers_with_an_encoder_their_batch(parsed, tracker):
  """Their numbers of steps count on it. Regression: a scale file halved the baseline's."""
  for scale in names("scale/encoders"):
    assert parsed[f"{tracker} scale/{scale}"] == parsed[tracker]


def test_the_batch_divides_over_the_gpus_of_a_machine(parsed):
  assert all(parsed["scale/gpu"]["BATCH_SIZE"] % gpus == 0 for gpus in (1, 2, 4, 8))


def test_model_files_have_the_sizes_they_are_named_for(parsed):
  """The sizes by which `sgdx weights` chooses a model file."""
  for name, sizes in {**gin_files.MODELS, **gin_files.ENCODERS}.items():
    assert parsed[f"sizes of {name}"] == json.loads(json.dumps(sizes.gin()))
