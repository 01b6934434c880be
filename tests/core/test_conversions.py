"""From one unit to another: free, by group privacy over an enforced bound, or not at all."""

from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import pytest

from sfumato.core.conversions import Enforced, convert
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.core.units import client, edge, event, family, node, record, user, weight
from sfumato.errors import InvalidInput, NotDeclared, Refused
from tests.core.truth import hockey_stick, least_delta, mp, number, rounded_up

pytestmark = pytest.mark.kills

AR, RE = "add/remove", "replace"
FIVE_ROWS = Enforced(count=5, by="a limit of 5 rows")
QUARTER = Pure(epsilon=Fraction(1, 4))


# ------------------------------------------------ the number of steps, found by walking through all small datasets

PEOPLE, VALUES, MOST_ROWS = 2, (0, 1), 2


@cache
def tables() -> list[tuple]:
    """All tables: for each of two persons a bag of at most two values, one for each row."""
    bags = [bag for size in range(MOST_ROWS + 1) for bag in combinations_with_replacement(VALUES, size)]
    return [tuple(bags) for bags in product(bags, repeat=PEOPLE)]


def rows(table: tuple) -> Counter:
    return Counter((person, value) for person, bag in enumerate(table) for value in bag)


def one_step(unit: str, relation: str, here: tuple, there: tuple) -> bool:
    if unit == "user":
        changed = [(a, b) for a, b in zip(here, there, strict=True) if a != b]
        if relation == AR:  # a person with all rows more or less
            return len(changed) == 1 and () in changed[0]
        return (len(changed) == 1 and () not in changed[0]) or (len(changed) == 2 and moved_on(changed))
    more, less = rows(there) - rows(here), rows(here) - rows(there)
    sizes = sorted((more.total(), less.total()))
    return sizes == ([0, 1] if relation == AR else [1, 1])


def moved_on(changed: list) -> bool:
    """One person left and another came: an exchange of one for another."""
    (a, b), (c, d) = changed
    return (b == () and c == () and a != () and d != ()) or (a == () and d == () and b != () and c != ())


@cache
def neighbours(unit: str, relation: str) -> dict[tuple, set[tuple]]:
    return {here: {there for there in tables() if one_step(unit, relation, here, there)} for here in tables()}


def most_steps(held: tuple[str, str], wanted: tuple[str, str]) -> int | None:
    """The largest distance in steps of ``held`` between ``wanted`` neighbours; None where some is out of reach."""
    worst = 0
    for start, sought in neighbours(*wanted).items():
        distance, rim = {start: 0}, {start}
        while rim:
            rim = set().union(*(neighbours(*held)[here] for here in rim)) - distance.keys()
            distance |= dict.fromkeys(rim, max(distance.values()) + 1)
        if not sought <= distance.keys():
            return None
        worst = max(worst, *(distance[there] for there in sought), 0)
    return worst


UNITS = {"user": lambda relation: user("id", relation=relation), "record": lambda relation: record(relation=relation)}
ALL_FOUR = list(product(UNITS, (AR, RE)))


@pytest.mark.parametrize(("held", "wanted"), list(product(ALL_FOUR, repeat=2)))
def test_a_conversion_takes_as_many_steps_as_a_walk_through_all_small_tables(held, wanted):
    needed = most_steps(held, wanted)
    units = {"held": UNITS[held[0]](held[1]), "wanted": UNITS[wanted[0]](wanted[1])}
    limit = Enforced(count=MOST_ROWS, by="tables of two rows a person")
    if needed is None:
        with pytest.raises(Refused, match=r"Nothing was converted|nothing was converted"):
            convert(Pure(epsilon=Fraction(1)), enforced=limit, **units)
    else:
        assert convert(Pure(epsilon=Fraction(1)), enforced=limit, **units) == Pure(epsilon=Fraction(needed))


