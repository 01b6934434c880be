"""Every way a draw can go: a source of bits that is run through all its answers, and the exact law that results."""

from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any


class _Path:
    """Answers with a path fixed beforehand, and with 0 beyond its end."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.bounds: list[int] = []

    def below(self, bound: int) -> int:
        place = len(self.bounds)
        self.bounds.append(bound)
        if place == len(self.path):
            self.path.append(0)
        return self.path[place]


def law(draw: Callable[[Any], Hashable]) -> dict[Hashable, Fraction]:
    """The exact law of what ``draw`` gives, over all answers of its source."""
    found: dict[Hashable, Fraction] = {}
    path: list[int] = []
    while True:
        source = _Path(path)
        outcome = draw(source)
        chance = Fraction(1)
        for bound in source.bounds:
            chance /= bound
        found[outcome] = found.get(outcome, Fraction(0)) + chance
        path = source.path[: len(source.bounds)]
        while path and path[-1] == source.bounds[len(path) - 1] - 1:
            path.pop()
        if not path:
            return found
        path[-1] += 1
