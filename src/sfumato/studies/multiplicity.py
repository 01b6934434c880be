"""Several tests of one plan: adjusted p-values, and a refusal where simulated p-values cannot become small enough."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.core.description import OneLine, Word, phrase
from sfumato.core.exact import Exact, probability
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Refused
from sfumato.studies.design_result import DesignResult, Facts
from sfumato.studies.result import Cell, ResultTable, StudyResult

__all__ = ["AdjustedTests", "Tested", "adjust", "adjusted"]

Method = Literal["holm", "bonferroni", "benjamini-hochberg"]
METHODS: tuple[Method, ...] = ("holm", "bonferroni", "benjamini-hochberg")
Array = NDArray[np.float64]


@runtime_checkable
class Tested(Protocol):
    """A result with a test: its p-value, nan where there is no verdict."""

    @property
    def p_value(self) -> float:
        """The p-value of the test."""
        ...


def adjusted(p_values: Sequence[float], method: Method = "holm") -> Array:
    """Adjusted p-values in the order of the given ones.

    Holm and Bonferroni bound the chance of any false rejection, whatever the dependence; Benjamini–Hochberg bounds the
    expected share of false ones among the rejected, where tests are independent or positively dependent.

    >>> [round(float(p), 6) for p in adjusted([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    >>> [round(float(p), 6) for p in adjusted([0.01, 0.04, 0.03], "benjamini-hochberg")]
    [0.03, 0.04, 0.04]
    """
    p = np.asarray(p_values, dtype=float)
    tests = len(p)
    if method == "bonferroni":
        return np.asarray(np.minimum(1.0, tests * p))
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, tests + 1)
    if method == "holm":
        steps = np.maximum.accumulate((tests - ranks + 1) * p[order])
    elif method == "benjamini-hochberg":
        steps = np.minimum.accumulate((tests / ranks * p[order])[::-1])[::-1]
    else:
        raise InvalidInput(f"the method is one of {', '.join(METHODS)}; nothing was computed.")
    found = np.empty(tests)
    found[order] = np.minimum(1.0, steps)
    return found


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AdjustedTests(DesignResult):
    """Several tests with their adjusted p-values. Guarantee: costs nothing, for it is made of results alone."""

    names: tuple[str, ...]
    p_values: tuple[float, ...]
    method: Method
    alpha: float
    sources: tuple[Release, ...] = ()

    @property
    def adjusted(self) -> tuple[float, ...]:
        """The adjusted p-values; a test without a verdict counts as p = 1."""
        return tuple(float(p) for p in adjusted([1.0 if math.isnan(p) else p for p in self.p_values], self.method))

    @property
    def rejected(self) -> tuple[str, ...]:
        """The names of the tests whose adjusted p-value is at most α."""
        return tuple(name for name, p in zip(self.names, self.adjusted, strict=True) if p <= self.alpha)

    @property
    def title(self) -> Word:
        """What was done."""
        return phrase("design.adjusted", tests=f"{len(self.names):,}")

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """One row for each test."""
        del confidence
        kept = set(self.rejected)
        columns: dict[str, Sequence[Cell]] = {
            "test": self.names,
            "p-value": self.p_values,
            "adjusted p-value": self.adjusted,
            "rejected": tuple(name in kept for name in self.names),
        }
        return (ResultTable(name="tests", columns=columns),)

    @property
    def facts(self) -> Facts:
        """The method and the level."""
        return (
            (phrase("design.method"), phrase(f"design.{self.method.replace('-', '_')}")),
            (phrase("design.level_of_all"), f"{self.alpha:.4g}"),
        )

    def findings(self, confidence: Exact = Fraction(19, 20)) -> tuple[Word, ...]:
        """Each test with its p-value, the adjusted one, and whether it is rejected."""
        del confidence
        kept = set(self.rejected)
        return tuple(
            phrase(
                "design.adjusted_found" if name in kept else "design.adjusted_kept",
                test=OneLine(name),
                p="–" if math.isnan(p) else f"{p:.2g}",
                adjusted=f"{more:.2g}",
            )
            for name, p, more in zip(self.names, self.p_values, self.adjusted, strict=True)
        )

    @property
    def notes(self) -> tuple[Word, ...]:
        """What the adjustment bounds, and that tests left out cannot be adjusted for."""
        bound = "design.false_share" if self.method == "benjamini-hochberg" else "design.any_false"
        open_ones = sum(math.isnan(p) for p in self.p_values)
        without = (phrase("design.no_verdict", tests=f"{open_ones:,}"),) if open_ones else ()
        return (phrase(bound, alpha=f"{100 * self.alpha:.4g}"), *without, phrase("design.all_planned"))


def adjust(
    tests: Mapping[str, "Tested | float"] | Sequence["Tested | float"],
    method: Method = "holm",
    *,
    alpha: Exact = Fraction(1, 20),
) -> AdjustedTests:
    """Adjust the p-values of all tests of a plan, by name or in order; results of studies or plain p-values.

    A p-value from B simulated copies is at least 1/(B + 1). Where B + 1 < 10·K/α for K tests it could hardly ever be
    rejected after the adjustment: that is refused. A test without a verdict (nan) counts as one that is not rejected.

    Guarantee: costs nothing. Assumes: all tests that were planned are among them.

    >>> adjust({"age": 0.012, "sex": 0.2, "ward": 0.03}).rejected
    ('age',)
    """
    if method not in METHODS:
        raise InvalidInput(f"the method is one of {', '.join(METHODS)}; nothing was computed.")
    level = float(probability(alpha, "alpha"))
    if not 0 < level < 1:
        raise InvalidInput("alpha must lie between 0 and 1, such as 0.05; nothing was computed.")
    named = (
        dict(tests) if isinstance(tests, Mapping) else {f"test {place + 1}": each for place, each in enumerate(tests)}
    )
    if not named:
        raise InvalidInput("there are no tests to adjust; nothing was computed.")
    p_values, sources = [], []
    for name, each in named.items():
        p = each.p_value if isinstance(each, Tested) else each
        if isinstance(p, bool) or not isinstance(p, int | float) or not (math.isnan(p) or 0 <= p <= 1):
            raise InvalidInput(f"{name!r} has no p-value between 0 and 1; nothing was computed.")
        replicates = getattr(each, "replicates", None)
        if isinstance(replicates, int) and replicates + 1 < 10 * len(named) / level:
            raise Refused(
                f"the p-value of {name!r} comes from {replicates:,} simulated copies and cannot be below "
                f"1/{replicates + 1:,}; {len(named)} tests at {level:.4g} need at least "
                f"{math.ceil(10 * len(named) / level) - 1:,} copies. Nothing was computed; the release itself can be "
                "used again at no cost."
            )
        p_values.append(float(p))
        sources += list(each.sources) if isinstance(each, StudyResult) else []
    return AdjustedTests(
        names=tuple(named), p_values=tuple(p_values), method=method, alpha=level, sources=tuple(sources)
    )
