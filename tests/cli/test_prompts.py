"""`sgdx prompts`: the task's ids and texts, nothing of the gold, samples of whole dialogues."""

import collections
import json

import pytest
import tiny_corpus as tiny
from commands import next_command, sgdx_process
from hypothesis import given
from hypothesis import strategies as st

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.example_id import ExampleId
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.schema import Intent, Service, Slot
from sgdx_t5x.prompts.protocol import ServicePair
from sgdx_t5x.prompts.selection import choose_dialogues
from sgdx_t5x.prompts.t5dst import T5DST, PromptStyle

ALL = ("original", *tiny.VARIANTS)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
  return str(tiny.write_corpus(tmp_path_factory.mktemp("tiny")))


def prompts(corpus, out, *args, variants=("v3",)):
  """Returns the exit code."""
  return main(
    ["prompts", "--corpus", str(corpus), "--variant", *variants, "--out", str(out), *args]
  )


def read(path):
  return [json.loads(line) for line in path.read_text().splitlines()]


def frames_of(rows):
  """Maps each variant to its frames, in order."""
  found = collections.defaultdict(dict)
  for row in rows:
    variant, _, frame, _ = row["id"].split("/")
    found[variant][frame] = None
  return {variant: list(frames) for variant, frames in found.items()}


# --- rows ----------------------------------------------------------------------------------


def test_ids_and_texts_are_those_of_the_seqio_tasks(small_sample, tmp_path):
  seqio = pytest.importorskip("seqio")
  from records import records_of

  corpus, variants = small_sample / "sample", ("original", "v3")
  assert prompts(corpus, tmp_path / "p.jsonl", variants=variants) == 0
  found = {row["id"]: row["prompt"] for row in read(tmp_path / "p.jsonl")}
  expected = {}
  with records_of(small_sample / "data"):
    for name in ("sample_t5dst_sgd", "sample_t5dst_sgdx_v3"):
      task = seqio.get_mixture_or_task(name)
      for example in task.get_dataset(None, "test", shuffle=False).as_numpy_iterator():
        key = example["example_id_pretokenized"].decode()
        expected[key] = example["inputs_pretokenized"].decode()
  assert found == expected
  assert len(read(tmp_path / "p.jsonl")) == len(expected) > 200


def test_rows_by_hand(corpus, tmp_path):
  """v3 calls `kind` by the original name of another slot; `balance` is not asked for."""
  assert prompts(corpus, tmp_path / "p.jsonl") == 0
  rows = read(tmp_path / "p.jsonl")
  assert len(rows) == 3 * 3 + (3 + 2) + 2  # by dialogue
  said = "[USER] user turn 0 of 1_00000 [SYSTEM] answer 0 [USER] user turn 1 of 1_00000"
  assert rows[3:5] == [
    {
      "id": "v3/test/1_00000-002-Banks_1/kind",
      "prompt": f"{said} [domain] Banks [slot] amount kind said like v3 [PVs] Checking, Savings",
      "possible_values": ["Checking", "Savings"],
    },
    {
      "id": "v3/test/1_00000-002-Banks_1/to",
      "prompt": f"{said} [domain] Banks [slot] to v3 to said like v3",
    },
  ]


def test_a_style_changes_slots_texts_and_answers(corpus, tmp_path):
  style = ("values=letters", "slots=all", "lowercase=true", "slot_name=false")
  assert prompts(corpus, tmp_path / "p.jsonl", "--prompt-style", *style) == 0
  rows = read(tmp_path / "p.jsonl")
  assert len(rows) == 4 * 3 + (4 + 2) + 2
  assert rows[0]["prompt"].endswith(
    "[domain] banks [slot] kind said like v3 a) checking b) savings"
  )
  assert rows[0]["possible_values"] == ["a", "b"]


