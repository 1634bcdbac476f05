"""T5 without pretraining: structured initialisation, small vocabularies."""
