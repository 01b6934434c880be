"""Policies: shares sum to the cap, the reserve opens by decision alone, windows refill nothing."""

from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import combinations
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.budget import Budget
from sfumato.core.documents import Json, Registry, canonical, encode, parse
from sfumato.core.guarantees import Approximate
from sfumato.core.units import Event, Unit, User, client, edge, event, family, node, record, user
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused
from sfumato.governance.periods import Cadence
from sfumato.governance.policies import Allotment, BaseAndReserve, Proportional, Unlock
from sfumato.governance.time_windows import TimeWindows, WindowCharge

CAP = Budget(epsilon=8, delta=Fraction(1, 10**6))
HALVES = BaseAndReserve(base=(("epidemiology", Fraction(1, 2)), ("oncology", Fraction(1, 4))))
MONTHS = TimeWindows(
    unit=event(relation="add/remove"), stretch=Cadence.MONTHLY, every=Cadence.MONTHLY, cap=Budget(epsilon=1)
)
LEAST = Fraction(1, 10**40)


def total(shares: tuple[Allotment, ...]) -> Budget:
    return sum((share.budget for share in shares), start=Budget.none())


caps = st.builds(
    Budget,
    epsilon=st.fractions(0, 100, max_denominator=997),
    delta=st.fractions(0, Fraction(1, 100), max_denominator=991),
)


@pytest.mark.claim("S1-22")
@given(cap=caps, counts=st.lists(st.integers(0, 1000), min_size=1, max_size=9).filter(any))
def test_proportional_shares_sum_to_the_cap_exactly(cap: Budget, counts: list[int]) -> None:
    rule = Proportional(planned=tuple((f"d{place}", count) for place, count in enumerate(counts)))
    shares = rule.allot(cap)
    assert total(shares) == cap
    assert [share.budget.epsilon * sum(counts) for share in shares] == [cap.epsilon * count for count in counts]


@pytest.mark.claim("S1-22")
@given(cap=caps, parts=st.lists(st.integers(0, 20), min_size=1, max_size=5))
def test_base_shares_and_reserve_sum_to_the_cap_exactly(cap: Budget, parts: list[int]) -> None:
    rule = BaseAndReserve(base=tuple((f"d{place}", Fraction(part, 100)) for place, part in enumerate(parts)))
    assert total(rule.allot(cap)) + rule.reserved(cap) == cap


@pytest.mark.claim("S1-22")
def test_the_reserve_is_refused_without_a_decision_and_open_with_one() -> None:
    two = Budget(epsilon=2)
    HALVES.admit("oncology", two, cap=CAP, spent=Budget.none(), unlocks=())
    with pytest.raises(BudgetExceeded, match="only the board unlocks it") as refused:
        HALVES.admit("oncology", Budget(epsilon=2 + LEAST), cap=CAP, spent=Budget.none(), unlocks=())
    assert "The reserve still holds ε = 2" in str(refused.value)
    given_one = (Unlock(account="oncology", budget=Budget(epsilon=1), decision=3),)
    HALVES.admit("oncology", Budget(epsilon=1), cap=CAP, spent=two, unlocks=given_one)
    with pytest.raises(BudgetExceeded):
        HALVES.admit("oncology", Budget(epsilon=1 + LEAST), cap=CAP, spent=two, unlocks=given_one)
    with pytest.raises(BudgetExceeded):
        HALVES.admit("epidemiology", Budget(epsilon=4 + LEAST), cap=CAP, spent=Budget.none(), unlocks=given_one)


def test_no_more_is_unlocked_than_the_reserve_holds_and_no_decision_counts_twice() -> None:
    whole = Unlock(account="oncology", budget=Budget(epsilon=2), decision=1)
    assert HALVES.locked(CAP, (whole,)) == Budget(epsilon=0, delta=Fraction(1, 4 * 10**6))
    with pytest.raises(BudgetExceeded, match="would be unlocked"):
        HALVES.locked(CAP, (whole, Unlock(account="oncology", budget=Budget(epsilon=LEAST), decision=2)))
    with pytest.raises(InvalidInput, match="counted twice"):
        HALVES.allowed("oncology", CAP, (whole, whole))
    with pytest.raises(NotDeclared, match="no base share"):
        HALVES.allowed("dermatology", CAP, ())


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (NotDeclared, lambda: Proportional(planned=(("a", 0),))),
        (InvalidInput, lambda: Proportional(planned=())),
        (InvalidInput, lambda: Proportional(planned=(("a", 1), ("a", 2)))),
        (InvalidInput, lambda: Proportional(planned=(("a", -1),))),
        (InvalidInput, lambda: BaseAndReserve(base=(("a", Fraction(2, 3)), ("b", Fraction(1, 2))))),
    ],
)
def test_policies_that_make_no_sense_are_refused(error: type[Exception], make: object) -> None:
    with pytest.raises(error):
        make()  # type: ignore[operator]


