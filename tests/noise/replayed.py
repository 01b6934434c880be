"""Sources of words for tests: they repeat themselves, which noise must never do."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from sfumato.noise.words import SystemWords, WordArray


class Exhausted(Exception):
    """More words were asked for than there are."""


class ReplayedWordsForTests:
    """Hands out the given words in order, and then fails."""

    def __init__(self, words: Sequence[int] | WordArray, *, width: int = 64) -> None:
        self.words = np.array(words, dtype=np.uint64)
        self.width = width
        self.used = 0

    def fill(self, out: WordArray) -> None:
        if self.used + out.size > self.words.size:
            raise Exhausted
        out[:] = self.words[self.used : self.used + out.size]
        self.used += out.size


def fresh(size: int) -> WordArray:
    """Words of the operating system, to be replayed."""
    words = np.empty(size, dtype=np.uint64)
    SystemWords().fill(words)
    return words


def enumerated(
    sample: Callable[[ReplayedWordsForTests], object], *, width: int, depth: int
) -> tuple[dict[object, Fraction], Fraction]:
    """The exact probability of each outcome over all sequences of at most ``depth`` words, and of none by then."""
    masses: dict[object, Fraction] = {}
    open_mass = Fraction(0)

    def below(path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        return ((*path, word) for word in range(1 << width))

    stack: list[tuple[int, ...]] = [()]
    while stack:
        path = stack.pop()
        mass = Fraction(1, 1 << (width * len(path)))
        words = ReplayedWordsForTests(path, width=width)
        try:
            outcome = sample(words)
        except Exhausted:
            if len(path) == depth:
                open_mass += mass
            else:
                stack += below(path)
        else:
            assert words.used == len(path)
            masses[outcome] = masses.get(outcome, Fraction(0)) + mass
    assert sum(masses.values()) + open_mass == 1
    return masses, open_mass