@pytest.mark.parametrize("style", [{}, {"values": "letters"}, {"lowercase": True}])
def test_answers_offered_are_read_as_the_values_they_stand_for(style):
  """SGD's Media_2 has a value "None", which must not be read as "none"."""
  style, values = PromptStyle(**style), ("None", "English")
  slot = Slot("subtitles", "Language of subtitles", True, values)
  intent = Intent("Play", "Play it", True, ("subtitles",), {}, ())
  service = Service("Media_2", "Films", (slot,), (intent,))
  pair, prompts = ServicePair(service, service), T5DST(style)
  example = ExampleId("original", "test", "1_00000-000-Media_2")
  [prompt] = prompts.prompts(example, pair, (("USER", "A film"),))
  answers = prompt.row["possible_values"]
  example = example.with_slot("subtitles")
  assert tuple(prompts.read(answer, example, pair) for answer in answers) == values


def test_rows_say_nothing_of_the_gold(corpus, tmp_path, monkeypatch):
  """Emptying all states does not change a byte."""
  assert prompts(corpus, tmp_path / "p.jsonl", "--limit", "2", variants=ALL) == 0
  empty = {
    i: [{service: {} for service in turn} for turn in turns] for i, turns in tiny.GOLD.items()
  }
  monkeypatch.setattr(tiny, "GOLD", empty)
  other = tiny.write_corpus(tmp_path / "empty")
  assert prompts(other, tmp_path / "q.jsonl", "--limit", "2", variants=ALL) == 0
  assert (tmp_path / "p.jsonl").read_bytes() == (tmp_path / "q.jsonl").read_bytes()


@pytest.mark.parametrize(("limit", "num_frames"), [(None, 6), (1, 3)])
def test_right_answers_score_one(corpus, tmp_path, capsys, limit, num_frames):
  """The scoring command that it prints is run."""
  gold = {
    row["inputs"]["example_id_pretokenized"]: row["prediction"]
    for variant in ALL
    for row in tiny.example_rows(tiny.GOLD, variant)
  }
  args = ["--limit", str(limit)] if limit else []
  assert prompts(corpus, tmp_path / "p.jsonl", *args, variants=ALL) == 0
  ids = [row["id"] for row in read(tmp_path / "p.jsonl")]
  assert len(set(ids)) == len(ids) == (9 * 6 if limit else len(gold))
  answers = tmp_path / "answers.jsonl"
  answers.write_text("".join(json.dumps({"id": i, "prediction": gold[i]}) + "\n" for i in ids))
  printed = capsys.readouterr().err
  assert printed.startswith("written: ")
  command = [word.replace("ANSWERS.jsonl", str(answers)) for word in next_command(printed)[1:]]
  assert main([*command, "--json", str(tmp_path / "s.json")]) == 0
  report = json.loads((tmp_path / "s.json").read_text())
  row = report["sgdx"]["all"]
  assert (row["num_frames"], row["jga_orig"], row["jga_v1_5"]) == (num_frames, 1.0, 1.0)
  assert report["complete"] is (limit is None)


# --- samples -------------------------------------------------------------------------------


samples = st.lists(
  st.dictionaries(st.sampled_from("ABCDE"), st.integers(1, 12), max_size=3), max_size=40
).map(lambda drawn: {f"d{i}": frames for i, frames in enumerate(drawn)})


@given(samples, st.integers(1, 50), st.integers(), st.randoms(use_true_random=False))
def test_a_sample_has_its_size_and_a_larger_one_holds_it(frames, number, seed, random):
  """Of dialogues that have frames, whatever their order."""
  chosen = choose_dialogues(frames, number, seed)
  assert len(chosen) == min(number, sum(map(bool, frames.values())))
  assert all(frames[name] for name in chosen)
  names = list(frames)
  random.shuffle(names)
  assert choose_dialogues({name: frames[name] for name in names}, number, seed) == chosen
  assert chosen <= choose_dialogues(frames, number + 1, seed)


