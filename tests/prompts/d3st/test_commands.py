"""D3ST has the same texts and reader in `sgdx prompts`, `sgdx score` and the SeqIO tasks."""

import json

import pytest
import tiny_corpus as tiny
from places import DOCS

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts import load_format
from sgdx_t5x.prompts.d3st import D3ST, D3stStyle
from sgdx_t5x.scoring.score import score_predictions

ALL = ("original", *tiny.VARIANTS)
STYLE = ("--prompt-style", "format=d3st")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  return str(tiny.write_corpus(tmp_path_factory.mktemp("tiny")))


def prompts(corpus, out, *args, variants=ALL):
  return main(["prompts", "--corpus", corpus, "--variant", *variants, "--out", str(out), *args])


def read(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


def test_rows_with_targets_by_hand(corpus, tmp_path, capsys):
  args = ("--targets", *STYLE, "order=schema")
  assert prompts(corpus, tmp_path / "p.jsonl", *args, variants=["v3"]) == 0
  assert "p.jsonl: 6 prompts with targets (v3)" in capsys.readouterr().err
  rows = read(tmp_path / "p.jsonl")
  assert [row["id"].rpartition("/")[2] for row in rows] == ["*"] * 6
  assert rows[1] == {
    "id": "v3/test/1_00000-002-Banks_1/*",
    "prompt": "0=kind said like v3 0a) checking 0b) savings 1=to said like v3 "
    "2=amount said like v3 3=balance said like v3 i0=do it "
    "[user] user turn 0 of 1_00000 [system] answer 0 [user] user turn 1 of 1_00000",
    "target": "[states] 0=0a 1=anna lee || anna [intents] i0 [req_slots]",
  }


@pytest.mark.parametrize("fields", [(), ("seed=3", "values=a", "join= | "), ("order=schema",)])
def test_right_answers_score_one(corpus, tmp_path, capsys, fields):
  """The command that `sgdx prompts` prints is run; intents and requests are scored too."""
  style = (*STYLE, *fields)
  assert prompts(corpus, tmp_path / "p.jsonl", "--targets", *style) == 0
  answers = [{"id": row["id"], "prediction": row["target"]} for row in read(tmp_path / "p.jsonl")]
  tiny.write_rows(tmp_path / "a.jsonl", answers)
  command = [
    *("score", "--corpus", corpus, "--split", "test", *style),
    *("--predictions", f"all={tmp_path / 'a.jsonl'}", "--json", str(tmp_path / "s.json")),
  ]
  assert main(command) == 0
  scores = json.loads((tmp_path / "s.json").read_text())
  for metric in ("joint_goal_accuracy", "active_intent_accuracy", "requested_slots_f1"):
    # With " | ", a gold value that contains it is read as two: "Soho | West".
    least = 1.0 if "join= | " not in fields or metric != "joint_goal_accuracy" else 0.8
    for variant in ALL:
      assert scores["variants"][variant]["#ALL_SERVICES"][metric] >= least
  assert "|format:d3st|" in scores["signature"]
  assert not any("ignored" in note for note in scores["notes"])


def answered(tmp_path, corpus, change, name="a.jsonl"):
  """Writes gold answers to the original's prompts, after `change`; returns the file."""
  assert prompts(corpus, tmp_path / "p.jsonl", "--targets", *STYLE, variants=["original"]) == 0
  rows = [{"id": row["id"], "prediction": row["target"]} for row in read(tmp_path / "p.jsonl")]
  return tiny.write_rows(tmp_path / name, change(rows))


def scored(corpus, path):
  found = {"original": path}
  return score_predictions(
    corpus, "test", found, prompt_format=load_format("d3st"), bootstrap_samples=0
  )


def test_an_index_out_of_range_is_counted_and_not_fatal(corpus, tmp_path):
  def change(rows):
    for row in rows[:2]:
      row["prediction"] = row["prediction"].replace("[states]", "[states] 17=x 18=y")
    return rows

  found = scored(corpus, answered(tmp_path, corpus, change))
  assert found.frames["original"].metrics["joint_goal_accuracy"].mean() == 1
  [note] = found.notes
  assert note.startswith("2 of 6 answers for original contain slots or intents that were not in")
  assert "(4 in total); these parts are ignored" in note


@pytest.mark.parametrize(
  ("change", "part"),
  [
    (lambda rows: [*rows, rows[0]], "occurs twice"),
    (lambda rows: [{**row, "id": row["id"].removesuffix("/*")} for row in rows], "line 1: example"),
    (
      lambda rows: [{**row, "id": row["id"].replace("*", "kind")} for row in rows],
      "for a slot",
    ),
    (lambda rows: rows[1:], "1 of 6 frames of original are missing"),
    (lambda rows: [{**rows[0], "prediction": None}], "prediction None"),
  ],
)
def test_ids_that_do_not_fit_are_refused(corpus, tmp_path, change, part):
  with pytest.raises(SgdxError) as error:
    scored(corpus, answered(tmp_path, corpus, change))
  assert part in str(error.value)
  assert error.value.expected
  assert error.value.fix


def test_answers_for_frames_read_as_for_slots_name_the_style(corpus, tmp_path, capsys):
  path = answered(tmp_path, corpus, list)
  assert main(["score", "--corpus", corpus, "--predictions", f"original={path}"]) == 1
  printed = capsys.readouterr().err
  assert (
    "a.jsonl, line 1: an answer for a frame (id 'original/test/1_00000-000-Banks_1/*')" in printed
  )
  assert "--prompt-style format=d3st" in printed


def test_ids_texts_and_targets_are_those_of_the_seqio_tasks(small_sample, tmp_path):
  seqio = pytest.importorskip("seqio")
  from records import records_of

  corpus, args = str(small_sample / "sample"), ("--split", "train", "--targets", *STYLE)
  assert prompts(corpus, tmp_path / "p.jsonl", *args, variants=("original", "v3")) == 0
  rows = {row["id"]: (row["prompt"], row["target"]) for row in read(tmp_path / "p.jsonl")}
  found, keys = {}, ("inputs_pretokenized", "targets_pretokenized")
  with records_of(small_sample / "data"):
    for name in ("sample_d3st_sgd", "sample_d3st_sgdx_v3"):
      task = seqio.get_mixture_or_task(name)
      lengths = {"inputs": 1024, "targets": 128}
      for example in task.get_dataset(lengths, "train", shuffle=False).as_numpy_iterator():
        name = example["example_id_pretokenized"].decode()
        found[name] = tuple(example[key].decode() for key in keys)
        vocabulary = task.output_features["inputs"].vocabulary
        for key, text in zip(("inputs", "targets"), found[name], strict=True):
          assert example[key].tolist() == [*vocabulary.encode(text), 1]
        frame = task.postprocess_fn(found[name][1], example=example)
        gold = task.postprocess_fn("", example=example, is_target=True)
        assert frame.active_intent == gold["active_intent"]
        assert {*frame.slot_values} == {*gold["state"]}
  assert found == rows
  assert len(found) > 400


def test_googles_defects_make_no_tasks():
  pytest.importorskip("seqio")
  for style in (D3stStyle(frames="last"), D3stStyle(cumulate=True)):
    with pytest.raises(SgdxError, match="a task with frames=") as error:
      D3ST(style).examples(None, None, None, schemas=None, variants=())
    assert "sgdx prompts --targets" in error.value.fix


def test_targets_of_t5dst_are_values(corpus, tmp_path):
  assert prompts(corpus, tmp_path / "p.jsonl", "--targets", variants=["v1"]) == 0
  rows = read(tmp_path / "p.jsonl")
  assert list(rows[3]) == ["id", "prompt", "target", "possible_values"]
  gold = {
    row["inputs"]["example_id_pretokenized"]: row["prediction"]
    for row in tiny.example_rows(tiny.GOLD, "v1")
  }
  assert {row["id"]: row["target"] for row in rows} == gold
  assert {ExampleId.parse(row["id"]).unit for row in rows} == {"slot"}


def test_the_page_shows_what_is_written(tmp_path):
  """docs/formats.md shows a frame of the sample, with line breaks."""
  text = " ".join((DOCS / "formats.md").read_text().split())
  for style in ((), ("format=d3st",)):
    args = ("--targets", "--prompt-style", *(style or ("values=list",)))
    assert prompts("sample", tmp_path / "p.jsonl", *args, variants=["original"]) == 0
    rows = [row for row in read(tmp_path / "p.jsonl") if "/1_00016-002-Ferries_1/" in row["id"]]
    row = rows[0]
    assert row["id"] in text
    assert row["prompt"] in text
    assert all(row["target"] in text for row in rows)
