"""A dialogue as text: all of its states, in a variant's names."""

import json

import pytest

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.variants.corrupt import corrupt_schema
from sgdx_t5x.variants.showing import show


def words(text):
  return " ".join(text.split())


def test_every_value_is_shown_by_the_variants_name():
  corpus = open_corpus("sample")
  original, reworded = corpus.schema("test"), corpus.schema("test", "v3")
  for dialogue in corpus["test"][:40]:
    text = show(corpus, dialogue.dialogue_id, "v3")
    assert all(len(line) <= 80 for line in text.splitlines())
    joined = words(text)
    for turn in dialogue.turns:
      assert words(turn.utterance) in joined
      for frame in turn.frames:
        if frame.state is None:
          continue
        service = reworded.services[original.names.index(frame.service)]
        for slot, values in frame.state.slot_values.items():
          shown = service.slots[original[frame.service].slot_index[slot]]
          assert words(f"{shown.name} = {' | '.join(values)}") in joined
          assert words(f"{shown.name} (originally {slot}): {shown.description}") in joined or (
            shown.name == slot
          )


def test_the_command_prints_it(capsys):
  assert main(["show", "1_00000", "--corpus", "sample", "--variant", "v3"]) == 0
  assert capsys.readouterr().out == show(open_corpus("sample"), "1_00000", "v3") + "\n"


def test_a_variant_that_is_made_or_ones_own(tmp_path, capsys):
  """As for `sgdx prompts`; only those of the corpus were known."""
  corrupted = corrupt_schema(open_corpus("sample").schema("test"), 3)
  (tmp_path / "test").mkdir()
  (tmp_path / "test/schema.json").write_text(json.dumps(corrupted.to_json()))
  command = ["show", "1_00000", "--corpus", "sample", "--variant", f"mine={tmp_path}"]
  assert main(command) == 0
  text = show("sample", "1_00000", "corrupt_3")
  assert capsys.readouterr().out == text.replace("corrupt_3", "mine", 1) + "\n"
  assert text != show("sample", "1_00000").replace("original", "corrupt_3", 1)


@pytest.mark.parametrize(("variant", "code"), [("mine=", 2), ("=.", 2), ("ned", 1), ("v9", 1)])
def test_what_is_no_variant_of_these_dialogues_is_refused(
  tmp_path, capsys, monkeypatch, variant, code
):
  """A NAME= without a folder was the current one; "ned" were dialogues without perturbation."""
  (tmp_path / "test").mkdir()
  original = open_corpus("sample").schema("test").to_json()
  (tmp_path / "test/schema.json").write_text(json.dumps(original))
  monkeypatch.chdir(tmp_path)
  assert main(["show", "1_00000", "--corpus", "sample", "--variant", variant]) == code
  assert "fix: " in capsys.readouterr().err
