"""Public functions of `sgdx_t5x` answer wrong arguments with an SgdxError, never a TypeError."""

import inspect
import json

import pytest
import tiny_corpus as tiny

import sgdx_t5x
from sgdx_t5x import SgdxError
from sgdx_t5x.errors import UsageError
from sgdx_t5x.prompts.t5dst.text import PromptStyle

FUNCTIONS = [name for name in sgdx_t5x.PUBLIC if inspect.isfunction(getattr(sgdx_t5x, name))]
WRONG = (3, 1.5, None, b"x", [3], [{"a": 1}], {"a": 1}, object(), print)


@pytest.fixture(scope="module")
def right(tmp_path_factory):
  """Function -> right positional arguments, all of one scoring."""
  folder = tmp_path_factory.mktemp("tiny")
  corpus = tiny.write_corpus(folder / "corpus")
  gold = {"original": str(tiny.write_dialogues(folder / "original", tiny.GOLD))}
  scored = sgdx_t5x.score_predictions(str(corpus), "test", gold, bootstrap_samples=0)
  table = scored.table(folder / "a.jsonl")
  frames = (str(folder / "a.jsonl"), table.signature, dict(table.scores))
  checksum = sgdx_t5x.write_frames(*frames)
  per_frame = {"file": "a.jsonl", "checksum": checksum}
  report = sgdx_t5x.score_report(scored, per_frame)
  (folder / "a.json").write_text(json.dumps(report))
  run = sgdx_t5x.read_run("a", str(folder / "a.json"))
  return {
    "compare": (str(folder / "a.json"), folder / "a.jsonl"),  # paths, or what `read_frames` returns
    "comparison_report": (sgdx_t5x.compare(table, table), 100),
    "load_tracker": (str(folder / "no_checkpoint"),),
    "make_prompts": (str(corpus), "test"),
    "make_report": ("title", [run], str(corpus)),
    "open_corpus": (str(corpus),),
    "read_frames": (str(folder / "a.json"),),
    "read_run": ("a", str(folder / "a.json")),
    "score": (str(corpus), "test", gold),
    "score_predictions": (str(corpus), "test", gold),
    "score_report": (scored,),
    "show": (str(corpus), "1_00000"),
    "write_frames": frames,
    "write_report": (sgdx_t5x.make_report("title", [run]), str(folder / "report"), 0),
  }


def test_strings_and_paths_are_taken_alike(right):
  assert set(right) == set(FUNCTIONS)
  for name, arguments in right.items():
    if name != "load_tracker":
      getattr(sgdx_t5x, name)(*arguments)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_of_another_kind_are_refused(name, right):
  function, arguments = getattr(sgdx_t5x, name), right[name]
  parameters = list(inspect.signature(function).parameters.values())
  for index, value in enumerate(arguments):
    for wrong in WRONG:
      allowed = parameters[min(index, len(parameters) - 1)].default is None
      # A number where one belongs, and a dict of something, are of the right kind.
      if type(wrong) is type(value) or (wrong is None and allowed):
        continue
      with pytest.raises(SgdxError):
        function(*arguments[:index], wrong, *arguments[index + 1 :])
  keywords = [p for p in parameters[len(arguments) :] if p.kind is not p.VAR_KEYWORD]
  for parameter in keywords:
    with pytest.raises(UsageError, match=parameter.name):
      function(*arguments, **{parameter.name: object()})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_arguments_are_refused_with_the_nearest(name, right):
  function, arguments = getattr(sgdx_t5x, name), right[name]
  parameters = inspect.signature(function).parameters.values()
  last = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD][-1]
  with pytest.raises(UsageError, match=f"no argument '{last}x'") as error:
    function(*arguments, **{f"{last}x": 1})
  if name not in ("score", "score_predictions"):  # their other arguments are settings, see below
    assert last in error.value.available
  if name != "load_tracker":
    with pytest.raises(UsageError, match="missing a required argument"):
      function()


def test_what_a_report_cannot_show_is_refused(right):
  """Regression: of two runs of one name, tables and plots of the second replaced the first's."""
  title, (run,), corpus = right["make_report"]
  with pytest.raises(UsageError, match="two runs are named a"):
    sgdx_t5x.make_report(title, [run, run])
  content = sgdx_t5x.make_report(title, {"a": run}.values(), corpus)
  with pytest.raises(UsageError, match="examples = -1"):
    sgdx_t5x.write_report(content, right["write_report"][1], -1)


@pytest.mark.parametrize(
  ("settings", "words"),
  [
    ({"fuzy": "exact"}, ("no argument 'fuzy'", "nearest: fuzzy")),
    ({"fuzzy": "exat"}, ("fuzzy = 'exat'", "nearest: exact")),
    ({"fuzzy": 3}, ("fuzzy is of type int",)),
    ({"zero_mean": "zeros"}, ("zero_mean = 'zeros'", "nearest: zero")),
    ({"bootstrap_samples": "100"}, ("bootstrap_samples is of type str",)),
    ({"seed": None}, ("seed is of type NoneType",)),
    ({"metrics": "joint_goal_accuracy"}, ("metrics is of type str",)),
    ({"schemas": "folder"}, ("schemas is of type str",)),
    ({"prompt_format": "d4st"}, ("prompt format 'd4st'", "d3st")),
    ({"prompt_format": 3}, ("prompt_format is of type int", "d3st")),
    ({"style": 3}, ("a style of type int",)),
    ({"prompt_format": "d3st", "style": PromptStyle()}, ("type PromptStyle for", "d3st")),
  ],
)
def test_settings_of_the_scoring(settings, words, right):
  with pytest.raises(UsageError) as error:
    sgdx_t5x.score_predictions(*right["score_predictions"], **settings)
  for word in words:
    assert word in error.value.text


@pytest.mark.parametrize(
  ("predictions", "words"),
  [
    ({"original": ["nope.jsonl"]}, "no file at nope.jsonl"),
    ({"original": ["."]}, "is a folder"),
    ({1: "nope.jsonl"}, "a variant of the predictions is of type int"),
  ],
)
def test_files_and_variants_are_checked_before_they_are_read(predictions, words):
  with pytest.raises(SgdxError, match=words):
    sgdx_t5x.score("sample", "test", predictions)


@pytest.mark.parametrize(
  ("source", "words"),
  [
    ([3], "a list of int"),
    (["a.jsonl", {"id": "a"}], "a list of dict and str"),
    ([], "an empty list"),
    ({"a": 1}, "of type dict"),
    (None, "of type NoneType"),
  ],
)
def test_predictions_that_are_neither_paths_nor_rows_are_refused(source, words, right):
  """Regression: AttributeError: 'dict' object has no attribute 'stat'."""
  with pytest.raises(UsageError, match=f"predictions for 'original' are.* {words}") as error:
    sgdx_t5x.score_predictions(*right["score_predictions"][:2], {"original": source})
  assert "pass rows" in error.value.fix
