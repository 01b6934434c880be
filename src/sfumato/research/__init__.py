"""Research environment: programs of researchers run beside the data; nothing but private answers leaves.

Programs that see rows run in boxes, over blocks of persons (:mod:`sfumato.boxes`): see ``vault.block_mean`` and
``vault.block_quantiles``.
"""

from sfumato.boxes.box import NOT_HIDDEN, Box, BoxLevel, BoxLimits, box_level

__all__ = ["NOT_HIDDEN", "Box", "BoxLevel", "BoxLimits", "box_level"]
