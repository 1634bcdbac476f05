"""What the annex of back-translation adds to the core, see `sgdx_t5x/annexes.py`."""

COMMANDS = {"backtranslate": "sgdx_t5x.papers.backtranslation.command"}
SUMMARIES = {"backtranslate": "back-translate names and descriptions of schemas"}
REWORDINGS = {f"bt_{pivot}": ("sgdx backtranslate", pivot) for pivot in ("zh", "ja", "ko")}
