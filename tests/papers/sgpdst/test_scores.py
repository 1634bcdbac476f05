"""The scores of the page are those of the stored files."""

from stored_scores import check_page


def test_the_page_has_the_stored_scores():
  check_page("docs/papers/sgpdst.md", "sgpdst")
