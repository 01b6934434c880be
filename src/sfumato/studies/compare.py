"""Comparing two numbers that were released: shares, means or counts, with nothing asked anew and nothing spent."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from sfumato.core.description import Phrase, Word
from sfumato.core.limits import Limit
from sfumato.core.query import Law
from sfumato.core.release import Release, only_release
from sfumato.core.units import Family, Record, Unit, User, describe
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.inference.cut_alike import check_cut_alike
from sfumato.inference.derived import Derived, joined
from sfumato.inference.figure import Figure, figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.moments import Variance
from sfumato.inference.ratio import Ratio
from sfumato.studies import means
from sfumato.studies.compared import ComparedCounts, ComparedMeans, ComparedShares, GroupComparison
from sfumato.studies.comparison import TwoSampleResult
from sfumato.studies.draws import CellNoise, Numbers, generator_of
from sfumato.studies.proportions import TwoByTwo

__all__ = ["COMPARED", "check_independent", "compare"]

ONCE = Limit(groups=1, rows_per_group=1)
SHARE, MEAN = "measure.proportion", "measure.mean"
COUNTED = ("measure.count", "measure.persons")
COMPARED = (SHARE, MEAN, *COUNTED)
"""The kinds of measures of which two numbers can be compared."""


def compare(
    first: Release | Derived, second: Release | Derived, *, names: Sequence[str] = ("first", "second")
) -> TwoSampleResult:
    """Compare two released shares, means or counts: difference, ratios and a p-value; nothing is spent.

    Each is one number: a column of a release picked with ``at(...)``, as in ``release["died"].at(arm="A")``, or a
    release of one number. Where a mean was released without its variance (:func:`sf.variance` in the same question),
    the largest that its bounds allow is taken, which is conservative; :meth:`Table.two_sample` asks for both.

    Guarantee: costs nothing; sampling and noise are in the intervals and in the p-value. What a limit can have cut
    differently, what shares its noise, and rows that are not independent are refused. Assumes: nobody is in both.
    Proof: docs/proofs/comparisons.md

    >>> import pyarrow as pa, sfumato as sf
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    >>> rows = pa.table({"arm": ["A", "B"] * 200, "died": [True, False] * 100 + [False, False] * 100})
    >>> trial = vault.table(rows, name="trial", version="1", keys={"arm": ["A", "B"]})
    >>> died = trial.group_by("arm").proportion("died").release(epsilon=8)["proportion"]
    >>> sf.compare(died.at(arm="A"), died.at(arm="B"), names=("A", "B")).p_value < 0.01
    True
    """
    one, two = _number(first), _number(second)
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise InvalidInput("names=... are two texts, such as ('A', 'B'); nothing was computed.")
    kinds = _kind(one), _kind(two)
    if kinds[0] != kinds[1]:
        raise InvalidInput(
            f"a {_called(kinds[0])} cannot be compared with a {_called(kinds[1])}; nothing was computed. Give two "
            "shares, two means of one column, or two counts."
        )
    sources = joined(one.sources, two.sources)
    for release in sources:
        said = release.statement
        check_independent(said.unit, said.limit, persons=kinds[0] == "measure.persons")
    check_cut_alike(sources, "the comparison")
    _check_own_noise(one, two)
    seeds = tuple(release.statement.identifier for release in sources)
    compared: GroupComparison
    match kinds[0]:
        case "measure.proportion":
            compared = _shares(one, two, seeds)
        case "measure.mean":
            compared = _means(one, two, seeds)
        case _:
            compared = _counts(one, two, seeds)
    apart = len(sources) > 1
    outcome: Word = Phrase("compare.outcome_counts") if kinds[0] in COUNTED else one.measure
    return TwoSampleResult(
        compared=compared,
        names=(names[0], names[1]),
        outcome=outcome,
        sources=sources,
        said=(Phrase("compare.apart"),) if apart else (),
    )


def _number(given: object) -> Derived:
    """One released number."""
    if isinstance(given, Derived):
        column = given
    else:
        release = only_release(given)
        found = [figure(release)] if release.measure is not None else list(release.columns.values())
        if len(found) != 1 or not isinstance(found[0], Derived):
            raise InvalidInput(
                f"this release has {len(found)} columns; nothing was computed. Pick one: release['name'].at(...)."
            )
        column = found[0]
    if len(column.values) != 1:
        raise InvalidInput(
            f"{column.measure!r} has {len(column.values)} numbers, and one is compared with one; nothing was computed. "
            f"Pick one with at(...): its labels are {', '.join(column.labels) or 'none'}."
        )
    return column


def _kind(column: Derived) -> str:
    """The kind of the measure that a number is, where it can be compared."""
    found = set()
    for release in column.sources:
        query = release.statement.query
        by_name = {each.name: each.KIND for each in getattr(query, "measures", ())}
        found.add("measure.count" if query.measure == "count" else by_name.get(column.measure, ""))
    kind = found.pop() if len(found) == 1 else ""
    whole = isinstance(column, Figure) and kind in COUNTED and len(column.forms[0].noises) > 0
    quotient = isinstance(column, Ratio) and kind in (SHARE, MEAN)
    if not (whole or quotient):
        raise Unsupported(
            f"{column.measure!r} is neither a share, nor a mean, nor a count as it was released; nothing was computed. "
            "Ask for sf.proportion(...), sf.mean(...) or sf.count(...) by group, and pick with at(...)."
        )
    return kind


def _called(kind: str) -> str:
    return {SHARE: "share", MEAN: "mean"}.get(kind, "count")


def check_independent(unit: Unit, limit: Limit | None, *, persons: bool = False) -> None:
    """Refuse rows of one person, which are not independent; a person who is in several groups is not either."""
    if isinstance(unit, Record):
        return
    if not isinstance(unit, User | Family) or limit is None:
        raise Refused(
            f"rows of people are compared, and this release protects {describe(unit)}: what varies independently in it "
            "is not known. Nothing was computed."
        )
    if limit.without_words == ONCE or (persons and limit.groups == 1):
        return
    raise Refused(
        "a person can have several rows in these numbers, and a comparison takes rows for independent: its standard "
        "errors would be too small. Nothing was computed. Ask of one row a person, table.per_person(...), or under "
        "sf.Limit(groups=1, rows_per_group=1)."
    )


def _forms(column: Derived) -> tuple[LinearCombination, ...]:
    if isinstance(column, Ratio):
        return column.over[0], column.under[0]
    assert isinstance(column, Figure)  # noqa: S101 - checked by its kind
    return (column.forms[0],)


def _check_own_noise(one: Derived, two: Derived) -> None:
    left, right = ({noise for form in _forms(each) for noise in form.noises} for each in (one, two))
    if left & right:
        raise InvalidInput(
            "both numbers hold the same noise: they are the same number, or one is a part of the other. Nothing was "
            "computed. Pick two groups with at(...)."
        )


def _noise(form: LinearCombination) -> CellNoise:
    return CellNoise(tuple((float(weight), noise.law) for noise, weight in form.noises.items()))


def _shares(one: Derived, two: Derived, seeds: tuple[str, ...]) -> ComparedShares:
    cells = []
    for column in (one, two):
        yes, under = _forms(column)
        no = under.plus(yes, Fraction(-1))
        if yes.noises.keys() & no.noises.keys():
            raise Unsupported(
                "those with and those without the outcome share their noise in this release; nothing was computed. "
                "Use table.two_sample(...)."
            )
        cells.append((yes, no))
    return ComparedShares(
        table=TwoByTwo(
            yes=np.array([float(yes.value) for yes, _ in cells]),
            no=np.array([float(no.value) for _, no in cells]),
            yes_noise=tuple(_noise(yes) for yes, _ in cells),
            no_noise=tuple(_noise(no) for _, no in cells),
        ),
        seeded=lambda: generator_of(*seeds),
    )


def _means(one: Derived, two: Derived, seeds: tuple[str, ...]) -> ComparedMeans:
    assert isinstance(one, Ratio)  # noqa: S101 - checked by its kind
    assert isinstance(two, Ratio)  # noqa: S101
    if one.within != two.within:
        raise InvalidInput(
            "the two means have different bounds, so they are means of different values; nothing was computed."
        )
    low, high = one.within
    width = high - low
    released = _moments(one), _moments(two)
    if released[0] is not None and released[1] is not None and released[0][1] == released[1][1]:
        parts, noise = np.stack([released[0][0], released[1][0]]), released[0][1]
        return ComparedMeans(
            means=means.group_means(parts, noise),
            tested=lambda draws: float(means.mean_difference_p_values(parts, noise, generator_of(*seeds), draws)),
            noise_in_rows=(3 * noise.variance,) * 2,
            low=low,
            width=width,
            released=(float(parts[0].sum()), float(parts[1].sum())),
        )
    over = [column.over[0].plus(column.under[0], -Fraction(low)).scaled(1 / Fraction(width)) for column in (one, two)]
    under = [column.under[0] for column in (one, two)]
    rows = np.maximum([float(form.value) for form in under], 2.0)
    mean = np.clip([float(form.value) for form in over] / rows, 0.0, 1.0)
    pairs = list(zip(over, under, strict=True))
    own = [_noise(top.plus(bottom, -Fraction(at))) for (top, bottom), at in zip(pairs, map(float, mean), strict=True)]
    found = means.bounded_means(
        rows, mean, np.array([each.variance for each in own]), np.array([each.fourth for each in own])
    )
    common = Fraction(float((rows * mean).sum() / rows.sum()))
    left = [top.plus(bottom, -common).noises for top, bottom in pairs]
    weights = np.zeros((2, max(map(len, left))))
    for place, held in enumerate(left):
        weights[place, : len(held)] = [float(weight) for weight in held.values()]
    drawn = CellNoise.of(_law(left[0])), CellNoise.of(_law(left[1]))
    return ComparedMeans(
        means=found,
        tested=lambda draws: float(means.bounded_p_values(found, drawn, weights, generator_of(*seeds), draws)),
        noise_in_rows=(_noise(under[0]).variance, _noise(under[1]).variance),
        low=low,
        width=width,
        released=(float(under[0].value), float(under[1].value)),
        bounded=True,
    )


def _moments(mean: Ratio) -> tuple[Numbers, CellNoise] | None:
    """The parts of the same rows, where the variance of the same value was released beside the mean."""
    for column in mean.sources[0].columns.values():
        for each in column.moments if isinstance(column, Variance) else ():
            if each.number == mean.under[0]:
                return means.parts_of(each)
    return None


def _law(noises: Mapping[Noise, Fraction]) -> Law:
    """The one law of all noise in a mean, which is of one release."""
    (law,) = {noise.law for noise in noises} if noises else {None}
    if law is None:
        raise Unsupported("a mean without noise was not released by a vault; nothing was computed.")
    return law


def _counts(one: Derived, two: Derived, seeds: tuple[str, ...]) -> ComparedCounts:
    forms = [_forms(column)[0] for column in (one, two)]
    return ComparedCounts(
        values=np.array([float(form.value) for form in forms]),
        noises=(_noise(forms[0]), _noise(forms[1])),
        seeded=lambda: generator_of(*seeds),
    )
