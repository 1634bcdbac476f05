"""T5 1.0 and 1.1: network, layers, gin files by size."""
