"""Labels and decoding rules of trackers that read a frame with an encoder; NumPy alone."""
