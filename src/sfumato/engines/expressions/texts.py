"""Letters and texts: which letters have another form, and what the operations on texts give, in plain Python.

Engines disagree about letters beyond A to Z: by version, by language and by setting. So the pairs of small and capital
letters are listed here: those of the Latin, Greek and Cyrillic alphabets that have exactly one other form, and no
others. What an operation gives is known here too, so that the keys of a changed text follow from those of the text.
"""

from sfumato.engines.expressions.grammar import CHARACTERS, Cased, Concatenated, Ending, Replaced, Slice, Trimmed
from sfumato.engines.expressions.types import Side

__all__ = ["CAPITAL", "SMALL", "changed", "lowered"]

# Basic Latin, Latin-1, Latin Extended-A, Greek, Cyrillic; their pairs are fixed by Unicode for good.
BLOCKS = (range(0x41, 0x5B), range(0xC0, 0xDF), range(0x100, 0x180), range(0x370, 0x400), range(0x400, 0x530))
PAIRS = tuple(
    (capital, small)
    for block in BLOCKS
    for code in block
    if len(small := (capital := chr(code)).lower()) == 1 and small != capital and small.upper() == capital
)
CAPITAL, SMALL = "".join(capital for capital, _ in PAIRS), "".join(small for _, small in PAIRS)
TO_SMALL, TO_CAPITAL = str.maketrans(CAPITAL, SMALL), str.maketrans(SMALL, CAPITAL)


def lowered(text: str) -> str:
    """A text in small letters.

    >>> lowered("ÄRZTE")
    'ärzte'
    """
    return text.translate(TO_SMALL)


def changed(node: Cased | Trimmed | Slice | Ending | Replaced | Concatenated, *texts: str) -> str:
    """What an operation makes of texts.

    >>> from sfumato.engines.expressions.grammar import Named
    >>> changed(Cased(part=Named(column="x"), capital=True), "straße, ähnlich")
    'STRAßE, ÄHNLICH'
    """
    text = texts[0]
    match node:
        case Cased():
            return text.translate(TO_CAPITAL if node.capital else TO_SMALL)
        case Trimmed():
            text = text if node.side is Side.END else text.lstrip(" ")
            return text if node.side is Side.START else text.rstrip(" ")
        case Slice():
            first = node.start - 1
            return text[first:] if node.length is None else text[first : first + node.length]
        case Ending():
            return text[-node.length :] if node.length else ""
        case Replaced():
            return text[:CHARACTERS].replace(node.old, node.new)
        case Concatenated():
            return "".join(each[:CHARACTERS] for each in texts)
