"""Tracks dialogues with checkpoints of `t5x.train`; `sgdx track` and `sgdx_t5x.load_tracker`.

`protocol.py` defines what a tracker is. This file imports neither TensorFlow nor JAX.
"""
