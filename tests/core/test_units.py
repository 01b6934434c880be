"""Units are written with their relation; what one covers is checked by enumerating neighbours."""

from fractions import Fraction
from itertools import product

import pytest

from sfumato.core.units import (
    Relation,
    client,
    covers,
    describe,
    edge,
    event,
    family,
    node,
    record,
    user,
    weight,
)
from sfumato.errors import InvalidInput, NotDeclared

MAKERS = {
    "record": record,
    "user": lambda **given: user("id", **given),
    "family": lambda **given: family(2, "id", **given),
    "event": event,
    "edge": edge,
    "node": lambda **given: node(max_degree=3, **given),
    "weight": lambda **given: weight(bound=1, **given),
    "client": client,
}
makers = pytest.mark.parametrize(("name", "make"), MAKERS.items())


@makers
def test_a_unit_is_never_without_its_relation(name, make):
    with pytest.raises(NotDeclared, match=rf"{name}\(\.\.\.\) needs its relation.*Nothing was done.*'replace'"):
        make()
    assert make(relation="add/remove").relation is Relation.ADD_REMOVE
    assert make(relation=Relation.REPLACE).relation is Relation.REPLACE
    assert make(relation="replace") != make(relation="add/remove")


@pytest.mark.few(16)
@makers
@pytest.mark.parametrize("wrong", ["add", "ADD_REMOVE", "", "both", 1, True, ["replace"]])
def test_an_unknown_relation_is_refused_with_those_that_are_known(name, make, wrong):
    with pytest.raises(InvalidInput, match=r"relation = .* is unknown; nothing was done\. Say 'add/"):
        make(relation=wrong)


def test_public_bounds_must_be_declared():
    with pytest.raises(NotDeclared, match="a node unit needs max_degree"):
        node(relation="add/remove")
    with pytest.raises(NotDeclared, match="a weight unit needs bound"):
        weight(relation="replace")
    with pytest.raises(NotDeclared, match=r"user\(\.\.\.\) needs the column that identifies persons"):
        user(relation="replace")
    with pytest.raises(NotDeclared, match=r"family\(\.\.\.\) needs the column"):
        family(2, relation="replace")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: node(max_degree=0, relation="replace"), "max_degree = 0 must be a whole number of at least 1"),
        (lambda: node(max_degree=2.0, relation="replace"), "max_degree = 2.0"),
        (lambda: node(max_degree=True, relation="replace"), "max_degree = True"),
        (lambda: weight(bound=0, relation="replace"), "bound = 0 must be above 0"),
        (lambda: weight(bound=-1, relation="replace"), "bound = -1 must be above 0"),
        (lambda: weight(bound=float("nan"), relation="replace"), "bound = nan is not a finite number"),
        (lambda: weight(bound=float("inf"), relation="replace"), "bound = inf is not a finite number"),
        (lambda: weight(bound=True, relation="replace"), "bound is bool"),
        (lambda: weight(bound="heavy", relation="replace"), "bound = 'heavy' is not a number"),
        (lambda: family(0, "id", relation="replace"), "family size = 0 must be a whole number of at least 1"),
        (lambda: family(True, "id", relation="replace"), "family size = True"),
        (lambda: family("two", "id", relation="replace"), "family size = 'two'"),
        (lambda: user("", relation="replace"), r"column of user\(\.\.\.\) must be a non-empty name"),
        (lambda: user(7, relation="replace"), r"column of user\(\.\.\.\) must be a non-empty name"),
        (lambda: family(2, "", relation="replace"), r"column of family\(\.\.\.\) must be"),
    ],
)
def test_bad_bounds_are_refused(make, says):
    with pytest.raises(InvalidInput, match=says):
        make()


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        (record(relation="add/remove"), "record, add/remove"),
        (user("id", relation="replace"), "user (id), replace"),
        (family(3, "id", relation="replace"), "family of 3 (id), replace"),
        (event(relation="replace"), "event, replace"),
        (edge(relation="add/remove"), "edge, add/remove"),
        (node(max_degree=9, relation="add/remove"), "node (degree at most 9), add/remove"),
        (weight(bound=0.5, relation="replace"), "weight (0 to 1/2), replace"),
        (client(relation="replace"), "client, replace"),
    ],
)
def test_a_unit_is_described_with_its_relation(unit, words):
    assert describe(unit) == words


ALL = [make(relation=relation) for make in MAKERS.values() for relation in Relation]


@pytest.mark.parametrize("unit", ALL)
def test_every_unit_covers_itself_and_nothing_under_the_other_relation(unit):
    assert covers(unit, unit)
    assert not any(covers(unit, other) for other in ALL if other.relation is not unit.relation)


# People and their values, None for absent: families of k change up to k people, however each changes.

EVERYONE = list(product([None, 0, 1], repeat=3))


def neighbours(relation: Relation, size: int) -> set[tuple]:
    found = set()
    for here, there in product(EVERYONE, repeat=2):
        changed = [(a, b) for a, b in zip(here, there, strict=True) if a != b]
        swaps = [None not in pair for pair in changed]
        if len(changed) <= size and all(swap is (relation is Relation.REPLACE) for swap in swaps):
            found.add((here, there))
    return found


@pytest.mark.parametrize("relation", Relation)
def test_a_family_covers_exactly_the_smaller_families_and_the_single_person(relation):
    for large, small in product((1, 2, 3), repeat=2):
        held = neighbours(relation, large) >= neighbours(relation, small)
        assert covers(family(large, "id", relation=relation), family(small, "id", relation=relation)) is held
    assert covers(family(2, "id", relation=relation), user("id", relation=relation))
    assert not covers(user("id", relation=relation), family(2, "id", relation=relation))
    assert not covers(family(2, "id", relation=relation), family(2, "household", relation=relation))
    assert not covers(family(2, "id", relation=relation), user("household", relation=relation))
    assert not covers(user("id", relation=relation), user("household", relation=relation))


@pytest.mark.parametrize("relation", Relation)
def test_a_weaker_unit_never_covers_a_stronger_one(relation):
    given = {"relation": relation}
    assert covers(node(max_degree=3, **given), node(max_degree=2, **given))
    assert not covers(node(max_degree=2, **given), node(max_degree=3, **given))
    assert covers(weight(bound=1, **given), weight(bound=Fraction(1, 2), **given))
    assert not covers(weight(bound=Fraction(1, 2), **given), weight(bound=1, **given))
    for weak, strong in [
        (record(**given), user("id", **given)),
        (event(**given), user("id", **given)),
        (record(**given), family(2, "id", **given)),
        (record(**given), client(**given)),
        (edge(**given), node(max_degree=1, **given)),
        (user("id", **given), client(**given)),
        (client(**given), user("id", **given)),
        (node(max_degree=1, **given), record(**given)),
        (edge(**given), weight(bound=1, **given)),
        (record(**given), event(**given)),
    ]:
        assert not covers(weak, strong)
