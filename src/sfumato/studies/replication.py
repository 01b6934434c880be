"""Replication: the same declared question on a fresh sample, and how often the two verdicts agree; bias beside it.

Agreement is foreseen before anything is spent: a result whose interval excludes the null with probability π agrees with
a repetition with probability π² + (1 − π)². Proof: docs/proofs/design.md
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from sfumato.core.columns import ResultColumn
from sfumato.core.description import Word, phrase
from sfumato.core.exact import Exact, probability, rational
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.query import Query
from sfumato.core.release import Release
from sfumato.core.statement import Statement
from sfumato.errors import InvalidInput, Refused
from sfumato.inference.linear_combination import LinearCombination
from sfumato.studies.design_result import DesignResult, Facts
from sfumato.studies.estimates import Estimate, estimate_of, linear_form
from sfumato.studies.power import PowerResult
from sfumato.studies.result import Cell, ResultTable, StudyResult
from sfumato.studies.result_table import value_word

__all__ = ["BiasResult", "Replication", "bias", "expected_agreement", "replication"]

Cause = Literal["limit", "clipping", "post-processing"]


def expected_agreement(first: "PowerResult | Exact", second: "PowerResult | Exact | None" = None) -> float:
    """How often two fresh samples lead to the same verdict: π² + (1 − π)², or π₁π₂ + (1 − π₁)(1 − π₂).

    π is the power, noise included: a number, or what :func:`sf.power` worked out. Where there is no difference, π is α.

    >>> expected_agreement(0.9), expected_agreement(0.5)
    (0.8200000000000001, 0.5)
    """
    one, two = (_power_of(each) for each in (first, first if second is None else second))
    return one * two + (1 - one) * (1 - two)


def _power_of(given: "PowerResult | Exact") -> float:
    return given.power if isinstance(given, PowerResult) else float(probability(given, "power"))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Replication(DesignResult):
    """Two estimates of the same question on different samples: their verdicts, and a test that they are equal.

    Guarantee: costs nothing, for it is made of releases alone; both samplings and both noises are in the test.
    Assumes: the samples have no person in common. Overlapping intervals are no test, and none is made of them.
    """

    first: Estimate
    second: Estimate
    null: float
    level: float
    expected: float | None = None
    versions: bool = False
    """Whether both are versions of one dataset, which may share persons."""

    @property
    def sources(self) -> tuple[Release, ...]:
        """The releases of both."""
        return (*self.first.sources, *self.second.sources)

    @property
    def verdicts(self) -> tuple[bool, bool]:
        """Whether each interval excludes the null."""
        ends = [each.interval(self.level) for each in (self.first, self.second)]
        one, two = (not low <= self.null <= high for low, high in ends)
        return one, two

    @property
    def agree(self) -> bool:
        """Whether the two verdicts are the same."""
        return self.verdicts[0] == self.verdicts[1]

    @property
    def p_value(self) -> float:
        """Of the test that both estimate the same number."""
        return self.first.minus(self.second).p_value(0.0)

    @property
    def title(self) -> Word:
        """What was done."""
        return phrase("design.replication")

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """Both estimates, and their difference."""
        level = float(probability(confidence, "confidence"))
        difference = self.first.minus(self.second)
        rows = (self.first, self.second, difference)
        ends = [each.interval(level) for each in rows]
        nulls = (self.null, self.null, 0.0)
        columns = {
            "sample": ("first", "second", "difference"),
            "estimate": [each.value for each in rows],
            "standard error": [each.standard_error for each in rows],
            "low": [low for low, _ in ends],
            "high": [high for _, high in ends],
            "null": nulls,
            "excludes null": [not low <= null <= high for (low, high), null in zip(ends, nulls, strict=True)],
            "p-value": [each.p_value(null) for each, null in zip(rows, nulls, strict=True)],
        }
        return (ResultTable(name="replication", columns=columns),)

    @property
    def facts(self) -> Facts:
        """The verdicts, the test and what was expected."""
        facts: Facts = (
            (phrase("design.verdicts"), phrase("design.agree" if self.agree else "design.disagree")),
            (phrase("design.equality"), f"p = {self.p_value:.4f}"),
        )
        if self.expected is not None:
            facts += ((phrase("design.expected_agreement"), f"{100 * self.expected:.1f}%"),)
        return facts

    @property
    def notes(self) -> tuple[Word, ...]:
        """What a reader must know."""
        percent = f"{100 * self.level:.4g}"
        notes: tuple[Word, ...] = (phrase("study.covers", percent=percent), phrase("design.one_pair"))
        return (*notes, phrase("design.versions")) if self.versions else notes

    @property
    def drawn_names(self) -> Mapping[str, Word]:
        """What the samples are called."""
        return {name: value_word("sample", name) for name in ("first", "second")}

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture | None:
        """Both intervals with the null."""
        level = float(probability(confidence, "confidence"))
        rows = []
        for name, each in (("first", self.first), ("second", self.second)):
            low, high = each.interval(level)
            rows.append(PictureRow(at=name, value=each.value, low=low, high=high))
        return Picture(
            kind="forest",
            rows=rows,
            title=self.title,
            across=phrase("design.estimate"),
            lines=(phrase("study.covers", percent=f"{100 * level:.4g}"),),
            reference=self.null,
        )


def replication(
    first: Release | StudyResult,
    second: Release | StudyResult,
    *,
    null: Exact = 0,
    confidence: Exact = Fraction(19, 20),
    expected: "PowerResult | Exact | None" = None,
) -> Replication:
    """Compare two answers to the same declared question, on two samples; costs nothing.

    ``null`` is the value that the verdicts are about, such as 0 for a difference. ``expected`` is the power that was
    planned, or what :func:`sf.power` says: the agreement to expect stands beside the one that was found.

    A second draw of noise for the same people (``fresh=True``) is no replication: two answers about the same version of
    a dataset are refused, and so are two different questions, units or limits.

    >>> import numpy as np, pyarrow as pa, sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    >>> ill = pa.table({"ill": [True] * 300 + [False] * 700})
    >>> one, two = (vault.table(ill, name=name, version="1") for name in ("spring", "autumn"))
    >>> found = replication(*(each.proportion("ill").release(epsilon=1) for each in (one, two)), null=0.2)
    >>> found.verdicts, found.agree
    ((True, True), True)
    """
    _check_same(_statements(first), _statements(second))
    level = float(probability(confidence, "confidence"))
    if not 0 < level < 1:
        raise InvalidInput("confidence must lie between 0 and 1, such as 0.95; nothing was computed.")
    names = [{each.dataset.name for each in _statements(given)} for given in (first, second)]
    return Replication(
        first=estimate_of(first),
        second=estimate_of(second),
        null=float(rational(null, "null")),
        level=level,
        expected=None if expected is None else expected_agreement(expected),
        versions=bool(names[0] & names[1]),
    )


def _statements(given: Release | StudyResult) -> tuple[Statement, ...]:
    sources = (given,) if isinstance(given, Release) else given.sources if isinstance(given, StudyResult) else ()
    if not sources:
        raise InvalidInput("replication(...) takes two releases, or two results of studies; nothing was computed.")
    return tuple(each.statement for each in sources)


def _check_same(first: tuple[Statement, ...], second: tuple[Statement, ...]) -> None:
    """Refuse what is no replication: the same data again, or another question."""
    shared = {each.dataset for each in first} & {each.dataset for each in second}
    if shared:
        name = next(iter(shared))
        raise Refused(
            f"both answers are about {name.name!r} version {name.edition!r}: a fresh draw of noise for the same people "
            "is no replication, however often it is repeated. Nothing was computed. Ask a sample of other people."
        )
    if [_without_data(each) for each in first] != [_without_data(each) for each in second]:
        raise Refused(
            "the two answers are not to the same declared question: their questions, bounds, groups, units or limits "
            "differ, and so would what they estimate. Nothing was computed. Ask the same question of both samples."
        )


def _without_data(said: Statement) -> tuple[object, ...]:
    """The question of an answer, its unit and its limit, with the name of the data left out."""
    query: Query = said.query
    blank = replace(said.dataset, name="sample", edition="1")
    try:
        query = replace(query, dataset=blank)  # type: ignore[type-var]  # every query is a dataclass
    except TypeError:
        raise InvalidInput("questions of this kind cannot be compared; nothing was computed.") from None
    return query, said.unit, said.limit


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BiasResult(DesignResult):
    """What a limit, clipping or post-processing did to a figure: reported minus reference, of the same data.

    Guarantee: costs nothing. The interval holds the noise of both figures; sampling is not in it, for both are about
    the same rows. Assumes: the reference is wide enough to cut nothing that matters.
    """

    labels: tuple[str, ...]
    reported: tuple[float, ...]
    forms: tuple[LinearCombination, ...]
    cause: Cause
    sources: tuple[Release, ...]

    @property
    def biases(self) -> tuple[float, ...]:
        """Reported minus reference."""
        return tuple(float(form.value) for form in self.forms)

    @property
    def title(self) -> Word:
        """What was done."""
        return phrase(f"design.bias_{self.cause.replace('-', '_')}")

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """One row for each number."""
        level = probability(confidence, "confidence")
        errors = [
            math.sqrt(float(sum(c * c * noise.law.variance for noise, c in f.noises.items()))) for f in self.forms
        ]
        margins = [float(form.margin(level)) if form.noises else 0.0 for form in self.forms]
        biases = self.biases
        columns: dict[str, Sequence[Cell]] = {
            "figure": self.labels,
            "reported": self.reported,
            "reference": [value - each for value, each in zip(self.reported, biases, strict=True)],
            "bias": biases,
            "standard error": errors,
            "low": [each - margin for each, margin in zip(biases, margins, strict=True)],
            "high": [each + margin for each, margin in zip(biases, margins, strict=True)],
        }
        return (ResultTable(name="bias", columns=columns),)

    @property
    def facts(self) -> Facts:
        """Where it comes from."""
        return ((phrase("design.cause"), phrase(f"design.cause_{self.cause.replace('-', '_')}")),)

    @property
    def notes(self) -> tuple[Word, ...]:
        """What the interval holds."""
        return (phrase("design.bias_covers"), phrase("design.bias_reference"))


def bias(reported: Release | ResultColumn, reference: Release | ResultColumn, *, cause: Cause) -> BiasResult:
    """The bias from a ``"limit"``, ``"clipping"`` or ``"post-processing"``, as a figure of its own; costs nothing.

    ``reported`` is the figure as it is published, ``reference`` the same of the same data under a wider limit or wider
    bounds, or before post-processing. Both columns of ``count(uncut_to=…)`` do, for a single charge:
    ``bias(release["within_limit"], release["count"], cause="limit")``.

    >>> import sfumato as sf
    >>> from sfumato.demo.clinic import visits
    >>> release = visits().count(uncut_to=10).release(epsilon=1, even_if_useless=True)
    >>> found = sf.bias(release["within_limit"], release["count"], cause="limit")
    >>> found.table().columns["bias"][0] == found.reported[0] - float(release["count"].values[0])
    True
    """
    if cause not in ("limit", "clipping", "post-processing"):
        raise InvalidInput("the cause of a bias is 'limit', 'clipping' or 'post-processing'; nothing was computed.")
    columns = [_column(each) for each in (reported, reference)]
    sources = tuple(dict.fromkeys(id(each) for column in columns for each in column.sources))
    releases = {id(each): each for column in columns for each in column.sources}
    if len({each.statement.dataset for each in releases.values()}) != 1:
        raise Refused(
            "a bias compares two figures of the same version of the same data, and these are about different ones; "
            "nothing was computed."
        )
    one, two = columns
    if dict(one.labels) != dict(two.labels) or len(one.values) != len(two.values):
        raise InvalidInput("the two figures are not of the same groups; nothing was computed.")
    forms = [linear_form(one, k).plus(linear_form(two, k), Fraction(-1)) for k in range(len(one.values))]
    names = [", ".join(str(column[k]) for column in one.labels.values()) or one.measure for k in range(len(forms))]
    return BiasResult(
        labels=tuple(names),
        reported=tuple(float(linear_form(one, k).value) for k in range(len(forms))),
        forms=tuple(forms),
        cause=cause,
        sources=tuple(releases[each] for each in sources),
    )


def _column(given: Release | ResultColumn) -> ResultColumn:
    if isinstance(given, Release):
        columns = given.columns
        if len(columns) != 1:
            raise InvalidInput(f"pick one column of the release: {', '.join(columns)}; nothing was computed.")
        return next(iter(columns.values()))
    if not hasattr(given, "sources") or not hasattr(given, "values"):
        raise InvalidInput("bias(...) takes releases or columns of them; nothing was computed.")
    return given
