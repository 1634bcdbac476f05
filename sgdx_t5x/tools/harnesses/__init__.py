"""SGD-X in third-party evaluation harnesses: an Inspect task, lm-evaluation-harness tasks."""
