"""Tests of a plan: comparisons of two groups, declared before anything is spent, with p-values adjusted for all.

They are made of the plan's own releases and cost nothing. What is tested, how p-values are adjusted and at which level
is part of the plan, so that a decision on the plan is one on the tests too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import cast

from sfumato.core.documents import Json, canonical
from sfumato.core.exact import probability
from sfumato.core.foreign import TomlTable
from sfumato.core.query import check_name
from sfumato.core.release import Release, whole
from sfumato.core.suggestion import did_you_mean
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, NotDeclared, Refused, Unsupported
from sfumato.governance.periods import Cadence, periods
from sfumato.inference.derived import Label
from sfumato.inference.figure import Figure
from sfumato.inference.ratio import Ratio
from sfumato.runner.asked import SqlQuestion
from sfumato.studies.compare import COMPARED, check_independent, compare
from sfumato.studies.comparison import TwoSampleResult
from sfumato.studies.multiplicity import METHODS, Method

__all__ = ["PlannedTest", "PlannedTests", "planned_tests"]

FAMILIES = ("plan", "period")
NOT_READ = "the plan was not read"
MOST_COPIES = 1_000_000
Pick = tuple[tuple[str, Label], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTest:
    """One comparison: two groups of a column of a release, in each of its periods."""

    name: str
    release: str
    column: str
    first: Pick
    second: Pick

    def result(self, release: Release, replicates: int) -> TwoSampleResult:
        """The comparison of one period, with as many simulated copies as the adjustment needs."""
        column = whole(release).columns[self.column]
        if not isinstance(column, Figure | Ratio):
            raise Unsupported(f"{self.column!r} is neither a share, nor a mean, nor a count; nothing was computed.")
        one, two = (column.at(**dict(pick)) for pick in (self.first, self.second))
        names = tuple(" · ".join(str(value) for _, value in pick) for pick in (self.first, self.second))
        found = compare(one, two, names=names)
        if (found.replicates or replicates) >= replicates:
            return found
        return replace(found, compared=replace(found.compared, replicates=replicates))  # type: ignore[type-var]  # a dataclass each


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTests:
    """All tests of a plan, and how their p-values are adjusted: over the plan's year, or over each period by itself."""

    tests: tuple[PlannedTest, ...]
    method: Method
    alpha: Fraction
    family: str
    number: int
    """How many tests the largest family has."""

    @property
    def replicates(self) -> int:
        """Simulated copies that a p-value needs, so that it can be rejected after the adjustment."""
        return math.ceil(10 * self.number / self.alpha) - 1

    @property
    def text(self) -> str:
        """What is decided on with the plan."""
        body = {
            "tests": [
                {
                    "name": test.name,
                    "release": test.release,
                    "column": test.column,
                    "first": dict(test.first),
                    "second": dict(test.second),
                }
                for test in self.tests
            ],
            "adjust": self.method,
            "alpha": str(self.alpha),
            "family": self.family,
        }
        return canonical(cast(Json, body))


