"""S3-03: what a triplet, and a person in several of them, can move; and that who is grouped with whom is stable."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.learning.paradigms.placed_groups import PlacedGroups, members, seated
from sfumato.learning.paradigms.triplets import own_pairs, triplets
from tests.parts import package

package("torch")
import torch  # noqa: E402

from sfumato.learning import Engine, Units  # noqa: E402
from sfumato.learning.paradigms.group_losses import gathered, triplet_margin  # noqa: E402

PEOPLE = "abcdefg"
KEYS = (b"one", b"two", b"three")
Groups = set[tuple[str, ...]]
Grouping = Callable[[Sequence[str]], Groups]


def placed(groups: PlacedGroups, **how: object) -> Grouping:
    def grouping(ids: Sequence[str]) -> Groups:
        found = members(groups, seated(ids, **how))  # type: ignore[arg-type]
        return {(str(i), *(ids[row] for row in group)) for i, group in enumerate(found) if group is not None}

    return grouping


def neighbours() -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """All sets of people, each with one of them removed."""
    for size in range(1, len(PEOPLE) + 1):
        for some in combinations(PEOPLE, size):
            for gone in some:
                yield some, tuple(person for person in some if person != gone)


def most_changed(grouping: Grouping) -> tuple[int, int]:
    """The most groups that change when one person goes, and the most that change in both directions at once."""
    changes = [
        (here := grouping(some), there := grouping(fewer)) and (here - there, there - here)
        for some, fewer in neighbours()
    ]
    return max(len(gone | come) for gone, come in changes), max(min(len(gone), len(come)) for gone, come in changes)


def most_replaced(grouping: Grouping) -> int:
    """The most groups that change when one person takes the part of another."""
    known = {some: grouping(some) for size in range(len(PEOPLE) + 1) for some in combinations(PEOPLE, size)}
    found = 0
    for some, here in known.items():
        for gone in some:
            for new in set(PEOPLE) - set(some):
                there = known[tuple(sorted({*some, new} - {gone}))]
                found = max(found, len(here ^ there))
    return found


@pytest.mark.few(3)
@pytest.mark.claim("S3-03")
@pytest.mark.parametrize("each", [1, 2, 3, 4, 6])
def test_a_person_takes_at_most_so_many_groups_along_and_changes_no_other(each: int) -> None:
    roster = placed(triplets(len(PEOPLE), each=each), roster=PEOPLE)
    assert most_changed(roster) == (each, 0)
    assert each <= most_replaced(roster) <= 2 * each
    for key in KEYS:
        hashed = placed(triplets(8, each=each), places=8, key=key)
        changed, exchanged = most_changed(hashed)
        assert changed <= each
        assert exchanged == 0
        assert most_replaced(hashed) <= 2 * each


def test_a_taken_place_stays_empty_and_nobody_steps_in() -> None:
    everyone = seated(PEOPLE, places=3, key=b"one")
    assert None in everyone
    for place in range(3):
        there = [person for person in PEOPLE if seated([person], places=3, key=b"one")[place] == 0]
        assert (everyone[place] is not None) == (len(there) == 1)


def lined_up(ids: Sequence[str]) -> Groups:
    """Broken: persons in order, cut into threes."""
    row = sorted(ids)
    return {tuple(row[i : i + 3]) for i in range(0, len(row) - 2, 3)}


def stepping_in(ids: Sequence[str]) -> Groups:
    """Broken: of those who come to a place the first sits, so another steps in when that one goes."""
    groups = triplets(4, each=1)
    seats: list[int | None] = [None] * 4
    for row, person in enumerate(ids):
        place = ord(person) % 4
        seats[place] = row if seats[place] is None else seats[place]
    return {tuple(ids[row] for row in group) for group in members(groups, seats) if group is not None}


def capped_as_anchor(ids: Sequence[str]) -> Groups:
    """Broken: each person is the anchor once, with whoever is there; occurrences as a negative are not counted."""
    row = sorted(ids)
    return {(anchor, row[(i + 1) % len(row)], row[0]) for i, anchor in enumerate(row[1:], start=1)} if row else set()


@pytest.mark.claim("S3-03")
@pytest.mark.parametrize("broken", [lined_up, stepping_in, capped_as_anchor])
def test_groupings_that_depend_on_others_are_caught(broken: Grouping) -> None:
    changed, _ = most_changed(broken)
    assert changed > 1, "each of these promises one occurrence"


def embedding() -> torch.nn.Linear:
    model = torch.nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 0.0]]))
    return model


@cache
def engine(clip: float) -> Engine:
    return Engine(embedding(), triplet_margin(1.0), clip=clip, unit="group")


def mean_gradient(rows: torch.Tensor, labels: torch.Tensor, groups: PlacedGroups, clip: float) -> torch.Tensor:
    seats = tuple(range(groups.places))
    inputs, present = gathered(rows, groups, seats)
    targets, _ = gathered(labels, groups, seats)
    return engine(clip).sum(inputs, targets, present).flat / len(groups.groups)


@pytest.mark.claim("S3-03")
@pytest.mark.parametrize("each", [1, 3, 6])
def test_an_adversarial_person_attains_the_sensitivity(each: int) -> None:
    """Everybody sits at the origin; one person, the negative of all their triplets, lies far to one or another side."""
    clip, groups = 0.5, triplets(18, each=each)
    rows, labels = torch.zeros(18, 2), torch.zeros(18)
    labels[0] = 1
    rows[0] = torch.tensor([0.05, 1e4])
    other = rows.clone()
    other[0, 1] = -1e4
    moved = (mean_gradient(rows, labels, groups, clip) - mean_gradient(other, labels, groups, clip)).norm().item()
    claimed = groups.sensitivity(Relation.REPLACE, clip=clip, over=len(groups.groups)).l2
    assert claimed is not None
    assert claimed.squared == Fraction(2 * each, 2 * len(groups.groups)) ** 2
    assert moved == pytest.approx(float(claimed.squared) ** 0.5, rel=1e-5)
    if each > 1:
        assert moved > 1.5 * 2 * clip / len(groups.groups), "2C/m is the move of a triplet and not of a person"


@pytest.mark.claim("S3-03")
def test_no_person_exceeds_the_sensitivity() -> None:
    torch.manual_seed(5)
    groups = triplets(9, each=3)
    limits = {relation: groups.sensitivity(relation, clip=1, over=9).l2 for relation in Relation}
    for trial in range(30):
        rows, labels = torch.randn(9, 2) * 10 ** (trial % 4), torch.randint(3, (9,)).float()
        other, tags = rows.clone(), labels.clone()
        other[trial % 9], tags[trial % 9] = torch.randn(2) * 100, float(trial % 3)
        moved = (mean_gradient(rows, labels, groups, 1.0) - mean_gradient(other, tags, groups, 1.0)).norm() ** 2
        assert moved.item() <= limits[Relation.REPLACE].squared * (1 + Fraction(1, 10**5))  # type: ignore[union-attr]


@pytest.mark.claim("S3-03")
def test_a_person_who_goes_leaves_a_place_and_moves_half_as_much() -> None:
    groups = triplets(9, each=3)
    rows, labels, seats = torch.zeros(9, 2), torch.zeros(9), list(range(9))
    rows[0], labels[0] = torch.tensor([0.05, 1e4]), 1.0
    sums = []
    for sitting in (seats, [None, *seats[1:]]):
        inputs, present = gathered(rows, groups, sitting)
        targets, _ = gathered(labels, groups, sitting)
        sums.append(engine(1.0).sum(inputs, targets, present).flat)
    assert (sums[0] - sums[1]).norm().item() == pytest.approx(3, rel=1e-5)
    assert groups.sensitivity(Relation.ADD_REMOVE, clip=1).l2.squared == 9  # type: ignore[union-attr]


@pytest.mark.claim("S3-03")
def test_pairs_of_one_person_depend_on_that_person_alone() -> None:
    ids = [person for person in "abc" for _ in range(5)] + ["d"]
    pairs = own_pairs(ids, each=2, key=b"k")
    assert len(pairs) == 6
    assert all(ids[a] == ids[b] and a != b for a, b in pairs)
    for gone in "abcd":
        kept = [row for row, person in enumerate(ids) if person != gone]
        fewer = own_pairs([ids[row] for row in kept], each=2, key=b"k")
        assert {(kept[a], kept[b]) for a, b in fewer} == {(a, b) for a, b in pairs if ids[a] != gone}
    assert len({row for pair in pairs for row in pair}) == 12


def test_rows_of_one_person_take_one_place() -> None:
    ids = ["x", "x", "x", "y"]
    seats = seated(ids, places=50, key=b"k", persons=True)
    assert sorted(ids[row] for row in seats if row is not None) == ["x", "y"]
    alone = seated(ids[:3], places=50, key=b"k", persons=True)
    assert [row for row in alone if row is not None] == [row for row in seats if row is not None and row < 3]


def most_exchanged(*, persons: bool) -> int:
    """The most places in which one record more of a person exchanges the row that sits for another."""
    found = 0
    for key in (bytes([number]) for number in range(1, 30)):
        for rows in range(4):
            here, there = (seated(["ann"] * n, places=4, key=key, persons=persons) for n in (rows, rows + 1))
            pairs = zip(here, there, strict=True)
            found = max(found, sum(a != b and a is not None and b is not None for a, b in pairs))
    return found


@pytest.mark.claim("S3-03")
def test_one_record_more_exchanges_no_row() -> None:
    """An exchanged row moves two clips and not one; choosing one of a person's rows does that, and is for users."""
    assert most_exchanged(persons=False) == 0
    assert most_exchanged(persons=True) == 1, "the twin that is refused in vaults of records"


