"""Tasks and mixtures: which exist, what they read, and their errors when they cannot."""

import re
import shutil

import pytest
import seqio
from records import records_of
from sample_folder import write_sample
from task_names import FAMILIES, PARAPHRASED, SUFFIXES, unregistered

from sgdx_t5x import tasks
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.prompts.t5dst import T5DST, PromptStyle
from sgdx_t5x.prompts.t5dst.text import slot_text
from sgdx_t5x.records.prepare import prepare

LENGTHS = {"inputs": 224, "targets": 20}
FORMATS_WITH_TASKS = ("t5dst", "d3st", "sdt", "state")


@pytest.fixture(autouse=True)
def data_dir(small_sample):
  with records_of(small_sample / "data"):
    yield


def fresh(monkeypatch):
  """Clears the builders that SeqIO caches for a data directory."""
  monkeypatch.setattr(seqio.utils.LazyTfdsLoader, "_MEMOIZED_BUILDERS", {})


@pytest.mark.parametrize("prefix", ["", "sample_"])
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", FORMATS_WITH_TASKS)
def test_names_are_registered(prefix, name, suffix):
  task = seqio.get_mixture_or_task(f"{prefix}{name}_{suffix}")
  assert tasks.REGISTERED[f"{prefix}{name}_{suffix}"].format == name
  vocabulary = tasks.sample_vocabulary() if prefix else tasks.vocabulary()
  assert task.output_features["inputs"].vocabulary == vocabulary


@pytest.mark.parametrize("name", FAMILIES)
def test_paraphrases_are_tasks_of_sgd_alone(name):
  paraphrases = tuple(f"para_{k}" for k in range(1, 6))
  assert tasks.REGISTERED[f"{name}_paraphrase"].variants == ("original", *paraphrases)
  every = ("original", "bt_zh", "bt_ja", "bt_ko", *paraphrases)
  assert tasks.REGISTERED[f"{name}_reworded"].variants == every
  assert f"sample_{name}_reworded" not in tasks.REGISTERED


def take(name, split, n, **kwargs):
  task = seqio.get_mixture_or_task(name)
  return list(task.get_dataset(LENGTHS, split, **kwargs).take(n).as_numpy_iterator())


def test_validation_is_dev():
  def ids(split):
    return [e["example_id_pretokenized"] for e in take("sample_t5dst_sgd", split, 9, shuffle=False)]

  assert ids("validation") == ids("dev")


@pytest.fixture(scope="module")
def of_backtrans(small_sample):
  """400 examples of a mixture, with their texts."""
  with records_of(small_sample / "data"):
    return take("sample_t5dst_backtrans", "train", 400, seed=1, copy_pretokenized=True)


def test_a_mixture_draws_from_all_its_tasks(of_backtrans):
  """Tasks are told apart by the slot prompt: a mixture keeps only inputs and targets."""
  corpus, style = open_corpus("sample"), PromptStyle()
  variants = ("original", "bt_zh", "bt_ja", "bt_ko")
  asked = {
    variant: {slot_text(s, x, style) for s in corpus.schema("train", variant) for x in s.slots}
    for variant in variants
  }
  prompts = [e["inputs_pretokenized"].decode() for e in of_backtrans]
  prompts = [text[text.index("[domain]") :] for text in prompts]
  counts = {v: sum(text in asked[v] for text in prompts) for v in variants}
  assert sum(counts.values()) >= 400
  assert min(counts.values()) > 50


def test_every_example_once_per_variant_in_an_epoch():
  found = take("sample_t5dst_sgdx", "dev", 10**6, shuffle=False)
  ids = [e["example_id_pretokenized"].decode() for e in found]
  assert len(set(ids)) == len(ids)
  first, *others = (
    {i.split("/", 1)[1] for i in ids if i.startswith(f"v{k}/")} for k in range(1, 6)
  )
  assert all(other == first for other in others)


def test_all_variants_of_a_frame_come_together():
  """So an evaluation that takes the first prompts has whole frames in every variant."""

  def ids(name, n):
    found = take(name, "dev", n, shuffle=False)
    return [e["example_id_pretokenized"].decode() for e in found]

  def frame(example_id):
    return example_id.split("/")[2]

  original = ids("sample_t5dst_sgd", 40)
  whole = [i for i in original if frame(i) != frame(original[-1])]
  assert whole
  found = ids("sample_t5dst_sgd_sgdx", 6 * len(whole))
  for variant in ("original", "v1", "v2", "v3", "v4", "v5"):
    expected = [i.replace("original", variant, 1) for i in whole]
    assert [i for i in found if i.startswith(f"{variant}/")] == expected


