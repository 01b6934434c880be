"""Generative adversarial networks: a private critic learns from units, and the generator from the critic alone."""
