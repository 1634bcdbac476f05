"""SGD-X in the harnesses that others use: an Inspect task, tasks of lm-evaluation-harness."""
