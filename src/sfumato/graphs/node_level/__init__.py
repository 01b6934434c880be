"""Privacy of nodes that is usable: a degree cap chosen privately, and triangles by an extension that is Lipschitz."""
