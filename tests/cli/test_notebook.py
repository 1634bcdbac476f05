"""The example notebook runs from top to bottom, and is stored without outputs."""

import json

from places import ROOT

NOTEBOOK = ROOT / "docs/scores.ipynb"


def test_the_notebook_runs(capsys):
  cells = [c for c in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if c["cell_type"] == "code"]
  assert len(cells) > 4
  names = {}
  for cell in cells:
    assert not cell["outputs"]
    assert cell["execution_count"] is None
    exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
  lines = capsys.readouterr().out.splitlines()
  assert [line.split()[0] for line in lines] == ["named", "nothing"]
  assert names["scored"]["named"].scored.warnings
  assert set(names["compared"].report["rows"]) >= {"all", "seen", "unseen"}
