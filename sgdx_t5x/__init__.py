"""Robustness of schema-guided dialogue state tracking; see README.md. Costs no TensorFlow, no JAX."""
