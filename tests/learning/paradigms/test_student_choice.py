"""S3-24: a student is chosen by the teachers' votes, and soft labels are their shares: what one person moves."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import log
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.drawn import shrunk
from sfumato.audit.fit import Played, doubt
from sfumato.audit.product import stated
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit, family, record, user
from sfumato.errors import BudgetExceeded, InvalidInput, Refused
from sfumato.learning import CloserStudent, SoftLabels, lesson
from sfumato.learning.paradigms.distillation import STEPS
from sfumato.learning.paradigms.soft_labels import PARTS_OF_A_VOTE, whole_shares
from sfumato.learning.paradigms.student_choice import MOST, log_ratios
from sfumato.learning.paradigms.teachers import counted, part_of, shared_vote, summed

DATA = Dataset(name="scans", edition="1")
ADDED, SWAPPED = user("id", relation="add/remove"), user("id", relation="replace")
STUDENTS = [
    ([[1, 1]], [[9, 1]]),
    ([[3, 2, 1]], [[1, 1, 3]]),
    ([[1, 1], [1, 4]], [[9, 1], [2, 1]]),
    ([[1, 98, 1], [1, 1, 1]], [[1, 1, 1], [1, 2, 1]]),
]


def student(first: Any, second: Any, teachers: int) -> CloserStudent:
    shape = {"questions": len(first), "classes": len(first[0])}
    return CloserStudent(
        dataset=DATA,
        ensemble="rules",
        parts=teachers,
        asked="public",
        first="a",
        second="b",
        ratios=log_ratios(first, second, **shape),
        content="0",
        **shape,
    )


def soft(*, parts: int, classes: int, questions: int, steps: int) -> SoftLabels:
    return SoftLabels(
        dataset=DATA,
        ensemble="rules",
        parts=parts,
        classes=classes,
        asked="public",
        questions=questions,
        steps=steps,
        content="0",
    )


def changed(ballots: Sequence[Any], teachers: int, many: int) -> Iterator[tuple[Any, Any]]:
    """All votes of some teachers, each with all in which ``many`` of them vote anew."""
    for votes in product(ballots, repeat=teachers):
        for who in combinations(range(teachers), many):
            for new in product(ballots, repeat=many):
                other = list(votes)
                for place, ballot in zip(who, new, strict=True):
                    other[place] = ballot
                yield votes, other


def largest(moved: Sensitivity) -> Fraction:
    assert moved.l1 is not None
    assert moved.l2 is not None
    assert moved.l2.squared == moved.l1.value**2
    return moved.l1.value


@pytest.mark.claim("S3-24")
@pytest.mark.parametrize(("first", "second"), STUDENTS)
@pytest.mark.parametrize(("unit", "many"), [(ADDED, 1), (SWAPPED, 2), (family(2, "id", relation="add/remove"), 2)])
def test_brute_force_over_the_votes_attains_the_bound(first: Any, second: Any, unit: Unit, many: int) -> None:
    teachers = 6 if len(first) * len(first[0]) == 2 else 2 if len(first) * len(first[0]) > 4 else 3
    query = student(first, second, teachers)
    ballots = list(product(range(query.classes), repeat=query.questions))

    def at(votes: Any) -> int:
        return query.exact(counted(votes, classes=query.classes, questions=query.questions))[0]

    found = max(abs(at(here) - at(there)) for here, there in changed(ballots, teachers, many))
    assert largest(query.sensitivity(unit, None)) == found
    mixed = [np.asarray(rows, float) / np.sum(rows, axis=1, keepdims=True) for rows in (first, second)]
    floor, even = 1 / 1000, 1 - query.classes / 1000
    ratios = np.log((floor + even * mixed[1]) / (floor + even * mixed[0]))
    widths = (ratios.max(axis=1) - ratios.min(axis=1)).sum()  # over several inputs the bounds add up
    assert found / (teachers * STEPS) == pytest.approx(many * widths / teachers, abs=1e-5)


@pytest.mark.claim("S3-24")
def test_the_number_is_the_mean_difference_of_the_divergences() -> None:
    query = student([[3, 2, 1], [1, 1, 1]], [[1, 1, 3], [5, 1, 1]], 4)
    floored = [
        [[0.001 + 0.997 * share / sum(row) for share in row] for row in rows]
        for rows in ([[3, 2, 1], [1, 1, 1]], [[1, 1, 3], [5, 1, 1]])
    ]

    def divergence(p: Sequence[float], q: Sequence[float]) -> float:
        return sum(a * log(a / b) for a, b in zip(p, q, strict=True) if a)

    for votes in product(product(range(3), repeat=2), repeat=4):
        counts = counted(votes, classes=3, questions=2)
        shares = [[count / 4 for count in row] for row in counts]
        wanted = sum(divergence(p, a) - divergence(p, b) for p, a, b in zip(shares, *floored, strict=True)) / 2
        assert query.exact(counts)[0] / (4 * 2 * STEPS) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.claim("S3-24")
@pytest.mark.parametrize("teachers", [2, 4, 6])
def test_a_teacher_more_or_less_attains_the_same_bound(teachers: int) -> None:
    """Of shares among as many as there are: (max r − min r)/T for the larger T. (Here T is fixed and public.)"""
    ratios = [log(9 / 5), 0.0, log(1 / 5)]
    found = 0.0
    for votes in product(range(3), repeat=teachers):
        for place in range(teachers):
            rest = votes[:place] + votes[place + 1 :]
            found = max(
                found, abs(sum(ratios[v] for v in votes) / teachers - sum(ratios[v] for v in rest) / (teachers - 1))
            )
    assert found == pytest.approx((max(ratios) - min(ratios)) / teachers)


@pytest.mark.claim("S3-24")
@pytest.mark.parametrize(("unit", "many"), [(ADDED, 1), (SWAPPED, 2)])
@pytest.mark.parametrize(
    ("classes", "questions", "steps"), [(2, 1, 1), (2, 1, 3), (3, 1, 2), (4, 1, 2), (2, 2, 2), (3, 1, 1)]
)
def test_brute_force_over_shared_votes_attains_the_bound(
    unit: Unit, many: int, classes: int, questions: int, steps: int
) -> None:
    query = soft(parts=2, classes=classes, questions=questions, steps=steps)
    rows = [row for row in product(range(steps + 1), repeat=classes) if sum(row) == steps]
    ballots = list(product(rows, repeat=questions))
    most = (0, 0, 0, 0)
    for here, there in changed(ballots, 2, many):
        one, other = (np.array(summed(votes, classes=classes, questions=questions)) for votes in (here, there))
        apart = np.abs(one - other).ravel()
        own = (int((apart > 0).sum()), int(apart.sum()), int((apart**2).sum()), int(apart.max()))
        most = tuple(map(max, most, own))  # type: ignore[assignment]
    assert query.sensitivity(unit, None) == Sensitivity.of(l0=most[0], l1=most[1], l2_squared=most[2], linf=most[3])


@pytest.mark.claim("S3-24")
def test_whatever_a_teacher_says_it_has_one_vote() -> None:
    """Every row is of whole parts that add up to one vote; what is no distribution is even, and nothing is raised."""
    draw = np.random.default_rng(5)
    said = [
        draw.random((4, 3)),
        draw.random((4, 3)) * 10.0 ** draw.integers(-300, 300, (4, 3)),
        [[np.nan, 1, 1], [np.inf, 1, 1], [-1, 1, 1], [0, 0, 0]],
        [[1e308] * 3, [5e-324] * 3, [1, 0, 0], [1e-320, 1, 1]],
        np.zeros((4, 2)),
        [],
        7.0,
    ]
    for one in said:
        for steps in (1, 2, 1000, PARTS_OF_A_VOTE):
            made = np.array(whole_shares(one, questions=4, classes=3, steps=steps))
            assert made.shape == (4, 3)
            assert (made >= 0).all()
            assert (made.sum(axis=1) == steps).all()
    near = np.array(whole_shares(said[0], questions=4, classes=3, steps=PARTS_OF_A_VOTE)) / PARTS_OF_A_VOTE
    assert np.abs(near - said[0] / said[0].sum(axis=1, keepdims=True)).max() < 2 / PARTS_OF_A_VOTE
    assert whole_shares(said[2], questions=4, classes=3, steps=3) == [[1, 1, 1]] * 4


def test_a_teacher_that_fails_says_that_all_are_alike() -> None:
    def failing(*_: Any) -> Any:
        raise ValueError("the data say so")

    def odd(*_: Any) -> Any:
        return lambda asked: object()

    for train in (failing, odd):
        made = shared_vote(train, np.zeros((1, 1)), np.zeros(1), np.zeros((2, 1)), classes=2, steps=10, seed=1)
        assert made == [[5, 5], [5, 5]]


def always(said: Any) -> Callable[..., Any]:
    return lambda _inputs, _targets, _seed: lambda asked: np.tile(said, (len(asked), 1))


def held(unit: Unit = ADDED, epsilon: float = 10**6, number: int = 1) -> Any:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=epsilon, delta=1e-6), name="trial")
    return vault, vault.examples(
        np.zeros((number, 1)), np.zeros(number, dtype=np.int64), ids=range(number), name="t", version="1"
    )


FIRST, SECOND = [[1, 1], [1, 9], [3, 1]], [[9, 1], [1, 1], [1, 3]]


@pytest.mark.claim("S3-24")
@pytest.mark.parametrize(
    ("unit", "moved"),
    [(ADDED, 1), (SWAPPED, 2), (record(relation="add/remove"), 1), (record(relation="replace"), 2)],
)
@pytest.mark.parametrize("kind", ["student", "soft"])
def test_neighbours_through_the_store_attain_the_bound_and_none_exceeds_it(unit: Unit, moved: int, kind: str) -> None:
    """Teachers that vote one way or the other by exactly whom they see, all of them against the person who changes."""
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=10, delta=1e-6), name="trial")
    store = vault._stores["learning"]
    ids = {part: [who for who in range(100) if part_of(who, 2, store._secret()) == part] for part in (0, 1)}
    against = [
        np.argsort(log_ratios([a], [b], questions=1, classes=2))[[0, -1]] for a, b in zip(FIRST, SECOND, strict=True)
    ]

    def spiteful(inputs: Any, targets: Any, seed: int) -> Any:
        high = int(sorted(inputs[:, 0].tolist()) in ([0, 1], [2]))
        votes = [int(way[high]) for way in against]
        return lambda asked: np.eye(2)[votes] if kind == "soft" else votes

    def sums(edition: str, people: list[tuple[int, int]]) -> tuple[Any, Any]:
        who, rows = [one for one, _ in people], np.array([[value] for _, value in people], dtype=float)
        teachers = vault.examples(rows, np.zeros(len(rows)), ids=who, name="t", version=edition).teachers(
            spiteful, parts=2, classes=2, name="spite"
        )
        questions = np.zeros((3, 1))
        asked = (
            teachers.closer_student(questions, FIRST, SECOND, name="q")
            if kind == "student"
            else teachers.soft_labels(questions, name="q", of="probabilities")
        )
        return asked.query, np.array(store.read(asked.query))

    base = [(ids[0][0], 0), (ids[1][0], 2)]
    _, here = sums("1", [*base, (ids[0][1], 1)])
    there = [*base, (ids[1][1], 1)] if moved == 2 else base
    query, other = sums("2", there)
    bound = query.sensitivity(unit, None)
    assert np.abs(here - other).sum() == bound.l1.value
    assert (np.abs(here - other).astype(object) ** 2).sum() == bound.l2.squared
    for number, last in enumerate([(ids[0][1], 1), (ids[0][2], 5), (ids[1][2], 0), (ids[1][3], 7)]):
        _, another = sums(f"other {number}", [*base, last])
        for one in (here, other) if moved == 2 else (other,):
            assert np.abs(another - one).sum() <= bound.l1.value


@pytest.mark.claim("S3-24")
@pytest.mark.alpha(2e-9)
def test_released_soft_labels_have_the_noise_that_the_charge_needs() -> None:
    """2,000 sums of one release against the law that ε = 1 needs for √(2Q) parts; 0.7 of the noise is refuted."""
    vault, examples = held()
    teachers = examples.teachers(always([0.75, 0.25]), parts=2, classes=2, name="sure")
    asked = teachers.soft_labels(np.zeros((1000, 1)), name="public", of="probabilities")
    release = asked.release(epsilon=1, delta=1e-9)
    assert vault.spent == release.charged
    exact = 2 * PARTS_OF_A_VOTE * np.tile([0.75, 0.25], 1000)
    law = stated(release, l2=2000**0.5 * PARTS_OF_A_VOTE)
    played = Played(cells=law, draws=np.array(release.statement.values, dtype=float) - exact)
    assert doubt(played) > 1e-9
    assert doubt(shrunk(played)) < 1e-9


@pytest.mark.claim("S3-24")
@pytest.mark.alpha(2e-9)
def test_the_choice_of_a_student_has_the_noise_that_the_charge_needs() -> None:
    """200 choices, each with a charge of its own, against Laplace noise of reach/ε; half of the noise is refuted."""
    vault, examples = held()
    teachers = examples.teachers(lambda *_: lambda asked: [0] * len(asked), parts=2, classes=2, name="sure")
    found = []
    for number in range(200):
        asked = teachers.closer_student([[0.0]], [[1, 1]], [[3, 1]], name="public", students=("a", f"b{number}"))
        release = asked.release(epsilon=1)
        found.append(release.statement.values[0] - 2 * asked.query.ratios[0])
    assert vault.spent.epsilon == 200
    law = stated(release, l1=asked.query.reach)
    played = Played(cells=law, draws=np.array(found, dtype=float))
    assert doubt(played) > 1e-9
    half = Played(cells=law, draws=np.rint(np.array(found) * 0.5))
    assert doubt(half) < 1e-9


def test_the_student_that_the_teachers_vote_for_is_chosen_and_named() -> None:
    _, examples = held()
    teachers = examples.teachers(lambda *_: lambda asked: [1] * len(asked), parts=9, classes=2, name="sure")
    asked = teachers.closer_student([[0.0], [1.0]], [[1, 1], [1, 1]], [[1, 9], [1, 9]], name="q", students=("x", "y"))
    release = asked.release(epsilon=500)
    assert asked.query.choice(release) == "y"
    assert float(release["difference"].values[0]) == pytest.approx(log(1.8), abs=0.05)
    other = teachers.closer_student([[0.0], [1.0]], [[1, 1], [1, 1]], [[9, 1], [9, 1]], name="q", students=("x", "y"))
    assert other.query.choice(other.release(epsilon=500)) == "x"
    assert asked.preview(epsilon=1).margin > asked.preview(epsilon=2).margin > 0


def test_soft_labels_teach_distributions() -> None:
    _, examples = held()
    teachers = examples.teachers(always([0.7, 0.2, 0.1]), parts=50, classes=3, name="soft")
    questions = np.zeros((4, 1))
    release = teachers.soft_labels(questions, name="q", of="probabilities").release(epsilon=200)
    assert all(low <= share <= high for share, (low, high) in zip([0.7, 0.2, 0.1] * 4, ends(release), strict=True))
    kept, shares = lesson(release, questions)
    assert len(kept) == len(shares) == 4
    assert all(sum(row) == pytest.approx(1) and min(row) >= 0 for row in shares)
    votes = examples.teachers(lambda *_: lambda asked: [2] * len(asked), parts=50, classes=3, name="hard")
    hard = votes.soft_labels(questions, name="q").release(epsilon=200)
    assert lesson(hard, questions)[1][0] == pytest.approx([0, 0, 1], abs=0.05)
    with pytest.raises(InvalidInput, match="not the questions"):
        lesson(release, questions[:2])


def ends(release: Any) -> Any:
    return release["share"].interval(0.999999)


def test_what_is_wrong_is_refused_and_the_ledger_stays_as_it_was() -> None:
    vault, examples = held(epsilon=0.5)
    teachers = examples.teachers(always([1, 0]), parts=2, classes=2, name="sure")
    asked = teachers.closer_student([[0.0]], [[1, 1]], [[3, 1]], name="q")
    for wrong, match in (
        ({"first": [[1, 1]], "second": [[1]]}, "for each of 2 classes"),
        ({"first": [[1, -1]], "second": [[1, 1]]}, "at least 0"),
        ({"first": [[0, 0]], "second": [[1, 1]]}, "above 0"),
        ({"first": [[1, 1]], "second": [[1, 2]], "floor": 0.9}, "floor must"),
        ({"first": [[1, 1]], "second": [[1, 2]], "students": ("a", "a")}, "two names"),
    ):
        with pytest.raises(InvalidInput, match=match):
            teachers.closer_student([[0.0]], name="q", **wrong)
    with pytest.raises(Refused, match="same on every question"):
        teachers.closer_student([[0.0]], [[1, 1]], [[1, 1]], name="q").release(epsilon="1/4")
    with pytest.raises(InvalidInput, match="of='votes'"):
        teachers.soft_labels([[0.0]], name="q", of="scores")
    with pytest.raises(BudgetExceeded):
        asked.release(epsilon=1)
    with pytest.raises(Refused, match="without bound"):
        replace(asked.query, ratios=(MOST + 1, 0))
    with pytest.raises(InvalidInput, match="one whole log ratio"):
        replace(asked.query, ratios=(1, 0, 2))
    assert vault.spent.epsilon == 0


def test_a_floor_bounds_what_one_vote_moves() -> None:
    far = log_ratios([[1, 0]], [[0, 1]], questions=1, classes=2, floor=Fraction(1, 2**20))
    assert max(map(abs, far)) <= MOST
    assert log_ratios([[1, 0]], [[0, 1]], questions=1, classes=2, floor="1/2") == (0, 0)
