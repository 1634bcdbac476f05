"""CoCo: counterfactual user goals and utterances (Li et al., ICLR 2021), for SGD."""
