"""Strategies over the steps of a stream or of a training run: whole numbers, declared and read without NumPy."""
