"""SGP-DST's examples: what each sub-model reads, and the round trip of spans."""

import pytest
from places import ROOT
from sgpdst_ceiling import gold_labels

from sgdx_t5x.corpus.opening import SAMPLE, open_corpus
from sgdx_t5x.corpus.schema import Intent, Schema, Service, Slot
from sgdx_t5x.errors import SgdxError
from sgdx_t5x.papers.sgpdst import sgpdst_answers as a
from sgdx_t5x.papers.sgpdst import sgpdst_features as f
from sgdx_t5x.papers.sgpdst.sgpdst_features import SgpReader, SgpStyle
from sgdx_t5x.records.turns import (
  INFORM,
  NONE,
  NOTIFY_SUCCESS,
  OFFER,
  REQUEST,
  Act,
  FrameContext,
  ServiceState,
  user_turns,
)
from sgdx_t5x.spandst.vocabulary import WordPieceVocabulary

VOCABULARY = WordPieceVocabulary(ROOT / "sgdx_t5x/corpus/sample/vocab.txt", lower_case=True)
CAFES = Service(
  "Cafes_1",
  "Find a Cafe",
  (Slot("city", "where", False), Slot("seats", "how many", True, ("1", "2"))),
  (
    Intent("Find", "look", False, ("city",), {"seats": "dontcare"}, ()),
    Intent("Book", "take", True, ("seats",), {}, ()),
  ),
)
RIDES = Service("Rides_1", "", (Slot("goal", "to where", False),), ())
SCHEMA = Schema([CAFES, RIDES])
WIDE = {"length": 300}


def context(user="to rome", system="where ?", acts=(), turn=4):
  return FrameContext("1-004-Cafes_1", turn, 0, system, user, tuple(acts), (0,))


def reader(part, style=SgpStyle(utterance=40), **how):  # noqa: B008  # it is frozen
  return SgpReader(part, SCHEMA, VOCABULARY, style, **{**WIDE, **how})


def text(example, *segments):
  pairs = zip(example.features["inputs"], example.features["segments"], strict=True)
  ids = [i for i, s in pairs if s in segments]
  return " ".join(VOCABULARY._pieces[i] for i in ids).replace(" ##", "")


def test_combine_reads_utterances_then_a_slot_then_its_options():
  found = reader("combine").combine(context(), 1)
  assert text(found, a.SYSTEM) == "where ?"
  assert text(found, a.USER) == "to rome"
  assert text(found, a.FIRST) == "[CLS] sys : usr : [SEP]"
  assert text(found, a.SECOND) == "sort # seats # how many [SEP]"
  options = [text(found, a.OPTION + i) for i in range(5)]
  assert options == ["null [SEP]", "do not care [SEP]", "1 [SEP]", "2 [SEP]", ""]
  ids, null = found.features["inputs"], found.null
  assert ids[null] == VOCABULARY.marker(1)  # "null" is several pieces here
  # [CLS], 40 pieces, [SEP]: from here on, positions are those of a padded input.
  after = found.features["positions"][null + 1 :]
  assert after == list(range(41, 41 + len(after)))
  assert found.features["positions"][: null + 1] == list(range(null + 1))
  assert "tag # city # where" in text(reader("combine").combine(context(), 0), a.SECOND)


def test_context_of_combine():
  acts = [Act(1, 0, INFORM, 1, ("2",)), Act(3, 0, REQUEST, 0)]
  contexts = [
    set(reader("combine").combine(context(acts=acts), s).features["context"]) for s in (0, 1)
  ]
  assert contexts == [{f.ASKED}, {f.GIVEN}]
  # For the system's own turn, its acts in that turn are not yet known.
  system = reader("combine").combine_system(context(acts=acts), 0)
  assert set(system.features["context"]) == {0}
  assert text(system, a.FIRST, a.SYSTEM, a.USER) == "[CLS] where ? [SEP]"


def test_intents_are_options_and_the_one_before_is_marked():
  found = reader("intent").intent(context(), 1, jumped=True)
  assert text(found, a.FIRST, a.SYSTEM, a.USER) == (
    "[CLS] jump [SEP] sys : where ? usr : to rome [SEP]"
  )
  assert [text(found, a.OPTION + i) for i in range(3)] == [
    "look # find [SEP]",
    "take # book [SEP]",
    "none [SEP]",
  ]
  marked = zip(found.features["segments"], found.features["context"], strict=True)
  assert {s for s, bit in marked if bit} == {a.OPTION + 1}
  first = reader("intent").intent(context(), NONE, jumped=False).features
  assert {s for s, bit in zip(first["segments"], first["context"], strict=True) if bit} == {
    a.OPTION + 2
  }


