"""Training small models from scratch: a structured initialisation and small vocabularies."""
