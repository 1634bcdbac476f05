"""Cases written for a suite: values first, then sentences, by a program or by a model."""
