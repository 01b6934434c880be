"""Losses over several people and other ways of learning, each with its true sensitivity."""