@given(st.integers(1, 9), st.integers(2, 12), st.integers(1, 400), st.integers())
def test_a_sample_is_spread_over_services(length, num_services, number, seed):
  """For dialogues of one service and one length, counts per service differ by at most one."""
  frames = {f"{s}_{i}": {f"S{s}": length} for s in range(num_services) for i in range(50)}
  chosen = choose_dialogues(frames, number, seed)
  assert len(chosen) == min(number, len(frames))
  counts = collections.Counter(name.split("_")[0] for name in chosen)
  found = [counts[str(s)] for s in range(num_services)]
  assert max(found) - min(found) <= 1


def test_a_seed_means_the_same_everywhere():
  """The greatest hash is first; sha256sum of 0/d0 ... 0/d3: 2a02..., 617e..., 480f..., 55b3..."""
  frames = {f"d{i}": {"A": 1} for i in range(4)}
  assert choose_dialogues(frames, 1, seed=0) == {"d1"}
  assert choose_dialogues(frames, 2, seed=0) == {"d1", "d3"}
  assert len({choose_dialogues(frames, 1, seed) for seed in range(40)}) == 4


def test_a_sample_of_the_sample(tmp_path, capsys):
  """Whole dialogues, the same in every variant and format, and every service."""
  args = ("--limit", "40", "--seed", "7")
  assert prompts("sample", tmp_path / "p.jsonl", *args, variants=ALL) == 0
  rows = read(tmp_path / "p.jsonl")
  frames = frames_of(rows)
  assert list(frames) == list(ALL)
  assert all(found == frames["original"] for found in frames.values())
  chosen = {frame.split("-")[0] for frame in frames["v1"]}
  assert len(chosen) == 40
  whole = [
    f"{dialogue.dialogue_id}-{turn:03d}-{frame.service}"
    for dialogue in open_corpus("sample").dialogues("test")
    for turn, frame in dialogue.user_frames()
    if dialogue.dialogue_id in chosen
  ]
  assert frames["v1"] == whole
  counts = collections.Counter(frame.rsplit("-", 1)[1] for frame in whole)
  assert set(counts) == set(open_corpus("sample").schema("test").names)
  assert max(counts.values()) <= 4 * min(counts.values())  # a dialogue may bring a second service
  assert f"{len(whole)} frames, {len(chosen)} of 160 dialogues of test" in capsys.readouterr().err
  # Another variant, another format: the same frames. Another seed: others.
  assert prompts("sample", tmp_path / "q.jsonl", *args, variants=["bt_ja"]) == 0
  assert frames_of(read(tmp_path / "q.jsonl")) == {"bt_ja": whole}
  assert prompts("sample", tmp_path / "q.jsonl", *args, "--prompt-style", "format=d3st") == 0
  assert frames_of(read(tmp_path / "q.jsonl"))["v3"] == whole
  assert prompts("sample", tmp_path / "q.jsonl", "--limit", "40") == 0
  assert frames_of(read(tmp_path / "q.jsonl"))["v3"] != whole


def test_dialogues_can_be_named(corpus, tmp_path):
  out, names = tmp_path / "p.jsonl", ["2_00000", "1_00000"]
  assert prompts(corpus, out, "--dialogue", *names) == 0
  frames = frames_of(read(out))["v3"]
  assert list(dict.fromkeys(frame.split("-")[0] for frame in frames)) == ["1_00000", "2_00000"]


def test_an_option_of_several_values_may_be_repeated(corpus, tmp_path):
  out = tmp_path / "p.jsonl"
  assert prompts(corpus, out, "--variant", "v1", "v2") == 0
  assert {*frames_of(read(out))} == {"v3", "v1", "v2"}


# --- the command ---------------------------------------------------------------------------


