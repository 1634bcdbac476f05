"""Robustness of schema-guided dialogue state tracking: SGD-X, scores, T5DST with T5X and SeqIO.

The public names are listed in `PUBLIC` and imported when first used, so `import sgdx_t5x` itself
needs none of NumPy, TensorFlow and JAX. For example, the average JGA over v1 to v5 of what the
quickstart predicted:

    import sgdx_t5x

    corpus = sgdx_t5x.open_corpus("sample")  # or the official archive, a zip file
    predictions = {"all": "runs/quickstart/eval/inference_eval"}
    scored = sgdx_t5x.score_predictions(corpus, "test", predictions)
    print(sgdx_t5x.score_report(scored)["sgdx"]["all"]["jga_v1_5"])
"""

import os
import sys

TYPE_CHECKING = False  # as typing's, which takes longer to import than all of this
if TYPE_CHECKING:  # the names of PUBLIC, for editors and type checkers
  from types import ModuleType
  from typing import Any

  from sgdx_t5x.corpora import open_corpus
  from sgdx_t5x.data.corpus import Corpus
  from sgdx_t5x.errors import SgdxError
  from sgdx_t5x.prompts.t5dst.text import PromptStyle
  from sgdx_t5x.report.build import make as make_report
  from sgdx_t5x.report.build import write as write_report
  from sgdx_t5x.report.runs import read_run
  from sgdx_t5x.scoring.compare import compare, comparison_report
  from sgdx_t5x.scoring.score import score_predictions, score_report
  from sgdx_t5x.scoring.score_files import read_frames, write_frames
  from sgdx_t5x.tracking.conversations import load_tracker

__all__ = [
  "Corpus",
  "PromptStyle",
  "SgdxError",
  "compare",
  "comparison_report",
  "load_tracker",
  "make_report",
  "open_corpus",
  "read_frames",
  "read_run",
  "score_predictions",
  "score_report",
  "write_frames",
  "write_report",
]
# Public name -> module, and the name there if it is another one.
PUBLIC = {
  "Corpus": "data.corpus",
  "PromptStyle": "prompts.t5dst.text",
  "SgdxError": "errors",
  "compare": "scoring.compare",
  "comparison_report": "scoring.compare",
  "load_tracker": "tracking.conversations",
  "make_report": "report.build:make",
  "open_corpus": "corpora",
  "read_frames": "scoring.score_files",
  "read_run": "report.runs",
  "score_predictions": "scoring.score",
  "score_report": "scoring.score",
  "write_frames": "scoring.score_files",
  "write_report": "report.build:write",
}

# Old module -> the modules that have its names now, one that defines a name before its importers.
MOVED = {
  "augment.statistics": ("augment.distances",),
  "comparison": ("scoring.compare",),
  "corpus": ("data.variants", "data.sources", "data.corpus", "corpora"),
  "corpus_statistics": ("data.statistics",),
  "datasets": ("records",),
  "datasets.examples": ("prompts.seqio_steps", "prompts.t5dst.examples"),
  "datasets.prepare": ("records.prepare",),
  "datasets.records": ("records.source",),
  "datasets.sgd": ("records.builder",),
  "dialogue": ("data.dialogue",),
  "dialogue_checks": ("data.annotation_rules", "data.annotation"),
  "export": ("data.export",),
  "frames_file": ("scoring.score_files",),
  "prediction_files": (
    "scoring.predictions.files",
    "scoring.predictions.rows",
    "scoring.predictions.dialogues",
  ),
  "predictions": ("scoring.predictions.files", "scoring.predictions"),
  "report.score_tables": ("scoring.score_tables",),
  "report.tables": ("tables",),
  "report.versus": ("scoring.comparison_tables",),
  "sample.structured_init": ("from_scratch.structured_init",),
  "sample.train_vocabulary": ("sample.vocabulary",),
  "schema": ("data.schema",),
  "simulator.tables": ("simulator.backend",),
  "structured_init": ("from_scratch.structured_init",),
  "subset": ("data.subset",),
  "train_vocabulary": ("from_scratch.vocabulary",),
  "variants": ("data.variants",),
  "version": ("signature",),
}

# An installed package holds tasks/ and metrics/ itself. In a checkout they lie beside it, and must
# also be found when the repository's root comes first on the path and hides an installed package.
_HERE = os.path.dirname(os.path.realpath(__file__))
if not os.path.isdir(os.path.join(_HERE, "tasks")):
  __path__.append(os.path.dirname(_HERE))


def __getattr__(name: str) -> "Any":
  """Imports a public name when it is first used."""
  if name == "__version__":
    from sgdx_t5x.signature import package_version

    globals()[name] = package_version()
    return globals()[name]
  if name not in PUBLIC:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  from importlib import import_module

  module, _, attribute = PUBLIC[name].partition(":")
  globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), attribute or name)
  return value


def __dir__() -> list[str]:
  return sorted({*globals(), *PUBLIC, "__version__"})


class _MovedModules:
  """Finds modules under their old paths: saved config.gin files and notebooks import them."""

  @staticmethod
  def find_spec(fullname: str, path: "Any" = None, target: "Any" = None) -> "Any":
    """As `importlib.abc.MetaPathFinder.find_spec`."""
    package, _, old = fullname.partition(".")
    if package != __name__ or old not in MOVED:
      return None
    from importlib.machinery import ModuleSpec

    return ModuleSpec(fullname, _MovedModules, is_package=True)  # type: ignore[arg-type]

  @staticmethod
  def create_module(spec: "Any") -> None:
    """As `importlib.abc.Loader.create_module`: the usual module."""

  @staticmethod
  def exec_module(module: "ModuleType") -> None:
    """Gives the module the names that are elsewhere now, each when it is asked for."""
    old = module.__name__
    places = [f"{__name__}.{new}" for new in MOVED[old.partition(".")[2]]]

    def find(name: str) -> "Any":
      import warnings
      from importlib import import_module

      for new in () if name.startswith("__") else places:
        found = import_module(new)
        if hasattr(found, name):
          moved = f"{old}.{name} has moved to {found.__name__}.{name}"
          warnings.warn(moved, DeprecationWarning, stacklevel=2)
          setattr(module, name, getattr(found, name))
          return getattr(found, name)
      raise AttributeError(f"module {old!r} has no attribute {name!r}: see {', '.join(places)}")

    module.__doc__ = f"Has moved to {', '.join(places)}."
    setattr(module, "__getattr__", find)  # noqa: B010 - checkers do not know it of a module


sys.meta_path.append(_MovedModules)