def charge(first: str, last: str, epsilon: object = 1, delta: object = 0) -> WindowCharge:
    return WindowCharge(first=first, last=last, cost=Budget(epsilon=epsilon, delta=delta))  # type: ignore[arg-type]


def test_a_new_window_is_new_but_a_life_is_not() -> None:
    year = [charge(f"2026-{month:02}-01", f"2026-{month:02}-28") for month in range(1, 13)]
    standing = MONTHS.standing(year)
    assert [spent for _, spent in standing.windows] == [Budget(epsilon=1)] * 12
    assert standing.lifetime == Budget(epsilon=12)
    assert "lost ε = 12: windows do not give anything back" in str(standing)
    with pytest.raises(BudgetExceeded, match="the window 2026-03 has ε = 0 left"):
        MONTHS.admit(year, charge("2026-03-31", "2026-03-31", LEAST))
    assert MONTHS.admit(year, charge("2027-01-01", "2027-01-31")).lifetime == Budget(epsilon=13)


@pytest.mark.claim("S4-08")
def test_every_window_that_is_read_is_charged() -> None:
    back = charge("2026-01-31", "2026-03-01", Fraction(1, 2))
    assert [window.label for window in MONTHS.windows(back)] == ["2026-01", "2026-02", "2026-03"]
    assert MONTHS.standing([back]).lifetime == Budget(epsilon=Fraction(3, 2))
    with pytest.raises(BudgetExceeded, match="the window 2026-01 has ε = 1/2 left"):
        MONTHS.admit([back], charge("2026-01-01", "2026-01-02", Fraction(3, 4)))


def test_a_life_counts_entries_not_windows_and_delta_by_group_privacy() -> None:
    days = TimeWindows(
        unit=event(relation="add/remove"),
        stretch=Cadence.DAILY,
        every=Cadence.MONTHLY,
        cap=Budget(epsilon=1, delta=0.01),
    )
    one = charge("2026-01-01", "2026-01-03", Fraction(1, 2), Fraction(1, 1000))
    standing = days.standing([one])
    assert standing.windows == (("2026-01", one.cost),)
    group = Approximate(epsilon=Fraction(1, 2), delta=Fraction(1, 1000)).group(3)
    assert standing.lifetime == Budget(epsilon=Fraction(3, 2), delta=group.delta)
    assert group.delta > Fraction(3, 1000)  # the twin: three times δ would be too little


def test_a_lifetime_cap_stops_what_windows_would_let_through() -> None:
    capped = TimeWindows(
        unit=MONTHS.unit,
        stretch=Cadence.MONTHLY,
        every=Cadence.MONTHLY,
        cap=Budget(epsilon=1),
        lifetime=Budget(epsilon=2),
    )
    past = [charge("2026-01-01", "2026-01-31"), charge("2026-02-01", "2026-02-28")]
    with pytest.raises(BudgetExceeded, match="No window helps here"):
        capped.admit(past, charge("2026-03-01", "2026-03-31", LEAST))


@pytest.mark.parametrize(
    ("words", "unit", "stretch", "every"),
    [
        ("two windows are lost", user("patient_id", relation="replace"), None, Cadence.MONTHLY),
        ("two windows are lost", record(relation="replace"), None, Cadence.MONTHLY),
        ("two windows are lost", event(relation="replace"), Cadence.MONTHLY, Cadence.MONTHLY),
        ("two monthly windows", event(relation="add/remove"), Cadence.WEEKLY, Cadence.MONTHLY),
        ("two daily windows", event(relation="add/remove"), Cadence.MONTHLY, Cadence.DAILY),
    ],
)
def test_windows_are_refused_where_they_would_hide_a_loss(
    words: str, unit: Unit, stretch: Cadence | None, every: Cadence
) -> None:
    with pytest.raises(Refused, match=words):
        TimeWindows(unit=unit, stretch=stretch, every=every, cap=Budget(epsilon=1))


PERSON = user("patient_id", relation="add/remove")
PANEL = TimeWindows(unit=PERSON, every=Cadence.MONTHLY, cap=Budget(epsilon=1, delta=LEAST), most_windows=3)


@pytest.mark.claim("S1-19")
@pytest.mark.parametrize(
    ("error", "words", "changes"),
    [
        (InvalidInput, "has no entries", {"stretch": Cadence.MONTHLY}),
        (InvalidInput, "most_windows", {"most_windows": 0}),
        (Refused, "a person can lose ε = 3", {"lifetime": Budget(epsilon=Fraction(3) - LEAST, delta=1e-3)}),
        (Refused, "a person can lose ε = 3", {"lifetime": Budget(epsilon=3, delta=LEAST)}),
        (Refused, "guarantee a person nothing", {"cap": Budget(epsilon=1, delta="1/3")}),
        (NotDeclared, "above 0", {"cap": Budget.none()}),
        (InvalidInput, "one window", {"unit": event(relation="add/remove"), "stretch": Cadence.DAILY}),
        (NotDeclared, "needs stretch", {"unit": event(relation="add/remove"), "most_windows": None}),
    ],
)
def test_windows_for_persons_are_refused_where_they_say_less_than_a_life_loses(
    error: type[Exception], words: str, changes: dict[str, Any]
) -> None:
    with pytest.raises(error, match=words):
        replace(PANEL, **changes)


