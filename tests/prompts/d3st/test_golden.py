"""D3ST's text equals that of Google's script, byte for byte, on real dialogues.

`../shared/golden/d3st` has the output of create_sgd_schemaless_data.py (google-research/
task-oriented-dialogue 34339b9), with its flags in FLAGS.txt.
"""

import gzip

import pytest
from shared import shared_file

from sgdx_t5x.corpus.dialogue import read_dialogues
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.prompts.d3st import D3ST, D3stStyle
from sgdx_t5x.prompts.protocol import service_pairs
from sgdx_t5x.prompts.rows import dialogue_rows

pytestmark = pytest.mark.real

GOOGLES = {"order": "schema", "frames": "last", "cumulate": True, "join": " | "}
FLAGS = {
  "level": {"dst": {"level": "states"}, "dst_intent": {}},
  "data_format": {"full_desc": {}, "item_name": {"description": "name"}},
  "multiple_choice": {value: {"values": value} for value in ("none", "a", "1a")},
}
DEFAULTS = {"level": "dst", "data_format": "full_desc", "multiple_choice": "none"}
VARIANTS = {"orig": "original", "v1": "v1", "v5": "v5"}
# The script's own test data: dialogues of SGD's train split.
OF_THE_SCRIPT = {
  "state_tracking/testdata/sgd_train.json": ("original", "train"),
  "state_tracking/testdata/sgd_train_categorical.json": ("original", "train"),
}


def sets():
  """Returns name -> (variant, split, style) of each golden set."""
  found = {}
  for line in shared_file("golden/d3st/FLAGS.txt").read_text().splitlines():
    name, data, flags = map(str.strip, line.split("|"))
    given = dict(flag.removeprefix("--").split("=", 1) for flag in flags.split() if "=" in flag)
    given = {**DEFAULTS, **given}
    style = {**GOOGLES}
    for flag, styles in FLAGS.items():
      style |= styles[given[flag]]
    if data in OF_THE_SCRIPT:
      variant, split = OF_THE_SCRIPT[data]
    else:
      schema, split = data.split()
      variant = VARIANTS[schema]
    found[name] = (variant, split, D3stStyle(**style))
  repaired = D3stStyle(order="schema")
  return {**found, "real_test_orig.repaired": ("original", "test", repaired)}


def golden_rows(name):
  path = shared_file("golden/d3st/FLAGS.txt").parent
  [file] = path.glob(f"{name}.tsv*")
  text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
  return [line.split("\t") for line in text.decode().splitlines()]


@pytest.fixture(scope="module")
def dialogues(real_archive):
  """Split -> id -> dialogue, from the files of those that occur in a golden set."""
  corpus, files = open_corpus(real_archive), {}
  for name, (_, split, _) in sets().items():
    numbers = {int(row[2].partition("_")[0]) for row in golden_rows(name)}
    files.setdefault(split, set()).update(f"{split}/dialogues_{n:03}.json" for n in numbers)
  return {
    split: {d.dialogue_id: d for n in names for d in read_dialogues(corpus.source.read(n), n)}
    for split, names in files.items()
  }


def written(prompt_format, dialogue, split, variant, corpus):
  """Returns a dialogue's rows as the script writes them, with a space before the tab."""
  services = {variant: service_pairs(corpus.schema(split), corpus.schema(split, variant))}
  found = []
  for row in dialogue_rows(prompt_format, dialogue, split, services, targets=True):
    _, _, frame, _ = row["id"].split("/")
    name, turn, service = frame.split("-")
    names = [f.service for f in dialogue.turns[int(turn)].frames]
    index = str(names.index(service))
    found.append([f"{row['prompt']} ", row["target"], name, str(int(turn)), index])
  return found


def test_every_row_equals_that_of_the_script(real_archive, dialogues):
  corpus = open_corpus(real_archive)
  num_rows = 0
  for name, (variant, split, style) in sets().items():
    expected = golden_rows(name)
    found = []
    for dialogue_id in dict.fromkeys(row[2] for row in expected):
      dialogue = dialogues[split][dialogue_id]
      found += written(D3ST(style), dialogue, split, variant, corpus)
    assert len(found) == len(expected), name
    for row, right in zip(found, expected, strict=True):
      assert row == right, (name, right[2:])
    num_rows += len(found)
  assert num_rows == 3 * 29 + 3 * 43 + 5 * 93 + 2 * 13 + 8
