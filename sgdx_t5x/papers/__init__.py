"""Annexes: one folder per paper, which `register.py` in it makes known to the core."""