def test_tasks_of_a_mixture_are_shuffled_apart(sample_records):
  """Otherwise a mixture would show the same frames in all variants at the same time."""

  def frames(name):
    ids = [e["example_id_pretokenized"].decode() for e in take(name, "train", 200, seed=1)]
    return {i.split("/")[2] for i in ids}

  with records_of(sample_records):  # with fewer frames, most would be in both
    a, b = frames("sample_t5dst_sgd"), frames("sample_t5dst_sgd_bt_zh")
  assert len(a & b) < len(a) / 2


def test_targets_end_with_eos_and_fit(of_backtrans):
  for example in of_backtrans:
    for name, length in LENGTHS.items():
      assert example[name][-1] == 1
      assert len(example[name]) <= length


def test_schemas_of_your_own(tmp_path):
  """v2's schemas from a folder give v2's examples, under the name they were registered with."""
  source = open_corpus("sample").source
  (tmp_path / "dev").mkdir()
  (tmp_path / "dev/schema.json").write_bytes(source.read("sgd_x/data/v2/dev/schema.json"))
  vocabulary = tasks.sample_vocabulary
  task = tasks.register_variant(
    "mine", tmp_path, vocabulary=vocabulary, prefix="sample_", data="sample"
  )
  mixture = tasks.register_mixture("sample_t5dst_mine", ["sample_t5dst_sgd", task.name])
  try:
    assert tasks.REGISTERED[mixture.name].variants == ("original", "mine")
    pairs = zip(
      take(task.name, "dev", 50, shuffle=False),
      take("sample_t5dst_sgdx_v2", "dev", 50, shuffle=False),
      strict=True,
    )
    for found, released in pairs:
      assert found["inputs_pretokenized"] == released["inputs_pretokenized"]
      name = released["example_id_pretokenized"].decode().replace("v2/", "mine/", 1)
      assert found["example_id_pretokenized"].decode() == name
    with pytest.raises(SgdxError, match=r"(?s)no file at .*train/schema\.json.*dev"):
      take(task.name, "train", 1)
  finally:
    for name, registry in (
      (task.name, seqio.TaskRegistry),
      (mixture.name, seqio.MixtureRegistry),
    ):
      registry.remove(name)
      del tasks.REGISTERED[name]


def register_m(name="m", **settings):
  usual = {"data": "sample", "variants": ["v1"], "vocabulary": tasks.sample_vocabulary}
  return tasks.register(name, **(usual | settings))


@pytest.mark.parametrize(
  ("call", "part"),
  [
    (lambda: tasks.register_mixture("m", ["t5dst_sgf"]), "nearest: t5dst_sgd"),
    (lambda: tasks.register_mixture("m", []), "no tasks"),
    (lambda: tasks.register_mixture("m", ["t5dst_sgd", "sample_t5dst_sgd"]), "a shared vocabulary"),
    (lambda: tasks.register_mixture("m", ["t5dst_sgd", "spandst_sgd"]), "features differ"),
    (lambda: tasks.register_variant("a b", ".", vocabulary=tasks.vocabulary), "_sgd_a b'"),
    (lambda: tasks.register_mixture("t5dst_backtrans", ["t5dst_sgd"]), "already registered"),
    (
      lambda: tasks.register(
        "t5dst_sgd", data="sample", variants=["v1"], vocabulary=tasks.vocabulary
      ),
      "already registered",
    ),
    (
      lambda: register_m(style=PromptStyle(), prompt_format=T5DST()),
      "a style and a prompt format",
    ),
    (lambda: register_m("m/7"), "a task named 'm/7'"),
    (lambda: register_m(variants="v3"), "variants='v3'"),  # it would be "v" and "3"
    (lambda: register_m(variants=[]), "each once"),
    (lambda: register_m(variants=["v3", "v3"]), "each once"),
    (lambda: tasks.register_mixture("m", ["t5dst_sgd"], maximum="many"), "maximum='many'"),
  ],
)
def test_wrong_registrations_are_refused(call, part):
  with pytest.raises(SgdxError, match="fix:") as error:
    call()
  assert part in str(error.value)
  assert "m" not in tasks.REGISTERED


