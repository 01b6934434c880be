"""Regression from noisy sums: linear on products of bounded columns, logistic and Poisson on counted cells."""
