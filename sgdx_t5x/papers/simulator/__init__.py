"""The SGD paper's dialogue simulator (Rastogi et al. 2020, section 3); docs/papers/simulator.md."""
