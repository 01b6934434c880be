"""Votes of teachers: no neighbour moves them further than is claimed, and some neighbour moves them as far."""

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product
from math import exp, sqrt
from queue import SimpleQueue
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from sfumato.accounting.rdp import loss_at
from sfumato.core.budget import Budget
from sfumato.core.guarantees import GDP
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit, event, family, record, user
from sfumato.errors import InvalidInput, NotDeclared, Unsupported, WrongNorm
from sfumato.learning.paradigms.store import ExampleStore
from sfumato.learning.paradigms.teachers import counted, part_of, seed_of, vote
from sfumato.learning.paradigms.voting import ConfidentMax, ConfidentVotes, TeacherVotes, moved_teachers
from sfumato.mechanisms import Gaussian as GaussianNoise
from sfumato.mechanisms import Laplace
from sfumato.noise import SystemWords
from sfumato.vault import Vault

pytestmark = pytest.mark.kills

ADDED, SWAPPED = user("id", relation="add/remove"), user("id", relation="replace")
DATA = Dataset(name="scans", edition="1")


def votes_query(*, parts: int = 3, classes: int = 3, questions: int = 1) -> TeacherVotes:
    return TeacherVotes(
        dataset=DATA, ensemble="rules", parts=parts, classes=classes, asked="public", questions=questions
    )


def confident_query(**other: Any) -> ConfidentVotes:
    given: dict[str, Any] = {"parts": 3, "classes": 3, "questions": 4, "answers": 2, "threshold": 3, **other}
    return ConfidentVotes(dataset=DATA, ensemble="rules", asked="public", **given)


