"""`sgdx checkdst perturb`: the corpus that it writes, and what it refuses."""

import json
import pathlib
import shutil

import pytest
from commands import assert_four_parts, next_command, sgdx
from once import made_once
from perturbed import on_split, sample_dialogues, sample_split
from sample_folder import write_sample
from undo import undone_files

from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.papers.checkdst.changes import read_changes

KINDS = ("ned", "pi", "sdi", "vs")
PERTURB = ("checkdst", "perturb")
VERIFY = ("checkdst", "verify")


@pytest.fixture(scope="module")
def perturbed(tmp_path_factory):
  def make(folder):
    for kind in KINDS:
      assert sgdx(*PERTURB, kind, "--corpus", "sample", "--out", folder / kind) == 0

  return made_once(tmp_path_factory, "perturbed-sample", make)


def _files(folder: pathlib.Path) -> dict[str, bytes]:
  return {
    p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()
  }


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_a_corpus_of_the_official_layout(perturbed, kind):
  corpus = open_corpus(perturbed / kind)
  sample = open_corpus("sample")
  assert corpus.name == f"sample+{kind}"
  assert corpus.perturbed("test") == (kind,)
  assert corpus.variants == sample.variants
  assert corpus.is_complete("test", 160)
  assert not corpus.is_complete("test", 159)
  for variant in sample.variants:
    name = "test/schema.json" if variant == "original" else f"sgd_x/data/{variant}/test/schema.json"
    if variant.startswith("bt_"):
      name = f"back_translations/{variant[3:]}/test/schema.json"
    assert (perturbed / kind / name).read_bytes() == sample.source.read(name)
  manifest = corpus.manifest("test")
  assert manifest.of == {"corpus": "sample", "checksum": sample.checksum()}
  assert (manifest.kind, manifest.seed, manifest.scored) == (kind, 0, "all")
  assert manifest.counts["frames_changed"] > 400
  size = sum(len(x) for name, x in _files(perturbed / kind).items() if "dialogues" in name)
  assert len((perturbed / kind / "test/changes.jsonl").read_bytes()) < 0.15 * size
  assert set(read_changes(corpus, "test")) <= {d["dialogue_id"] for d in sample_dialogues()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_bytes(perturbed, kind, tmp_path):
  assert sgdx(*PERTURB, kind, "--corpus", "sample", "--out", tmp_path / kind) == 0
  assert _files(tmp_path / kind) == _files(perturbed / kind)


@pytest.mark.parametrize("kind", KINDS)
def test_undoing_the_changes_gives_every_byte_back(perturbed, kind):
  original = sample_split().corpus.source
  [(name, content)] = undone_files(open_corpus(perturbed / kind), "test")
  assert content == original.read(name)


@pytest.mark.parametrize("kind", KINDS)
def test_verify_against_the_original(perturbed, kind, capsys):
  assert sgdx(*VERIFY, "--corpus", perturbed / kind, "--against", "sample") == 0
  printed = capsys.readouterr().out
  assert f"all invariants of {kind} hold" in printed
  assert "160 dialogues" in printed
  assert "0 are not said" in printed


def test_what_the_command_says_next_works(tmp_path, capsys):
  out = tmp_path / "sdi"
  assert sgdx(*PERTURB, "sdi", "--corpus", "sample", "--out", out) == 0
  printed = capsys.readouterr().out
  assert "frames changed" in printed
  assert sgdx(*next_command(printed)[1:]) == 0
  assert "all invariants of sdi hold" in capsys.readouterr().out


def _tamper(folder: pathlib.Path, perturbed: pathlib.Path, old: str, new: str) -> pathlib.Path:
  for name, content in _files(perturbed).items():
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    if name == "test/dialogues_001.json":
      assert old in content.decode()
      content = content.decode().replace(old, new, 1).encode()
    (folder / name).write_bytes(content)
  return folder


_SYSTEM = sample_dialogues()[0]["turns"][1]["utterance"]


@pytest.mark.parametrize(
  ("old", "new"), [('": "True"', '": "False"'), (_SYSTEM, f"Well, {_SYSTEM}")]
)
def test_a_changed_corpus_is_found_by_against(perturbed, tmp_path, capsys, old, new):
  folder = _tamper(tmp_path / "sdi", perturbed / "sdi", old, new)
  assert sgdx(*VERIFY, "--corpus", folder, "--against", "sample") == 1
  assert_four_parts(capsys.readouterr().err, "dialogue")


@pytest.mark.parametrize("kind", ["ned", "vs"])
@pytest.mark.parametrize(
  "change",
  [
    lambda turns: turns[1].update(utterance=f"{turns[1]['utterance']} Well."),
    lambda turns: turns.pop(),
  ],
  ids=["words", "turn"],
)
def test_what_changed_besides_values_is_found_by_against(perturbed, tmp_path, capsys, kind, change):
  """Regression: anything could change in a dialogue with replaced values."""
  folder = shutil.copytree(perturbed / kind, tmp_path / kind)
  path = folder / "test/dialogues_001.json"
  data = json.loads(path.read_text())
  change(data[0]["turns"])
  path.write_text(json.dumps(data))
  assert sgdx(*VERIFY, "--corpus", folder, "--against", "sample") == 1
  assert_four_parts(capsys.readouterr().err, f"dialogue {data[0]['dialogue_id']}: it differs")


def test_another_original_is_refused(perturbed, capsys):
  assert sgdx(*VERIFY, "--corpus", perturbed / "ned", "--against", perturbed / "pi") == 1
  assert_four_parts(capsys.readouterr().err, "checksum", "the corpus that was perturbed")
  assert sgdx(*VERIFY, "--corpus", "sample", "--against", perturbed / "pi") == 1
  assert_four_parts(capsys.readouterr().err, "was not perturbed")


def test_a_perturbed_corpus_is_not_perturbed_again(perturbed, tmp_path, capsys):
  command = (*PERTURB, "sdi", "--corpus", perturbed / "ned", "--out", tmp_path / "both")
  assert sgdx(*command) == 2
  assert_four_parts(capsys.readouterr().err, "already perturbed (ned)")
  assert not (tmp_path / "both").exists()


def test_a_set_within_the_corpus_has_its_schemas_alone(tmp_path):
  """Regression: it also got the schemas of other sets in there, and of its own temporary folder."""
  corpus = write_sample(tmp_path / "corpus", {"train": 0, "dev": 0, "test": 3})
  for name in ("one", "two"):
    out = corpus / "perturbed" / name
    assert sgdx(*PERTURB, "sdi", "--corpus", corpus, "--out", out) == 0
  assert _files(corpus / "perturbed/two") == _files(corpus / "perturbed/one")


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
  ("kind", "options", "code", "words"),
  [
    ("ned", ("--split", "valid"), 1, ("valid", "train, dev, test")),
    ("sdi", ("--entities", "names"), 2, ("sdi has no option --entities", "ned")),
    ("ned", ("--provider", "exchange"), 2, ("ned has no option --provider", "pi")),
  ],
)
def test_wrong_options_write_nothing(kind, options, code, words, tmp_path, capsys):
  out = tmp_path / "out"
  assert sgdx(*PERTURB, kind, "--corpus", "sample", *options, "--out", out) == code
  assert_four_parts(capsys.readouterr().err, *words)
  assert not out.exists()