def test_a_mixture_may_be_a_part_of_another():
  parts = ["sample_t5dst_backtrans", "sample_t5dst_sgdx_v1", "sample_t5dst_sgd"]
  mixture = tasks.register_mixture("sample_t5dst_nested", parts)
  try:
    names = [task.name for task in mixture.tasks]
    backtrans = [task.name for task in seqio.MixtureRegistry.get(parts[0]).tasks]
    assert "sample_t5dst_sgd" in backtrans
    assert names == [*backtrans, "sample_t5dst_sgdx_v1"]
    mixture.get_dataset(LENGTHS, "dev")
  finally:
    seqio.MixtureRegistry.remove(mixture.name)
    del tasks.REGISTERED[mixture.name]


def test_sets_without_train_are_mixed_by_their_size(tmp_path, monkeypatch):
  fresh(monkeypatch)
  corpus = write_sample(tmp_path / "corpus", {"train": 0, "dev": 0, "test": 5})
  builder = prepare(open_corpus(corpus), tmp_path / "records", name="sample_test_only")
  names = [
    register_m(f"m_{variant}", data="sample_test_only", variants=[variant]).name
    for variant in ("original", "v1")
  ]
  mixture = tasks.register_mixture("m_both", names)
  try:
    with records_of(tmp_path / "records"):
      rates = [mixture.get_rate(task) for task in mixture.tasks]
      assert min(rates) == builder.info.splits["test"].num_examples
      with pytest.raises(SgdxError, match=r"(?s)no split 'tets'.*available: test"):
        mixture.tasks[0].get_dataset(LENGTHS, "tets")
  finally:
    seqio.MixtureRegistry.remove(mixture.name)
    for name in names:
      seqio.TaskRegistry.remove(name)
    for name in (mixture.name, *names):
      del tasks.REGISTERED[name]


def test_rates_count_variants():
  mixture = tasks.register_mixture("sample_t5dst_rates", ["sample_t5dst_sgd", "sample_t5dst_sgdx"])
  try:
    one, five = (mixture.get_rate(task) for task in mixture.tasks)
    assert five == 5 * one
  finally:
    seqio.MixtureRegistry.remove(mixture.name)
    del tasks.REGISTERED[mixture.name]


def test_corrupted_schemas_are_asked_in_other_words():
  one, two, plain = (
    [e["inputs_pretokenized"] for e in take(f"sample_t5dst_sgd{x}", "dev", 200, shuffle=False)]
    for x in ("_corrupt_1", "_corrupt_2", "")
  )
  assert len({*one, *two, *plain}) > 2.5 * len(set(plain))


def test_ls_tasks_is_a_summary(capsys, monkeypatch):
  """Two thirds of a screen; every task and mixture is a family and what follows it."""
  from sgdx_t5x.cli import main

  # Without those of annexes that other tests of this process have imported.
  prefixes, suffixes = ("", "sample_", "tiny_", "plain_"), (*SUFFIXES, *PARAPHRASED)
  names = {f"{prefix}{f}_{suffix}" for prefix in prefixes for f in FAMILIES for suffix in suffixes}
  core = {name: entry for name, entry in tasks.REGISTERED.items() if name in names}
  monkeypatch.setattr(tasks, "REGISTERED", core)
  assert main(["ls", "tasks"]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert len(lines) <= 24
  assert all(len(line.rstrip()) <= 80 for line in lines)
  words = " ".join(lines).split()
  for name in tasks.REGISTERED:
    family = next(x for x in words if x.endswith("*") and name.startswith(x.removesuffix("*")))
    suffix = name.removeprefix(family.removesuffix("*"))
    assert re.sub(r"((?<=_)|(?<=_v))\d+$", "K", suffix) in words


def test_ls_tasks_lists_what_has_a_pattern(capsys, monkeypatch):
  from sgdx_t5x.cli import main

  monkeypatch.setenv("COLUMNS", "120")  # otherwise variants take two lines
  assert main(["ls", "tasks", "*"]) == 0
  lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
  assert "t5dst_backtrans mixture t5dst full original, bt_zh, bt_ja, bt_ko" in lines
  assert "sample_t5dst_sgdx_v3 task t5dst sample v3" in lines
  assert "sample_d3st_sgdx_v3 task d3st sample v3" in lines
  assert sum(" task " in line or " mixture " in line for line in lines) == len(tasks.REGISTERED)
  assert "sample_spandst_sgdx_v3 task spandst sample v3" in lines
  assert main(["ls", "tasks", "d3st_sgdx_v?", "*e_spandst_sgdx"]) == 0
  names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:] if line.strip()]
  assert names == [*(f"d3st_sgdx_v{k}" for k in range(1, 6)), "sample_spandst_sgdx"]
  assert main(["ls", "tasks", "d3st_sgdxx"]) == 2
  assert "nearest: d3st_sgdx" in capsys.readouterr().err
  for module in ("no.such.module", ".relative", ""):
    assert main(["ls", "tasks", "--module", module]) == 2
    assert "PYTHONPATH" in capsys.readouterr().err