def test_nobody_is_no_person() -> None:
    nobody = [None, float("nan"), None]
    assert own_pairs(nobody, each=1, key=b"k") == ()
    assert seated([None, "a"], places=9, key=b"k").count(None) == 8
    assert seated([None], roster=["a"]) == (None,)


def test_one_person_is_one_whatever_holds_the_id() -> None:
    ids = [torch.tensor(1), 1, np.int64(1), 1.0]
    assert len(own_pairs(ids, each=5, key=b"k")) == 2
    assert len(own_pairs([1, "1"], each=5, key=b"k")) == 0
    assert sum(row is not None for row in seated(ids, places=99, key=b"k", persons=True)) == 1


FACTS: dict[str, str] = {"name": "scans", "version": "1"}


@pytest.mark.claim("S3-03")
def test_units_of_groups_state_how_often_a_person_occurs() -> None:
    rows, labels, groups = torch.arange(8.0)[:, None], torch.arange(8), triplets(9, each=3)
    ids = [*"abcdefg", None]
    units = Units.of_groups(rows, labels, ids=ids, groups=groups, roster=list("abcdefghi"), **FACTS)
    assert (units.times, units.n_units, units.kind) == (3, 9, "group")
    laid = units.laid(b"k" * 32)
    wanted = [group for group in members(groups, (0, 1, 2, 3, 4, 5, 6, None, None)) if group is not None]
    assert laid.inputs[0].squeeze(2).tolist() == [list(map(float, group)) for group in wanted]
    assert laid.targets.tolist() == [list(group) for group in wanted]
    inputs, targets, present = units.example(4)
    assert (inputs[0].shape, targets.shape, present.shape) == ((4, 3, 1), (4, 3), (4,))
    units.check(sf.record(relation="add/remove"))
    units.check(sf.user("id", relation="add/remove"))
    one_row = Units.of_groups(rows, labels, ids=ids, groups=groups, persons=True, **FACTS)
    one_row.check(sf.user("id", relation="add/remove"))
    with pytest.raises(Refused, match="protects records"):
        one_row.check(sf.record(relation="add/remove"))
    assert Units.of_groups(rows[:0], labels[:0], ids=[], groups=groups, **FACTS).laid(b"k" * 32).number == 0


