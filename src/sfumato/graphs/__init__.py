"""Graphs: private statistics of networks, for the edge unit and the node unit."""
