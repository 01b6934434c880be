"""How Chinese text is set, where a message is filled in: full-width signs, and one rule for spaces.

One space stands between a Chinese character and a letter, a figure or a mathematical sign, and none beside a full-width
sign. Messages follow the rule themselves (``tests/house/test_chinese.py``). What they are filled with may be Chinese or
not, so it is decided here where a fact meets its message. Within a fact nothing changes: names stay as they are.
"""

import string
from collections.abc import Iterator, Mapping
from functools import cache

__all__ = ["fill", "percent"]

CHARACTERS = (
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3040, 0x30FF),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)
SIGNS = frozenset("，。；：？！、（）《》〈〉【】「」『』“”‘’…—")
APART = frozenset("·=<>≤≥≠\0")  # what keeps the spaces of its message: a separating dot, a comparison, a mark


def fill(words: str, facts: Mapping[str, object]) -> str:
    """Fill in a Chinese message, with a space between a fact and its message where the rule has one.

    >>> fill("按 {columns} 的{names}", {"columns": "年龄段", "names": "人次"})
    '按年龄段的人次'
    >>> fill("按 {columns} 的{names}", {"columns": "age", "names": "n"})
    '按 age 的 n'
    """
    text = ""
    for piece in _pieces(words, facts):
        text = _met(text, piece)
    return text


def percent(thousandths: int) -> str:
    """A share in 1,000 as a percentage.

    >>> percent(100), percent(155), percent(1000)
    ('10%', '15.5%', '100%')
    """
    whole, rest = divmod(thousandths, 10)
    return f"{whole}.{rest}%" if rest else f"{whole}%"


def _pieces(words: str, facts: Mapping[str, object]) -> Iterator[str]:
    for text, name in _parsed(words):
        yield text
        if name is not None:
            yield str(facts[name])


@cache
def _parsed(words: str) -> tuple[tuple[str, str | None], ...]:
    return tuple((text, name) for text, name, _, _ in string.Formatter().parse(words))


def _met(left: str, right: str) -> str:
    """Two pieces one after the other; a piece of spaces alone waits for the next."""
    before, after = left.rstrip(" "), right.lstrip(" ")
    if not before or not after:
        return left + right
    last, first = before[-1], after[0]
    if last in APART or first in APART:
        return left + right
    if last in SIGNS or first in SIGNS or (_character(last) and _character(first)):
        return before + after
    return f"{before} {after}" if _character(last) or _character(first) else left + right


def _character(sign: str) -> bool:
    return any(first <= ord(sign) <= last for first, last in CHARACTERS)
