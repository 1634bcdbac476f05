"""What the annex adds to the core, see `sgdx_t5x/annexes.py`."""
