"""Tables: how numbers are written, and `--format` of every command that prints them."""

import contextlib
import csv
import io
import json
import os
import pty
import re
import subprocess
import sys

import pytest
import tiny_corpus as tiny

from sgdx_t5x.cli import main, output
from sgdx_t5x.tables import (
  Number,
  Table,
  count,
  csv_lines,
  latex,
  markdown,
  p_value,
  percent,
  points,
)

ODD = Table(
  "a_b, 50% of $x & {y}",
  ("", "JGA #1", "note"),
  (
    ("v1-5 <b>|", percent(0.7264), "~ ^ \\ p<.001"),
    ("[x]", points(-0.0864), "2\nlines"),
    ("  indented", percent(None), "plain"),
  ),
)

# --- cells ---------------------------------------------------------------------------------


def test_numbers_are_shown_as_in_the_paper():
  """Table 2 of the paper has T5DST at 72.6; signs of differences as `sgdx diff` writes them."""
  assert [str(percent(x)) for x in (0.7264, 1.0, 0.0, None)] == ["72.6", "100.0", "0.0", "-"]
  texts = [str(points(x)) for x in (0.0249, -0.0864, 0.0, -0.0001, 0.0004, None)]
  assert texts == ["+2.5", "-8.6", "0.0", "0.0", "0.0", "-"]
  assert [str(count(x)) for x in (42297, 0, None)] == ["42,297", "0", "-"]
  assert [str(p_value(x)) for x in (1.0, 0.0316, 0.0004, None)] == ["1.000", "0.032", "<.001", "-"]
  assert str(p_value(2 / 1001, 1000)) == "<=.002"  # where 1,000 samples end
  assert [str(p_value(x, 1000)) for x in (0.002997, 0.0004)] == ["0.003", "<.001"]
  assert [str(percent(x)) for x in (-0.0001, -0.0006)] == ["0.0", "-0.1"]
  assert (percent(0.7264).value, count(42297).value, points(None).value) == (0.7264, 42297, None)


def test_latex_escapes_what_tex_would_read():
  text = latex(ODD, "PARTIAL: 1 of 2. ")
  assert r"\caption{PARTIAL: 1 of 2. a\_b, 50\% of \$x \& \{y\}}" in text
  assert r"v1-5 $<$b$>$$|$ & 72.6 & \textasciitilde{} \textasciicircum{} \textbackslash{}" in text
  assert "\n{}[x] & $-$8.6 & " in text  # a bracket after \\ would be its optional argument
  empty = latex(Table("t", ("", "x"), ()))
  assert "\n\n" not in empty  # a blank line would begin a row, where no rule is allowed


def test_markdown_and_csv_survive_odd_texts():
  lines = markdown(ODD).splitlines()
  assert lines[2:5] == [
    "|  | JGA #1 | note |",
    "| --- | ---: | ---: |",
    "| v1-5 \\<b>\\| | 72.6 | ~ ^ \\ p<.001 |",
  ]
  assert "| [x] | -8.6 | 2 lines |" in lines
  found = list(csv.reader(io.StringIO(csv_lines([ODD]))))
  assert found[0] == ["table", "row", "column", "value"]
  assert [ODD.title, "v1-5 <b>|", "JGA #1", "0.7264"] in found
  assert [ODD.title, "[x]", "note", "2\nlines"] in found
  assert [ODD.title, "indented", "JGA #1", ""] in found


# --- printing ------------------------------------------------------------------------------


def printed(capsys, form, *shown, **kwargs):
  output.show(form, shown, {"x": 1}, **kwargs)
  return capsys.readouterr().out


@pytest.mark.parametrize("form", output.FORMATS)
def test_partial_and_signatures_are_in_every_format(capsys, form):
  said = {"warnings": ["1 of 6"], "heading": ["B b.json"], "notes": ["a note"]}
  table = Table("t (%)", ("", "x"), (("all", percent(0.5)),))
  out = printed(capsys, form, table, signatures={"A": "sgdx|a"}, **said)
  start, end = {
    "text": ("PARTIAL: 1 of 6\nB b.json\n\n", "\na note\nPARTIAL signature A: sgdx|a\n"),
    "md": ("**PARTIAL**: 1 of 6\n\nB b.json\n\n", "a note\n\n`PARTIAL signature A: sgdx|a`\n"),
    "latex": (
      "\\begin{table}\n\\caption{PARTIAL: 1 of 6. t (\\%)}\n",
      "% B b.json\n% a note\n% PARTIAL: 1 of 6. signature A: sgdx|a\n",
    ),
    "csv": (
      "table,row,column,value\nabout,PARTIAL,text,1 of 6\nabout,signature A,text,sgdx|a\n",
      "t,all,x,0.5\n",
    ),
    "json": ('{\n  "x": 1\n}\n', ""),
  }[form]
  assert out.startswith(start)
  assert out.endswith(end)


def test_text_is_aligned_and_no_number_is_cut(capsys, monkeypatch):
  monkeypatch.setenv("COLUMNS", "40")  # less than any table needs
  long = Table("long", ("", "x", "note"), (("name", Number(1, "1" * 30), "word " * 20),))
  [title, header, *rows] = printed(capsys, "text", long).splitlines()
  assert max(map(len, [title, header, *rows])) == 80
  assert rows[0].startswith(f"name {'1' * 30} ")
  assert sum(row.count("word") for row in rows) == 20
  lines = printed(capsys, "text", Table("t", ("", "x"), (("a", count(5)), ("b", count(1000)))))
  assert lines.splitlines()[2:4] == ["a     5 ", "b 1,000 "]
  lines = printed(capsys, "text", Table("t", ("", "x"), (("a", "b"), ("c", "long")), left=2))
  assert lines.splitlines()[2] == "a b    "
  none = printed(capsys, "text", Table("nothing, in so many words", ("", "x"), ()))
  assert none == "nothing, in so many words\n\n"
  markup = Table("[bold]t[/bold] :tada:", ("", "x"), (("[red]a[/red]", ":x:"),))
  for word in ("[bold]t[/bold] :tada:", "[red]a[/red]", ":x:"):
    assert word in printed(capsys, "text", markup)