def test_copy_and_cross():
  acts = [Act(3, 0, OFFER, 1, ("2",)), Act(1, 1, NOTIFY_SUCCESS, NONE), Act(1, 1, OFFER, 0, ("x",))]
  copied = reader("copy").copy(context(acts=acts), 1, filled=True, intent=0)
  assert text(copied, a.FIRST, a.SYSTEM, a.USER).startswith("[CLS] api : find a cafe [SEP] sys :")
  assert text(copied, a.SECOND) == "how many [SEP]"
  assert set(copied.features["context"]) == {f.ALWAYS | f.FILLED | f.OPTIONAL}
  assert f.copied_slots(context(acts=acts)) == [1]
  pair = (0, (1, 0))
  assert f.crossed_pairs(context(acts=acts), {}, [0]) == [pair]
  crossed = reader("cross").cross(context(acts=acts), pair, filled=False, intent=0)
  assert text(crossed, a.FIRST, a.SYSTEM, a.USER).endswith("to rome [SEP] city # where [SEP]")
  assert text(crossed, a.SECOND) == "goal # to where [SEP]"
  assert set(crossed.features["context"]) == {f.ALWAYS | f.REQUIRED | f.DONE}
  assert f.needed_by(CAFES, 0, 1) == 0
  assert f.open_slots(CAFES, context(acts=acts), {}) == [0]
  assert f.open_slots(CAFES, context(acts=acts), {0: ("rome",)}) == []
  assert f.open_slots(CAFES, context(acts=[Act(1, 0, INFORM, 0, ("x",))]), {}) == []


def test_a_jump_is_to_other_services_than_those_of_the_user_turn_before():
  states = {0: ServiceState(2, 0, {}), 1: ServiceState(0, 0, {})}
  assert not f.has_jumped(context(), states)
  assert f.has_jumped(context(turn=6), states)
  assert not f.has_jumped(context(turn=0), {})


def test_the_oldest_words_go_and_a_cut_span_is_null():
  long = context(user="to rome", system="word " * 60)
  found = reader("combine").combine(long, 0)
  assert len(found.features["inputs"][: found.null]) == 40
  assert text(found, a.USER) == "to rome"
  span = f.Span(0, False, 0, 4)
  assert f.span_targets(found, span) == (found.null, found.null)
  assert f.span_targets(found, None) == (found.null, found.null)


def test_spans_of_the_sample_come_back():
  corpus = open_corpus(SAMPLE)
  schema, dialogues = corpus.schema("dev"), list(corpus.dialogues("dev"))[:30]
  labels, number = gold_labels(dialogues, schema), 0
  read = SgpReader("combine", schema, VOCABULARY, SgpStyle(utterance=120), 300)
  for dialogue in dialogues:
    for frames in user_turns(dialogue, schema):
      for one in frames:
        answers = labels[one.frame_id][0]
        for slot, sure in answers.spans.items():
          example = read.combine(one, slot)
          first, last, option, _, is_span = f.slot_targets(example, answers, slot)
          assert (option, is_span) == (1, a.YES)
          back = f.read_span(example, a.SlotAnswer(first, last, 2, 0, 1, 0), slot)
          assert back == sure[0]
          number += 1
  assert number > 50
  assert f.read_span(example, a.SlotAnswer(example.null, example.null, 2, 0, 1, 0), 0) is None


def test_schemas_that_do_not_fit_say_so():
  with pytest.raises(SgdxError, match="slot city takes") as e:
    reader("combine", length=50).combine(context(), 0)
  assert "TASK_FEATURE_LENGTHS" in e.value.expected
  slot = Slot("kind", "", True, tuple(map(str, range(15))))
  many = SgpReader("combine", Schema([Service("A_1", "", (slot,), ())]), VOCABULARY, None, 300)
  with pytest.raises(SgdxError, match="17 options"):
    many.combine(context(), 0)


def test_a_long_description_leaves_room_for_the_utterances():
  """Regression: copy refused the service, with advice that could not help."""
  short = reader("copy", SgpStyle(utterance=40))
  long = Service("A_1", "word " * 100, (Slot("kind", "", False),), ())
  read = SgpReader("copy", Schema([long]), VOCABULARY, SgpStyle(utterance=40), 160)
  for example in (short.copy(context(), 1, False, NONE), read.copy(context(), 0, False, NONE)):
    assert sum(n in (a.USER, a.SYSTEM) for n in example.features["segments"]) >= 4
