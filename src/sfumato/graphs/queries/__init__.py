"""What can be asked of a graph."""
