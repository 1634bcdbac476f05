"""The packages of `sgdx_t5x`; pyproject.toml has its metadata.

`tasks/` and `metrics/` become sgdx_t5x.tasks and sgdx_t5x.metrics. Gin files and documentation are
installed too, as sgdx_t5x/gin and sgdx_t5x/docs.
"""

import setuptools

# Folders of the repository's root that are installed below sgdx_t5x.
ROOT_FOLDERS = {f"sgdx_t5x.{name}": name for name in ("tasks", "metrics", "gin", "docs")}

setuptools.setup(
  packages=[*setuptools.find_packages(include=["sgdx_t5x", "sgdx_t5x.*"]), *ROOT_FOLDERS],
  package_dir=ROOT_FOLDERS,
  include_package_data=False,  # what package_data names, and no warning for each folder of it
  package_data={
    "": ["README.md", "py.typed", "*.json", "*.jsonl", "*.gz", "*.xz", "*.tsv", "*.model", "*.txt"],
    "sgdx_t5x.corpus.sample": ["services/*.json"],
    "sgdx_t5x.docs": ["**/*.md"],
    "sgdx_t5x.gin": ["**/*.gin"],
    "sgdx_t5x.report": ["page.*", "*.mplstyle"],
    "sgdx_t5x.spandst": ["shipped/*"],
    "sgdx_t5x.tools.harnesses": ["lm_eval/*"],
  },
)
