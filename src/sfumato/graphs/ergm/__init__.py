"""Exponential random graph models: private sufficient statistics, and inference that models their noise."""
