"""Perturbed corpora: what users say, changed so that every example stays answerable."""
