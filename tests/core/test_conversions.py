"""From one unit to another: free, by group privacy over an enforced bound, or not at all."""

from fractions import Fraction as F

import pytest

from sfumato.core.conversions import Enforced, convert
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.core.units import client, edge, event, family, node, record, user, weight
from sfumato.errors import InvalidInput, NotDeclared, Refused
from tests.core.truth import hockey_stick, least_delta, mp, number, rounded_up

pytestmark = pytest.mark.kills

AR, RE = "add/remove", "replace"
FIVE_ROWS = Enforced(count=5, by="a limit of 5 rows")
QUARTER = Pure(epsilon=F(1, 4))


def test_add_remove_read_as_replace_is_a_group_of_two():
    """Replacing is removing one and adding one, and a chain of two neighbours attains what is stated."""
    epsilon, delta = F(1, 2), F(1, 1000)
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
        (QUARTER, Pure(epsilon=F(1, 2))),
        (ZCDP(rho=F(1, 8)), ZCDP(rho=F(1, 2))),
        (GDP(mu=F(1, 2)), GDP(mu=F(1))),
        (RDP(curve=((F(8), F(1)),)), RDP(curve=((F(4), F(3)),))),
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
    ],
)
def test_a_stronger_unit_is_a_group_of_weaker_ones(held, wanted, times):
    assert convert(QUARTER, held=held, wanted=wanted, enforced=FIVE_ROWS) == QUARTER.group(times)
    assert convert(ZCDP(rho=F(1, 8)), held=held, wanted=wanted, enforced=FIVE_ROWS) == ZCDP(rho=times**2 * F(1, 8))


def test_a_family_of_users_needs_no_further_bound():
    held, wanted = user("id", relation=AR), family(3, "id", relation=AR)
    assert convert(QUARTER, held=held, wanted=wanted) == Pure(epsilon=F(3, 4))
    assert convert(QUARTER, held=family(2, "id", relation=AR), wanted=wanted) == Pure(epsilon=F(1, 2))


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (record(relation=AR), user("id", relation=AR)),
        (event(relation=AR), family(2, "id", relation=AR)),
        (edge(relation=AR), node(max_degree=3, relation=RE)),
    ],
)
def test_a_bound_that_nothing_enforces_is_not_assumed(held, wanted):
    with pytest.raises(NotDeclared, match=r"is stronger than .* an enforced bound .*Nothing was converted\. Pass enforced"):
        convert(QUARTER, held=held, wanted=wanted)


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        (user("id", relation=AR), user("household", relation=AR)),
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
def test_units_that_cannot_be_compared_are_refused_by_name(held, wanted):
    with pytest.raises(Refused, match="cannot be compared; nothing was converted"):
        convert(QUARTER, held=held, wanted=wanted, enforced=FIVE_ROWS)


@pytest.mark.parametrize("count", [0, -1, True, 2.5, "5", None])
def test_an_enforced_bound_is_a_whole_number(count):
    with pytest.raises(InvalidInput, match="count = .* must be a whole number of at least 1"):
        Enforced(count=count, by="hope")