@pytest.mark.parametrize(
  ("args", "code", "part"),
  [
    (["--variant", "v9"], 1, "no schema of variant 'v9'"),
    (["--split", "dev"], 1, "no split 'dev'"),
    (["--split", "train"], 1, "no prompts in split train"),
    (["--split", "train", "--limit", "9"], 1, "no prompts in split train"),
    (["--limit", "0"], 2, "--limit 0"),
    (["--limit", "1", "--dialogue", "1_00000"], 2, "--limit with --dialogue"),
    (["--seed", "4"], 2, "--seed 4 without --limit"),
    (["--dialogue", "1_0000"], 2, "available: nearest: 1_0000"),
    (
      ["--prompt-style", "lowercase=1"],
      2,
      "--prompt-style lowercase=1\n  expected:  true or false",
    ),
    (["--prompt-style", "lowercas=true"], 2, "nearest: lowercase"),
    (["--prompt-style", "d3st"], 2, "pass format=d3st"),
    (["--prompt-style", "format=d3st", "seed=x"], 2, "expected:  a whole number"),
    (["--prompt-style", "format=d3st", "format=sdt"], 2, "format=d3st and format=sdt"),
    (["--variant", "v1=."], 1, "a variant of your own named 'v1'"),
    (["--prompt-style", "values=b"], 1, "PromptStyle.values = 'b'"),
    (["--out", "/nowhere/p.jsonl"], 1, "--out /nowhere/p.jsonl: no writable folder /nowhere"),
    (["--out", "/dev/null"], 1, "--out /dev/null: not a regular file"),
    (["--out", "/dev/stdout"], 1, "--out /dev/stdout: not a regular file"),
    (["--out", "/proc/self/fd/1"], 1, "--out /proc/self/fd/1: not a regular file"),
  ],
)
def test_mistakes_get_an_exit_code_and_four_parts(corpus, tmp_path, capsys, args, code, part):
  out = tmp_path / "p.jsonl"
  out.write_text("earlier")
  assert prompts(corpus, out, *args) == code
  error = capsys.readouterr().err
  for word in (part, "expected:", "fix:"):
    assert word in error
  assert out.read_text() == "earlier"
  assert [path.name for path in tmp_path.iterdir()] == ["p.jsonl"]


def test_a_fault_late_in_the_data_leaves_nothing(tmp_path, capsys):
  root = tiny.write_corpus(tmp_path / "tiny")
  (root / "test" / "dialogues_002.json").write_text("[{")
  (tmp_path / "out").mkdir()
  assert prompts(root, tmp_path / "out" / "p.jsonl") == 1
  assert "dialogues_002.json: not valid JSON" in capsys.readouterr().err
  assert list((tmp_path / "out").iterdir()) == []


def test_a_pipe_gets_rows_and_stderr_the_rest(corpus, tmp_path):
  done = sgdx_process("prompts", "--corpus", corpus, "--variant", "v1", "v1", "--out", "-")
  assert done.returncode == 0
  assert prompts(corpus, tmp_path / "p.jsonl", variants=["v1"]) == 0
  assert done.stdout == (tmp_path / "p.jsonl").read_text()
  assert [line.split()[0] for line in done.stderr.splitlines()][:1] == ["written:"]
  assert "16 prompts (v1)" in done.stderr
  command = ["sgdx", "score", "--corpus", str(corpus), "--split", "test", "--predictions"]
  assert next_command(done.stderr) == [*command, "v1=ANSWERS.jsonl"]
  assert all(len(line) <= 80 or str(corpus) in line for line in done.stderr.splitlines())
  helped = sgdx_process("prompts", "--help").stdout
  for words in ("examples:", "--predictions all=answers.jsonl"):
    assert words in helped
  assert all(len(line) <= 100 for line in helped.splitlines())


@pytest.mark.real
def test_real_prompts_are_as_many_as_were_counted(real_archive, tmp_path, capsys):
  """152,992 prompts of 26,802 frames: from field notes, counted before this was written."""
  assert prompts(real_archive, tmp_path / "p.jsonl") == 0
  error = capsys.readouterr().err
  assert "152,992 prompts (v3)" in error
  assert "26,802 frames, 2,921 of 2,921 dialogues" in error
  assert "PARTIAL: the corpus has 2,921 of the 4,201 published dialogues" in error
  with (tmp_path / "p.jsonl").open() as lines:
    assert sum(1 for _ in lines) == 152_992
