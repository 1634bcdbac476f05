"""Base class of formats whose examples `text_examples` makes: all of this package."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from sgdx_t5x.corpus.schema import Service
from sgdx_t5x.prompts.protocol import PromptFormat

if TYPE_CHECKING:
  import tensorflow as tf


class TextExamples:
  """`PromptFormat.examples` and, for examples that ask for whole frames, `asked`."""

  def asked(self, service: Service) -> Sequence[str | None]:
    """One example per frame, of all of it."""
    return (None,)

  def examples(self, *args: Any, **settings: Any) -> "tf.data.Dataset":
    """See `text_examples.text_examples`."""
    from sgdx_t5x.prompts.text_examples import text_examples

    return text_examples(cast(PromptFormat, self), *args, **settings)
