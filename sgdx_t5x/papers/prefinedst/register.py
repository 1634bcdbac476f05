"""What the annex of PrefineDST adds to the core, see `sgdx_t5x/annexes.py`."""

RECORDS = {
  "sim": (
    "sgdx simulate --schema schema.json --split train --out FOLDER",
    "gin/papers/prefinedst/{}prefine.gin",
    "",
    "",
    "SGDX_CORPUS=FILE",
  )
}
