"""t5x_lite: an independent implementation of the part of T5X this project's gin files use.

Importing this package costs nothing: submodules are imported by name (`from t5x import models`),
and the scripts (`python -m t5x.train`) read their flags before they import JAX or TensorFlow.
"""

__version__ = "0.2.0+lite"
