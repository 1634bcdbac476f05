"""What the annex of the SGD paper's baseline adds to the core, see `sgdx_t5x/annexes.py`."""

COMMANDS = {"schema-embeddings": "sgdx_t5x.papers.sgd_baseline.command"}
SUMMARIES = {"schema-embeddings": "embed schemas for the SGD paper's baseline"}
TRACKERS = {"baseline": "sgdx_t5x.papers.sgd_baseline.tracker:load"}
