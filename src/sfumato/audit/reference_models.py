"""Membership attacks with reference models: is this row among those that a model was trained on?

An adversary who knows how a model was trained trains models of its own, with a row and without, and compares. LiRA
(Carlini and others, 2022) takes the ratio of two normal densities of the model's confidence in the row: where the row
was in, and where it was not; 64 reference models are usual. RMIA (Zarifzadeh and others, 2024) divides the model's
probability of the row by the mean of the references, and asks how many public rows have a smaller quotient; it needs
few of them, such as 4.

The game: a fair coin for every row of a pool says whether it is in the training data of a model. With independent coins
any threshold on an (ε, δ) model obeys TPR ≤ e^ε·FPR + δ, averaged over the rows, and the area of members of one model
against others of *another* is at most 1 − (1 − δ)²/(1 + e^ε). Members and others of the same model would be a pair that
is exchanged, with the limit of 2ε; such pairs are left out.

Everything here takes arrays about **invented or public rows, or canaries**, and no table of a vault: one person moves
the reference models and every score, so that a figure of real members would be a release that nobody charged.

An attack that finds nothing proves nothing. Claims: S0-29.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.audit.membership import FEW_FALSE, auc_bound
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]

__all__ = [
    "FewFalse",
    "ModelMembership",
    "PrivacyCurve",
    "lira_scores",
    "model_membership",
    "others_needed",
    "rmia_scores",
]

LEAST_RUNS = 3
ROC_POINTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyCurve:
    """What a guarantee allows any attack: (ε, δ) pairs that all hold for one model, the one that is stated first.

    Assumes: each pair holds in both directions, as it does for one unit more or less.

    >>> curve = PrivacyCurve(pairs=((1.0, 1e-6),))
    >>> round(curve.most(0.001), 6), round(curve.area, 6) == round(auc_bound(1.0, 1e-6), 6)
    (0.002719, True)
    """

    pairs: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        if not self.pairs or not all(epsilon >= 0 and 0 <= delta <= 1 for epsilon, delta in self.pairs):
            raise InvalidInput("a curve has pairs of ε and δ; nothing was computed.")

    @property
    def stated(self) -> "PrivacyCurve":
        """The pair that is stated, alone."""
        return PrivacyCurve(pairs=self.pairs[:1])

    def most(self, false: float) -> float:
        """The largest rate of true positives where that of false ones is ``false``."""
        found = 1.0
        for epsilon, delta in self.pairs:
            odds = math.exp(min(epsilon, 700.0))
            found = min(found, odds * false + delta, 1 - (1 - delta - false) / odds)
        return max(found, false)

    @property
    def area(self) -> float:
        """The largest area under the curve; with several pairs by rectangles above it, so not too small."""
        if len(self.pairs) == 1:
            return auc_bound(*self.pairs[0])
        fine = (10.0 ** (place / 100) for place in range(-900, -200))
        ends = [0.0, *fine, *(place / 2_000 for place in range(20, 2_001))]
        highs = [self.most(end) for end in ends]
        above = sum((b - a) * high for a, b, high in zip(ends[:-1], ends[1:], highs[1:], strict=True))
        return min(above, auc_bound(*self.pairs[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class FewFalse:
    """True positives where the rate of false ones is shown to be 0.1% or less.

    ``rate`` is the share of members above a threshold which at most ``false`` of the others are above; ``low`` and
    ``high`` are Clopper and Pearson's limits, which take rows as independent.
    """

    rate: float
    low: float
    high: float
    false: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMembership:
    """What an attack with reference models found. Public: an experiment on invented or public rows.

    ``low`` and ``high`` are confidence limits of the area, over the runs. ``few_false`` is None where there are too few
    others to tell the true positives at 0.1% false ones. ``bound`` is the largest area that the stated (ε, δ) allows
    any attack, ``curve_bound`` that of the whole privacy curve, ``most_true`` and ``curve_most_true`` the same for true
    positives at 0.1%; None where the model has no guarantee.
    """

    attack: str
    references: int
    runs: int
    members: int
    others: int
    auc: float
    low: float
    high: float
    confidence: float
    few_false: FewFalse | None
    bound: float | None
    curve_bound: float | None
    most_true: float | None
    curve_most_true: float | None
    exceeds: bool
    """Whether the stated (ε, δ) is refuted, at the confidence that was asked for all comparisons together."""
    exceeds_curve: bool
    """The same for the area that the privacy curve allows, which is smaller."""
    roc: tuple[tuple[float, float], ...]
    """False and true positive rates, from the largest score on."""

    @property
    def finds(self) -> bool:
        """Whether members are told from others at all: the whole interval lies above one half."""
        return self.low > 0.5

    def __str__(self) -> str:
        """A few lines; an attack that found nothing is not taken for a proof."""
        level = f"{100 * self.confidence:g}%"
        lines = [
            f"{self.attack} with {self.references} reference models: area under the curve {self.auc:.3f}, {level} "
            f"interval {self.low:.3f} to {self.high:.3f}, {self.runs} runs, {self.members:,} members against "
            f"{self.others:,} others."
        ]
        if self.few_false is None:
            lines.append(
                f"True positives at {FEW_FALSE:.1%} false ones: not measurable with {self.others:,} others; "
                f"{others_needed(self.confidence):,} would be needed, without one false positive among them."
            )
        else:
            few = self.few_false
            lines.append(
                f"True positives at {FEW_FALSE:.1%} false ones: {few.rate:.4f}, {level} interval {few.low:.4f} to "
                f"{few.high:.4f}."
            )
        if self.bound is None:
            lines.append("The model states no guarantee, so there is no limit to compare with.")
        else:
            lines.append(
                f"The stated (ε, δ) allows any attack at most {self.bound:.3f}, and {self.most_true:.4f} at 0.1%; "
                f"its privacy curve {self.curve_bound:.3f} and {self.curve_most_true:.4f}."
            )
        if self.exceeds or self.exceeds_curve:
            what = "(ε, δ)" if self.exceeds else "privacy curve"
            lines.append(f"The stated {what} is refuted: a lower limit lies above what it allows.")
        elif self.finds:
            lines.append("The attack tells members from others.")
        else:
            lines.append("This attack found nothing. That proves no privacy: another attack may find more.")
        return "\n".join(lines)


def others_needed(confidence: float = 0.95) -> int:
    """How many others without one false positive show a rate of 0.1% or less.

    >>> others_needed(0.95)
    2995
    """
    return math.ceil(math.log(1 - confidence) / math.log(1 - FEW_FALSE))


def lira_scores(targets: "Floats", references: "Floats", inside: "Flags") -> "Floats":
    """The logarithm of the ratio of two normal densities of a confidence: the row in, against the row not in.

    Each line is a model and each column a row; numbers are confidences on the scale of log odds
    (:func:`~sfumato.audit.small_models.confidences`). Means are those of the references with the row and without;
    the variance is one for all, which few references need and which loses little with many.

    >>> import numpy as np
    >>> lira_scores(np.array([[2.0], [0.0]]), np.array([[2.1], [1.9], [0.1], [-0.1]]),
    ...             np.array([[True], [True], [False], [False]])).round(6).tolist()
    [[200.0], [-200.0]]
    """
    import numpy as np

    targets, references = _numbers(targets), _numbers(references)
    inside = _flags(inside, references.shape)
    if targets.shape[1:] != references.shape[1:]:
        raise InvalidInput("targets and reference models are about the same rows; nothing was computed.")
    number = inside.sum(axis=0)
    if not (number.min() >= 1 and number.max() < len(inside)):
        raise InvalidInput("every row has to be in some reference models and not in others; nothing was computed.")
    with_row = (references * inside).sum(axis=0) / number
    without = (references * ~inside).sum(axis=0) / (len(inside) - number)
    left = references - np.where(inside, with_row, without)
    variance = max(float((left * left).mean()), 1e-12)
    scores: Floats = (with_row - without) * (targets - (with_row + without) / 2) / variance
    return scores


def rmia_scores(
    targets: "Floats", references: "Floats", public_targets: "Floats", public_references: "Floats"
) -> "Floats":
    """The share of public rows whose quotient, the model's probability over the references' mean, is no larger.

    Confidences as for :func:`lira_scores`; the last two are of public rows that no model was trained on. The references
    hold each row in half of them, so that their mean is that over both worlds.

    >>> import numpy as np
    >>> one = np.zeros((2, 1))
    >>> rmia_scores(np.array([[1.0], [-1.0]]), one, np.zeros((2, 4)), np.zeros((2, 4))).tolist()
    [[1.0], [0.0]]
    """
    import numpy as np
    from scipy.special import expit

    quotients = [
        expit(_numbers(model)) / np.maximum(expit(_numbers(own)).mean(axis=0), 1e-300)
        for model, own in ((targets, references), (public_targets, public_references))
    ]
    if len(quotients[0]) != len(quotients[1]):
        raise InvalidInput("public rows need confidences of the same models; nothing was computed.")
    shares = [
        np.searchsorted(np.sort(public), own, side="right") / len(public)
        for own, public in zip(*quotients, strict=True)
    ]
    return np.array(shares)


def model_membership(
    scores: "Floats",
    inside: "Flags",
    *,
    attack: str,
    references: int,
    curve: PrivacyCurve | None = None,
    confidence: float = 0.95,
    comparisons: int = 1,
) -> ModelMembership:
    """Judge the scores of several independent runs: a line for each model, and who was in it by a fair coin a row.

    The area is the mean share of pairs in which the member of one run has the larger score than the other of *another*
    run. Its limits are Student's over the runs, from the jackknife. ``comparisons`` is how many such judgements are
    made together: each refutes only at its part of the doubt.

    Assumes: runs are independent of each other, and reference models of all of them. For true positives at 0.1% also:
    scores of different rows of a run are nearly independent.
    """
    import numpy as np
    from scipy.stats import t

    scores = _numbers(scores)
    inside = _flags(inside, scores.shape)
    if len(scores) < LEAST_RUNS or min(inside.sum(axis=1).min(), (~inside).sum(axis=1).min()) < 1:
        raise InvalidInput("three runs or more make an interval, each with members and others; nothing was computed.")
    area, error = _area_across(scores, inside)
    doubt = (1 - confidence) / comparisons
    reach = float(t.ppf((1 + confidence) / 2, len(scores) - 1)) * error
    sure = area - float(t.ppf(1 - doubt / 2, len(scores) - 1)) * error
    members, others = np.sort(scores[inside])[::-1], np.sort(scores[~inside])[::-1]
    bound, curve_bound = (None, None) if curve is None else (curve.stated.area, curve.area)
    return ModelMembership(
        attack=attack,
        references=references,
        runs=len(scores),
        members=len(members),
        others=len(others),
        auc=area,
        low=max(0.0, area - reach),
        high=min(1.0, area + reach),
        confidence=confidence,
        few_false=_few_false(members, others, confidence),
        bound=bound,
        curve_bound=curve_bound,
        most_true=None if curve is None else curve.stated.most(FEW_FALSE),
        curve_most_true=None if curve is None else curve.most(FEW_FALSE),
        exceeds=bound is not None and (sure > bound + 1e-12 or _above(members, others, curve, doubt / 2)),
        exceeds_curve=curve_bound is not None and sure > curve_bound + 1e-12,
        roc=_roc(members, others),
    )


def _area_across(scores: "Floats", inside: "Flags") -> tuple[float, float]:
    """The mean area over pairs of different runs, and its standard error by the jackknife."""
    import numpy as np

    runs = len(scores)
    sides = [(np.sort(line[own]), np.sort(line[~own])) for line, own in zip(scores, inside, strict=True)]
    areas = np.zeros((runs, runs))
    for one, (members, _) in enumerate(sides):
        for two, (_, others) in enumerate(sides):
            below = np.searchsorted(others, members, side="left") + np.searchsorted(others, members, side="right")
            areas[one, two] = below.mean() / (2 * len(others))
    np.fill_diagonal(areas, 0.0)
    each = (areas.sum(axis=0) + areas.sum(axis=1)) / (2 * (runs - 1))
    return float(each.mean()), float(2 * each.std(ddof=1) / math.sqrt(runs))


def _few_false(members: "Floats", others: "Floats", confidence: float) -> FewFalse | None:
    """At the lowest threshold whose false positives are shown to be 0.1% or less; both sides from the largest on."""
    from scipy.stats import beta

    doubt, allowed = 1 - confidence, -1
    while allowed + 1 < len(others) and beta.ppf(confidence, allowed + 2, len(others) - allowed - 1) <= FEW_FALSE:
        allowed += 1
    if allowed < 0:
        return None
    hits, number = _over(members, others[allowed]), len(members)
    return FewFalse(
        rate=hits / number,
        low=float(beta.ppf(doubt / 2, hits, number - hits + 1)) if hits else 0.0,
        high=float(beta.ppf(1 - doubt / 2, hits + 1, number - hits)) if hits < number else 1.0,
        false=allowed,
    )


def _above(members: "Floats", others: "Floats", curve: PrivacyCurve | None, doubt: float) -> bool:
    """Whether true positives at the threshold for 0.1% are shown to be more than the stated (ε, δ) allows."""
    from scipy.stats import beta

    allowed = math.floor(FEW_FALSE * len(others))
    hits, number = _over(members, others[min(allowed, len(others) - 1)]), len(members)
    if curve is None or not hits or allowed + 1 > len(others):
        return False
    true = float(beta.ppf(doubt / 2, hits, number - hits + 1))
    false = float(beta.ppf(1 - doubt / 2, allowed + 1, len(others) - allowed))
    return true > curve.stated.most(false)


def _over(falling: "Floats", threshold: float) -> int:
    """How many of these, from the largest on, are above a threshold."""
    import numpy as np

    return int(np.searchsorted(-falling, -threshold, side="left"))


def _roc(members: "Floats", others: "Floats") -> tuple[tuple[float, float], ...]:
    """Rates at thresholds that are spread evenly over the logarithm of the false ones."""
    import numpy as np

    exponents: Sequence[float] = np.linspace(0, math.log(len(others)), ROC_POINTS).tolist()
    places = sorted({0, *(min(len(others) - 1, round(math.exp(one))) for one in exponents)})
    found = [(_over(others, others[place]), _over(members, others[place])) for place in places]
    points = dict.fromkeys((false / len(others), true / len(members)) for false, true in found)
    return (*points, (1.0, 1.0))


def _numbers(given: "Floats") -> "Floats":
    import numpy as np

    if not isinstance(given, np.ndarray) or given.ndim != 2 or not np.issubdtype(given.dtype, np.number):
        raise InvalidInput(
            "these attacks take arrays of numbers, a line for each model and a column for each row, about invented or "
            "public rows or canaries. A table of a vault is not taken: figures of real members are a release about "
            "them. Nothing was computed."
        )
    if not np.isfinite(given).all():
        raise InvalidInput("confidences and scores are finite numbers; nothing was computed.")
    return given.astype(np.float64)


def _flags(given: "Flags", shape: tuple[int, ...]) -> "Flags":
    import numpy as np

    if not isinstance(given, np.ndarray) or given.dtype != np.bool_ or given.shape != shape:
        raise InvalidInput("who is in which model is said by an array of True and False; nothing was computed.")
    return given
