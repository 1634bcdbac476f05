"""Encoders: BERT for T5X, WordPiece for SeqIO, heads, and the models of encoder trackers."""
