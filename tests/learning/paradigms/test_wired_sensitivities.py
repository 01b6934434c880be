"""What one unit moves in votes, logits and pairs, number by number; no torch is needed."""

from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato.core import enclosures
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit, event, family, record, user
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.learning.paradigms.attention_release import AttentionKey, AttentionLogits
from sfumato.learning.paradigms.contrastive_training import ContrastiveTraining
from sfumato.learning.paradigms.soft_labels import SoftLabels
from sfumato.learning.paradigms.student_choice import CloserStudent

pytestmark = pytest.mark.kills

DATA = Dataset(name="t", edition="1")
S = 2**20
UNITS: list[tuple[Unit, int]] = [
    (record(relation="add/remove"), 1),
    (record(relation="replace"), 2),
    (user("id", relation="add/remove"), 1),
    (user("id", relation="replace"), 2),
    (family(3, "id", relation="add/remove"), 3),
    (family(3, "id", relation="replace"), 6),
]


@pytest.mark.parametrize(("unit", "many"), UNITS)
@pytest.mark.parametrize(("classes", "questions", "steps"), [(2, 1, 1), (5, 3, 1), (5, 3, 7), (40, 1, 3)])
def test_soft_labels(unit: Unit, many: int, classes: int, questions: int, steps: int) -> None:
    query = SoftLabels(
        dataset=DATA, ensemble="e", parts=9, classes=classes, asked="q", questions=questions, steps=steps, content=""
    )
    assert query.sensitivity(unit, None) == Sensitivity.of(
        l0=questions * min(classes, 2 * many * steps),
        l1=2 * questions * many * steps,
        l2_squared=2 * questions * (many * steps) ** 2,
        linf=many * steps,
    )


@pytest.mark.parametrize(("unit", "many"), UNITS)
def test_the_choice_of_a_student(unit: Unit, many: int) -> None:
    query = CloserStudent(
        dataset=DATA,
        ensemble="e",
        parts=9,
        classes=3,
        asked="q",
        questions=2,
        first="a",
        second="b",
        ratios=(5, -2, 1, -7, -3, -4),
        content="",
    )
    far = many * (7 + 4)
    assert query.reach == 11
    assert query.sensitivity(unit, None) == Sensitivity.of(l0=1, l1=far, l2_squared=far**2, linf=far)
    with pytest.raises(Refused, match="same on every question"):
        replace(query, ratios=(4, 4, 4, -1, -1, -1)).sensitivity(unit, None)
    with pytest.raises(InvalidInput, match="Give no limit"):
        query.sensitivity(unit, Limit(groups=1, rows_per_group=1))


@pytest.mark.parametrize(("unit", "many"), UNITS)
@pytest.mark.parametrize(("keys", "root"), [(2, 1482910), (4, 2 * S), (9, 3 * S), (10, 3315888)])
def test_attention(unit: Unit, many: int, keys: int, root: int) -> None:
    logits = AttentionLogits(dataset=DATA, model="m", keys=keys, clip=Fraction(3), number=7, content="")
    assert root**2 <= keys * S**2 < (root + 1) ** 2
    assert logits.sensitivity(unit, None) == Sensitivity.of(
        l0=keys, l1=many * root, l2_squared=(many * S) ** 2, linf=many * S
    )
    key = AttentionKey(dataset=DATA, model="m", keys=keys, bound=Fraction(3), number=7, content="")
    assert key.sensitivity(unit, None) == Sensitivity.of(linf=many * S)
    with pytest.raises(Unsupported):
        key.sensitivity(event(relation="add/remove"), None)


@pytest.mark.parametrize("how", ["add/remove", "replace"])
@pytest.mark.parametrize(("times", "most"), [(1, 2), (1, 64), (3, 64)])
def test_pairs(how: str, times: int, most: int) -> None:
    """times · 2C(h + 2c), rounded up to nine digits, under every relation."""
    query = ContrastiveTraining(
        dataset=DATA,
        units="record",
        clip=Fraction(3),
        times=times,
        records=1,
        number=64,
        rate=Fraction(1),
        steps=2,
        parameters=5,
        temperature=Fraction(2),
        both=True,
        most=most,
    )
    cold = enclosures.exp(Fraction(-1), bits=200)
    hot, own = 1 / (Fraction(1, most - 1) + cold), 1 / (1 + cold / (most - 1))
    exact = 6 * (hot + 2 * own)
    assert exact.low <= query.reach <= exact.high * (1 + Fraction(1, 10**8))
    unit = record(relation=how)
    assert query.sensitivity(unit, None) == Sensitivity.of(l2_squared=(times * query.reach) ** 2)
    person = user("id", relation=how)
    assert query.sensitivity(person, Limit(groups=times, rows_per_group=1)) == query.sensitivity(unit, None)
    with pytest.raises(Refused, match="limit of this training"):
        query.sensitivity(person, None)
    with pytest.raises(Unsupported):
        query.sensitivity(family(2, "id", relation=how), None)
