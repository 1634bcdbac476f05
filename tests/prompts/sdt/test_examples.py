"""SDT's tasks: examples have the texts of the Python functions, and gold answers score 1."""

import pytest

seqio = pytest.importorskip("seqio")

from records import records_of  # noqa: E402

from sgdx_t5x.corpus.dialogue import frame_id  # noqa: E402
from sgdx_t5x.corpus.example_id import ExampleId  # noqa: E402
from sgdx_t5x.corpus.opening import open_corpus  # noqa: E402
from sgdx_t5x.errors import SgdxError  # noqa: E402
from sgdx_t5x.metrics.seqio_metrics import schema_sensitivity  # noqa: E402
from sgdx_t5x.prompts import load_format  # noqa: E402
from sgdx_t5x.prompts.protocol import service_pairs  # noqa: E402

LENGTHS = {"inputs": 704, "targets": 112}


def test_the_tasks_examples_are_the_formats_texts(sample_records):
  corpus, prompt_format = open_corpus("sample"), load_format("sdt")
  expected = {}
  for variant in ("original", "v1", "v2", "v3", "v4", "v5"):
    pairs = service_pairs(corpus.schema("dev"), corpus.schema("dev", variant))
    for dialogue in corpus.dialogues("dev"):
      said = [(turn.speaker, turn.utterance) for turn in dialogue.turns]
      for turn, frame in dialogue.user_frames():
        name = frame_id(dialogue.dialogue_id, turn, frame.service)
        example, pair = ExampleId(variant, "dev", name), pairs[frame.service]
        [prompt] = prompt_format.prompts(example, pair, tuple(said[: turn + 1]))
        [target] = prompt_format.targets(example, pair, frame.state)
        expected[str(example)] = prompt.text, target
  with records_of(sample_records):
    task = seqio.get_mixture_or_task("sample_sdt_sgd_sgdx")
    examples = list(task.get_dataset(LENGTHS, "dev", shuffle=False).as_numpy_iterator())
  vocabulary = task.output_features["inputs"].vocabulary
  found, targets, answers = {}, [], []
  for example in examples:
    key, *texts = (
      example[name].decode()
      for name in ("example_id_pretokenized", "inputs_pretokenized", "targets_pretokenized")
    )
    found[key] = tuple(texts)
    if len(targets) < 300:
      assert example["inputs"].tolist() == [*vocabulary.encode(texts[0]), vocabulary.eos_id]
      assert example["targets"].tolist() == [*vocabulary.encode(texts[1]), vocabulary.eos_id]
    said = vocabulary.decode(example["targets"].tolist())
    targets.append(task.postprocess_fn("", example=example, is_target=True))
    answers.append(task.postprocess_fn(said, example=example))
  assert found == expected
  scores = schema_sensitivity(targets, answers)
  assert (scores["jga_orig"], scores["jga_v1_5"]) == (1.0, 1.0)


def test_tasks_of_the_full_data_need_a_file_of_demonstrations(monkeypatch, sample_records):
  from sgdx_t5x.tasks import mixtures

  monkeypatch.delenv("SGDX_DEMOS", raising=False)
  prompt_format = load_format("sdt", mixtures._STYLES["sdt"])
  schema = open_corpus("sample").schema("dev")
  [pair, *_] = service_pairs(schema, schema).values()
  with pytest.raises(SgdxError, match="export SGDX_DEMOS"):
    prompt_format.prompts(ExampleId("original", "dev", "1-000-Bakeries_1"), pair, ())
