"""What the annex of SGD's simulator adds to the core, see `sgdx_t5x/annexes.py`."""

COMMANDS = {"simulate": "sgdx_t5x.papers.simulator.command"}
SUMMARIES = {"simulate": "simulate dialogues for a schema: training data without annotators"}
RECORDS = {
  "sim": (
    "sgdx simulate --schema schema.json --split train --out FOLDER",
    "papers/prefinedst",
    "prefine",
    "",
  )
}
