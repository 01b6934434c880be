"""Power and sample size before anything is spent, with the privacy noise in every variance.

A study is planned from figures that somebody assumes: two proportions, a difference of means, a hazard ratio. What the
noise adds to the variance of each estimate follows from the cells that are released, so that power, sample size and
the least ε come from one formula. Proof: docs/proofs/design.md
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol

from sfumato.core.description import Word, phrase
from sfumato.core.exact import Exact, natural, positive, probability, rational
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.query import Law
from sfumato.core.question import Preview
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.mechanisms.advisor import least_noise
from sfumato.studies.design_result import DesignResult, Facts
from sfumato.studies.error_sum import ErrorSum, NoiseShape
from sfumato.studies.result import ResultTable
from sfumato.studies.survival_plan import Survival

__all__ = ["Means", "PowerResult", "Proportions", "power"]

MOST = 10**9
LEAST_EPSILON, MOST_EPSILON = 1e-4, 1e4
SILENT = NoiseShape(variance=0.0, laplace=True)


class _Design(Protocol):
    """What is compared: the difference to be found, and the error of its estimate with and without a difference."""

    @property
    def difference(self) -> float:
        """What is to be found."""
        ...

    def error(self, n: int, noise: NoiseShape, *, null: bool) -> ErrorSum:
        """The error of the estimated difference with ``n`` rows in each arm."""
        ...

    @property
    def words(self) -> Word:
        """What is compared."""
        ...

    def needs(self, n: int, noise: NoiseShape) -> tuple[Word, ...]:
        """What a reader must know of this size and noise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportions:
    """Two proportions, read off noisy counts of the rows that meet a condition and of those that do not.

    Var p̂ = p(1 − p)/n + σ²((1 − p)² + p²)/n², since p̂ − p is ((1 − p)·noise − p·noise)/n to first order.
    """

    first: float
    second: float

    @property
    def difference(self) -> float:
        """The difference that is to be found."""
        return self.first - self.second

    def error(self, n: int, noise: NoiseShape, *, null: bool) -> ErrorSum:
        """The error of p̂₁ − p̂₂; under the null hypothesis both proportions are their mean."""
        pooled = (self.first + self.second) / 2
        arms = (pooled, pooled) if null else (self.first, self.second)
        parts = [(c / n, noise) for p in arms for c in (1 - p, p)]
        return ErrorSum.made(sum(p * (1 - p) for p in arms) / n, parts)

    @property
    def words(self) -> Word:
        """What is compared."""
        return phrase("design.proportions", first=f"{self.first:.4g}", second=f"{self.second:.4g}")

    def needs(self, n: int, noise: NoiseShape) -> tuple[Word, ...]:
        """Few expected events make the normal distribution of the counts coarse."""
        fewest = n * min(self.first, self.second, 1 - self.first, 1 - self.second)
        return (phrase("design.few_events", n=f"{n:,}"),) if fewest < 5 else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Two means of values held to bounds, read off three noisy sums that add up to the number of rows.

    With values x on [0, 1] the parts are (1 − x)², 2x(1 − x) and x²; the noise in the mean is Σcⱼ·noiseⱼ/n with
    c = (−x̄, ½ − x̄, 1 − x̄).
    """

    change: float
    sd: float
    width: float
    place: float

    @property
    def difference(self) -> float:
        """The difference that is to be found."""
        return self.change

    def error(self, n: int, noise: NoiseShape, *, null: bool) -> ErrorSum:
        """The error of the difference of the means; the same with and without a difference."""
        del null
        parts = [(self.width * c / n, noise) for c in (-self.place, 0.5 - self.place, 1 - self.place) for _ in range(2)]
        return ErrorSum.made(2 * self.sd**2 / n, parts)

    @property
    def words(self) -> Word:
        """What is compared."""
        return phrase("design.means", difference=f"{self.change:.4g}", sd=f"{self.sd:.4g}", width=f"{self.width:.4g}")

    def needs(self, n: int, noise: NoiseShape) -> tuple[Word, ...]:
        """The standard deviation is known from private data only, which costs a little at small n."""
        return (phrase("design.few_rows", n=f"{n:,}"),) if n < 30 else ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PowerResult(DesignResult):
    """Power at sizes and ε, what the noise costs of it, and what was asked for: a sample size or an ε.

    Guarantee: made of assumed figures; no data is opened and nothing is spent. Assumes: the figures that were given.
    """

    design: _Design
    alpha: float
    n: tuple[int, ...]
    epsilons: tuple[float, ...]
    noises: tuple[NoiseShape, ...]
    wanted: float | None
    asked: Literal["power", "n", "epsilon"]
    sources: tuple[()] = ()

    @property
    def title(self) -> Word:
        """What was worked out."""
        return phrase(f"design.power_{self.asked}")

    def power_at(self, n: int, noise: NoiseShape = SILENT) -> float:
        """The power with ``n`` rows in each arm and this noise in each cell."""
        return _power(self.design, n, noise, self.alpha)

    @property
    def power(self) -> float:
        """The power at the first size and the first ε."""
        return self.power_at(self.n[0], self.noises[0])

    @property
    def power_without_noise(self) -> float:
        """The power that the same rows would have without privacy noise."""
        return self.power_at(self.n[0])

    @property
    def n_per_arm(self) -> int:
        """The rows in each arm."""
        return self.n[0]

    @property
    def epsilon(self) -> float:
        """The ε of the release."""
        return self.epsilons[0]

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """One row for each size and ε."""
        del confidence
        rows = [(n, epsilon, noise) for n in self.n for epsilon, noise in zip(self.epsilons, self.noises, strict=True)]
        with_noise = [self.power_at(n, noise) for n, _, noise in rows]
        without = [self.power_at(n) for n, _, _ in rows]
        totals = [self.design.error(n, noise, null=False).total for n, _, noise in rows]
        silent = [self.design.error(n, SILENT, null=False).total for n, _, _ in rows]
        columns: dict[str, Sequence[int | float]] = {
            "rows per arm": [n for n, _, _ in rows],
            "epsilon": [epsilon for _, epsilon, _ in rows],
            "power": with_noise,
            "power without noise": without,
            "power lost to noise": [b - a for a, b in zip(with_noise, without, strict=True)],
            "noise variance per cell": [noise.variance for _, _, noise in rows],
            "noise share of variance": [1 - b / a for a, b in zip(totals, silent, strict=True)],
        }
        return (ResultTable(name="power", columns=columns),)

    def findings(self, confidence: Exact = Fraction(19, 20)) -> tuple[Word, ...]:
        """The power of each size and ε, and what it would be without the noise."""
        del confidence
        return tuple(
            phrase(
                "design.power_found",
                n=f"{n:,}",
                epsilon=f"{epsilon:.4g}",
                power=f"{self.power_at(n, noise):.2f}",
                without=f"{self.power_at(n):.2f}",
            )
            for n in self.n
            for epsilon, noise in zip(self.epsilons, self.noises, strict=True)
        )

    @property
    def facts(self) -> Facts:
        """What is compared, and at which level."""
        facts: Facts = (
            (phrase("design.compared"), self.design.words),
            (phrase("design.level"), f"{self.alpha:.4g}"),
        )
        if self.wanted is not None:
            facts += ((phrase("design.wanted"), f"{self.wanted:.4g}"),)
        if self.asked == "n":
            alone = sample_size(self.design, SILENT, self.alpha, self.wanted or 0.0)
            facts += ((phrase("design.n_without_noise"), f"{alone:,}"),)
        return facts

    @property
    def notes(self) -> tuple[Word, ...]:
        """What the figures rest on."""
        needs: list[Word] = []
        for n in self.n:
            for noise in self.noises:
                needs += [note for note in self.design.needs(n, noise) if note not in needs]
        return (phrase("design.assumed"), *needs, phrase("design.not_judged"))

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture | None:
        """Power against rows in each arm, for each ε and without noise."""
        del confidence
        top = max(2 * max(self.n), sample_size(self.design, self.noises[0], self.alpha, 0.9, most=20 * max(self.n)))
        sizes = sorted({max(2, round(top * step / 40)) for step in range(1, 41)})
        named = [(f"ε = {epsilon:.4g}", noise) for epsilon, noise in zip(self.epsilons, self.noises, strict=True)]
        lines = [*named[:2], ("without noise", SILENT)]
        return Picture(
            kind="lines",
            rows=[
                PictureRow(at=float(n), value=self.power_at(n, noise), group=name)
                for name, noise in lines
                for n in sizes
            ],
            title=phrase("design.power_curves"),
            across=phrase("design.rows_per_arm"),
            upward=phrase("design.power"),
            lines=(self.design.words,),
            reference=self.wanted,
            within=(0.0, 1.0),
        )


def power(
    outcome: Literal["proportion", "mean", "log-rank"],
    *,
    n: int | Sequence[int] | None = None,
    epsilon: Exact | Sequence[Exact] | None = None,
    power: Exact | None = None,
    first: Exact | None = None,
    second: Exact | None = None,
    difference: Exact | None = None,
    sd: Exact | None = None,
    bounds: tuple[Exact, Exact] | None = None,
    mean: Exact | None = None,
    hazard_ratio: Exact | None = None,
    events: Exact | None = None,
    bins: int | None = None,
    alpha: Exact = Fraction(1, 20),
    delta: Exact = 0,
    noise: Preview | Law | None = None,
    relation: Literal["add/remove", "replace"] = "add/remove",
) -> PowerResult:
    """Power, sample size or least ε of a two-arm comparison, with the privacy noise inside; costs nothing.

    ``outcome`` says what is compared: ``"proportion"`` takes ``first`` and ``second``; ``"mean"`` takes the
    ``difference``, the ``bounds`` of the values and their ``sd`` (half the width of the bounds if not given, the
    worst there is); ``"log-rank"`` takes the ``hazard_ratio``, the share ``events`` of the first arm that has the
    event within the follow-up, and the number of time ``bins``.
    Give two of ``n`` (rows in each arm), ``epsilon`` and ``power``; the third is worked out. ``n`` and ``epsilon`` may
    be lists.

    The noise in each cell is Laplace with b = 1/ε, of variance 2b² (b = 2/ε under *replace*); with a ``delta`` the
    smaller of that and Gaussian noise; or what ``noise`` says, a preview of the very question or an error
    distribution.

    Guarantee: no data is opened and nothing is spent. Assumes: the figures that were given, a two-sided test whose null
    distribution holds sampling and noise, and one row for each person.

    >>> planned = power("proportion", first=0.30, second=0.20, n=400, epsilon=0.1)
    >>> round(planned.power, 3), round(planned.power_without_noise, 3)
    (0.506, 0.906)
    >>> power("proportion", first=0.30, second=0.20, power=0.9, epsilon=1).n_per_arm
    399
    """
    design = _design(
        outcome,
        {
            "first": first,
            "second": second,
            "difference": difference,
            "sd": sd,
            "bounds": bounds,
            "mean": mean,
            "hazard_ratio": hazard_ratio,
            "events": events,
            "bins": bins,
        },
    )
    level = float(probability(alpha, "alpha"))
    if not 0 < level < 1:
        raise InvalidInput("alpha must lie between 0 and 1, such as 0.05; nothing was computed.")
    given = [name for name, value in (("n", n), ("epsilon", epsilon), ("power", power)) if value is not None]
    by_noise = noise is not None
    if by_noise and "epsilon" in given:
        raise InvalidInput(
            "noise says how much noise there is, and epsilon says it again; nothing was computed. Give one of them."
        )
    if len(given) + by_noise != 2:
        raise InvalidInput(
            f"two of n, epsilon and power say what the third must be, and {len(given) + by_noise} were given; nothing "
            "was computed. Say n=400, epsilon=1 for the power."
        )
    if relation not in ("add/remove", "replace"):
        raise InvalidInput("relation is 'add/remove' or 'replace'; nothing was computed.")
    moved = 2 if relation == "replace" else 1
    wanted = None if power is None else float(probability(power, "power"))
    if wanted is not None and not level < wanted < 1:
        raise InvalidInput("the wanted power must lie above alpha and below 1; nothing was computed.")
    if power is not None and (len(_listed(n)) > 1 or len(_listed(epsilon)) > 1):
        raise InvalidInput("for a wanted power, n or epsilon is one number and no list; nothing was computed.")
    sizes = tuple(natural(each, "n", least=2) for each in _listed(n)) if n is not None else ()
    made: Callable[[float], NoiseShape] = lambda each: _noise(each, moved=moved, delta=delta)  # noqa: E731
    epsilons: tuple[float, ...]
    noises: tuple[NoiseShape, ...]
    if noise is not None:
        law = noise.mechanism.law if isinstance(noise, Preview) else noise
        spent = float(noise.spend.epsilon) if isinstance(noise, Preview) else math.nan
        epsilons, noises = (spent,), (NoiseShape.of(law),)
    elif epsilon is not None:
        epsilons = tuple(float(positive(each, "epsilon")) for each in _listed(epsilon))
        noises = tuple(made(each) for each in epsilons)
    else:
        least = _least_epsilon(design, sizes[0], level, wanted or 0.0, made)
        epsilons, noises = (least,), (made(least),)
    asked: Literal["power", "n", "epsilon"] = "power"
    if n is None:
        asked, sizes = "n", (_enough_rows(design, noises[0], level, wanted or 0.0),)
    elif epsilon is None and noise is None:
        asked = "epsilon"
    return PowerResult(
        design=design, alpha=level, n=sizes, epsilons=epsilons, noises=noises, wanted=wanted, asked=asked
    )


def sample_size(design: _Design, noise: NoiseShape, alpha: float, wanted: float, *, most: int = MOST) -> int:
    """The least number of rows in each arm that has the wanted power, or ``most``."""
    low, high = 1, 2
    while high < most and _power(design, high, noise, alpha) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _power(design, middle, noise, alpha) < wanted:
            low = middle
        else:
            high = middle
    return min(high, most)


def _enough_rows(design: _Design, noise: NoiseShape, alpha: float, wanted: float) -> int:
    # Power rises with the rows: where the most have too little, none fewer are looked at.
    reached = _power(design, MOST, noise, alpha)
    if reached < wanted:
        raise InvalidInput(
            f"{MOST:,} rows in each arm have a power of {reached:.3f} with this noise, so no "
            f"study reaches {wanted:.3g}; nothing was computed. Spend more ε."
        )
    return sample_size(design, noise, alpha, wanted)


def _least_epsilon(design: _Design, n: int, alpha: float, wanted: float, made: Callable[[float], NoiseShape]) -> float:
    """The least ε with the wanted power, to four digits and rounded up."""
    if _power(design, n, SILENT, alpha) < wanted:
        needed = sample_size(design, SILENT, alpha, wanted)
        raise InvalidInput(
            f"{n:,} rows in each arm have a power of {_power(design, n, SILENT, alpha):.3f} even without noise, so no "
            f"ε reaches {wanted:.3g}; nothing was computed. It takes {needed:,} rows in each arm and more."
        )
    low, high = math.log(LEAST_EPSILON), math.log(MOST_EPSILON)
    if _power(design, n, made(MOST_EPSILON), alpha) < wanted:
        raise InvalidInput("no ε up to 10,000 reaches this power; nothing was computed. Take more rows.")
    for _ in range(40):
        middle = (low + high) / 2
        if _power(design, n, made(math.exp(middle)), alpha) < wanted:
            low = middle
        else:
            high = middle
    found = math.exp(high)
    digits = 3 - math.floor(math.log10(found))
    return float(math.ceil(found * 10**digits) / 10**digits)


def _power(design: _Design, n: int, noise: NoiseShape, alpha: float) -> float:
    critical = design.error(n, noise, null=True).quantile(1 - alpha / 2)
    return design.error(n, noise, null=False).rejected(design.difference, critical)


def _noise(epsilon: float, *, moved: int, delta: Exact) -> NoiseShape:
    laplace = NoiseShape(variance=2 * (moved / epsilon) ** 2, laplace=True)
    if not delta:
        return laplace
    sensitivity = Sensitivity.of(l1=moved, l2_squared=moved)
    chosen = NoiseShape.of(least_noise(sensitivity, epsilon=Fraction(epsilon), delta=delta).law)
    return laplace if chosen.laplace else chosen


def _design(outcome: str, given: dict[str, object]) -> "_Design":
    """The comparison, from the figures that belong to it; another figure is refused."""
    wanted = {
        "proportion": ({"first", "second"}, set()),
        "mean": ({"difference", "bounds"}, {"sd", "mean"}),
        "log-rank": ({"hazard_ratio", "events", "bins"}, set()),
    }
    if outcome not in wanted:
        raise InvalidInput(f"the outcome is one of {', '.join(wanted)}; nothing was computed.")
    needed, allowed = wanted[outcome]
    said = {name for name, value in given.items() if value is not None}
    if needed - said or said - needed - allowed:
        raise NotDeclared(
            f"the power of a {outcome} needs {', '.join(sorted(needed))}"
            f"{f' and may have {chr(44).join(sorted(allowed))}' if allowed else ''}; nothing was computed. "
            f"Missing: {', '.join(sorted(needed - said)) or 'none'}; not for this: "
            f"{', '.join(sorted(said - needed - allowed)) or 'none'}."
        )
    if outcome == "proportion":
        first, second = (float(probability(given[name], name)) for name in ("first", "second"))  # type: ignore[arg-type]  # which checks it
        if not (0 < first < 1 and 0 < second < 1 and first != second):
            raise InvalidInput("the proportions must differ and lie between 0 and 1; nothing was computed.")
        return Proportions(first=first, second=second)
    if outcome == "mean":
        return _means(given)
    ratio, share = (positive(given[name], name) for name in ("hazard_ratio", "events"))  # type: ignore[arg-type]  # which checks it
    if ratio == 1 or share >= 1:
        raise InvalidInput("a hazard ratio of 1 cannot be found, and events is a share below 1; nothing was computed.")
    return Survival(hazard_ratio=float(ratio), events=float(share), bins=natural(given["bins"], "bins", most=10**4))


def _means(given: dict[str, object]) -> Means:
    ends = given["bounds"]
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InvalidInput("bounds are two numbers, such as (60, 240); nothing was computed.")
    low, high = (float(rational(end, "bounds")) for end in ends)
    change = float(rational(given["difference"], "difference"))  # type: ignore[arg-type]  # which checks it
    width = high - low
    if width <= 0 or not 0 < abs(change) < width:
        raise InvalidInput(
            "the bounds must be a low and a high end, and the difference must be smaller than what lies between; "
            "nothing was computed."
        )
    sd = width / 2 if given["sd"] is None else float(positive(given["sd"], "sd"))  # type: ignore[arg-type]  # which checks it
    if sd > width / 2:
        raise InvalidInput("values within these bounds cannot have so large an sd; nothing was computed.")
    mean = (low + high) / 2 if given["mean"] is None else float(rational(given["mean"], "mean"))  # type: ignore[arg-type]  # which checks it
    if not low <= mean <= high:
        raise InvalidInput("the mean must lie within the bounds; nothing was computed.")
    return Means(change=change, sd=sd, width=width, place=(mean - low) / width)


def _listed(given: object) -> Sequence[Exact]:
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]  # type: ignore[list-item]  # each is checked next
