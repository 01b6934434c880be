"""Boxes: programs of researchers over blocks of persons, shut off from everything, and private answers from them.

``QUERIES`` are all declarations that a certificate can hold; reading them needs neither data nor boxes.
"""

from sfumato.boxes.block_answers import BlockAnswer, BlockMean, BlockQuantiles, BlockTrimmedMean
from sfumato.boxes.sealed_program import SealedProgram
from sfumato.core.data_kind import DataKind

__all__ = ["KIND", "QUERIES", "BlockAnswer", "BlockMean", "BlockQuantiles", "BlockTrimmedMean", "SealedProgram"]

QUERIES: tuple[type, ...] = (BlockMean, BlockTrimmedMean, BlockQuantiles, BlockAnswer, SealedProgram)

KIND = DataKind(
    name="boxes",
    declarations=QUERIES,
    messages="sfumato.boxes",
    plots={},
    store="sfumato.boxes.store:BoxStore",
)
