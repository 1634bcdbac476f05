"""Robustness of schema-guided dialogue state tracking: SGD-X, scores, T5DST with T5X and SeqIO.

The public names are listed in `PUBLIC` and imported when first used, so `import sgdx_t5x` itself
needs none of NumPy, TensorFlow and JAX. For example, the average JGA over v1 to v5 of what the
quickstart predicted:

    import sgdx_t5x

    corpus = sgdx_t5x.open_corpus("sample")  # or the official archive, a zip file
    predictions = {"all": "runs/quickstart/eval/inference_eval"}
    scores = sgdx_t5x.score(corpus, "test", predictions)
    print(scores.jga_v1_5, scores.signature)
"""

import os

# Public name -> its module, and its name there where that is another one.
PUBLIC = {
  "Corpus": "corpus.corpus",
  "PromptStyle": "prompts.t5dst.text",
  "SgdxError": "errors",
  "compare": "scoring.compare",
  "comparison_report": "scoring.compare",
  "load_tracker": "tracking.conversations",
  "make_prompts": "prompts.rows",
  "make_report": "report.build:make",
  "open_corpus": "corpus.opening",
  "read_frames": "scoring.score_files",
  "read_run": "report.runs",
  "score": "scoring.scores",
  "score_predictions": "scoring.score",
  "score_report": "scoring.score",
  "show": "variants.showing",
  "write_frames": "scoring.score_files",
  "write_report": "report.build:write",
}
__all__ = [*PUBLIC]

# An installed package holds tasks/ and metrics/ itself. In a checkout they lie beside it, and must
# also be found when the repository's root comes first on the path and hides an installed package.
_HERE = os.path.dirname(os.path.realpath(__file__))
if not os.path.isdir(os.path.join(_HERE, "tasks")):
  __path__.append(os.path.dirname(_HERE))


def __getattr__(name):
  """Imports a public name when it is first used."""
  if name == "__version__":
    from sgdx_t5x.signature import package_version

    value = package_version()
  elif name in PUBLIC:
    from importlib import import_module

    module, _, attribute = PUBLIC[name].partition(":")
    value = getattr(import_module(f"{__name__}.{module}"), attribute or name)
  else:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  globals()[name] = value  # next time Python finds it without this function
  return value


def __dir__() -> list[str]:
  return sorted({*globals(), *PUBLIC, "__version__"})