def test_groups_that_do_not_say_whom_they_share_are_refused() -> None:
    with pytest.raises(NotDeclared, match="times=1 says that they share nobody"):
        Units(torch.zeros(3, 3, 1), torch.zeros(3), kind="group", n_units=3, **FACTS)
    assert Units(torch.zeros(3, 3, 1), torch.zeros(3), kind="group", times=1, n_units=3, **FACTS).times == 1
    for wrong in ({"groups": 3}, {"roster": ["a", "a", "b"]}, {"roster": ["a"]}, {"roster": ["a", None, "b"]}):
        with pytest.raises(InvalidInput):
            Units.of_groups(
                torch.zeros(1, 1), torch.zeros(1), **{"ids": ["a"], "groups": triplets(3, each=1), **FACTS, **wrong}
            )


def test_tables_that_break_their_promise_are_refused() -> None:
    with pytest.raises(Refused, match="one place is in 2 groups and each = 1"):
        PlacedGroups(places=4, groups=((0, 1, 2), (2, 3, 0)), each=1)
    for groups in ((), ((),), ((0, 1), (2,)), ((0, 0),), ((0, 4),), ((-1, 0),)):
        with pytest.raises(InvalidInput):
            PlacedGroups(places=4, groups=groups, each=9)
    with pytest.raises(InvalidInput, match="of 3 places and 2"):
        members(triplets(3, each=1), (0, 1))
    for how in ({}, {"places": 4}, {"roster": "aa"}, {"roster": "ab", "places": 2}):
        with pytest.raises(InvalidInput):
            seated(["a"], **how)  # type: ignore[arg-type]


def test_the_loss_of_a_triplet_is_that_of_its_own_labels() -> None:
    loss = triplet_margin(0.5)
    points = torch.tensor([[0.0], [1.0], [3.0]])
    for labels, value in (((1, 1, 2), 0.0), ((1, 2, 1), 2.5), ((2, 1, 1), 1.5), ((1, 2, 3), 0.0), ((1, 1, 1), 0.0)):
        assert loss(points, torch.tensor(labels)).item() == pytest.approx(value, abs=1e-6)