@pytest.mark.claim("S1-19")
@pytest.mark.parametrize(
    "unit",
    [
        PERSON,
        record(relation="add/remove"),
        family(3, "patient_id", relation="add/remove"),
        edge(relation="add/remove"),
        node(max_degree=9, relation="add/remove"),
        client(relation="add/remove"),
    ],
    ids=lambda unit: str(unit.KIND),
)
def test_a_release_is_one_loss_to_a_person_however_many_windows_it_reads(unit: Unit) -> None:
    windows = replace(PANEL, unit=unit)
    year = windows.standing([charge("2026-01-01", "2026-12-31", "1/2", LEAST)])
    assert year.windows == tuple((f"2026-{month:02}", Budget(epsilon="1/2", delta=LEAST)) for month in range(1, 13))
    assert year.lifetime == year.all_along == Budget(epsilon="1/2", delta=LEAST)
    months = windows.standing([charge(f"2026-{month:02}-01", f"2026-{month:02}-28") for month in range(1, 13)])
    assert (months.lifetime, months.all_along) == (Budget(epsilon=3), Budget(epsilon=12))
    roomy = replace(windows, lifetime=Budget(epsilon=9, delta=1e-3))
    assert roomy.lifetime_cap == windows.lifetime_cap == Budget(epsilon=3, delta=3 * LEAST)  # what the windows keep
    assert months.words.startswith("A person with data in at most 3 windows has lost at most ε = 3; one who was there")
    alone = replace(windows, most_windows=None).standing([charge("2026-01-01", "2026-02-28")])
    assert alone.lifetime == Budget(epsilon=1)
    assert str(alone).endswith("windows do not give anything back.")
    with pytest.raises(BudgetExceeded, match="the window 2026-12 has ε = 1/2"):
        windows.admit([charge("2026-01-01", "2026-12-31", "1/2")], charge("2026-12-31", "2027-01-01", "3/4"))


DAYS = st.integers(0, 364).map(lambda day: date(2026, 1, 1) + timedelta(days=day))
ASKED = st.tuples(DAYS, DAYS, st.sampled_from(["1/4", "1/3", "1/2", "1"]), st.sampled_from([0, LEAST / 2, LEAST]))


@pytest.mark.claim("S1-19")
@settings(max_examples=60, deadline=None)
@given(asked=st.lists(ASKED, max_size=25), most=st.integers(1, 4), every=st.sampled_from(["monthly", "quarterly"]))
def test_nobody_in_so_many_windows_ever_loses_more_than_is_stated(
    asked: list[tuple[date, date, str, Fraction]], most: int, every: str
) -> None:
    """By brute force over every set of windows that a person can have been in, for whatever was admitted."""
    windows = replace(PANEL, most_windows=most, every=Cadence(every))
    admitted: list[WindowCharge] = []
    for one, other, epsilon, delta in asked:
        new = charge(min(one, other).isoformat(), max(one, other).isoformat(), epsilon, delta)
        with suppress(BudgetExceeded):
            windows.admit(admitted, new)
            admitted.append(new)
    standing = windows.standing(admitted)
    labels = [label for label, _ in standing.windows]
    for presence in combinations(labels, min(most, len(labels))):
        read = [each for each in admitted if {window.label for window in windows.windows(each)} & set(presence)]
        lost = sum((each.cost for each in read), start=Budget.none())
        assert standing.lifetime.covers(lost)
        assert (windows.lifetime_cap or Budget.none()).covers(standing.lifetime)
    assert standing.all_along == sum((each.cost for each in admitted), start=Budget.none())


def test_declarations_from_before_are_read_and_written_as_they_were() -> None:
    kinds = Registry((Budget, Event, User, TimeWindows))
    assert set(cast(dict[str, Json], encode(MONTHS))) == {
        "kind",
        "version",
        "unit",
        "stretch",
        "every",
        "cap",
        "lifetime",
    }
    assert kinds.decode(encode(MONTHS)) == MONTHS
    assert "stretch" not in cast(dict[str, Json], encode(PANEL))
    assert kinds.decode(encode(PANEL)) == PANEL


@pytest.mark.parametrize(
    ("first", "last"), [("2026-02-30", "2026-03-01"), ("20260101", "20260102"), ("2026-02-02", "2026-02-01")]
)
def test_days_that_are_none_are_refused(first: str, last: str) -> None:
    with pytest.raises(InvalidInput):
        charge(first, last)


def test_policies_are_documents() -> None:
    kinds = Registry((Budget, Event, Allotment, BaseAndReserve, Proportional, TimeWindows, Unlock, WindowCharge))
    for policy in (HALVES, MONTHS, Proportional(planned=(("a", 1),)), charge("2026-01-01", "2026-01-31")):
        assert kinds.decode(parse(canonical(encode(policy)))) == policy
