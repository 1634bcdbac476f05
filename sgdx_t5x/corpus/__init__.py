"""DSTC8 corpora: schemas, dialogues, SGD-X variants, annotation rules, statistics, export."""
