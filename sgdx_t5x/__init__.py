"""Robustness of schema-guided dialogue state tracking. Importing costs no TensorFlow, no JAX."""
