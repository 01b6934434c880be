"""Membership attacks on synthetic rows: is this person among those that the rows were made of?

Two games. In the first the adversary knows everybody else: rows are made many times with one person and without, and a
score of each file says which it was. No attack on an (ε, δ) generator has a larger area under the curve than
1 − (1 − δ)²/(1 + e^ε). In the second, which is usual in the literature, all members of one file are told from others
by their distance to the rows; exchanging a member for another is two changes of a person, and the limit that of 2ε.

An area near one half proves nothing: another attack may find what this one did not. Claims: S0-27, S0-29.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

__all__ = [
    "FEW_FALSE",
    "MembershipAuc",
    "auc_bound",
    "closest_record",
    "gaussian_auc_bound",
    "likelihood_ratio",
    "membership_auc",
    "membership_game",
    "membership_split",
    "row_density",
]

Generator = Callable[["Integers"], "Integers"]
"""Rows in, synthetic rows out; both as whole numbers, a column each."""
Score = Callable[["Integers", "Integers"], "Floats"]
"""Synthetic rows and rows of people in, a number for each of the people out: the larger, the more like a member."""

FEW_FALSE = 0.001
"""The rate of false positives at which true ones are counted."""
ENOUGH_OTHERS = 2_995
"""Non-members without one false positive that prove a rate below 0.1% at 95%: 0.999^2995 < 0.05."""
OTHER_VALUE = 0.05
"""What a column that differs takes off a row's weight in a density."""
CHUNK = 2_000_000


def auc_bound(epsilon: float, delta: float = 0.0) -> float:
    """The largest area under the curve of any attack that tells two neighbours apart by an (ε, δ) release.

    The curve lies under TPR ≤ e^ε·FPR + δ and under its mirror image.

    >>> [round(auc_bound(epsilon), 3) for epsilon in (0.1, 0.5, 1, 2)]
    [0.525, 0.622, 0.731, 0.881]
    """
    if not (epsilon >= 0 and 0 <= delta <= 1):
        raise InvalidInput(f"ε = {epsilon} and δ = {delta} are no guarantee; nothing was computed.")
    return 1 - (1 - delta) ** 2 / (1 + math.exp(min(epsilon, 700.0)))


def gaussian_auc_bound(mu: float) -> float:
    """The same for μ-Gaussian differential privacy: Φ(μ/√2).

    >>> round(gaussian_auc_bound(1.0), 4)
    0.7602
    """
    if not mu >= 0:
        raise InvalidInput(f"μ = {mu} is no guarantee; nothing was computed.")
    return (1 + math.erf(mu / 2)) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipAuc:
    """What a membership attack found. Public: an experiment on invented people, or on rows that are public.

    ``low`` and ``high`` are confidence limits of the area. ``bound`` is the largest area that the guarantee allows any
    attack. A lower limit above it refutes the guarantee; one below it proves nothing.
    """

    attack: str
    auc: float
    low: float
    high: float
    confidence: float
    members: int
    others: int
    true_positives: float
    """The share of members that are named where at most 0.1% of the others are."""
    bound: float | None
    """None where the generator states no guarantee."""
    most_true: float | None
    """The most of them that the guarantee allows: e^ε·0.1% + δ."""

    @property
    def exceeds(self) -> bool:
        """Whether the guarantee is refuted, with the stated confidence."""
        return self.bound is not None and self.low > self.bound + 1e-12

    @property
    def finds(self) -> bool:
        """Whether members are told from others at all: the whole interval lies above one half."""
        return self.low > 0.5

    def __str__(self) -> str:
        """A few lines; an attack that found nothing is not taken for a proof."""
        level = f"{100 * self.confidence:g}%"
        lines = [
            f"{self.attack}: area under the curve {self.auc:.3f}, {level} interval {self.low:.3f} to {self.high:.3f}, "
            f"{self.members:,} members against {self.others:,} others.",
            f"True positives at {FEW_FALSE:.1%} false ones: {self.true_positives:.3f}"
            + (
                "."
                if self.others >= ENOUGH_OTHERS
                else f" (of {self.others:,} others; {ENOUGH_OTHERS:,} would be needed)."
            ),
        ]
        if self.bound is None:
            lines.append("The generator states no guarantee, so there is no limit to compare with.")
        else:
            lines.append(f"The guarantee allows any attack at most {self.bound:.3f}, and {self.most_true:.4f} at 0.1%.")
        if self.exceeds:
            lines.append("The guarantee is refuted: the lower limit lies above what it allows.")
        elif self.finds:
            lines.append("The attack tells members from others.")
        else:
            lines.append("This attack found nothing. That proves no privacy: another attack may find more.")
        return "\n".join(lines)


