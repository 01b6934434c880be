"""Research environment: programs of researchers run beside the data; nothing but private answers leaves.

Scripts run in boxes without data and ask by ``sf.connect()`` (:mod:`sfumato.research.connection`); what the board has
approved is run by :mod:`sfumato.research.environment`. Programs that see rows run in boxes, over blocks of persons
(:mod:`sfumato.boxes`): see ``vault.block_mean`` and ``vault.block_quantiles``.
"""

from sfumato.boxes.box import Box, BoxLimits
from sfumato.boxes.levels import BoxLevel, box_level

__all__ = ["Box", "BoxLevel", "BoxLimits", "box_level"]
