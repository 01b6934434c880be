"""The mechanism of a training run across sites: rounds of sums with Skellam noise of which every site adds a share."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from sfumato.accounting.basic import WHOLE, guarantee_of
from sfumato.core import events
from sfumato.core.budget import Budget
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import decimal_up, natural, positive, probability
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused, WrongNorm
from sfumato.laws.unstated import Unstated
from sfumato.mechanisms.matrix.steps.pattern import ADDED, Pattern
from sfumato.mechanisms.matrix.steps.toeplitz import moves

if TYPE_CHECKING:
    from sfumato.accounting.floats import Array

__all__ = ["MOST_ROUNDS", "SharedRounds"]

MOST_ROUNDS = 2**16
DIGITS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRounds:
    """Release ``rounds`` sums of whole numbers, each with Skellam noise of ``variance`` from honest sites.

    Without ``mix`` each round adds up a fresh Poisson sample at ``rate``, drawn in secret inside each site. With
    ``mix``, whole coefficients c_0, c_1, …, round t measures Σ c_k·x_(t−k) of the sums x of the last rounds, and a
    person counts in one of ``cycle`` turns, the same in every cycle: then nobody is sampled and ``rate`` is 1/cycle.

    Guarantee: :meth:`loss` bounds what all rounds say about a person whose numbers in one round move the sum of all
    sites by at most the sensitivity, at weights that follow from earlier rounds in any way. A person in k sites is in
    a round with probability 1 − (1 − rate)^k at most, and then moves it by no more than in all k at once.
    Assumes: what the secure sum assumes; samples and turns stay secret. Public: every field.
    Proof: docs/proofs/federated_training.md

    >>> run = SharedRounds(variance=Fraction(400), rounds=10, rate=Fraction(1, 10), sites_per_person=2)
    >>> run.loss(Sensitivity.of(l1=6, l2_squared=36)).event.rate
    Fraction(19, 100)
    """

    KIND: ClassVar[str] = "mechanism.shared_rounds"
    VERSION: ClassVar[int] = 1
    variance: Fraction
    rounds: int
    rate: Fraction
    sites_per_person: int = 1
    mix: tuple[int, ...] = ()
    cycle: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive(self.variance, "variance"))
        object.__setattr__(self, "rate", positive(probability(self.rate, "rate"), "rate"))
        natural(self.rounds, "rounds", most=MOST_ROUNDS)
        natural(self.sites_per_person, "sites_per_person", most=1024)
        natural(self.cycle, "cycle", most=MOST_ROUNDS)
        self._check_mix()

    def _check_mix(self) -> None:
        if not self.mix:
            if self.cycle != 1:
                raise InvalidInput("turns belong to a mix of rounds; nothing was done. Leave cycle out.")
            return
        for one in self.mix:
            natural(one, "a coefficient of the mix", least=0, most=2**20)
        if len(self.mix) > self.rounds or self.mix[0] == 0:
            raise InvalidInput(
                "a mix has at most as many coefficients as rounds, and begins above 0; nothing was done."
            )
        if any(later > sooner for sooner, later in zip(self.mix, self.mix[1:], strict=False)):
            raise InvalidInput("the coefficients of a mix do not rise; nothing was done.")
        if self.rate != Fraction(1, self.cycle):
            raise InvalidInput("with a mix a person counts in one of the turns: rate is 1/cycle. Nothing was done.")

    @property
    def law(self) -> Unstated:
        """What a model errs by is not known from its noise; no distribution is stated."""
        return Unstated()

    @property
    def sampling(self) -> Fraction:
        """The chance at most of a person to be in a round: in one of up to ``sites_per_person`` samples."""
        return 1 - (1 - self.rate) ** self.sites_per_person

    @property
    def squared(self) -> int:
        """How far one person moves all measurements of a mix, squared, in units of what they move one sum; exact.

        In several sites a person has several turns: each site alone moves them by at most this, and so does their mean.
        """
        if not self.mix:
            return 1
        column = (*self.mix, *(0 for _ in range(self.rounds - len(self.mix))))
        pattern = Pattern(times=-(-self.rounds // self.cycle), separation=self.cycle, change=ADDED)
        return sum(move * move for move in moves(column, pattern))

    def loss(self, moved: Sensitivity) -> PrivacyEvent:
        """The event of the whole run, for a person whose numbers move one sum by at most ``moved``."""
        if moved.l2 is None:
            raise WrongNorm("shared noise needs an l2 bound; this sensitivity has none. Nothing was done.")
        square = moved.l2.squared
        if self.mix:
            whole = self.squared * square
            return events.Skellam(l1=whole, l2_squared=whole, variance=self.variance)
        l1 = square if moved.l1 is None else min(square, moved.l1.value)
        step: PrivacyEvent = events.Skellam(l1=l1, l2_squared=square, variance=self.variance)
        if self.sampling < 1:
            step = events.PoissonSampled(rate=self.sampling, event=step)
        return events.Repeated(event=step, times=self.rounds)

    @classmethod
    def calibrated(
        cls,
        moved: Sensitivity,
        spend: Budget,
        *,
        rounds: int,
        rate: Fraction,
        sites_per_person: int = 1,
        mix: tuple[int, ...] = (),
        cycle: int = 1,
    ) -> "SharedRounds":
        """The least noise, to about a hundredth, with which a whole run keeps a spend.

        Guarantee: what is returned was itself accounted, by the proven Rényi bound, and keeps the spend.
        """
        if spend.delta == 0:
            raise Refused("noise that sites share needs a δ; nothing was read and nothing was spent. Say delta=1e-6.")
        one = cls(
            variance=Fraction(1), rounds=rounds, rate=rate, sites_per_person=sites_per_person, mix=mix, cycle=cycle
        )
        variance = _least(one, moved, spend)
        return cls(variance=variance, rounds=rounds, rate=rate, sites_per_person=sites_per_person, mix=mix, cycle=cycle)


@lru_cache(maxsize=64)
def _least(one: SharedRounds, moved: Sensitivity, spend: Budget) -> Fraction:
    """The least variance that keeps a spend, found in floats and then accounted."""
    if moved.l2 is None:
        raise WrongNorm("shared noise needs an l2 bound; this sensitivity has none. Nothing was done.")
    square = float(one.squared * moved.l2.squared)
    l1 = square if one.mix or moved.l1 is None else min(square, float(moved.l1.value))
    rate, times = (1.0, 1) if one.mix else (float(one.sampling), one.rounds)
    high = _found(square, l1, rate, times, float(spend.epsilon), float(spend.delta))
    for _ in range(60):
        variance = Fraction(decimal_up(Fraction(high), DIGITS))
        try:
            guarantee_of(_with(one, variance).loss(moved), spend)
        except Refused:
            high *= 1.004
            continue
        return variance
    raise Refused(f"no noise that sites can share keeps {spend}; nothing was read and nothing was spent.")


def _with(one: SharedRounds, variance: Fraction) -> SharedRounds:
    return SharedRounds(
        variance=variance,
        rounds=one.rounds,
        rate=one.rate,
        sites_per_person=one.sites_per_person,
        mix=one.mix,
        cycle=one.cycle,
    )


def _found(square: float, l1: float, rate: float, times: int, epsilon: float, delta: float) -> float:
    """About the least variance whose Rényi bound has this δ at ε, in floats."""

    def spent(variance: float) -> float:
        """ln δ at ε."""
        losses = _losses(square, l1, variance)
        logs = [times * (losses[order] if rate == 1 else _sampled(losses, rate, order)) for order in WHOLE]
        kept = (
            log - (order - 1) * epsilon + order * math.log1p(-1 / order) - math.log(order - 1)
            for log, order in zip(logs, WHOLE, strict=True)
        )
        return float(min(0.0, *kept))

    aim, high = math.log(delta), square
    while spent(high) > aim:
        high *= 4
        if high > square * 2.0**80:
            raise Refused("no noise within reach meets the target; nothing was found. Allow a larger ε or δ.")
    while spent(high / 4) <= aim:
        high /= 4
    low = high / 4
    while high - low > high / 500:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spent(middle) <= aim else (middle, high)
    return high


def _losses(square: float, l1: float, variance: float) -> "Array":
    """(α − 1)·D_α at whole orders from 0 on."""
    import numpy as np

    orders = np.arange(WHOLE[-1] + 1, dtype=np.float64)
    more = np.minimum(((2 * orders - 1) * square + 6 * l1) / (4 * variance**2), 3 * l1 / (2 * variance))
    found: Array = np.where(orders > 1, (orders - 1) * (orders * square / (2 * variance) + more), 0.0)
    return found


def _sampled(losses: "Array", rate: float, order: int) -> float:
    """ln Σ C(α, k) q^k (1 − q)^(α−k) e^((k−1)·D_k)."""
    import numpy as np

    terms = _log_binomial(order, rate) + losses[: order + 1]
    most = float(terms.max())
    return most + math.log(float(np.exp(terms - most).sum()))


@lru_cache(maxsize=1 << 10)
def _log_binomial(order: int, rate: float) -> "Array":
    """ln C(α, k) q^k (1 − q)^(α−k) for k = 0 … α."""
    import numpy as np
    from scipy.special import gammaln

    ks = np.arange(order + 1, dtype=np.float64)
    binomials = gammaln(order + 1) - gammaln(ks + 1) - gammaln(order - ks + 1)
    found: Array = binomials + ks * math.log(rate) + (order - ks) * math.log1p(-rate)
    return found
