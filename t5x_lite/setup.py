"""Packaging of t5x_lite: distribution `t5x`, version 0.0.0+lite, import name `t5x`.

The name is that of Google's T5X on purpose: installing Google's T5X replaces this package, and
gin files written for one run on the other.
"""

import pathlib

import setuptools

setuptools.setup(
  name="t5x",
  version="0.0.0+lite",
  description="The part of the T5X surface this project's gin files use, from PyPI packages",
  long_description=(pathlib.Path(__file__).parent / "README.md").read_text("utf-8"),
  long_description_content_type="text/markdown",
  author="The sgdx_t5x authors",
  license="Apache-2.0",
  python_requires=">=3.10",
  packages=setuptools.find_namespace_packages(include=["t5x", "t5x.*"]),
  package_data={"": ["*.gin"]},
  include_package_data=True,
  install_requires=[
    "absl-py",
    "clu>=0.0.12",  # metrics
    "etils[epath]",
    "filelock>=4",
    "flax>=0.10",
    "gin-config>=0.5.0",
    "jax>=0.4.34",
    "msgpack",
    "numpy",
    "optax>=0.2.3",
    "orbax-checkpoint>=0.11",  # PyTreeRestore(partial_restore=...)
    "seqio>=0.0.19",
    "tensorboard",  # TensorFlow no longer brings it; tf.summary and seqio need it
    "tensorstore",
  ],
  extras_require={"test": ["pytest"], "gcs": ["gcsfs", "google-cloud-storage"]},
)
