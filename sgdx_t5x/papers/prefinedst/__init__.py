"""PrefineDST: pre-finetuning tasks before T5DST."""
