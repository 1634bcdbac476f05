"""SGD-X as tool calls in Inspect, scored as by `sgdx tools score`. Needs the extra `inspect`.

sgdx tools requests --corpus sgd.zip --variant original v1 --limit 100 --out requests.jsonl
inspect eval sgdx_t5x/sgdx -T requests=requests.jsonl -T corpus=sgd.zip --model openai/MODEL

Checked against the package inspect-ai 0.3.285.
"""

import dataclasses
import functools
import json
import pathlib
import tempfile
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
  ChatMessage,
  ChatMessageAssistant,
  ChatMessageSystem,
  ChatMessageUser,
  get_model,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolInfo

from sgdx_t5x import scoring
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.files.reading import decode_json, not_found
from sgdx_t5x.files.writing import atomic_write
from sgdx_t5x.metrics import JOINT_GOAL, GoldFrame, gold_frames, score_frames
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.scoring.predictions.rows import numbered_lines, row_id
from sgdx_t5x.scoring.rows import GROUPS
from sgdx_t5x.tools.call_shares import NO_CALL, RATES
from sgdx_t5x.tools.calls import read_calls
from sgdx_t5x.tools.format import calls_format
from sgdx_t5x.tools.requests import parse_request_id
from sgdx_t5x.variants.variant_schemas import VariantSchemas

_MESSAGES = {
  "system": ChatMessageSystem,
  "user": ChatMessageUser,
  "assistant": ChatMessageAssistant,
}
_SUMMARY = ("jga_orig", "jga_v1_5", "ss_jga")
_VARIANTS = ("jga_v1", "jga_v2", "jga_v3", "jga_v4", "jga_v5", "retained", "worst", "agreement")
_EXPECTED = "a request of `sgdx tools requests`"


@task
def sgdx(
  requests: str, corpus: str = "sample", split: str = "test", answers: str | None = None
) -> Task:
  """SGD-X as tool calls: one sample per request.

  Args:
    requests: file of `sgdx tools requests`.
    corpus: what they were made from: the archive, or "sample".
    split: of the corpus.
    answers: file to write, for `sgdx tools score --predictions all=ANSWERS`.

  Raises:
    SgdxError: not a corpus, not a file of requests, or answers that could not be written.
  """
  if answers is not None:
    _check_answers(pathlib.Path(answers))
  file = pathlib.Path(requests)
  if not file.is_file():
    raise not_found(file, "requests written by `sgdx tools requests`")
  samples = [_sample(line, place) for place, line in numbered_lines(file)]
  return Task(
    dataset=MemoryDataset(samples, name=file.name),
    solver=call_tools(),
    scorer=calls(corpus, split),
    metrics=[state_scores(corpus, split, answers)],
  )


@solver
def call_tools() -> Solver:
  """Queries the model once, with the tools of the request; executes nothing."""

  async def solve(state: TaskState, generate: Generate) -> TaskState:
    tools = [ToolInfo(**tool["function"]) for tool in state.metadata["tools"]]
    state.output = await get_model().generate(state.messages, tools=tools, tool_choice="auto")
    state.messages.append(state.output.message)
    return state

  return solve


@scorer(metrics=[])
def calls(corpus: str, split: str) -> Scorer:
  """JGA of each answer. Args: see `sgdx`."""
  frames = _frames(corpus, split)

  async def score(state: TaskState, target: Target) -> Score:
    row = {"id": str(state.sample_id), "calls": _calls(state)}
    return Score(value=frames.jga(row), answer=json.dumps(row["calls"]), metadata={"row": row})

  return score


@metric
def state_scores(corpus: str, split: str, answers: str | None) -> Metric:
  """The scores of `sgdx tools score` over all answers, as far as the variants allow: see `sgdx`."""

  def compute(scores: list[SampleScore]) -> dict[str, float]:
    rows = [score.score.metadata["row"] for score in scores if score.score.metadata]
    with tempfile.TemporaryDirectory() as folder:
      file = pathlib.Path(answers or f"{folder}/answers.jsonl")
      with atomic_write(file, "answers") as out:
        out.writelines(f"{json.dumps(row)}\n" for row in rows)
      # Inspect also computes metrics during a run.
      return _numbers(corpus, split, file) if _have_common_frames(rows) else {}

  return compute