def moves(one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> tuple[int, int, int, int]:
    """l0, l1, l2 squared and linf of the difference of two tables of counts."""
    apart = [abs(a - b) for left, right in zip(one, other, strict=True) for a, b in zip(left, right, strict=True)]
    return sum(a > 0 for a in apart), sum(apart), sum(a * a for a in apart), max(apart)


def farthest(teachers: int, classes: int, questions: int, changed: int) -> tuple[int, ...]:
    """The largest moves over all votes of all teachers, of which any ``changed`` vote anew."""
    ballots = list(product(range(classes), repeat=questions))
    most = (0, 0, 0, 0)
    for votes in product(ballots, repeat=teachers):
        here = counted(votes, classes=classes, questions=questions)
        for who in combinations(range(teachers), changed):
            for new in product(ballots, repeat=changed):
                other = list(votes)
                for place, ballot in zip(who, new, strict=True):
                    other[place] = ballot
                found = moves(here, counted(other, classes=classes, questions=questions))
                most = tuple(map(max, most, found))  # type: ignore[assignment]
    return most


def claimed(moved: Sensitivity) -> tuple[int, ...]:
    assert moved.l0 is not None
    assert moved.l1 is not None
    assert moved.l2 is not None
    assert moved.linf is not None
    return moved.l0.count, int(moved.l1.value), int(moved.l2.squared), int(moved.linf.value)


@pytest.mark.claim("S3-07")
@pytest.mark.parametrize(
    ("unit", "changed"),
    [(ADDED, 1), (record(relation="add/remove"), 1), (SWAPPED, 2), (family(2, "id", relation="add/remove"), 2)],
)
@pytest.mark.parametrize(("teachers", "classes", "questions"), [(2, 2, 1), (3, 2, 1), (2, 3, 1), (2, 2, 2), (2, 4, 1)])
def test_the_stated_move_is_attained_and_never_exceeded(
    unit: Unit, changed: int, teachers: int, classes: int, questions: int
) -> None:
    query = votes_query(parts=teachers, classes=classes, questions=questions)
    assert claimed(query.sensitivity(unit, None)) == farthest(teachers, classes, questions, changed)
    assert moved_teachers(unit, None) == changed


@pytest.mark.claim("S3-07")
def test_the_move_is_the_same_for_any_number_of_teachers_and_classes() -> None:
    for parts, classes in ((2, 2), (250, 2), (250, 10), (1000, 1000)):
        moved = votes_query(parts=parts, classes=classes).sensitivity(ADDED, None)
        assert moved == Sensitivity.of(l0=2, l1=2, l2_squared=2, linf=1)
    with pytest.raises(InvalidInput, match="classes"):
        votes_query(classes=1)


def test_many_questions_add_up() -> None:
    moved = votes_query(questions=7).sensitivity(ADDED, None)
    assert moved == Sensitivity.of(l0=14, l1=14, l2_squared=14, linf=1)
    assert votes_query(classes=2, questions=7).sensitivity(SWAPPED, None) == Sensitivity.of(
        l0=14, l1=28, l2_squared=56, linf=2
    )
    assert votes_query(classes=5, questions=1).sensitivity(SWAPPED, None) == Sensitivity.of(
        l0=4, l1=4, l2_squared=8, linf=2
    )


@pytest.mark.parametrize(("unit", "changed"), [(ADDED, 1), (SWAPPED, 2)])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_confident_question_moves_as_one_question(unit: Unit, changed: int, classes: int) -> None:
    query = confident_query(classes=classes)
    assert claimed(query.sensitivity(unit, None)) == farthest(2, classes, 1, changed)


@pytest.mark.claim("S3-07")
def test_gaussian_noisy_max_has_the_renyi_loss_of_order_over_variance() -> None:
    noise = GaussianNoise(l2_squared=Fraction(2), sigma=Fraction(10))
    happened = noise.loss(votes_query().sensitivity(ADDED, None))
    for order in (Fraction(3, 2), Fraction(2), Fraction(32)):
        assert loss_at(happened, order) == order / noise.sigma**2


def test_many_questions_at_once_cost_what_they_cost_one_by_one() -> None:
    noise = GaussianNoise(l2_squared=Fraction(14), sigma=Fraction(10))
    at_once = noise.loss(votes_query(questions=7).sensitivity(ADDED, None))
    one = noise.loss(votes_query().sensitivity(ADDED, None))
    assert loss_at(at_once, Fraction(5)) == 7 * loss_at(one, Fraction(5))


@pytest.mark.claim("S3-07")
def test_laplace_noisy_max_has_scale_two_over_epsilon() -> None:
    query = votes_query()
    noise = query.mechanism(query.sensitivity(ADDED, None), ADDED, Budget(epsilon=Fraction(1, 2)))
    assert noise == Laplace(l1=Fraction(2), scale=Fraction(4))


# The parts of persons.


def parity(inputs: Any, targets: Any, seed: int) -> Callable[[Any], list[int]]:
    """A teacher that depends on every record of its part."""
    return lambda questions: [int(targets.sum() + place) % 3 for place in range(len(questions))]


HELD: list[Vault] = []  # a store lives as long as its vault


def lessons(unit: Unit = ADDED) -> ExampleStore:
    HELD.append(Vault(unit=unit, budget=Budget(epsilon=1), name="trial"))
    store: ExampleStore = HELD[-1]._stores["learning"]
    store._secret = lambda: b"a key"  # type: ignore[assignment]
    return store


def counts_of(persons: Sequence[tuple[int, int]], *, parts: int, questions: int = 2) -> list[list[int]]:
    """The counts for persons with a value each, through the area itself."""
    area = lessons()
    ids, values = [who for who, _ in persons], np.array([value for _, value in persons], dtype=np.int64)
    examples = area.declare(
        values[:, None],
        values,
        ids=ids,
        name="scans",
        version="1",
        n_units=None,
    )
    teachers = examples.teachers(parity, parts=parts, classes=3, name="rules")
    question = teachers.labels(np.zeros((questions, 1)), name="public")
    area.check(question.query)
    flat = area.read(question.query)
    return [flat[at : at + 3] for at in range(0, len(flat), 3)]


PERSONS = [(who, who % 5 + 1) for who in range(60)]


@pytest.mark.claim("S3-07")
def test_one_person_changes_one_part_and_moves_the_counts_by_no_more_than_is_claimed() -> None:
    stated = claimed(votes_query(questions=2).sensitivity(ADDED, None))
    here = counts_of(PERSONS, parts=9)
    found = [moves(here, counts_of(PERSONS[:at] + PERSONS[at + 1 :], parts=9)) for at in range(0, 60, 3)]
    assert all(each <= bound for move in found for each, bound in zip(move, stated, strict=True))
    assert stated in found


@pytest.mark.claim("S3-07")
def test_a_partition_by_position_is_caught() -> None:
    def by_position(persons: Sequence[tuple[int, int]]) -> list[list[int]]:
        parts = [np.array([value for _, value in persons[part::9]]) for part in range(9)]
        votes = [parity(None, part, 0)(range(2)) for part in parts]
        return counted(votes, classes=3, questions=2)

    stated = claimed(votes_query(questions=2).sensitivity(ADDED, None))
    here = by_position(PERSONS)
    found = [moves(here, by_position(PERSONS[:at] + PERSONS[at + 1 :])) for at in range(0, 60, 3)]
    assert any(each > bound for move in found for each, bound in zip(move, stated, strict=True))


def test_the_part_hangs_on_the_person_and_the_key_alone() -> None:
    parts = [part_of(who, 7, b"key") for who in range(700)]
    assert parts == [part_of(np.int64(who), 7, b"key") for who in range(700)]
    assert set(parts) == set(range(7))
    assert parts != [part_of(who, 7, b"other key") for who in range(700)]
    assert part_of("1", 2**20, b"key") != part_of(1, 2**20, b"key")


def test_all_records_of_a_person_are_in_one_part() -> None:
    seen: SimpleQueue[list[int]] = SimpleQueue()  # what a list is given here is taken back

    def look(inputs: Any, targets: Any, seed: int) -> Callable[[Any], list[int]]:
        seen.put(sorted(set(targets.tolist())))
        return lambda questions: [0] * len(questions)

    area = lessons()
    who = np.repeat(np.arange(40), 3)
    examples = area.declare(
        who[:, None],
        who,
        ids=who,
        name="scans",
        version="1",
        n_units=None,
    )
    area.read(examples.teachers(look, parts=8, classes=2, name="look").labels(np.zeros((1, 1)), name="q").query)
    assert seen.qsize() == 8
    assert sorted(who for _ in range(8) for who in seen.get()) == list(range(40))


def test_records_without_a_name_have_no_part() -> None:
    area = lessons(record(relation="add/remove"))
    examples = area.declare(
        np.ones((1, 1)),
        np.ones(1),
        ids=None,
        name="scans",
        version="1",
        n_units=None,
    )
    with pytest.raises(NotDeclared, match="decides its part, never its place"):
        examples.teachers(parity, parts=2, classes=3, name="rules")


# One teacher.


def test_a_teacher_has_one_vote_whatever_it_does() -> None:
    questions = np.zeros((3, 1))

    def asked(train: Any) -> list[int]:
        return vote(train, np.zeros((2, 1)), np.zeros(2), questions, classes=2, seed=1)

    assert asked(lambda x, y, s: lambda q: [1, 1, 1]) == [1, 1, 1]
    assert asked(lambda x, y, s: lambda q: [1, 2, -1]) == [1, 0, 0]
    assert asked(lambda x, y, s: lambda q: [1]) == [1, 0, 0]
    assert asked(lambda x, y, s: lambda q: [1] * 9) == [1, 1, 1]
    assert asked(lambda x, y, s: lambda q: ["one"]) == [0, 0, 0]
    assert asked(lambda x, y, s: 1 / 0) == [0, 0, 0]


def test_what_a_teacher_does_to_the_questions_no_other_sees() -> None:
    questions = np.zeros((3, 1))

    def spoil(inputs: Any, targets: Any, seed: int) -> Callable[[Any], list[int]]:
        def predict(asked: Any) -> list[int]:
            asked += 1
            return [0, 0, 0]

        return predict

    vote(spoil, np.zeros((2, 1)), np.zeros(2), questions, classes=2, seed=1)
    assert not questions.any()


def test_a_teacher_has_generators_of_its_own() -> None:
    """What it draws does not depend on how much another teacher drew, whose part has another size."""

    def drawn(inputs: Any, targets: Any, seed: int) -> Callable[[Any], list[int]]:
        chosen = [int(np.random.randint(9)), random.randrange(9), int(np.random.default_rng(seed).integers(9))]
        return lambda asked: chosen

    def vote_after(draws: int) -> list[int]:
        np.random.rand(draws)
        for _ in range(draws):
            random.random()
        return vote(drawn, np.zeros((2, 1)), np.zeros(2), np.zeros((3, 1)), classes=9, seed=5)

    assert vote_after(0) == vote_after(7)
    np.random.seed(3)
    state = np.random.get_state()[1].tolist()  # type: ignore[index, union-attr]
    vote_after(0)
    assert np.random.get_state()[1].tolist() == state  # type: ignore[index, union-attr]


def test_seeds_differ_and_hang_on_no_data() -> None:
    assert len({seed_of(part, b"key") for part in range(100)}) == 100
    assert all(0 <= seed_of(part, b"key") < 2**63 for part in range(100))
    assert seed_of(3, b"key") == seed_of(3, b"key") != seed_of(3, b"other")


# The confident aggregator.


def test_the_confident_noise_keeps_what_is_spent_whatever_the_teachers_say() -> None:
    spend = Budget(epsilon=1, delta=Fraction(1, 10**6))
    for unit in (ADDED, SWAPPED):
        query = confident_query(questions=40, answers=10, threshold=3)
        moved = query.sensitivity(unit, None)
        noise = query.mechanism(moved, unit, spend)
        stated = noise.loss(moved).guarantee
        assert isinstance(stated, GDP)
        assert Fraction(99, 100) * spend.delta < stated.delta_at(spend.epsilon) <= spend.delta
    with pytest.raises(InvalidInput, match="need a δ"):
        query.mechanism(moved, unit, Budget(epsilon=1))


def test_the_confident_loss_is_that_of_its_checks_and_its_answers() -> None:
    noise = ConfidentMax(questions=3, classes=4, answers=2, threshold=1, check_sigma=Fraction(2), sigma=Fraction(3))
    assert noise.loss(Sensitivity.of(linf=2, l2_squared=12)).guarantee == GDP(mu=Fraction(0) + _root(3, 4, 4, 2, 12, 9))
    for known in (Sensitivity.of(linf=1), Sensitivity.of(l2_squared=1)):
        with pytest.raises(WrongNorm):
            noise.loss(known)


def _root(*parts: int) -> Fraction:
    from sfumato.core import enclosures

    q, linf_squared, check, a, l2_squared, variance = parts
    return enclosures.sqrt(Fraction(q * linf_squared, check) + Fraction(a * l2_squared, variance)).high


def rounded(sigma: float, reach: int = 60) -> dict[int, float]:
    """The law of a rounded Gaussian."""
    normal = NormalDist(0, sigma)
    return {z: normal.cdf(z + 0.5) - normal.cdf(z - 0.5) for z in range(-reach, reach + 1)}


def confident_law(counts: Sequence[tuple[int, int]], noise: ConfidentMax) -> dict[tuple[int, ...], float]:
    """The exact law of what two classes are told, by enumeration."""
    check, each = rounded(float(noise.check_sigma)), rounded(float(noise.sigma))
    difference: dict[int, float] = {}
    for a, p in each.items():
        for b, q in each.items():
            difference[a - b] = difference.get(a - b, 0.0) + p * q
    law: dict[tuple[int, ...], float] = {(): 1.0}
    for row in counts:
        sure = sum(p for z, p in check.items() if max(row) + z >= noise.threshold)
        first = sum(p for z, p in difference.items() if row[0] - row[1] + z >= 0)
        after: dict[tuple[int, ...], float] = {}
        for told, chance in law.items():
            left = sum(label >= 0 for label in told) < noise.answers
            shares = {0: sure * first, 1: sure * (1 - first), -1: 1 - sure} if left else {-1: 1.0}
            for label, share in shares.items():
                after[*told, label] = after.get((*told, label), 0.0) + chance * share
        law = after
    return law


def hockey(one: dict[tuple[int, ...], float], other: dict[tuple[int, ...], float], epsilon: float) -> float:
    return sum(max(0.0, one[told] - exp(epsilon) * other[told]) for told in one)


@pytest.mark.claim("S3-07")
def test_the_exact_law_of_confident_answers_keeps_the_promise_and_checks_must_be_paid_for() -> None:
    noise = ConfidentMax(questions=3, classes=2, answers=1, threshold=5, check_sigma=Fraction(1), sigma=Fraction(3))
    stated = noise.loss(Sensitivity.of(linf=1, l2_squared=2)).guarantee
    assert isinstance(stated, GDP)
    answers_alone = GDP(mu=Fraction(sqrt(2 / 9)).limit_denominator(10**6))
    broken = False
    for here, there in (
        ([(4, 3)] * 3, [(5, 2)] * 3),
        ([(5, 2)] * 3, [(4, 3)] * 3),
        ([(4, 3)] * 3, [(3, 4), (4, 3), (5, 2)]),
    ):
        one, other = confident_law(here, noise), confident_law(there, noise)
        assert abs(sum(one.values()) - 1) < 1e-9
        for epsilon in (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(2)):
            found = max(hockey(one, other, float(epsilon)), hockey(other, one, float(epsilon)))
            assert found <= float(stated.delta_at(epsilon)) + 1e-9
            broken |= found > float(answers_alone.delta_at(epsilon)) + 1e-9
    assert broken


@pytest.mark.alpha(1e-20)
def test_confident_answers_are_few_and_where_teachers_agree() -> None:
    noise = ConfidentMax(questions=6, classes=3, answers=2, threshold=50, check_sigma=Fraction(1), sigma=Fraction(1))
    sure, torn = [0, 100, 0], [34, 33, 33]
    assert noise.choose([torn, sure, torn, sure, sure, torn], SystemWords()) == (-1, 1, -1, 1, -1, -1)
    with pytest.raises(InvalidInput, match="each class"):
        noise.choose([sure], SystemWords())


def test_a_certificate_of_other_answers_is_found_out() -> None:
    query = confident_query()
    noise = query.mechanism(query.sensitivity(ADDED, None), ADDED, Budget(epsilon=1, delta=Fraction(1, 10**6)))
    assert query.misfit(noise, ADDED, (0, -1, 2, -1)) is None
    assert "classes" in str(query.misfit(noise, ADDED, (3, -1, -1, -1)))
    assert "at most 2" in str(query.misfit(noise, ADDED, (0, 1, 2, -1)))
    assert "threshold" in str(confident_query(threshold=9).misfit(noise, ADDED, (0, -1, -1, -1)))
    assert "confident" in str(query.misfit(Laplace(l1=Fraction(1), scale=Fraction(1)), ADDED, ()))


@pytest.mark.parametrize("wrong", [{"share": Fraction(1)}, {"share": Fraction(0)}, {"answers": 5}, {"answers": 0}])
def test_confident_declarations_that_say_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        confident_query(**wrong)


def test_units_that_are_no_persons_are_refused() -> None:
    with pytest.raises(Unsupported, match="records, users or families"):
        votes_query().sensitivity(event(relation="add/remove"), None)
    with pytest.raises(InvalidInput, match="no limit"):
        votes_query().sensitivity(ADDED, Limit(groups=1, rows_per_group=1))
