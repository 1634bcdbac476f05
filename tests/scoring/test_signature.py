"""Signatures: reading and writing them, and which fields make scores incomparable."""

import pytest

from sgdx_t5x.signature import Signature, differences, package_version

LINE = "sgdx|corpus:my:own:1a2b|split:test|frames:5|PARTIAL|version:1"


def test_a_line_is_read_and_written_as_it_was():
  signature = Signature.parse(LINE)
  assert str(signature) == LINE
  assert dict(signature.fields) == {
    **{"sgdx": "", "corpus": "my:own:1a2b", "split": "test", "frames": "5", "PARTIAL": ""},
    "version": "1",
  }
  assert (signature.corpus, signature.checksum, signature.split) == ("my:own", "1a2b", "test")
  assert signature.partial


def test_what_a_line_lacks_is_empty():
  signature = Signature.parse("sgdx|complete")
  assert (signature.corpus, signature.checksum, signature.split) == ("", "", "")
  assert not signature.partial


@pytest.mark.parametrize(
  ("complete", "state"), [(True, "complete|"), (False, "PARTIAL|"), (None, "")]
)
def test_built_in_the_order_given_without_empty_fields(complete, state):
  signature = Signature.of("sample", "1a2b", {"split": "dev", "style": "", "unseen": 0}, complete)
  expected = f"sgdx|corpus:sample:1a2b|split:dev|unseen:0|{state}version:{package_version()}"
  assert str(signature) == expected
  assert Signature.parse(expected) == signature


def test_differences_name_the_fields_that_matter():
  a = Signature.parse("sgdx|corpus:x:1a2b|variants:v1|fuzzy:exact|frames:5|PARTIAL|version:1")
  b = Signature.parse("sgdx|corpus:y:1a2b|fuzzy:difflib|frames:6|sample:0f|complete|style:a=b")
  settings = {"fuzzy": ("exact", "difflib"), "style": (None, "a=b")}
  assert differences(a, b) == settings
  assert list(differences(a, b, same_frames=True).items()) == [
    *settings.items(),
    ("frames", ("5", "6")),
    ("sample", (None, "0f")),
  ]
  assert differences(a, a, same_frames=True) == {}
