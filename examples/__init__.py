"""Generated networks, readers of public records and studies that the tutorials use; no part of the package.

Run what imports them from the top folder of a checkout, where ``import examples`` finds them.
"""
