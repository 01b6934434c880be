"""The clip of a run: one for the whole gradient of a unit, or one for each group of layers."""

from collections.abc import Mapping
from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.exact import Exact, decimal_up, positive
from sfumato.core.query import check_name
from sfumato.errors import InvalidInput

__all__ = ["Clip", "Clips", "clips_of", "squared_clip"]

Clip = Exact | Mapping[str, Exact]
Clips = tuple[tuple[str, Fraction], ...]
DIGITS = 9
MOST = 2**16


def clips_of(clip: Clip) -> tuple[Fraction, Clips | None]:
    """The clip of the whole gradient, and those of groups of layers where there are such; √Σ clip², rounded up.

    >>> clips_of({"body": 3, "head": 4})
    (Fraction(5, 1), (('body', Fraction(3, 1)), ('head', Fraction(4, 1))))
    """
    if not isinstance(clip, Mapping):
        return positive(clip, "clip"), None
    groups = tuple((name, positive(one, f"the clip of {name!r}")) for name, one in clip.items())
    return Fraction(decimal_up(enclosures.sqrt(squared_clip(groups)).high, DIGITS)), groups


def squared_clip(groups: Clips) -> Fraction:
    """Σ clip², after the groups were checked: at least one, with a name each, and each name once."""
    if not 1 <= len(groups) <= MOST or len({name for name, _ in groups}) != len(groups):
        raise InvalidInput("clip is a number, or has one for each group of layers by its name; nothing was done.")
    for name, _ in groups:
        if name != "":
            check_name(name, "the name of a group of layers")
    return sum((one * one for _, one in groups), Fraction(0))
