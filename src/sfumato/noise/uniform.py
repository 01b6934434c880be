"""A uniform real number whose bits are drawn only as far as a question about it needs them."""

from fractions import Fraction

from sfumato.core import enclosures
from sfumato.errors import InvalidInput
from sfumato.noise.words import WordBits, Words

__all__ = ["MOST_BITS", "SPARE", "Uniform", "fixed_exp"]

MOST_BITS = 1 << 16  # the most that core.enclosures computes; a draw asks for more with probability below 2^-65000
SPARE = 32  # bits by which an enclosure is finer than the bits already drawn


class Uniform:
    """A uniform number of [0, 1), known to lie in [prefix, prefix + 1)·2^−bits.

    Guarantee: an answer is given only where it is the same for every number of that interval; otherwise one more word
    is drawn. So every answer is the one that the real number itself would give.
    Proof: docs/proofs/exact_samplers.md

    >>> from sfumato.noise.words import SystemWords
    >>> Uniform(SystemWords(), prefix=0, bits=8).below_exp(Fraction(1))
    True
    """

    __slots__ = ("_words", "bits", "prefix")

    def __init__(self, words: Words, *, prefix: int = 0, bits: int = 0) -> None:
        self._words = words
        self.prefix = prefix
        self.bits = bits

    def refine(self) -> None:
        """Draw one more word."""
        width = self._words.width
        if self.bits + width + SPARE > MOST_BITS - 64:
            raise InvalidInput("a draw needed more than 65,000 random bits; nothing was returned. Draw again.")
        self.prefix = self.prefix << width | WordBits(self._words).number(width)
        self.bits += width

    def below_exp(self, x: Fraction) -> bool:
        """Whether the number is below exp(−x), for x ≥ 0: a coin of exactly that probability."""
        if not x:
            return True
        while True:
            precision = self.bits + SPARE
            low, high = fixed_exp(x, precision)
            if (self.prefix + 1) << SPARE <= low:
                return True
            if self.prefix << SPARE >= high:
                return False
            self.refine()


def fixed_exp(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose exp(−x), x ≥ 0, between two whole numbers of units 2^−bits that lie few units apart.

    >>> fixed_exp(Fraction(1), 8), fixed_exp(Fraction(0), 8), fixed_exp(Fraction(10**9), 8)
    ((94, 95), (256, 256), (0, 1))
    """
    if x > bits:  # exp(−bits) is below one unit
        return 0, 1
    around = enclosures.exp(-x, bits=bits)
    low, high = around.low, around.high
    return (low.numerator << bits) // low.denominator, -((-high.numerator << bits) // high.denominator)
