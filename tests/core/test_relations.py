"""Add/remove and replace: what follows from what, on a mechanism whose every divergence can be worked out."""

import math
from fractions import Fraction
from itertools import product

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.conversions import convert
from sfumato.core.guarantees import Approximate, Pure
from sfumato.mechanisms import Laplace

AR, RE = "add/remove", "replace"


def noisy_count(total: int, scale: float) -> dict[int, float]:
    q = math.exp(-1 / scale)
    return {k: (1 - q) / (1 + q) * q ** abs(k - total) for k in range(-200, 210)}


def hockey_stick(p: dict[int, float], r: dict[int, float], epsilon: float) -> float:
    return sum(max(0.0, p[k] - math.exp(epsilon) * r[k]) for k in p)


def score(data: tuple[int, ...]) -> int:
    """A sum of values −1 and 1: adding or removing moves it by 1, replacing by 2."""
    return sum(data)


@pytest.mark.claim("X-06")
def test_add_remove_gives_replace_at_twice_the_price_and_that_is_attained() -> None:
    epsilon = Fraction(1, 2)
    mechanism = Laplace.calibrated(l1=1, epsilon=epsilon)
    held, wanted = sf.record(relation=AR), sf.record(relation=RE)
    promised = convert(Pure(epsilon=epsilon), held=held, wanted=wanted)
    assert promised == Pure(epsilon=1)
    worst = 0.0
    for data in product((-1, 1), repeat=3):
        for place, value in product(range(3), (-1, 1)):
            other = (*data[:place], value, *data[place + 1 :])
            p, r = (noisy_count(score(d), float(mechanism.scale)) for d in (data, other))
            assert hockey_stick(p, r, float(promised.epsilon)) < 1e-12
            worst = max(worst, hockey_stick(p, r, 0.95 * float(promised.epsilon)))
    assert worst > 1e-3
    delta = Fraction(1, 1000)
    both = convert(Approximate(epsilon=epsilon, delta=delta), held=held, wanted=wanted)
    assert both.epsilon == 1  # type: ignore[attr-defined]
    assert float(both.delta) == pytest.approx((1 + math.exp(0.5)) * 1e-3, rel=1e-9)  # type: ignore[attr-defined]
    assert both.delta >= delta * 2  # type: ignore[attr-defined]


@pytest.mark.claim("X-06")
def test_replace_gives_nothing_under_add_remove() -> None:
    """The exact number of rows is 0-DP under replace; under add/remove it tells everything."""
    with pytest.raises(errors.Refused, match="says nothing about"):
        convert(Pure(epsilon=Fraction(0)), held=sf.record(relation=RE), wanted=sf.record(relation=AR))
    with pytest.raises(errors.Refused, match="says nothing about"):
        convert(Pure(epsilon=Fraction(0)), held=sf.user("id", relation=RE), wanted=sf.user("id", relation=AR))


@pytest.mark.claim("X-06")
def test_an_account_is_charged_under_its_own_relation_alone() -> None:
    """A budget belongs to a unit and relation: every release states them, and no question can bring its own."""
    scales = {}
    for relation in (AR, RE):
        vault = sf.Vault(unit=sf.user("id", relation=relation), budget=sf.Budget(epsilon=1), name=relation)
        table = vault.table(
            pa.table({"id": [1, 2], "sex": ["F", "M"]}),
            name="people",
            limit=sf.Limit(groups=1, rows_per_group=1),
            keys={"sex": ["F", "M"]},
        )
        release = table.group_by("sex").count().release(epsilon=1)
        assert release.statement.unit.relation.value == relation
        scales[relation] = release.statement.mechanism.scale  # type: ignore[attr-defined]
        with pytest.raises(AttributeError):
            vault.unit = sf.user("id", relation=RE)  # type: ignore[misc]
        with pytest.raises(TypeError):
            table.count().release(epsilon=1, relation=RE)  # type: ignore[call-arg]
    assert scales[RE] == 2 * scales[AR]
