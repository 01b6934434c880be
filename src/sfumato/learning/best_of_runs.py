"""The best of a hidden number of training runs: the mechanism that the certificate of a search states."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.accounting import rdp
from sfumato.accounting.calibrate import calibrate_sigma
from sfumato.core.budget import Budget
from sfumato.core.events import Tuned
from sfumato.core.exact import decimal_up, natural, non_negative, positive, probability
from sfumato.core.hidden_runs import MOST_RUNS, expected_runs
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.laws.unstated import Unstated
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.training import Training
from sfumato.mechanisms.gaussian import Gaussian

__all__ = ["BestOfRuns"]

DIGITS = 6
NEAR, CLOSE = Fraction(9999, 10000), Fraction(999, 1000)  # of an ε: what a search aims at, and what it is content with
ROUNDS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOfRuns:
    """Train K models, each with one of ``runs`` drawn at random; release the one whose noisy score is the best.

    Each run trains by its noisy sums on the units that are not held out, and counts how many of those that are held out
    its model gets right, with the noise of ``score``. K is secret, at most ``most``, and of the law of
    :class:`~sfumato.core.events.Tuned` with ``eta`` and ``gamma``.

    Guarantee: that of a :class:`~sfumato.core.events.Tuned` event whose run is one of ``runs``, or the score. Assumes:
    whether a unit is held out is a coin of its own; nothing but the best model, its settings and its score leaves.
    Public: every field. Sensitive: K, and all other models and scores. Proof: docs/proofs/tuning.md

    >>> run = NoisySums(multiplier=Fraction(20), steps=10, rate=Fraction(1), parameters=100)
    >>> best = BestOfRuns(runs=(run,), score=Gaussian(l2_squared=Fraction(1), sigma=Fraction(8)), eta=Fraction(1),
    ...                   gamma=Fraction(1, 10), most=40)
    >>> best.loss(Sensitivity.of(l2_squared=1)).most, float(round(best.expected, 2))
    (40, 9.4)
    """

    KIND: ClassVar[str] = "mechanism.best_of_runs"
    VERSION: ClassVar[int] = 1
    runs: tuple[NoisySums, ...]
    score: Gaussian
    eta: Fraction
    gamma: Fraction
    most: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", non_negative(self.eta, "eta"))
        object.__setattr__(self, "gamma", positive(probability(self.gamma, "gamma"), "gamma"))
        natural(self.most, "most", most=MOST_RUNS)
        if not self.runs:
            raise InvalidInput("a search has at least one candidate; nothing was done.")

    @classmethod
    def calibrated(
        cls, runs: Sequence[Training], spend: Budget, *, eta: Fraction, gamma: Fraction, most: int
    ) -> "BestOfRuns":
        """The least noise, to about a thousandth of ε, with which the whole search keeps a spend.

        All candidates would keep the same ε by themselves, and so would the score.
        """
        if spend.delta == 0:
            raise InvalidInput("the noise of training is Gaussian and needs a delta above 0; nothing was done.")
        alone = spend.epsilon / 2
        kinds = {(run.steps, run.rate) for run in runs}
        known = {
            (steps, rate): calibrate_sigma(epsilon=alone, delta=spend.delta, steps=steps, sampling=rate)
            for steps, rate in kinds
        }
        score = Gaussian.calibrated(l2=1, epsilon=alone, delta=spend.delta).sigma

        def scaled(by: Fraction) -> "BestOfRuns":
            sums = tuple(
                NoisySums(
                    multiplier=_up(by * known[run.steps, run.rate]),
                    steps=run.steps,
                    rate=run.rate,
                    parameters=run.parameters,
                )
                for run in runs
            )
            own = Gaussian(l2_squared=Fraction(1), sigma=_up(by * score))
            return cls(runs=sums, score=own, eta=eta, gamma=gamma, most=most)

        return _least(scaled, spend)

    @property
    def expected(self) -> Fraction:
        """How many runs count on average."""
        return expected_runs(self.eta, self.gamma, self.most)

    @property
    def law(self) -> Unstated:
        """The noise is in the weights, and the best score is not a score with noise; no distribution is stated."""
        return Unstated()

    def loss(self, moved: Sensitivity) -> Tuned:
        """The event of the whole search, for a unit that moves the held-out count by at most l2."""
        runs = dict.fromkeys(run.loss(moved) for run in self.runs)
        return Tuned(events=(*runs, self.score.loss(moved)), eta=self.eta, gamma=self.gamma, most=self.most)


def _up(value: Fraction) -> Fraction:
    return Fraction(decimal_up(value, DIGITS))


def _least(scaled: Callable[[Fraction], BestOfRuns], spend: Budget) -> BestOfRuns:
    """The mechanism with about the least scale that keeps a spend; ε falls about as one over the scale."""
    scale, best = Fraction(1), None
    for _ in range(ROUNDS):
        tried = scaled(scale)
        found = rdp.epsilon(tried.loss(Sensitivity.of(l2_squared=1)), delta=spend.delta)
        if found <= spend.epsilon * NEAR:
            best = tried
            if found >= spend.epsilon * CLOSE:
                break
        aim = spend.epsilon * (NEAR + CLOSE) / 2
        scale = _up(scale * found / aim)
    if best is None:
        raise Refused("no noise within reach keeps this ε and δ; nothing was read or spent. Allow a larger ε or δ.")
    return best