def test_a_folder_with_something_in_it_is_kept(tmp_path, capsys):
  (tmp_path / "note.txt").write_text("mine")
  assert sgdx(*PERTURB, "ned", "--corpus", "sample", "--out", tmp_path) == 1
  assert_four_parts(capsys.readouterr().err, "not empty")
  assert _files(tmp_path) == {"note.txt": b"mine"}


def _without(key: str) -> list[dict]:
  found = sample_dialogues()[:5]
  for data in found:
    for turn in data["turns"]:
      for frame in turn["frames"]:
        frame[key] = []
        if key == "actions":
          del frame[key]
  return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_corpus_without_spans_is_refused_with_what_is_needed(kind, tmp_path, capsys):
  split = on_split(_without("slots"), sample_split(), tmp_path / "corpus")
  out = tmp_path / "out"
  assert sgdx(*PERTURB, kind, "--corpus", split.corpus.origin, "--out", out) == 1
  error = capsys.readouterr().err
  assert_four_parts(error, "has no spans")
  assert "choose" not in error  # no other kind does without
  assert not out.exists()


@pytest.mark.parametrize(
  ("kind", "code"), [("ned", 0), ("vs", 0), ("sdi", 0), ("pi", 1), ("pi-templates", 1)]
)
def test_without_acts_the_kinds_that_need_none_work(kind, code, tmp_path, capsys):
  split = on_split(_without("actions"), sample_split(), tmp_path / "corpus")
  kind, _, provider = kind.partition("-")
  options = ("--provider", provider) if provider else ()
  command = (*PERTURB, kind, "--corpus", split.corpus.origin, *options)
  assert sgdx(*command, "--out", tmp_path / "out") == code
  if code:
    assert_four_parts(capsys.readouterr().err, "has no user acts", "choose ned, vs or sdi")