def planned_tests(
    facts: TomlTable, asked: Mapping[str, SqlQuestion], every: Mapping[str, Cadence], year: int, unit: Unit
) -> PlannedTests:
    """Read the tests of a plan; what cannot be tested is refused here, before anything is spent."""
    for name in facts:
        if name not in ("adjust", "alpha", "family", "compare"):
            raise InvalidInput(
                f"it has an unknown field {name!r}; {NOT_READ}. Known are adjust, alpha, family, compare."
            )
    method = facts.get("adjust", "holm")
    if method not in METHODS:
        raise InvalidInput(f"adjust must be one of {', '.join(METHODS)}; {NOT_READ}.")
    family = facts.get("family", "plan")
    if family not in FAMILIES:
        raise InvalidInput(
            f'family must be "plan", for all tests of the year, or "period", for those of one period; {NOT_READ}.'
        )
    given = facts.get("alpha", Fraction(1, 20))
    if isinstance(given, str) or not isinstance(given, Decimal | Fraction):
        raise InvalidInput(f"alpha must be a number such as 0.05; {NOT_READ}.")
    alpha = probability(given, "alpha")
    if not 0 < alpha < 1:
        raise InvalidInput(f"alpha must lie between 0 and 1, such as 0.05; {NOT_READ}.")
    tables = facts.get("compare")
    if not isinstance(tables, dict) or not tables:
        raise NotDeclared(
            f"there is nothing to compare; {NOT_READ}. Write [tests.compare.name] with release, column, first, second."
        )
    tests = tuple(_test(name, one, asked, unit) for name, one in tables.items())
    of = {test.name: len(tuple(periods(every[test.release], year))) for test in tests}
    found = PlannedTests(
        tests=tests,
        method=method,
        alpha=alpha,
        family=family,
        number=sum(of.values()) if family == "plan" else len(tests),
    )
    if found.replicates > MOST_COPIES:
        raise Unsupported(
            f"{found.number:,} tests in one family need {found.replicates:,} simulated copies each, and "
            f'{MOST_COPIES:,} are the most; {NOT_READ}. Test fewer, or each period by itself: family = "period".'
        )
    return found


def _test(name: str, facts: object, asked: Mapping[str, SqlQuestion], unit: Unit) -> PlannedTest:
    check_name(name, "the name of a test")
    place = f"compare.{name}"
    if not isinstance(facts, dict):
        raise InvalidInput(f"{place} is no table; {NOT_READ}.")
    for field in facts:
        if field not in ("release", "column", "first", "second"):
            raise InvalidInput(
                f"{place} has an unknown field {field!r}; {NOT_READ}. Known are release, column, first, second."
            )
    release = facts.get("release")
    if not isinstance(release, str) or release not in asked:
        meant = did_you_mean(release, asked) if isinstance(release, str) else ""
        raise InvalidInput(f"{place}.release must name a release of this plan; {NOT_READ}.{meant}")
    question = asked[release]
    kinds = _kinds(question)
    column = facts.get("column", next(iter(kinds)) if len(kinds) == 1 else None)
    if not isinstance(column, str) or column not in kinds:
        meant = did_you_mean(column, kinds) if isinstance(column, str) else ""
        raise InvalidInput(f"{place}.column must be one of {', '.join(kinds)}; {NOT_READ}.{meant}")
    if kinds[column] not in COMPARED:
        raise Unsupported(f"{place}: {column!r} is neither a share, nor a mean, nor a count; {NOT_READ}.")
    limit = question.schema.declaration(unit)["limit"]
    try:
        check_independent(unit, limit, persons=kinds[column] == "measure.persons")
    except Refused as wrong:
        raise Refused(f"{place}: {wrong} {NOT_READ.capitalize()}.") from None
    first, second = (_pick(place, part, facts.get(part), question) for part in ("first", "second"))
    if first == second:
        raise InvalidInput(f"{place}: first and second are the same group; {NOT_READ}.")
    return PlannedTest(name=name, release=release, column=column, first=first, second=second)


def _kinds(question: SqlQuestion) -> dict[str, str]:
    """The columns of a release and what kind of measure each is."""
    query = question.query
    measures = getattr(query, "measures", None)
    if measures is None:
        return {query.measure or "count": "measure.count"}
    return {each.name: each.KIND for each in measures}


def _pick(place: str, part: str, facts: object, question: SqlQuestion) -> Pick:
    """One group, by a value of each column that the question groups by."""
    labels = question.query.labels()
    names = ", ".join(labels) or "none"
    if not isinstance(facts, dict) or set(facts) != set(labels) or not labels:
        raise InvalidInput(
            f"{place}.{part} must be one group, with a value of each column that is grouped by ({names}), such as "
            f"{{ {next(iter(labels), 'sex')} = … }}; {NOT_READ}."
        )
    for name, value in facts.items():
        if not any(value == each and type(value) is type(each) for each in labels[name]):
            raise InvalidInput(f"{place}.{part}: {name!r} has no declared key {value!r}; {NOT_READ}.")
    return tuple((name, facts[name]) for name in labels)
