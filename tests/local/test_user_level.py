"""What all reports of one person cost: T·ε, or with memoisation ε for each value given the pattern; by enumeration."""

from fractions import Fraction
from itertools import product

import pytest

from sfumato.errors import Refused
from sfumato.local import Client, Collection, KaryResponse, LocalHash
from tests.local.enumerated import law

pytestmark = pytest.mark.kills


def asked_with(ask, **more) -> Collection:
    return Collection(name="asked", ask=ask, **more)


def test_the_user_level_cost_is_shown() -> None:
    plain = asked_with(KaryResponse(epsilon="1/2", values=4), reports=12)
    assert plain.cost().epsilon == 6
    assert plain.loss().times == 12
    assert "when it changed" in plain.cost().protects
    assert plain.cost().explain().startswith("All 12 reports together cost ε = 6. Protected: whatever")
    kept = asked_with(KaryResponse(epsilon="1/2", values=4), reports=12, memoised=True)
    assert (kept.distinct, kept.cost().epsilon, kept.cost().given_pattern) == (4, None, 2)
    few = asked_with(KaryResponse(epsilon="1/2", values=4), reports=12, memoised=True, distinct=2)
    assert (few.cost().epsilon, few.cost().given_pattern) == (None, 1)


def test_the_cost_of_memoised_reports_is_not_shown_without_its_condition() -> None:
    for distinct in (2, 3):
        kept = memoised(distinct)
        said = kept.cost().explain()
        assert said.startswith("No ε bounds what all 3 reports reveal together. Given which of them share a value,")
        assert "That pattern is not protected" in said
        with pytest.raises(Refused, match="beyond the pattern"):
            kept.loss()
        client = Client(kept)
        assert client.spent == 0
        client.report(1)
        assert client.spent is None


def memoised(distinct: int | None = None, reports: int = 3) -> Collection:
    return asked_with(KaryResponse(epsilon=1, values=3), reports=reports, memoised=True, distinct=distinct)


def sequence_law(collection: Collection, values: tuple[int, ...]) -> dict:
    def draw(bits):
        client = Client(collection, bits=bits)
        return tuple(client.report(value) for value in values)

    return law(draw)


@pytest.mark.claim("S4-12")
def test_memoisation_costs_epsilon_for_each_value_where_the_whole_pattern_of_equality_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All sequences of three reports: with equal patterns of equality the ratio is R^distinct."""
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


@pytest.mark.claim("S4-12")
def test_equal_times_of_change_are_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """(0, 1, 0) and (0, 1, 2) change at the same times, and a report has probability 0 under one of them alone."""
    monkeypatch.setattr("sfumato.local.oracle.odds", lambda epsilon: Fraction(2))
    monkeypatch.setattr(KaryResponse, "report", _three_outcomes)
    back, on = (sequence_law(memoised(distinct=3), values) for values in ((0, 1, 0), (0, 1, 2)))
    assert (0, 1, 2) not in back
    assert on[0, 1, 2] == Fraction(1, 8)
    assert memoised(distinct=3).cost().epsilon is None


def test_the_same_report_is_the_same_value_where_there_are_many_kinds_of_reports() -> None:
    """A hash over 128 values: two fresh reports meet by a chance below 1/1000, more than 4 times in 40 below 1e-9.

    The twin: reports that are not memoised do not show the return.
    """
    hashed = LocalHash.calibrated(epsilon=2, values=128)
    meet = sum(hashed.probability(seen, 7) * hashed.probability(seen, 50) for seen in hashed.outputs())
    assert meet < Fraction(1, 1000)

    def equal(values: tuple[int, ...], **more) -> int:
        clients = [Client(asked_with(hashed, reports=3, **more)) for _ in range(40)]
        sent = [[client.report(value) for value in values] for client in clients]
        return sum(first == third for first, _, third in sent)

    assert equal((7, 99, 7), memoised=True) == 40
    assert equal((7, 99, 50), memoised=True) <= 4
    assert equal((7, 99, 7)) <= 4


@pytest.mark.claim("S4-12")
def test_one_report_for_ever_costs_epsilon_whatever_the_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    """distinct = 1: the ratio of any two sequences is at most R; with two of them it is not bounded."""
    monkeypatch.setattr("sfumato.local.oracle.odds", lambda epsilon: Fraction(2))
    monkeypatch.setattr(KaryResponse, "report", _three_outcomes)
    once = memoised(distinct=1)
    laws = {values: sequence_law(once, values) for values in product(range(3), repeat=3)}
    ratios = {laws[one][seen] / laws[other][seen] for one, other in product(laws, repeat=2) for seen in laws[one]}
    assert max(ratios) == 2
    assert (once.cost().epsilon, once.loss().times, once.cost().protects) == (
        1,
        1,
        "whatever the person reported, and when it changed",
    )
    twice = memoised(distinct=2)
    assert set(sequence_law(twice, (0, 1, 2))) - set(sequence_law(twice, (0, 0, 0)))


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
