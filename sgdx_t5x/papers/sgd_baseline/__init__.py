"""The baseline of the SGD paper (Rastogi et al., AAAI 2020): BERT and schema embeddings."""
