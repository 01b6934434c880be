"""Which groups of a person are kept is a fair draw among all choices of that many groups.

α = 1e-9 for each of the two tests, on fresh secrets. With n = 24,000 persons and C(4, 2) = 6 choices, choices that are
10% too likely and too unlikely in turn give a χ² of 5 degrees with non-centrality 240, which stays below the limit of
50.7 with probability below 1e-9: the smallest fault that the test is sure to find.
"""

import secrets
from collections import Counter
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest
from scipy import stats

from sfumato.core.limits import Limit
from sfumato.engines.counts import KeyColumn, Share, rows_by_cell
from tests.laws.plans import engine, mark

ALPHA = 1e-9
GROUPS, KEPT = 4, 2
SECRETS, PERSONS = 12, 2_000
CHOICES = list(combinations(range(GROUPS), KEPT))
KEYS = (KeyColumn(column="zip", values=tuple("abcd")),)


def everyone_everywhere() -> Any:
    """Each person is in every group; each is also a world, so that the counts tell what is kept of whom."""
    people = [f"p{number}" for number in range(PERSONS) for _ in range(GROUPS)]
    return engine().create_table("everyone", pa.table({"id": people, "zip": list("abcd") * PERSONS}), overwrite=True)


def chosen(found: pa.Table) -> Counter[tuple[int, ...]]:
    kept: dict[str, list[int]] = {}
    for person, cell in zip(found["world"].to_pylist(), found["cell"].to_pylist(), strict=True):
        kept.setdefault(person, []).append(cell)
    return Counter(tuple(sorted(cells)) for cells in kept.values())


def fairness(choices: Counter[tuple[int, ...]]) -> float:
    """The p-value of equally likely choices."""
    assert set(choices) <= set(CHOICES)
    return float(stats.chisquare([choices[choice] for choice in CHOICES]).pvalue)


@pytest.mark.long
@pytest.mark.alpha(ALPHA)
def test_all_choices_of_groups_are_equally_likely() -> None:
    table = everyone_everywhere()
    total: Counter[tuple[int, ...]] = Counter()
    for _ in range(SECRETS):
        share = Share(column="id", limit=Limit(groups=KEPT, rows_per_group=1), secret=secrets.token_hex(16))
        total += chosen(rows_by_cell(table, where=None, keys=KEYS, share=share, world="id").to_pyarrow())
    assert total.total() == SECRETS * PERSONS
    assert set(total) == set(CHOICES)
    assert fairness(total) > ALPHA


@pytest.mark.few(1)
@pytest.mark.parametrize("person", ["one person", 0, 1, -7, 2**40])
@pytest.mark.alpha(2 * ALPHA)
def test_the_choice_of_one_person_is_fair_over_secrets(person: str | int) -> None:
    """The same, with the secret as the only thing that changes; the marks are worked out by hand."""
    total: Counter[tuple[int, ...]] = Counter()
    for _ in range(6_000):
        secret = secrets.token_hex(16)
        marks = [mark(secret, person, zip_code) for zip_code in "abcd"]
        total[tuple(sorted(sorted(range(4), key=marks.__getitem__)[:KEPT]))] += 1
    assert fairness(total) > ALPHA


@pytest.mark.long
@pytest.mark.alpha(ALPHA)
def test_the_choices_of_two_persons_have_nothing_to_do_with_each_other() -> None:
    """Neighbouring whole numbers, under one secret: both keep the same groups as often as chance has it."""
    same = 0
    for _ in range(6_000):
        secret = secrets.token_hex(16)
        kept = [
            sorted(sorted(range(4), key=[mark(secret, person, zip_code) for zip_code in "abcd"].__getitem__)[:KEPT])
            for person in (1, 2)
        ]
        same += kept[0] == kept[1]
    assert stats.binomtest(same, 6_000, 1 / len(CHOICES)).pvalue > ALPHA


@pytest.mark.few(1)
@pytest.mark.parametrize("twin", ["a hash of one hexadecimal digit", "a hash of the person alone"])
@pytest.mark.alpha(ALPHA)
def test_twin_an_unfair_hash_is_caught(twin: str) -> None:
    import ibis

    table = everyone_everywhere()
    total: Counter[tuple[int, ...]] = Counter()
    for _ in range(SECRETS):
        text = table.id + secrets.token_hex(16) + (table.zip if "digit" in twin else "")
        digits = 1 if "digit" in twin else 32
        rows = table.mutate(cell=table.zip.ascii_str() - ord("a"), hashed=text.hexdigest("md5").substr(0, digits))
        window = ibis.window(group_by="id", order_by=["hashed", "cell"])
        rows = rows.mutate(place=ibis.row_number().over(window))
        total += chosen(rows.filter(rows.place < KEPT).select("cell", world="id").to_pyarrow())
    assert total.total() == SECRETS * PERSONS
    assert fairness(total) < ALPHA