def test_add_remove_read_as_replace_is_a_group_of_two():
    """Replacing is removing one and adding one, and a chain of two neighbours attains what is stated."""
    epsilon, delta = Fraction(1, 2), Fraction(1, 1000)
    held = Approximate(epsilon=epsilon, delta=delta)
    read = convert(held, held=record(relation=AR), wanted=record(relation=RE))
    step, small = mp.exp(number(epsilon)), number(delta)
    laws = [(chance, 1 - chance) for chance in (mp.mpf(0), small, step * small + small)]
    assert least_delta(laws[0], laws[1], step) <= small
    assert least_delta(laws[1], laws[2], step) <= small * (1 + mp.mpf(10) ** -50)
    assert read.epsilon == 2 * epsilon
    assert rounded_up(read.delta, (1 + step) * small, 1e-30)
    assert rounded_up(read.delta, hockey_stick(laws[2], laws[0], step**2), 1e-30)


@pytest.mark.parametrize(
    ("held", "read"),
    [
        (QUARTER, Pure(epsilon=Fraction(1, 2))),
        (ZCDP(rho=Fraction(1, 8)), ZCDP(rho=Fraction(1, 2))),
        (GDP(mu=Fraction(1, 2)), GDP(mu=Fraction(1))),
        (RDP(curve=((Fraction(8), Fraction(1)),)), RDP(curve=((Fraction(4), Fraction(3)),))),
    ],
)
def test_every_language_reads_replace_as_two(held, read):
    for make in (record, event, edge, client):
        assert convert(held, held=make(relation=AR), wanted=make(relation=RE)) == read


@pytest.mark.parametrize("wanted", [record(relation=AR), user("id", relation=AR), family(2, "id", relation=AR)])
def test_replace_says_nothing_about_add_remove(wanted):
    for held in (record(relation=RE), user("id", relation=RE), family(3, "id", relation=RE)):
        with pytest.raises(Refused, match=r"replace says nothing about .*add/remove.*Nothing was converted"):
            convert(QUARTER, held=held, wanted=wanted, enforced=FIVE_ROWS)


@pytest.mark.parametrize("relation", [AR, RE])
def test_what_is_covered_is_free(relation):
    same = [
        (user("id", relation=relation), user("id", relation=relation)),
        (family(3, "id", relation=relation), family(2, "id", relation=relation)),
        (family(3, "id", relation=relation), user("id", relation=relation)),
        (node(max_degree=4, relation=relation), node(max_degree=3, relation=relation)),
        (weight(bound=2, relation=relation), weight(bound=1, relation=relation)),
    ]
    for held, wanted in same:
        assert convert(QUARTER, held=held, wanted=wanted) == QUARTER
        assert convert(QUARTER, held=held, wanted=wanted, enforced=FIVE_ROWS) == QUARTER


@pytest.mark.parametrize(
    ("held", "wanted", "times"),
    [
        (record(relation=AR), user("id", relation=AR), 5),
        (event(relation=AR), user("id", relation=AR), 5),
        (record(relation=AR), family(3, "id", relation=AR), 15),
        (event(relation=AR), family(2, "id", relation=AR), 10),
        (record(relation=AR), user("id", relation=RE), 10),
        (record(relation=AR), family(3, "id", relation=RE), 30),
        (user("id", relation=AR), family(4, "id", relation=AR), 4),
        (user("id", relation=RE), family(4, "id", relation=RE), 4),
        (user("id", relation=AR), family(4, "id", relation=RE), 8),
        (family(2, "id", relation=AR), family(3, "id", relation=AR), 2),
        (family(2, "id", relation=AR), family(4, "id", relation=AR), 2),
        (family(2, "id", relation=AR), family(5, "id", relation=AR), 3),
        (edge(relation=AR), node(max_degree=4, relation=RE), 10),
        (edge(relation=AR), node(max_degree=5, relation=RE), 10),
        (edge(relation=AR), node(max_degree=7, relation=RE), 14),
        (user("id", relation=AR), user("id", relation=RE), 2),
        (family(3, "id", relation=AR), user("id", relation=RE), 2),
        (family(1, "id", relation=AR), user("id", relation=RE), 2),
        (family(2, "id", relation=AR), family(3, "id", relation=RE), 4),
        (family(2, "id", relation=RE), family(3, "id", relation=RE), 2),
        (node(max_degree=4, relation=AR), node(max_degree=4, relation=RE), 2),
        (node(max_degree=4, relation=AR), node(max_degree=3, relation=RE), 2),
        (user("id", relation=AR), record(relation=AR), 2),
        (family(3, "id", relation=AR), event(relation=AR), 2),
        (client(relation=AR), record(relation=AR), 2),
        (user("id", relation=AR), record(relation=RE), 4),
        (node(max_degree=4, relation=AR), edge(relation=AR), 2),
        (node(max_degree=4, relation=AR), edge(relation=RE), 4),
        (node(max_degree=4, relation=RE), edge(relation=RE), 2),
    ],
)
def test_a_stronger_unit_is_a_group_of_weaker_ones(held, wanted, times):
    assert convert(QUARTER, held=held, wanted=wanted, enforced=FIVE_ROWS) == QUARTER.group(times)
    assert convert(ZCDP(rho=Fraction(1, 8)), held=held, wanted=wanted, enforced=FIVE_ROWS) == ZCDP(
        rho=times**2 * Fraction(1, 8)
    )


