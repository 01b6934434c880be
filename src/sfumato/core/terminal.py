"""Text for terminals: how wide it is, lines of a given width, and nothing in it that could move a cursor."""

import unicodedata
from collections.abc import Iterator

__all__ = ["harmless_text", "padded", "text_width", "wrapped"]

NOT_FIRST = frozenset("，。；：？！、）》〉】」』”’…—%,.;:?!)]")
"""Signs that do not begin a line."""


def text_width(text: str) -> int:
    """How many places of a terminal a text takes; Chinese signs take two.

    >>> text_width("n = 3"), text_width("人数")
    (5, 4)
    """
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def harmless_text(text: str) -> str:
    """A text with whatever could move a cursor, or start a line, spelled out.

    >>> harmless_text("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def padded(text: str, width: int, *, right: bool = False) -> str:
    """A text with spaces up to a width, after it or before it.

    >>> padded("人", 4), padded("7", 3, right=True)
    ('人  ', '  7')
    """
    space = " " * max(0, width - text_width(text))
    return space + text if right else text + space


def wrapped(text: str, width: int, *, after: str = "") -> list[str]:
    """Lines of at most this width, broken at spaces and between Chinese signs; later lines start with ``after``.

    >>> wrapped("one two three", 8, after="  ")
    ['one two', '  three']
    """
    lines, line = [], ""
    for piece in _pieces(text):
        joined = line + piece
        if line.strip() and text_width(joined.rstrip()) > width:
            lines.append(line.rstrip())
            joined = after + piece.lstrip()
        line = joined
    return [*lines, line.rstrip()]


def _pieces(text: str) -> Iterator[str]:
    """Parts that stay together: words with the spaces before them, and single wide signs."""
    piece = ""
    for sign in text:
        wide = unicodedata.east_asian_width(sign) in "WF"
        ended = bool(piece) and unicodedata.east_asian_width(piece[-1]) in "WF"
        starts = sign == " " if piece and piece[-1] != " " else False
        if piece and sign not in NOT_FIRST and (starts or wide or (ended and sign != " ")) and piece.strip():
            yield piece
            piece = ""
        piece += sign
    yield piece
