"""The gate: the one way to data.

``release`` gives one answer; ``session`` opens, advances and closes what answers step by step. Neither knows a kind
of data. Order, for both: declare, charge, read, draw, sign, store, deliver.
"""
