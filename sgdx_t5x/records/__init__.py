"""Records on disk: the TensorFlow Datasets builder, how it is prepared, and what tasks read."""
