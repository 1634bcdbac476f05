"""What the annex of SGD's simulator adds to the core, see `sgdx_t5x/annexes.py`."""

COMMANDS = {"simulate": "sgdx_t5x.papers.simulator.command"}
SUMMARIES = {"simulate": "simulate dialogues for a schema, to train on"}
