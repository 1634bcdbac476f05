"""What SGP-DST's annex adds to the core, see `sgdx_t5x/annexes.py`."""

TRACKERS = dict.fromkeys(
  ("sgpdst_intent", "sgpdst_combine", "sgpdst_copy", "sgpdst_cross"),
  "sgdx_t5x.papers.sgpdst.tracker:load",
)
