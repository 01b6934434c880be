"""Regression from noisy sums: on products of bounded columns, on counted cells, on rows spread over splines."""
