"""The least that one release may cost and still be as accurate as is wanted, by the distribution of the noise that
runs.

An amount is ε where charges add up as ε (Laplace noise) and ρ where they add up as ρ (Gaussian noise).
"""

from collections.abc import Callable
from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.exact import decimal_up, positive
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.governance.plans.many_errors import GaussianSum, LaplaceSum
from sfumato.governance.plans.plan import Accounting, Fixed, Margin, MeanError, PlannedRelease
from sfumato.laws import DiscreteLaplace, RoundedGaussian
from sfumato.mechanisms.calibration import least_epsilon_where

__all__ = ["Price", "ideal_epsilon", "law_at", "least_amount", "scale_at", "spread"]

Price = Callable[[PlannedRelease], Fraction]
DIGITS = 7


def spread(release: PlannedRelease, accounting: Accounting) -> Fraction:
    """The variance at an amount of 1: 2·l1² over ε² for Laplace noise, l2²/2 over ρ for Gaussian noise.

    >>> from sfumato.governance.periods import Cadence
    >>> daily = PlannedRelease(name="visits", every=Cadence.DAILY, l1=3, l2_squared=9)
    >>> spread(daily, Accounting.BASIC), spread(daily, Accounting.ZCDP)
    (Fraction(18, 1), Fraction(9, 2))
    """
    if accounting is Accounting.BASIC:
        return 2 * release.l1**2
    if release.l2_squared is None:
        raise NotDeclared(f"{release.name!r} has no l2 bound; nothing was planned. Declare l2_squared=…")
    return release.l2_squared / 2


def scale_at(release: PlannedRelease, amount: Fraction, accounting: Accounting) -> Fraction:
    """The scale of Laplace noise at ε, or the σ of Gaussian noise at ρ (to seven digits, rounded up).

    >>> from sfumato.governance.periods import Cadence
    >>> scale_at(PlannedRelease(name="visits", every=Cadence.DAILY, l1=1), Fraction(1, 2), Accounting.BASIC)
    Fraction(2, 1)
    """
    if accounting is Accounting.BASIC:
        return release.l1 / amount
    return Fraction(decimal_up(enclosures.sqrt(spread(release, accounting) / amount).high, DIGITS))


def law_at(
    release: PlannedRelease, amount: Fraction, accounting: Accounting, *, parts: int = 1
) -> DiscreteLaplace | RoundedGaussian | LaplaceSum | GaussianSum:
    """The error distribution of one number of a release, or of the sum over several releases."""
    scale = scale_at(release, amount, accounting)
    if accounting is Accounting.BASIC:
        return DiscreteLaplace(scale=scale) if parts == 1 else LaplaceSum(scale=scale, parts=parts)
    return RoundedGaussian(sigma=scale) if parts == 1 else GaussianSum(sigma=scale, parts=parts)


def least_amount(
    wanted: Margin | MeanError, root: PlannedRelease, accounting: Accounting, *, parts: int = 1
) -> Fraction:
    """The least amount, to four digits and rounded up, at which the sum of ``parts`` releases of ``root`` is accurate.

    Guarantee: the noise that runs keeps the margin, or the mean error, at the amount returned.
    Public: everything; no data is opened.

    >>> from sfumato.governance.periods import Cadence
    >>> daily = PlannedRelease(name="visits", every=Cadence.DAILY, l1=1)
    >>> target = Margin(margin=6, confidence=Fraction(19, 20))
    >>> least_amount(target, daily, Accounting.BASIC), float(ideal_epsilon(target, daily)) > 0.4992
    (Fraction(457, 1000), True)
    """

    def reaches(amount: Fraction) -> bool:
        law = law_at(root, amount, accounting, parts=parts)
        if isinstance(wanted, Margin):
            return law.covers(wanted.margin, wanted.confidence, numbers=root.numbers)
        return law.mean_absolute_error <= wanted.error

    return least_epsilon_where(reaches, f"is accurate enough for {root.name!r}")


def ideal_epsilon(wanted: Margin | MeanError, release: PlannedRelease) -> Fraction:
    """The textbook ε of continuous Laplace noise: l1·ln(1/(1 − confidence))/margin, or l1/error; rounded up.

    The whole-number noise that runs needs a little less; a plan charges what runs.

    >>> from sfumato.governance.periods import Cadence
    >>> daily = PlannedRelease(name="visits", every=Cadence.DAILY, l1=1)
    >>> round(float(ideal_epsilon(Margin(margin=5, confidence=Fraction(19, 20)), daily)), 4)
    0.5991
    """
    if isinstance(wanted, MeanError):
        return release.l1 / wanted.error
    if release.numbers != 1:
        raise InvalidInput("the textbook formula is for one number; nothing was computed. Use least_amount.")
    return release.l1 * enclosures.log(1 / (1 - wanted.confidence)).high / wanted.margin


def floor_of(
    release: PlannedRelease, root: PlannedRelease, accounting: Accounting, *, parts: int, price: Price | None
) -> Fraction:
    """What the root of a release must cost at least for this release; 0 where no accuracy is stated."""
    match release.wanted:
        case None:
            return Fraction(0)
        case Fixed(epsilon=epsilon):
            return epsilon if accounting is Accounting.BASIC else epsilon**2 / 2
    if price is not None:
        return positive(price(release), f"the price of {release.name!r}")
    return least_amount(release.wanted, root, accounting, parts=parts)
