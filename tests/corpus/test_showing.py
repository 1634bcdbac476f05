"""A dialogue as text: all of its states, in a variant's names."""

from sgdx_t5x.cli import main
from sgdx_t5x.corpus.opening import open_corpus
from sgdx_t5x.corpus.showing import show


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
