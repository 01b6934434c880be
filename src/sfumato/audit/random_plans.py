"""Random questions about a declared table: made of what is declared, as an analyst could ask them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sfumato.audit.invented_rows import Protected, ends
from sfumato.core.limits import Limit
from sfumato.core.units import Record
from sfumato.engines.expressions import Expression, Type, col, written
from sfumato.errors import InvalidInput
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.measure import Asked
from sfumato.tables.measures.average import mean
from sfumato.tables.measures.person_count import persons
from sfumato.tables.measures.proportion import proportion
from sfumato.tables.measures.quotient import ratio
from sfumato.tables.measures.row_count import count
from sfumato.tables.measures.total import sum_of
from sfumato.tables.measures.variation import variance
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["RandomPlan", "random_plans"]

MOST_CELLS, TOGETHER = 256, 5
FILTERED, RELIMITED, HISTOGRAM = 0.4, 0.5, 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomPlan:
    """A question, the limit that it is asked under, and both in words."""

    query: Count | Aggregate
    limit: Limit | None
    words: str


def random_plans(
    table: "Table", facts: Sequence[ColumnFacts], unit: Protected, chance: np.random.Generator
) -> list[RandomPlan]:
    """A few questions of random parts about the same rows and groups, which one query can add up.

    What the product refuses raises as it does for an analyst.

    >>> from sfumato.core.units import user
    >>> from sfumato.audit.invented_rows import facts_of
    >>> from sfumato.demo.clinic import visits
    >>> person = user("patient", relation="add/remove")
    >>> some = random_plans(visits(), facts_of(visits(), person), person, np.random.default_rng(1))
    >>> {plan.query.dataset.name for plan in some}
    {'visits'}
    """
    limit = _limit(table.limit, unit, chance)
    asked = table if limit is None or limit == table.limit else table.with_limit(limit)
    where = ""
    if chance.random() < FILTERED and (condition := _condition(facts, chance)) is not None:
        asked, where = asked.where(condition), f", where {written(condition)}"
    asked, by = _grouped(asked, facts, chance)
    held = "" if limit is None else f"; at most {limit.groups} group(s) of a person, {limit.rows_per_group} row(s) each"
    return [
        RandomPlan(query=query, limit=limit, words=f"{words} of {table.dataset.name}{by}{where}{held}")
        for words, query in _asked(asked, facts, unit, chance).items()
    ]


def _limit(declared: Limit | None, unit: Protected, chance: np.random.Generator) -> Limit | None:
    if isinstance(unit, Record):
        return None
    if declared is not None and chance.random() >= RELIMITED:
        return declared
    return Limit(groups=int(chance.integers(1, 4)), rows_per_group=int(chance.integers(1, 4)))


def _grouped(table: "Table", facts: Sequence[ColumnFacts], chance: np.random.Generator) -> tuple["Table", str]:
    """The table by up to two columns with keys, with a last group for the rest now and then."""
    names, cells, words = [fact.name for fact in facts if fact.keys], 1, []
    for name in chance.permutation(names)[: int(chance.integers(3))].tolist():
        keys = table.keys[name]
        if cells * (keys.size + 1) > MOST_CELLS:
            continue
        rest = "any other" if isinstance(keys.values[0], str) and chance.random() < 0.3 else None
        table = table.group_by(name, other=rest if rest not in keys.values else None)
        cells *= keys.size + 1
        words.append(name + ("" if rest is None else " with a group of the rest"))
    return table, f" by {' and '.join(words)}" if words else ""


def _asked(
    table: "Table", facts: Sequence[ColumnFacts], unit: Protected, chance: np.random.Generator
) -> dict[str, Count | Aggregate]:
    """A histogram; or a few questions of up to three measures each, by their words."""
    binned = [fact for fact in facts if _edges(fact)]
    if binned and chance.random() < HISTOGRAM:
        fact = binned[int(chance.integers(len(binned)))]
        return {f"histogram of {fact.name}": _known(table.histogram(fact.name, _edges(fact)).query)}
    choices = list(_measures(table, facts, unit, chance).items())
    found: dict[str, Count | Aggregate] = {}
    for _ in range(TOGETHER):
        several = min(len(choices), int(chance.choice([1, 1, 2, 3])))
        made = [choices[place] for place in chance.choice(len(choices), size=several, replace=False)]
        words = " and ".join(each for each, _ in made)
        measures = {f"m{place}": measure for place, (_, measure) in enumerate(made)}
        found[words] = _known((table.count() if words == "count" else table.agg(**measures)).query)
    return found


def _measures(
    table: "Table", facts: Sequence[ColumnFacts], unit: Protected, chance: np.random.Generator
) -> dict[str, Asked]:
    """Measures by their words, of two columns of numbers and one condition at most."""
    found: dict[str, Asked] = {"count": count()}
    if not isinstance(unit, Record):
        found["persons"] = persons()
    if (condition := _condition(facts, chance)) is not None:
        found[f"proportion with {written(condition)}"] = proportion(condition)
    numbers = [fact.name for fact in facts if ends(fact) is not None and fact.name in table.bounds]
    if numbers:
        one, two = (str(each) for each in chance.choice(numbers, size=2))
        found |= {f"sum of {one}": sum_of(one), f"mean of {one}": mean(one), f"variance of {two}": variance(two)}
        if one != two:
            found |= {f"sum of {two}": sum_of(two), f"ratio of {one} to {two}": ratio(one, two)}
    return found


def _known(query: object) -> Count | Aggregate:
    """Without a public number of units, which the rows that are invented need not have."""
    if isinstance(query, Aggregate):
        return replace(query, number=None)
    if isinstance(query, Count):
        return query
    raise InvalidInput("this question is neither counts nor measures; nothing was tried.")


def _edges(fact: ColumnFacts) -> list[int | float]:
    """Edges of two or three bins within the bounds."""
    bounds = ends(fact)
    if bounds is None or bounds[0] == bounds[1]:
        return []
    low, high = bounds
    inner = [low, (2 * low + high) / 3, high]
    if fact.type is Type.WHOLE:
        return sorted({int(each) for each in inner} | {int(high) + 1} if high < 2**62 else {int(low), int(high)})
    return sorted({float(each) for each in inner})


def _condition(facts: Sequence[ColumnFacts], chance: np.random.Generator) -> Expression | None:
    """A condition on a declared column, or two of them."""
    fit = [fact for fact in facts if fact.keys or fact.bounds is not None or fact.type is Type.TRUTH]
    if not fit:
        return None
    found = _simple(fit[int(chance.integers(len(fit)))], chance)
    if chance.random() < 0.25:
        other = _simple(fit[int(chance.integers(len(fit)))], chance)
        return found | other if chance.random() < 0.5 else found & ~other
    return found


def _simple(fact: ColumnFacts, chance: np.random.Generator) -> Expression:
    column, way = col(fact.name), int(chance.integers(5))
    if way == 0:
        return ~column.isnull() if chance.random() < 0.7 else column.isnull()
    if fact.keys:
        dated = fact.type in (Type.DATE, Type.TIME)
        keys = [date.fromisoformat(str(key)) if dated else key for key in fact.keys]
        if dated or fact.type is Type.TRUTH:
            key = keys[int(chance.integers(len(keys)))]
            return column >= key if dated else column == key
        some = [keys[place] for place in chance.choice(len(keys), size=min(2, len(keys)), replace=False)]
        return column.isin(some) if way > 2 else column != some[0]
    if (bounds := ends(fact)) is not None:
        middle: Fraction = bounds[0] + (bounds[1] - bounds[0]) * Fraction(int(chance.integers(1, 4)), 4)
        at = int(middle) if fact.type is Type.WHOLE else float(middle)
        return column >= at if way > 2 else column < at
    if fact.bounds is not None and fact.type is not Type.TEXT and isinstance(fact.bounds[1], date):
        return column >= fact.bounds[1] if way > 2 else column < fact.bounds[1]
    return column == True if fact.type is Type.TRUTH else ~column.isnull()  # noqa: E712 - a condition, not a truth