def on_a_terminal(**environment):
  """What a terminal gets of a PARTIAL table."""
  code = "from sgdx_t5x.cli.output import *; "
  code += "show('text', [Table('t', ('', 'x'), (('a', 'b'),))], {}, warnings=['w'])"
  ours, theirs = pty.openpty()
  env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
  env |= {"TERM": "xterm-256color", **environment}
  subprocess.run([sys.executable, "-c", code], stdout=theirs, env=env, check=True)
  os.close(theirs)
  found = b""
  with contextlib.suppress(OSError), open(ours, "rb", buffering=0) as file:
    while piece := file.read(10_000):  # reading raises once all writers are gone
      found += piece
  return found.decode()


def test_a_terminal_gets_colour_unless_it_wants_none():
  assert "\x1b[1;31mPARTIAL: w" in on_a_terminal()
  plain = on_a_terminal(NO_COLOR="1")
  assert "PARTIAL: w" in plain
  assert "\x1b" not in plain


# --- every command -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
  """Commands that print tables, on tiny_corpus, which is read without TensorFlow."""
  root = tmp_path_factory.mktemp("tables")
  corpus = str(tiny.write_corpus(root / "tiny"))
  pairs = [
    f"{v}={tiny.write_dialogues(root / v, tiny.GOLD, v)}" for v in ("original", *tiny.VARIANTS)
  ]
  score = ["score", "--corpus", corpus, "--predictions", *pairs]
  frames = str(root / "a.jsonl")
  assert main([*score, "--per-frame", frames]) == 0
  return {
    "score": score,
    "diff": ["diff", frames, frames, "--bootstrap-samples", "100"],
    "stats": ["stats", "--corpus", corpus],
    "data stats": ["data", "stats", "--corpus", corpus],
  }


def check_markdown(text):
  for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
    lines = block.splitlines()
    assert set(lines[1]) <= set("|-: ")
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def check_latex(text):
  assert text.count(r"\begin{table}") == text.count(r"\end{table}") > 0
  bodies = re.findall(r"\\begin\{tabular\}\{(l+r*)\}\n\\toprule\n(.*?)\\end\{tabular\}", text, re.S)
  assert len(bodies) == text.count(r"\begin{table}")
  for columns, body in bodies:
    header, rule, *rows, last = body.splitlines()
    assert (rule, last) == (r"\midrule", r"\bottomrule")
    for row in (header, *rows):
      assert row.endswith(r" \\")
      assert len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1
  shown = [line for line in text.splitlines() if not line.startswith("%")]
  assert not [line for line in shown if re.search(r"(?<!\\)[%#_~^<>|]", line.replace("$<$", ""))]


NAMES = ("score", "diff", "stats", "data stats")


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_all_formats(commands, capsys, name):
  capsys.readouterr()
  out = {}
  for form in output.FORMATS:
    assert main([*commands[name], "--format", form]) == 0
    out[form] = capsys.readouterr().out
    assert "\x1b" not in out[form]
  check_markdown(out["md"])
  check_latex(out["latex"])
  header, *rows = csv.reader(io.StringIO(out["csv"]))
  assert header == ["table", "row", "column", "value"]
  assert {len(row) for row in rows} == {len(header)}
  data = json.loads(out["json"])
  assert re.fullmatch(r"sgdx-[a-z-]+/\d", data["format"])
  if name in ("score", "stats", "data stats"):
    assert all(data["signature"] in text for text in out.values())
  if name == "diff":
    assert all(data[x]["signature"] in text for text in out.values() for x in ("a", "b"))


def numbers(commands, capsys, name):
  """Returns the CSV's mapping from (table, row, column) to value, and the JSON."""
  capsys.readouterr()
  assert main([*commands[name], "--format", "csv"]) == 0
  _, *rows = csv.reader(io.StringIO(capsys.readouterr().out))
  assert len({tuple(row[:3]) for row in rows}) == len(rows)  # no two cells have the same name
  assert main([*commands[name], "--format", "json"]) == 0
  return {tuple(row[:3]): row[3] for row in rows}, json.loads(capsys.readouterr().out)


def test_csv_has_fractions(commands, capsys):
  """Neither percent nor rounded, as in JSON."""
  cells, data = numbers(commands, capsys, "diff")
  title = "unseen: joint_goal_accuracy, 2 frames, 2 dialogues"
  found = data["rows"]["unseen"]["differences"]["jga_orig"]
  assert float(cells[title, "original", "A"]) == found["a"] == 1.0
  assert [float(cells[title, "original", f"95% {x}"]) for x in ("low", "high")] == found["ci95"]
  cells, data = numbers(commands, capsys, "stats")
  row = data["sets"][0]["variants"]["v1"]
  assert float(cells["SGD-X", "v1", "indel"]) == row["indel_distance"]
  assert float(cells["SGD-X", "v1", "intents"]) == row["intent_names_in_train"] == 1.0
  cells, data = numbers(commands, capsys, "data stats")
  share = cells["dialogues", "dialogues with an unseen service", "test"]
  assert float(share) == data["splits"]["test"]["unseen_dialogues"] == pytest.approx(2 / 3)
  assert cells["dialogues", "turns", "SGD paper, train"] == "329964"