# --- parts ---------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Frames:
  """What answers are scored against."""

  gold: Mapping[str, GoldFrame]
  schemas: VariantSchemas
  split: str
  seen_services: frozenset[str]

  def jga(self, row: Mapping[str, Any]) -> float:
    """Returns the JGA of an answer. Raises SgdxError for an id of another corpus."""
    name, _, absent = parse_request_id(row["id"])
    example = ExampleId.parse(name, row["id"])
    if (frame := self.gold.get(example.frame_id)) is None:
      raise SgdxError(
        f"id {row['id']!r} does not belong to any frame of the corpus",
        expected=_EXPECTED + f" for split {self.split}",
        fix="pass the same corpus= and split= as to `sgdx tools requests`",
      )
    schema = self.schemas.get(self.split)
    pairs = service_pairs(schema, self.schemas.get(self.split, example.variant))
    predicted = read_calls(row["calls"], pairs[frame.service], absent=absent)
    scores = score_frames([frame], {frame.frame_id: predicted}, schema, self.seen_services)
    return float(scores.metrics[JOINT_GOAL][0])


@functools.lru_cache(maxsize=2)
def _frames(corpus: str, split: str) -> _Frames:
  opened = open_corpus(corpus)
  gold = {frame.frame_id: frame for frame in gold_frames(opened.dialogues(split))}
  return _Frames(gold, VariantSchemas(opened), split, frozenset(opened.seen_services(split)))


def _check_answers(file: pathlib.Path) -> None:
  """Refuses, before anything is asked, a file that could not be written or scored."""
  if ".jsonl" not in file.name or not file.absolute().parent.is_dir():
    raise SgdxError(
      f"answers={file}",
      expected="a file named *.jsonl, in a folder that exists",
      fix=f"mkdir -p {file.parent}, and pass answers={file.with_suffix('.jsonl')}",
    )


def _sample(line: bytes, place: str) -> Sample:
  row = decode_json(line, place, _EXPECTED, "write one request per line")
  name = row_id(row, place)
  if not isinstance(row.get("messages"), list):
    raise SgdxError(
      f"{place}: no messages",
      expected=_EXPECTED,
      available=", ".join(row),
      fix="write the requests without --openai-batch",
    )
  messages: list[ChatMessage] = [
    _MESSAGES[message["role"]](content=message["content"]) for message in row["messages"]
  ]
  fields = {key: row["metadata"][key] for key in ("variant", "service", "delivery")}
  return Sample(input=messages, id=name, metadata={**fields, "tools": row.get("tools", [])})


def _calls(state: TaskState) -> list[dict[str, Any]]:
  """Returns the calls of an answer; arguments that are not JSON become the parse error's text.

  Inspect itself takes some that do not begin with "{" for the value of the first parameter.
  """
  tool_calls = (state.output.message.tool_calls or ()) if state.output.choices else ()
  return [
    {"name": call.function, "arguments": call.parse_error or call.arguments} for call in tool_calls
  ]


def _have_common_frames(rows: Iterable[Mapping[str, Any]]) -> bool:
  """Whether some frame is answered in every variant that has answers."""
  answered: dict[str, set[str]] = {}
  for row in rows:
    # What follows is which tools were shown, which may differ between variants.
    variant, _, frame = parse_request_id(row["id"])[0].partition("/")
    answered.setdefault(variant, set()).add(frame)
  return bool(answered) and bool(set.intersection(*answered.values()))


def _numbers(corpus: str, split: str, file: pathlib.Path) -> dict[str, float]:
  source = {scoring.ALL: str(file)}
  scored = scoring.score_predictions(
    corpus,
    split,
    source,
    # The ids are those of the requests.
    prompt_format=dataclasses.replace(calls_format(source, split), trusted_ids=True),
    allow_missing=True,
    bootstrap_samples=0,
  )
  rates = _rates(scored.further.get("calls", {}).values())
  return {**_states(scoring.score_report(scored)["sgdx"]), **rates}


def _states(rows: Mapping[str, Any]) -> dict[str, float]:
  """Returns the available JGA of a report; for seen and unseen services only the summary."""
  scores = {}
  for group in GROUPS:
    for key in (*_SUMMARY, *_VARIANTS) if group == "all" else _SUMMARY:
      if rows[group].get(key) is not None:
        scores[f"{key}_{group}"] = rows[group][key]
  return scores


def _rates(variants: Collection[Mapping[str, Any]]) -> dict[str, float]:
  """Returns the rates of `calls.call_rates` over all variants together."""
  numbers = {}
  for name in (*RATES, NO_CALL):
    rates = [groups["all"][name] for groups in variants]
    if denominator := sum(rate["of"] for rate in rates):
      numbers[name] = sum((rate["value"] or 0) * rate["of"] for rate in rates) / denominator
  return numbers
