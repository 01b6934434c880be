"""Research environment: programs of researchers run beside the data in boxes; nothing but private answers leaves.

Here is the box so far: one program over one block of rows, shut off from everything. What turns answers of blocks into
a release is not built yet, so that nothing of it is offered by the vault.
"""

from sfumato.research.box import NOT_HIDDEN, Box, BoxLevel, BoxLimits, box_level

__all__ = ["NOT_HIDDEN", "Box", "BoxLevel", "BoxLimits", "box_level"]
