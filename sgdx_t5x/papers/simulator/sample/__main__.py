"""Writes the sample's dialogues anew."""

from sgdx_t5x.papers.simulator.sample import write_files

write_files()
