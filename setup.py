"""Installs `sgdx_t5x`; `tasks/` and `metrics/` become sgdx_t5x.tasks and sgdx_t5x.metrics.

Gin files and documentation are installed too, as sgdx_t5x/gin and sgdx_t5x/docs.
"""

import pathlib

import setuptools

ROOT = pathlib.Path(__file__).parent
# Folders of the repository's root that are installed below sgdx_t5x.
ROOMS = {f"sgdx_t5x.{name}": name for name in ("tasks", "metrics", "gin", "docs")}
STATS = ["sacrebleu>=2.6"]  # sgdx stats
REPORT = ["jinja2>=3.1", "matplotlib>=3.10"]  # sgdx report
RETRIEVE = ["bm25s>=0.3"]  # sgdx tools requests --delivery retrieved:K
RUN = ["aiohttp>=3.14"]  # sgdx tools run
INSPECT = ["inspect-ai>=0.3.285"]  # SGD-X in Inspect: sgdx_t5x/harnesses
COMPOSE = ["spacy>=3.8", "spacy-lookups-data>=1.0.5"]  # sgdx compose

setuptools.setup(
  name="sgdx_t5x",
  version="0.1.0",
  description="Robustness of schema-guided dialogue state tracking: SGD-X with T5X and SeqIO",
  long_description=(ROOT / "README.md").read_text("utf-8"),
  long_description_content_type="text/markdown",
  author="The sgdx_t5x authors",
  license="Apache-2.0",
  project_urls={
    "Paper": "https://arxiv.org/abs/2110.06800",
    "Data": "https://github.com/google-research-datasets/dstc8-schema-guided-dialogue",
  },
  classifiers=[
    "Development Status :: 4 - Beta",
    "Environment :: Console",
    "Intended Audience :: Developers",
    "Intended Audience :: Science/Research",
    "Operating System :: POSIX",
    "Programming Language :: Python :: 3 :: Only",
    "Topic :: Scientific/Engineering :: Artificial Intelligence",
    "Typing :: Typed",
  ],
  keywords="dialogue state tracking, schema-guided dialogue, robustness, SGD-X, T5X, SeqIO, JAX",
  python_requires=">=3.11",
  packages=[*setuptools.find_packages(include=["sgdx_t5x", "sgdx_t5x.*"]), *ROOMS],
  package_dir=ROOMS,
  package_data={
    "sgdx_t5x": ["py.typed"],
    "sgdx_t5x.variants.shipped": ["*.jsonl"],
    "sgdx_t5x.docs": ["*.md", "metrics/*.md"],
    "sgdx_t5x.gin": ["*.gin", "*/*.gin", "*/*/*.gin"],
    "sgdx_t5x.prompts": ["README.md"],
    "sgdx_t5x.records": ["*.tsv"],
    "sgdx_t5x.report": ["page.css", "page.html", "page.js"],
    "sgdx_t5x.spandst": ["README.md"],
    "sgdx_t5x.tools.conformance": ["README.md", "cases.jsonl.gz"],
    "sgdx_t5x.corpus.sample": [
      *("README.md", "*.model", "vocab.txt", "*.json", "*.jsonl", "services/*.json")
    ],
    "sgdx_t5x.tools.harnesses": ["lm_eval/*.yaml", "lm_eval/*.py"],
    "sgdx_t5x.papers.checkdst": ["*.json"],
    "sgdx_t5x.papers.simulator": ["*.json"],
    "sgdx_t5x.tasks": ["README.md"],
  },
  # Scoring needs no TensorFlow and no JAX.
  install_requires=["filelock>=4", "numpy", "orjson>=3.10", "rapidfuzz", "rich"],
  extras_require={
    # seqio's tensorflow-text brings TensorFlow; asking for tensorflow-cpu too would clash.
    "train": [
      "clu>=0.0.12",
      "flax>=0.12.8",
      "gin-config>=0.5.0",
      "importlib_resources",  # tensorflow-datasets needs it and does not say so
      "jax>=0.10.2",
      "optax>=0.2.8",
      "orbax-checkpoint>=0.12.8",
      "safetensors>=0.8",  # sgdx weights
      "seqio>=0.0.20",
      "tensorflow-datasets>=4.9.10",
    ],
    "report": REPORT,
    "stats": STATS,
    "compose": COMPOSE,
    "retrieve": RETRIEVE,
    "run": RUN,
    "inspect": INSPECT,
    "lm-eval": ["lm-eval>=0.4.13"],  # to run sgdx_t5x/tools/harnesses/lm_eval; 0.7 GB
    "tpu": ["jax[tpu]"],  # a TPU VM, and t5x.main --run_mode=aot anywhere: libtpu, 0.7 GB
    "google": ["google-cloud-translate>=3.20"],  # sgdx backtranslate --provider google
    "hf": ["torch>=2.4", "transformers>=5", "sentencepiece"],  # sgdx backtranslate --provider hf
    "test": [
      "Levenshtein",
      "fuzzywuzzy>=0.18",
      "hypothesis>=6",
      "import-linter>=2.16",
      "jsonschema>=4.20",  # tools are JSON Schema
      "mypy>=2.4",
      "playwright>=1.50",  # drives a Chromium that is there; none is downloaded
      "pytest>=8",
      "pytest-xdist>=3.8",
      "ruff>=0.14",
      "setuptools>=70.1",  # Python 3.12 makes environments without it; tests build a wheel
      *REPORT,
      *STATS,
      *COMPOSE,
      *RETRIEVE,
      *RUN,
      *INSPECT,
    ],
  },
  entry_points={
    "console_scripts": ["sgdx=sgdx_t5x.cli:main"],
    # `inspect eval sgdx_t5x/sgdx` looks for tasks here.
    "inspect_ai": ["sgdx_t5x=sgdx_t5x.tools.harnesses.inspect_task"],
    # t5x_lite looks for gin files beside this package: gin/t5dst.gin works in every folder.
    "t5x.gin_search_paths": ["sgdx_t5x=sgdx_t5x.gin"],
  },
)