def test_a_split_without_dialogues_is_refused(tmp_path, capsys):
  split = on_split([], sample_split(), tmp_path / "corpus")
  command = (*PERTURB, "ned", "--corpus", split.corpus.origin)
  assert sgdx(*command, "--out", tmp_path / "out") == 1
  assert_four_parts(capsys.readouterr().err, "has no dialogues")


def test_dialogues_with_the_same_id_are_refused(tmp_path, capsys):
  """Their changes could not be told apart."""
  first, second, *_ = sample_dialogues()
  split = on_split([first, second, first], sample_split(), tmp_path / "corpus")
  command = (*PERTURB, "ned", "--corpus", split.corpus.origin)
  assert sgdx(*command, "--out", tmp_path / "out") == 1
  assert_four_parts(capsys.readouterr().err, f"{first['dialogue_id']} occurs twice")


def test_broken_manifests_and_changes_are_said(perturbed, tmp_path, capsys):
  folder = _tamper(tmp_path / "ned", perturbed / "ned", "Thank", "Thank")
  verify = (*VERIFY, "--corpus", folder, "--against", "sample")
  lines = (folder / "test/changes.jsonl").read_text().splitlines(keepends=True)
  for text in ("nothing\n", '{"turn": 3}\n', "".join(lines) + lines[0].replace('"1_', '"99_', 1)):
    (folder / "test/changes.jsonl").write_text(text)
    assert sgdx(*verify) == 1
    assert_four_parts(capsys.readouterr().err, "changes")
  (folder / "test/changes.jsonl").unlink()
  assert sgdx(*verify) == 1
  assert_four_parts(capsys.readouterr().err, "changes.jsonl")
  manifest = folder / "test/perturbation.json"
  for text in ("{}", "[]", '{"of": {"corpus": "x"}, "kind": "ned"}', "{"):
    manifest.write_text(text)
    assert sgdx(*verify) == 1
    assert_four_parts(capsys.readouterr().err, "perturbation.json")


@pytest.mark.parametrize(
  ("change", "words"),
  [
    ({"of": {"corpus": "sample"}}, "checksum None"),
    ({"counts": {"dialogues": float("inf")}}, "perturbation.json: "),
  ],
)
def test_manifests_of_the_wrong_shape_are_said(perturbed, change, words, tmp_path, capsys):
  folder = _tamper(tmp_path / "ned", perturbed / "ned", "Thank", "Thank")
  manifest = folder / "test/perturbation.json"
  manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **change}))
  assert sgdx(*VERIFY, "--corpus", folder, "--against", "sample") == 1
  assert_four_parts(capsys.readouterr().err, words)
