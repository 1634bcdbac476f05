"""SGP-DST (Ruan et al., 2020): four sub-models that read a frame with an encoder."""
