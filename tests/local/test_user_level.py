"""What all reports of one person cost: T·ε, or with memoisation ε for each value; by enumeration."""

from fractions import Fraction
from itertools import product

import pytest

from sfumato.local import Client, Collection, KaryResponse
from tests.local.enumerated import law

pytestmark = pytest.mark.kills


def asked_with(ask, **more) -> Collection:
    return Collection(name="asked", ask=ask, **more)


def test_the_user_level_cost_is_shown() -> None:
    plain = asked_with(KaryResponse(epsilon="1/2", values=4), reports=12)
    assert plain.cost().epsilon == 6
    assert plain.loss().times == 12
    assert "when it changed" in plain.cost().protects
    kept = asked_with(KaryResponse(epsilon="1/2", values=4), reports=12, memoised=True)
    assert (kept.distinct, kept.cost().epsilon, kept.loss().times) == (4, 2, 4)
    assert "not when they changed" in kept.cost().explain()
    few = asked_with(KaryResponse(epsilon="1/2", values=4), reports=12, memoised=True, distinct=2)
    assert few.cost().epsilon == 1


def memoised(distinct: int | None = None, reports: int = 3) -> Collection:
    return asked_with(KaryResponse(epsilon=1, values=3), reports=reports, memoised=True, distinct=distinct)


def sequence_law(collection: Collection, values: tuple[int, ...]) -> dict:
    def draw(bits):
        client = Client(collection, bits=bits)
        return tuple(client.report(value) for value in values)

    return law(draw)


@pytest.mark.claim("S4-12")
def test_memoisation_costs_epsilon_for_each_value_where_the_times_of_change_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All sequences of three reports: with equal times of change the ratio is R^distinct, else it may be infinite."""
    monkeypatch.setattr("sfumato.local.oracle.odds", lambda epsilon: Fraction(2))
    monkeypatch.setattr(KaryResponse, "report", _three_outcomes)
    collection = memoised()
    laws = {values: sequence_law(collection, values) for values in product(range(3), repeat=3)}

    def pattern(values: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(values.index(value) for value in values)

    reached: dict[int, Fraction] = {}
    for one, other in product(laws, repeat=2):
        if pattern(one) == pattern(other):
            assert laws[one].keys() == laws[other].keys()
            most = max(laws[one][seen] / laws[other][seen] for seen in laws[one])
            assert most <= Fraction(2) ** len(set(one))
            reached[len(set(one))] = max(reached.get(len(set(one)), Fraction(0)), most)
    assert reached[1] == 2
    assert reached[2] == 4
    assert set(laws[0, 1, 0]) - set(laws[0, 0, 0])  # a change can be seen for certain


def _three_outcomes(self: KaryResponse, truth: int, bits) -> int:
    """Odds 2 : 1 : 1 in one draw of four."""
    drawn = bits.below(4)
    return truth if drawn < 2 else (truth + drawn - 1) % 3


@pytest.mark.claim("S4-12")
def test_three_reports_of_a_client_have_the_ratio_of_three_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client itself, all answers of its source: two persons who differ at all three times, R³ and no more.

    The twin: memoised, persons who never change cost R alone.
    """
    monkeypatch.setattr("sfumato.local.oracle.odds", lambda epsilon: Fraction(2))
    monkeypatch.setattr(KaryResponse, "report", _three_outcomes)
    plain = asked_with(KaryResponse(epsilon=1, values=3), reports=3)
    one, other = sequence_law(plain, (0, 1, 0)), sequence_law(plain, (1, 0, 1))
    assert max(one[seen] / other[seen] for seen in one) == 2**3
    still, moved = sequence_law(plain, (0, 0, 0)), sequence_law(plain, (1, 1, 1))
    assert max(still[seen] / moved[seen] for seen in still) == 2**3
    kept = asked_with(KaryResponse(epsilon=1, values=3), reports=3, memoised=True)
    still, moved = sequence_law(kept, (0, 0, 0)), sequence_law(kept, (1, 1, 1))
    assert max(still[seen] / moved[seen] for seen in still) == 2