def test_a_family_of_users_needs_no_further_bound():
    held, wanted = user("id", relation=AR), family(3, "id", relation=AR)
    assert convert(QUARTER, held=held, wanted=wanted) == Pure(epsilon=Fraction(3, 4))
    assert convert(QUARTER, held=family(2, "id", relation=AR), wanted=wanted) == Pure(epsilon=Fraction(1, 2))


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (record(relation=AR), user("id", relation=AR)),
        (event(relation=AR), family(2, "id", relation=AR)),
        (edge(relation=AR), node(max_degree=3, relation=RE)),
    ],
)
def test_a_bound_that_nothing_enforces_is_not_assumed(held, wanted):
    with pytest.raises(NotDeclared, match=r"is stronger than .* an enforced bound .*Nothing was converted"):
        convert(QUARTER, held=held, wanted=wanted)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (user("id", relation=AR), user("household", relation=AR)),
        (user("id", relation=RE), record(relation=RE)),
        (client(relation=RE), event(relation=RE)),
        (record(relation=RE), user("id", relation=RE)),
        (event(relation=RE), family(2, "id", relation=RE)),
        (edge(relation=RE), node(max_degree=3, relation=RE)),
        (edge(relation=AR), node(max_degree=3, relation=AR)),
        (node(max_degree=2, relation=AR), node(max_degree=3, relation=RE)),
        (record(relation=AR), event(relation=AR)),
        (weight(bound=1, relation=AR), weight(bound=1, relation=RE)),
        (user("id", relation=AR), family(2, "household", relation=AR)),
        (family(2, "id", relation=AR), family(3, "household", relation=AR)),
        (family(2, "id", relation=AR), user("household", relation=AR)),
        (user("id", relation=AR), client(relation=AR)),
        (record(relation=AR), node(max_degree=2, relation=AR)),
        (edge(relation=AR), user("id", relation=AR)),
        (weight(bound=1, relation=RE), weight(bound=2, relation=RE)),
        (node(max_degree=2, relation=AR), node(max_degree=3, relation=AR)),
        (weight(bound=1, relation=RE), edge(relation=RE)),
    ],
)
def test_units_whose_steps_do_not_lead_there_are_refused_by_name(held, wanted):
    with pytest.raises(
        Refused, match=r"no number of steps of .* leads to every neighbour under .*; nothing was converted"
    ):
        convert(QUARTER, held=held, wanted=wanted, enforced=FIVE_ROWS)


@pytest.mark.parametrize("count", [0, -1, True, 2.5, "5", None])
def test_an_enforced_bound_is_a_whole_number(count):
    with pytest.raises(InvalidInput, match=r"count = .* must be a whole number of at least 1"):
        Enforced(count=count, by="hope")