def membership_auc(
    members: "Floats",
    others: "Floats",
    *,
    attack: str = "membership",
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> MembershipAuc:
    """The area under the curve of independent scores, with limits that hold whatever their distribution.

    The area is the share of pairs in which the member has the larger score, ties counted half. Its limits are
    Chernoff's for U-statistics, with the smaller number of scores: all p with m·KL(area, p) ≤ ln(2/α) are inside.

    Assumes: scores are independent, as of runs of their own; those of one file are not (:func:`membership_split`).

    >>> import numpy as np
    >>> found = membership_auc(np.arange(60.0) + 10, np.arange(60.0), epsilon=1)
    >>> round(found.auc, 3), found.low < found.auc < found.high, found.exceeds
    (0.653, True, False)
    """
    import numpy as np

    held = [np.sort(np.asarray(some, dtype=np.float64)) for some in (members, others)]
    if min(map(len, held)) < 2 or not all(np.isfinite(some).all() for some in held):
        raise InvalidInput("an attack needs two finite scores of members and of others or more; nothing was computed.")
    area = _area(*held)
    low, high = _limits(area, min(map(len, held)), math.log(2 / (1 - confidence)))
    return _found(attack, area, low, high, confidence, held[0], held[1], epsilon, delta)


def membership_game(
    make: Generator,
    people: "Integers",
    target: "Integers",
    *,
    score: Score,
    runs: int,
    attack: str = "with or without one person",
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> MembershipAuc:
    """Make rows ``runs`` times with the target and as often without; tell by the score of the target which it was.

    The adversary knows everybody else. ``epsilon`` and ``delta`` are those of one person more or less.
    """
    import numpy as np

    one = np.asarray(target).reshape(1, -1)
    within = np.concatenate([people, one])
    scores = [np.array([float(score(make(rows), one)[0]) for _ in range(runs)]) for rows in (within, people)]
    return membership_auc(*scores, attack=attack, epsilon=epsilon, delta=delta, confidence=confidence)


def membership_split(
    make: Generator,
    population: "Integers",
    *,
    score: Score,
    runs: int,
    random: "np.random.Generator",
    attack: str = "members of a file against others",
    epsilon: float | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> MembershipAuc:
    """Make rows of a random half of a population, and tell that half from the other by the scores; ``runs`` times.

    ``epsilon`` and ``delta`` are those of one person more or less. Exchanging a member for another is two such
    changes, so the limit is that of (2ε, (1 + e^ε)δ). Scores of one file depend on each other: the interval is
    Student's, of the areas of the runs.
    """
    import numpy as np
    from scipy.stats import t

    if runs < 3:
        raise InvalidInput("areas of three runs or more make an interval; nothing was done.")
    half = len(population) // 2
    areas, inside, outside = [], [], []
    for _ in range(runs):
        order = random.permutation(len(population))
        rows = make(population[order[:half]])
        found = [np.sort(score(rows, population[some])) for some in (order[:half], order[half:])]
        areas.append(_area(*found))
        inside.append(found[0])
        outside.append(found[1])
    middle = float(np.mean(areas))
    reach = float(t.ppf((1 + confidence) / 2, runs - 1) * np.std(areas, ddof=1) / math.sqrt(runs))
    twice = None if epsilon is None else 2 * epsilon
    apart = 0.0 if epsilon is None else min(1.0, (1 + math.exp(min(epsilon, 700.0))) * delta)
    sides = [np.concatenate(some) for some in (inside, outside)]
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    return _found(attack, middle, low, high, confidence, sides[0], sides[1], twice, apart)


def closest_record(rows: "Integers", people: "Integers") -> "Floats":
    """Minus the distance of each of the people to the closest synthetic row: the columns in which they differ.

    >>> import numpy as np
    >>> closest_record(np.array([[0, 0, 1], [1, 1, 1]]), np.array([[0, 0, 0], [1, 1, 1]])).tolist()
    [-1.0, -0.0]
    """
    import numpy as np

    return np.concatenate([-apart.min(axis=1).astype(np.float64) for apart, _ in _distances(rows, people)])


def row_density(rows: "Integers", people: "Integers") -> "Floats":
    """The logarithm of a density of the synthetic rows at each of the people; rows that differ little count little."""
    import numpy as np

    weights = OTHER_VALUE ** np.arange(people.shape[1] + 1)
    return np.concatenate([np.log(weights[apart] @ share) for apart, share in _distances(rows, people)])


def likelihood_ratio(reference: "Integers") -> Score:
    """A score: the density of the synthetic rows over that of a public sample of the same population."""

    def score(rows: "Integers", people: "Integers") -> "Floats":
        return row_density(rows, people) - row_density(reference, people)

    return score


def _distances(rows: "Integers", people: "Integers") -> "list[tuple[Integers, Floats]]":
    """In how many columns people differ from different synthetic rows, with the share of these; in chunks."""
    import numpy as np

    different, often = np.unique(rows, axis=0, return_counts=True)
    share = often / len(rows)
    step = max(1, CHUNK // max(1, len(different)))
    found = []
    for first in range(0, len(people), step):
        some = people[first : first + step]
        apart = np.zeros((len(some), len(different)), dtype=np.int64)
        for column in range(people.shape[1]):
            apart += some[:, column, None] != different[None, :, column]
        found.append((apart, share))
    return found


def _area(members: "Floats", others: "Floats") -> float:
    """The share of pairs in which the member has the larger score, ties counted half; both are in order."""
    import numpy as np

    below = np.searchsorted(others, members, side="left") + np.searchsorted(others, members, side="right")
    return float(below.mean()) / (2 * len(others))


def _limits(area: float, number: int, evidence: float) -> tuple[float, float]:
    """All p whose Kullback–Leibler divergence from the area is at most evidence/number."""

    def apart(p: float) -> float:
        return sum(a * math.log(a / b) if a > 0 else 0.0 for a, b in ((area, p), (1 - area, 1 - p)))

    ends = []
    for edge in (0.0, 1.0):
        inside, outside = area, edge
        if area != edge:
            for _ in range(60):
                middle = (inside + outside) / 2
                near = number * apart(middle) <= evidence if 0 < middle < 1 else False
                inside, outside = (middle, outside) if near else (inside, middle)
        ends.append(outside)
    return ends[0], ends[1]


def _found(
    attack: str,
    area: float,
    low: float,
    high: float,
    confidence: float,
    members: "Floats",
    others: "Floats",
    epsilon: float | None,
    delta: float,
) -> MembershipAuc:
    import numpy as np

    falls = np.sort(others)[::-1]
    above = falls[min(len(falls) - 1, math.floor(FEW_FALSE * len(falls)))]
    most = None if epsilon is None else min(1.0, math.exp(min(epsilon, 700.0)) * FEW_FALSE + delta)
    return MembershipAuc(
        attack=attack,
        auc=area,
        low=low,
        high=high,
        confidence=confidence,
        members=len(members),
        others=len(others),
        true_positives=float((members > above).mean()),
        bound=None if epsilon is None else auc_bound(epsilon, delta),
        most_true=most,
    )
