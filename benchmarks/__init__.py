"""Benchmarks: ours beside the peers, ratios in one run. A speed is never asserted in a test."""
