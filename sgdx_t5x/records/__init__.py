"""Records on disk: the TensorFlow Datasets builder, how it is prepared, and T5DST examples."""
