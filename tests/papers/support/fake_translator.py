"""A translator for tests of back-translation."""


class Shouting:
  """A translator that appends the target language to a text; fails after `calls` batches."""

  name, batch_texts = "shouting", 3

  def __init__(self, calls=None):
    self.calls, self.sent = calls, []

  def check(self, pivots):
    pass

  def settings(self, source, target):
    return {}

  def label(self, pivot):
    return f"shouting {pivot}"

  def translate(self, batch, source, target):
    if self.calls is not None and len(self.sent) == self.calls:
      raise ConnectionError("the line is dead\nand more")
    self.sent.append((source, target, list(batch)))
    return [f" {text} {target} " for text in batch]

  def count(self, source):
    return sum(len(batch) for s, _, batch in self.sent if s == source)
