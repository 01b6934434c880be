"""Chances as people count them, out of 1,000, and the icon array that shows them before and after a release."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.adversary import accuracy, belief
from sfumato.core.exact import Exact
from sfumato.core.guarantees import Approximate, Guarantee, Pure
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput
from sfumato.reports.catalogue import in_chinese, message
from sfumato.reports.chinese import percent

__all__ = ["OF", "PRIOR", "Frequencies", "believed", "frequencies", "guessed", "icons", "so_many"]

OF = 1000
PRIOR = Fraction(1, 10)
STAYS, MAY, REST = "●", "◐", "·"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequencies:
    """A chance of ``prior`` in 1,000 and what a release can make of it: ``low`` at the least, ``high`` at the most.

    ``low`` and ``high`` are rounded outward. With ``guess`` the figures are no belief but say how often a guess is
    right: ``prior`` blindly, ``high`` at best, and ``low`` is ``prior``, as nobody need guess worse than blindly.
    """

    prior: int
    low: int
    high: int
    guess: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.prior <= self.high <= OF:
            raise InvalidInput("frequencies must be in order, from 0 to 1,000: low, prior, high. Nothing was done.")

    @property
    def opposite(self) -> "Frequencies":
        """The same belief, said of the opposite: what may rise to ``high`` in the one may fall as far in the other.

        >>> Frequencies(prior=100, low=63, high=155).opposite
        Frequencies(prior=900, low=845, high=937, guess=False)
        """
        return Frequencies(prior=OF - self.prior, low=OF - self.high, high=OF - self.low, guess=self.guess)


def believed(guarantee: Guarantee, prior: Exact = PRIOR) -> Frequencies:
    """How far a belief can move.

    Guarantee and assumptions: those of :func:`sfumato.core.adversary.belief`, which refuses a δ. For a trait of someone
    known to be in the data, under add/remove, give the guarantee of a group of two.

    >>> believed(Pure(epsilon=Fraction(1, 2)))
    Frequencies(prior=100, low=63, high=155, guess=False)
    """
    moved = belief(guarantee, prior)
    return Frequencies(prior=round(OF * moved.prior), low=math.floor(OF * moved.low), high=math.ceil(OF * moved.high))


def guessed(guarantee: Guarantee) -> Frequencies:
    """How often the best guess from even odds is right: what can be said with a δ too.

    >>> guessed(Approximate(epsilon=Fraction(1), delta=Fraction(1, 10**6))).high
    732
    """
    return Frequencies(prior=OF // 2, low=OF // 2, high=math.ceil(OF * accuracy(guarantee)), guess=True)


def frequencies(release: Release) -> Frequencies:
    """What everything charged to the account, up to this release, can do to a chance of 100 in 1,000.

    Under add/remove the chance is that the unit is in the data, under replace that it has a certain trait. Where the
    account has spent a δ it is how often a guess from even odds is right.
    """
    spent = only_release(release).statement.account.spent
    if spent.delta > 0:
        return guessed(Approximate(epsilon=spent.epsilon, delta=spent.delta))
    return believed(Pure(epsilon=spent.epsilon))


def so_many(count: int, language: str) -> str:
    """A share in 1,000, as the language writes it: the number for English, a percentage for Chinese.

    >>> so_many(155, "en"), so_many(155, "zh")
    ('155', '15.5%')
    """
    return percent(count) if in_chinese(language) else f"{count:,}"


def icons(shown: Frequencies, language: str, *, columns: int = 50) -> str:
    """Draw 1,000 signs before and 1,000 after, for a terminal: ● up to ``low``, ◐ up to ``high``, · the rest.

    >>> print(icons(Frequencies(prior=100, low=63, high=155), "en", columns=250).partition("After")[0])
    Before: 100 in 1,000
    ●●●●●●●●●●...
    """
    if columns not in range(1, OF + 1) or OF % columns:
        raise InvalidInput(f"columns = {columns} does not divide 1,000; nothing was drawn. Give 25, 40, 50 or 100.")
    ends = {"prior": shown.prior, "low": shown.low, "high": shown.high}
    facts = {name: f"{count:,}" if shown.guess else so_many(count, language) for name, count in ends.items()}
    before = STAYS * shown.prior + REST * (OF - shown.prior)
    after = STAYS * shown.low + MAY * (shown.high - shown.low) + REST * (OF - shown.high)
    parts = [_rows(before, columns), _rows(after, columns)]
    legend = message(language, "icons.legend")
    if shown.guess:
        return "\n".join([message(language, "icons.guess", **facts), parts[0], "", parts[1], legend])
    heads = [message(language, f"icons.{name}", **facts) for name in ("before", "after")]
    return "\n".join([heads[0], parts[0], "", heads[1], parts[1], legend])


def _rows(signs: str, columns: int) -> str:
    return "\n".join(signs[start : start + columns] for start in range(0, OF, columns))
