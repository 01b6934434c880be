"""Graph networks with privacy for nodes: whom a node reaches is chosen from its own list, and that is bounded."""
