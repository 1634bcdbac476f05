"""Perturbed corpora: user utterances changed so that every example stays answerable."""