def test_every_family_has_all_tasks_and_mixtures():
  """Others may be added: no test counts them."""
  assert unregistered(FAMILIES, SUFFIXES) == set()
  names = {f"{family}_{suffix}" for family in ("tiny_d3st", "tiny_sdt") for suffix in SUFFIXES}
  names |= {f"{family}_{suffix}" for family in FAMILIES for suffix in PARAPHRASED}
  assert names <= set(tasks.REGISTERED)


def test_unprepared_data_say_how_to_prepare_them(tmp_path, monkeypatch):
  fresh(monkeypatch)
  for name, command in (
    ("sample_t5dst_sgd", "sgdx data prepare --corpus sample"),
    ("t5dst_sgd", "sgdx data prepare --corpus FILE"),
  ):
    task = seqio.get_mixture_or_task(name)
    with records_of(tmp_path), pytest.raises(SgdxError) as error:
      task.get_dataset(LENGTHS, "train")
    assert command in str(error.value)
    assert "expected:" in str(error.value)
  mine = tasks.register(
    "mine_of_others", data="others", variants=["original"], vocabulary=tasks.sample_vocabulary
  )
  try:
    with records_of(tmp_path), pytest.raises(SgdxError, match="--name others --data-dir DIR"):
      mine.get_dataset(LENGTHS, "train")
  finally:
    seqio.TaskRegistry.remove(mine.name)
    del tasks.REGISTERED[mine.name]


def test_backtrans_without_back_translations_says_so(tmp_path, monkeypatch):
  """They ship for SGD's train services and for the sample; this corpus has other services."""
  fresh(monkeypatch)
  corpus = write_sample(tmp_path / "sgd_without", {"train": 0, "dev": 12, "test": 12})
  shutil.rmtree(corpus / "back_translations")
  source = open_corpus("sample").source
  shutil.copy(corpus / "dev/dialogues_001.json", corpus / "train/dialogues_001.json")
  for split in ("train", "dev"):  # dev's unseen services: train has dev's dialogues here
    (corpus / split / "schema.json").write_bytes(source.read("dev/schema.json"))
    for k in range(1, 6):
      path = f"sgd_x/data/v{k}/dev/schema.json"
      (corpus / f"sgd_x/data/v{k}/{split}/schema.json").write_bytes(source.read(path))
  prepare(open_corpus(corpus), tmp_path / "records")
  mixture = seqio.get_mixture_or_task("t5dst_backtrans")
  with records_of(tmp_path / "records"), pytest.raises(SgdxError) as error:
    mixture.get_dataset({"inputs": 512, "targets": 64}, "train")
  for word in ("bt_", "for split 'train'", "expected:"):
    assert word in str(error.value)


def test_a_missing_vocabulary_file_is_refused(monkeypatch):
  monkeypatch.setenv("SGDX_VOCAB", "/nowhere/sentencepiece.model")
  with pytest.raises(SgdxError, match="no such file") as error:
    tasks.vocabulary()
  assert "gs://t5-data/vocabs" in str(error.value)
  monkeypatch.setenv("SGDX_VOCAB", "")  # was the current folder
  assert tasks.vocabulary().sentencepiece_model_file.startswith("gs://t5-data/vocabs")
