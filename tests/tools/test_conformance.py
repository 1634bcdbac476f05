"""Conformance cases for tool-call scorers: ours agrees with all, and faulty scorers fail some."""

import gzip
import importlib.util
import json
from collections import Counter

import jsonschema
import pytest
from places import ROOT

from sgdx_t5x.tools.conformance import cases, judge, judge_strictly

FOLDER = ROOT / "sgdx_t5x/tools/conformance"
CASES = {case["id"]: case for case in cases()}


def test_our_scorer_agrees_with_every_case():
  found = {key: judge(case) for key, case in CASES.items()}
  expected = {key: (case["verdict"], case["finding"]) for key, case in CASES.items()}
  assert found == expected


def test_our_strict_scorer_agrees_with_every_case():
  found = {key: judge_strictly(case) for key, case in CASES.items()}
  assert found == {key: case.get("strict", case["verdict"]) for key, case in CASES.items()}


def test_a_case_is_judged_by_its_answer_alone():
  """`judge` is not given the verdict, finding and reason, which it could otherwise read."""
  shown = {key: CASES["missing-Ferries_1"][key] for key in ("tools", "expected", "answer")}
  assert judge(shown) == ("wrong", "missing_argument")
  assert judge({**shown, "answer": CASES["exact-Ferries_1"]["answer"]}) == ("right", "none")


def test_the_file_is_what_its_maker_writes():
  path = ROOT / "tests/tools/fixtures/conformance/make.py"
  spec = importlib.util.spec_from_file_location("make_conformance", path)
  maker = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(maker)
  lines = gzip.decompress((FOLDER / "cases.jsonl.gz").read_bytes()).splitlines()
  assert list(map(json.loads, lines)) == list(maker.lines())


def test_cases_are_distinct_and_their_tools_are_json_schema():
  tried = [json.dumps([x["tools"], x["expected"], x["answer"]]) for x in CASES.values()]
  assert len(set(tried)) == len(tried) == len(CASES)
  tools = {json.dumps(tool["function"]) for case in CASES.values() for tool in case["tools"]}
  for function in map(json.loads, tools):
    jsonschema.Draft202012Validator.check_schema(function["parameters"])
  assert all(case["reason"].endswith(".") for case in CASES.values())


def test_the_readme_names_what_the_file_has():
  text = (FOLDER / "README.md").read_text("utf-8")
  verdicts = Counter(case["verdict"] for case in CASES.values())
  categories = {case["category"] for case in CASES.values()}
  assert f"has {len(CASES)} answers" in text
  assert f"{verdicts['right']} right and {verdicts['wrong']}\nwrong, of {len(categories)}" in text
  named = {case[key] for case in CASES.values() for key in ("finding", "policy") if key in case}
  assert not {name for name in named if f"`{name}`" not in text}
  sources = {case["source"] for case in CASES.values() if "source" in case}
  assert not {source for source in sources if source not in text}


def given(case):
  for call in case["answer"].get("tool_calls", ()):
    function = call["function"]
    yield function["name"], json.loads(function["arguments"])


def never_checks_values(case):
  return all(
    any(
      name == want["name"] and want["arguments"].keys() <= got.keys() for name, got in given(case)
    )
    for want in case["expected"]
  )


def lets_additional_arguments_pass(case):
  return all(
    any(
      name == want["name"] and all(str(got.get(k)) in v for k, v in want["arguments"].items())
      for name, got in given(case)
    )
    for want in case["expected"]
  )


def wants_no_call_always(case):
  return not case["answer"].get("tool_calls")


def compares_with_one_value(case):
  wanted = [(x["name"], {k: v[0] for k, v in x["arguments"].items()}) for x in case["expected"]]
  return list(given(case)) == wanted


@pytest.mark.parametrize(
  ("scorer", "report"),
  [
    (never_checks_values, "AU-Harness/issues/31"),
    (lets_additional_arguments_pass, "tinker-cookbook/issues/937"),
    (wants_no_call_always, "harbor/pull/1327"),
    (compares_with_one_value, "gorilla/issues/1169"),
    (compares_with_one_value, "evalscope/issues/929"),
  ],
)
def test_faults_of_public_reports_are_found(scorer, report):
  """A scorer with the reported fault misjudges every case of that report."""
  of_report = [case for case in CASES.values() if report in case.get("source", "")]
  assert len(of_report) >= 5
  for case in of_report:
    assert scorer(case) != (case["verdict"] == "right"), case["id"]
