"""Balances that a zCDP or a Rényi filter decides on, on both stores: what fits, what is charged, what is replayed."""

import json
import math
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.accounting import rdp, zcdp
from sfumato.accounting.filter_cost import filter_cost
from sfumato.accounting.filters import RDPFilter, ZCDPFilter
from sfumato.core.budget import Budget
from sfumato.core.events import (
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    PoissonSampled,
    PrivacyEvent,
    RandomizedResponse,
    Stated,
)
from sfumato.core.guarantees import ZCDP, Approximate
from sfumato.core.ledger import State
from sfumato.errors import BudgetExceeded, InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance.balances import Balance
from sfumato.governance.entries import Recovered, Reserved, Row
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import admit, replay
from tests.governance.homes import PATIENT, VISITS, Home, older
from tests.governance.test_conformance import books_of

ROOMY = Budget(epsilon=100, delta="1/1000")
CAP = Budget(epsilon=1, delta="1/1000000")
METHODS: list[dict[str, Any]] = [{"method": "zcdp"}, {"method": "rdp", "order": 20}, {"method": "rdp", "order": "41/2"}]
filtered = pytest.mark.parametrize("chosen", METHODS, ids=lambda chosen: "-".join(map(str, chosen.values())))


def furnished(home: Home, *, levels: dict[str, dict[str, Any]], population: dict[str, Any] | None = None) -> Ledger:
    """Accounts with the filters that are asked for, one dataset and its people."""
    ledger = home.create()
    for path, chosen in levels.items():
        ledger.open_account(path, unit=PATIENT, **({"cap": ROOMY, "reason": "decided by the tests"} | chosen))
    people = {"cap": ROOMY, "reason": "decided by the tests"} | (population or {})
    ledger.declare_population("patients", unit=PATIENT, **people)
    ledger.declare_dataset(VISITS, population="patients", cap=Budget(epsilon=10**6, delta="1/2"))
    return ledger


def losing(amount: Fraction, order: Fraction | None) -> PrivacyEvent:
    """Gaussian noise with exactly this ρ, or this Rényi loss."""
    return DiscreteGaussian(l2_squared=2 * amount / (order or 1), sigma_squared=Fraction(1))


@pytest.mark.claim("S1-03")
@filtered
def test_equality_fits_and_the_least_overshoot_does_not(home: Home, chosen: dict[str, Any]) -> None:
    ledger = furnished(home, levels={"hospital": {}, "hospital/research": chosen | {"cap": CAP}})
    account, cost = ledger.account("hospital/research", unit=PATIENT), Budget(epsilon="1/100")
    fresh = ledger.balance("hospital/research")
    most, order = fresh.filter_cap, fresh.order
    assert (fresh.method, most is not None and most > 0) == (chosen["method"], True)
    assert most is not None
    account.reserve(cost, datasets=[VISITS], event=losing(most * 3 / 4, order))
    before = (books_of(ledger)[0], ledger.head())
    least = Fraction(1, 10**30)
    with pytest.raises(BudgetExceeded, match="left; this release asks for"):
        account.reserve(cost, datasets=[VISITS], event=losing(most / 4 + least, order))
    assert (books_of(ledger)[0], ledger.head()) == before
    account.reserve(cost, datasets=[VISITS], event=losing(most / 4, order))
    balance = ledger.balance("hospital/research")
    assert (balance.filter_spent, balance.filter_left) == (most, 0)
    assert balance.left == Budget.none()
    assert CAP.covers(balance.spent)
    assert balance.spent.epsilon > Fraction(999_999, 10**6)  # nothing was given away
    assert (balance.epsilon_spent, balance.charges) == (Fraction(1, 50), 2)  # sums are always kept
    with pytest.raises(BudgetExceeded):
        account.reserve(cost, datasets=[VISITS], event=losing(least, order))
    assert ledger.verify() == ()


MIXED = {
    "hospital": {"method": "zcdp", "cap": Budget(epsilon=9, delta="1/1000000")},
    "hospital/oncology": {},
    "hospital/oncology/trial": {"method": "rdp", "order": 20, "cap": Budget(epsilon=6, delta="1/100000")},
}
EVENTS: list[tuple[Budget, PrivacyEvent]] = [
    (Budget(epsilon="1/20"), DiscreteLaplace(l1=Fraction(1), scale=Fraction(20))),
    (Budget(epsilon="1/2", delta="1/10000000"), DiscreteGaussian(l2_squared=Fraction(2), sigma_squared=Fraction(777))),
    (Budget(epsilon="3/10"), BoundedRange(epsilon=Fraction(3, 10))),
    (Budget(epsilon="1/7"), RandomizedResponse(epsilon=Fraction(1, 7), categories=4)),
]


@pytest.mark.claim("S1-03")
def test_levels_with_different_filters_are_each_charged_in_their_own_measure(home: Home) -> None:
    ledger = furnished(home, levels=MIXED, population={"method": "rdp", "order": 8})
    account = ledger.account("hospital/oncology/trial", unit=PATIENT)
    for place, (cost, event) in enumerate(EVENTS):
        reservation = account.reserve(cost, datasets=[VISITS], event=event)
        account.commit_text(reservation, f"question {place}", "{}")
    account.release(account.reserve(*EVENTS[0][:1], datasets=[VISITS], event=EVENTS[0][1], queued=True))
    kept, replayed = books_of(ledger)
    assert kept == replayed
    assert ledger.verify() == ()
    epsilon = sum(cost.epsilon for cost, _ in EVENTS)
    for name in ("account hospital", "account hospital/oncology", "dataset visits", "population patients"):
        assert kept.kept[name].epsilon_spent == epsilon
    # Added up once more, by the accountants and without the filters: never more than was charged, and hardly less.
    events = [event for _, event in EVENTS]
    for name, true in (
        ("account hospital", zcdp.compose(events).rho),
        ("account hospital/oncology/trial", rdp.compose(events, orders=[20])[0].curve[0][1]),
        ("population patients", rdp.compose(events, orders=[8])[0].curve[0][1]),
    ):
        spent = kept.kept[name].filter_spent
        assert spent is not None
        assert true <= spent <= true * (1 + Fraction(1, 10**10))
    assert kept.kept["account hospital/oncology"].filter_spent is None
    stated = [json.loads(body)["losses"] for body in ledger.export() if '"ledger.reserved"' in body]
    assert all(
        [line for line, _ in losses] == ["account hospital", "account hospital/oncology/trial", "population patients"]
        for losses in stated
    )
    assert stated[0][0][1] == "1/800"


@pytest.mark.parametrize("level", ["hospital", "hospital/oncology/trial", "population patients"])
def test_any_filter_that_is_used_up_refuses_and_nothing_changes(home: Home, level: str) -> None:
    levels = {path: {"method": "zcdp"} | chosen for path, chosen in MIXED.items()}
    small = {"method": "rdp", "order": 20, "cap": Budget(epsilon=1, delta="1/1000000")}
    if level in levels:
        levels[level] = small
    ledger = furnished(home, levels=levels, population=small if level.startswith("population") else None)
    account = ledger.account("hospital/oncology/trial", unit=PATIENT)
    event, cost = losing(Fraction(1, 100), None), Budget(epsilon="1/2", delta="1/1000000000")
    account.reserve(cost, datasets=[VISITS], event=event)
    before = books_of(ledger)[0]
    with pytest.raises(BudgetExceeded, match=f"{level}.*Rényi loss of order 20"):
        account.reserve(cost, datasets=[VISITS], event=losing(Fraction(1, 50), None))
    assert books_of(ledger)[0] == before


def test_what_a_filter_cannot_hold_is_refused_with_the_reason(home: Home) -> None:
    ledger = furnished(home, levels={"a": {"method": "zcdp"}, "b": {"method": "rdp", "order": 4}})
    head, cost = ledger.head(), Budget(epsilon="1/10")
    sampled = PoissonSampled(rate=Fraction(1, 100), event=Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(4)))
    own = Stated(guarantee=Approximate(epsilon=Fraction(1, 10), delta=Fraction(1, 10**7)))
    by_rho, by_order = (ledger.account(path, unit=PATIENT) for path in ("a", "b"))
    for account, what in ((by_rho, "ρ"), (by_order, "Rényi loss of order 4")):
        with pytest.raises(Refused, match=f"states no {what}.*"):
            account.reserve(cost, datasets=[VISITS])
        with pytest.raises(Refused, match=r"brings δ = 1e-7, and.*Nothing was read"):
            account.reserve(cost, datasets=[VISITS], event=own)
    with pytest.raises(Refused, match="states no ρ"):
        by_rho.reserve(cost, datasets=[VISITS], event=sampled)
    assert ledger.head() == head
    by_order.reserve(cost, datasets=[VISITS], event=sampled)  # a sampled Gaussian has a Rényi curve
    assert ledger.verify() == ()


def test_what_may_be_asked_for_is_what_fits(home: Home) -> None:
    chosen = {"a": {"method": "zcdp", "cap": CAP}, "b": {"method": "rdp", "order": 20, "cap": CAP}}
    ledger = furnished(home, levels=chosen)
    for path in chosen:
        account = ledger.account(path, unit=PATIENT)
        for _ in range(2):
            left = account.left
            assert left.delta == 0
            event = DiscreteLaplace(l1=Fraction(1), scale=1 / (left.epsilon * 3 / 4))
            account.reserve(Budget(epsilon=left.epsilon * 3 / 4), datasets=[VISITS], event=event)
        left = account.left.epsilon
        with pytest.raises(BudgetExceeded):
            account.reserve(Budget(epsilon=4 * left), datasets=[VISITS], event=BoundedRange(epsilon=8 * left))
        account.reserve(Budget(epsilon=left), datasets=[VISITS], event=DiscreteLaplace(l1=Fraction(1), scale=1 / left))


@pytest.mark.claim("S1-03")
def test_zcdp_admits_48_gaussian_releases_chosen_on_the_way_where_sums_admit_7(home: Home) -> None:
    """Each next σ² is chosen by what the last answer was: the filter holds on every path."""
    ledger = furnished(home, levels={"sums": {"cap": CAP}, "filter": {"cap": CAP, "method": "zcdp"}})
    step = DiscreteGaussian(l2_squared=Fraction(1), sigma_squared=Fraction(1000))
    # For sums the δ of the cap is shared out beforehand, as well as it can be: k releases at δ/k each.
    rho = zcdp.compose(step).rho
    costs = {k: Budget(epsilon=ZCDP(rho=rho).epsilon_at(CAP.delta / k), delta=CAP.delta / k) for k in range(1, 60)}
    best = max(k for k, cost in costs.items() if k * cost.epsilon <= CAP.epsilon)
    found = {}
    for path, cost in (("sums", costs[best]), ("filter", costs[1])):
        account, found[path] = ledger.account(path, unit=PATIENT), 0
        for _ in range(60):
            try:
                account.reserve(cost, datasets=[VISITS], event=step)
            except BudgetExceeded:
                break
            found[path] += 1
    assert found == {"sums": 7, "filter": 48}
    assert CAP.covers(ledger.balance("filter").spent)


def _worst_delta(price: Callable[[PrivacyEvent], Fraction], start: Balance) -> float:
    """δ at the cap's ε of randomised response after randomised response, each ε chosen by the answer before.

    All paths are followed, with their chances and losses; the filter decides on each where it ends.
    """
    asked = {yes: Fraction(1, 2 if yes else 4) for yes in (True, False)}
    prices = {yes: price(RandomizedResponse(epsilon=each, categories=2)) for yes, each in asked.items()}
    balances = {Fraction(0): start}
    paths: dict[tuple[Fraction, Fraction, bool], float] = {(Fraction(0), Fraction(0), False): 1.0}
    ended: defaultdict[Fraction, float] = defaultdict(float)
    while paths:
        later: defaultdict[tuple[Fraction, Fraction, bool], float] = defaultdict(float)
        for (spent, loss, yes), chance in paths.items():
            try:
                balances[spent].admit(Budget.none(), prices[yes])
            except BudgetExceeded:
                ended[loss] += chance
                continue
            after = spent + prices[yes]
            if after not in balances:
                balances[after] = balances[spent].moved(Budget.none(), prices[yes], times=1, charges=0)
            right = 1 / (1 + math.exp(-asked[yes]))
            later[after, loss + asked[yes], True] += chance * right
            later[after, loss - asked[yes], False] += chance * (1 - right)
        paths = dict(later)
    epsilon = start.cap.epsilon
    return sum(chance * -math.expm1(float(epsilon - loss)) for loss, chance in ended.items() if loss > epsilon)


@pytest.mark.few(2)
@pytest.mark.claim("S1-03")
@pytest.mark.claim("X-09")
@pytest.mark.parametrize("order", [None, Fraction(6), Fraction(20)])
def test_followed_down_every_path_a_filter_keeps_its_cap_and_its_broken_twin_does_not(order: Fraction | None) -> None:
    cap = Budget(epsilon=4, delta="1/100")
    if order is None:
        start = Balance(name="x", unit=PATIENT, cap=cap, rho=ZCDPFilter.within(cap).rho)
    else:
        start = Balance(name="x", unit=PATIENT, cap=cap, order=order, loss=RDPFilter.within(cap, order=order).loss)
    kept = _worst_delta(lambda event: filter_cost(event, order), start)
    assert kept <= cap.delta
    broken = _worst_delta(lambda event: filter_cost(event, order) / 4, start)  # as if all were of a bounded range
    assert broken > cap.delta
    assert (kept > 0) is (order == 6)  # more than sums would admit, at an order that fits many small losses


def test_the_same_key_with_another_loss_is_another_request(home: Home) -> None:
    ledger = furnished(home, levels={"a": {"method": "rdp", "order": 20}})
    account, cost = ledger.account("a", unit=PATIENT), Budget(epsilon="1/20")
    first = account.reserve(cost, datasets=[VISITS], event=EVENTS[0][1], idempotency="k")
    assert account.reserve(cost, datasets=[VISITS], event=EVENTS[0][1], idempotency="k") == first
    with pytest.raises(Refused, match="another request"):
        account.reserve(cost, datasets=[VISITS], event=BoundedRange(epsilon=Fraction(1, 20)), idempotency="k")
    waiting = account.reserve(cost, datasets=[VISITS], event=EVENTS[0][1], queued=True)
    account.release(waiting)
    assert ledger.balance("a").filter_spent == ledger.charge(first.number).losses[0][1]


def test_an_entry_that_does_not_state_the_losses_is_not_entered(home: Home) -> None:
    ledger = furnished(home, levels=MIXED, population={"method": "rdp", "order": 8})
    ledger.account("hospital/oncology/trial", unit=PATIENT).reserve(EVENTS[0][0], datasets=[VISITS], event=EVENTS[0][1])
    with ledger.record.reading() as transaction:
        rows = list(transaction.rows())
    state, entry = replay(rows[:-1]), rows[-1].entry
    assert isinstance(entry, Reserved)
    admit(state, entry)
    with pytest.raises(Refused, match="states no"):
        admit(state, replace(entry, losses=entry.losses[1:]))
    for wrong in (
        (*entry.losses, ("account hospital/oncology", Fraction(1))),
        (*entry.losses, entry.losses[0]),
        ((entry.losses[0][0], Fraction(-1)), *entry.losses[1:]),
    ):
        with pytest.raises(LedgerError, match="no filter counts"):
            admit(state, replace(entry, losses=wrong))


def test_a_gap_uses_up_every_filter_and_is_replayed(home: Home) -> None:
    ledger = furnished(home, levels=MIXED, population={"method": "rdp", "order": 8})
    ledger.account("hospital/oncology/trial", unit=PATIENT).reserve(EVENTS[0][0], datasets=[VISITS], event=EVENTS[0][1])
    with ledger.record.reading() as transaction:
        rows = list(transaction.rows())
    gap = Recovered(at=rows[-1].entry.at, reason="a lost disk", anchored="", lost=0, gap=Budget(epsilon="1/3"))
    state = replay([*rows, Row.after(rows[-1].number, rows[-1].digest, gap)])
    for balance in state.balances():
        if balance.filter_cap is None:
            assert balance.epsilon_spent == EVENTS[0][0].epsilon + Fraction(1, 3)
            continue
        assert (balance.filter_spent, balance.filter_left, balance.left) == (balance.filter_cap, 0, Budget.none())
        with pytest.raises(BudgetExceeded):
            balance.admit(Budget.none(), Fraction(1, 10**20))
    assert state.balance("account hospital/oncology/trial") != replay(rows).balance("account hospital/oncology/trial")


@filtered
def test_a_raise_works_the_filter_out_again_and_never_lowers_it(chosen: dict[str, Any]) -> None:
    order = None if "order" not in chosen else Fraction(chosen["order"])

    def most(cap: Budget) -> Fraction:
        return ZCDPFilter.within(cap).rho if order is None else RDPFilter.within(cap, order=order).loss

    kept = {"rho": most(CAP)} if order is None else {"order": order, "loss": most(CAP)}
    balance = Balance(name="x", unit=PATIENT, cap=CAP, **kept).moved(Budget(epsilon=1), most(CAP), times=1, charges=1)
    higher = balance.raised(Budget(epsilon="1/2"))
    assert higher.cap == Budget(epsilon="3/2", delta=CAP.delta)
    assert higher.filter_cap == most(higher.cap) > most(CAP)
    assert (higher.filter_spent, higher.epsilon_spent, higher.method) == (most(CAP), 1, chosen["method"])
    assert higher == balance.raised(Budget(epsilon="1/2"))
    wider = higher.raised(Budget(epsilon=0, delta="1/1000000"))
    assert wider.filter_cap == most(wider.cap) > most(higher.cap)
    generous = replace(balance, **{"rho" if order is None else "loss": most(CAP) + 1})  # by a decision of before
    assert generous.raised(Budget(epsilon="1/1000000")).filter_cap == most(CAP) + 1
    for wrong, why in ((Budget.none(), "by nothing"), (Budget(epsilon=1, delta=1), "δ of 1")):
        with pytest.raises(InvalidInput, match=why):
            balance.raised(wrong)


def test_what_makes_no_filter_is_refused(home: Home) -> None:
    ledger = home.create()

    def opened(cap: Budget = CAP, **chosen: Any) -> None:
        ledger.open_account("a", unit=PATIENT, cap=cap, reason="decided by the tests", **chosen)

    for wrong in ("pld", "advanced", "optimal", "zCDP"):
        with pytest.raises(InvalidInput, match="is not a filter of an account"):
            opened(method=wrong)
        with pytest.raises(InvalidInput, match="is not a filter of an account"):
            ledger.declare_population("p", unit=PATIENT, cap=CAP, reason="a", method=wrong)
    with pytest.raises(NotDeclared, match="keeps to one order"):
        opened(method="rdp")
    with pytest.raises(InvalidInput, match="above 1"):
        opened(method="rdp", order=1)
    with pytest.raises(InvalidInput, match="would admit nothing at all"):
        opened(method="rdp", order="5/2")
    for method in ("zcdp", "basic"):
        with pytest.raises(InvalidInput, match="Leave order out"):
            opened(method=method, order=20)
    for chosen in METHODS:
        with pytest.raises(InvalidInput, match="Give the cap a δ"):
            opened(Budget(epsilon=1), **chosen)
    assert ledger.balances() == []


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numpy", "scipy", "pyarrow", "ibis", "duckdb", "pandas"}:
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
from sfumato.governance.ledger import Ledger
ledger = Ledger.open(sys.argv[1], key=sys.argv[2], anchor=sys.argv[3])
assert ledger.verify() == (), ledger.verify()
print(*ledger.balances(), sep="\\n")
"""


@pytest.mark.long
def test_a_replay_without_numpy_gives_the_same_balances(home: Home) -> None:
    ledger = furnished(home, levels=MIXED, population={"method": "rdp", "order": 8})
    account = ledger.account("hospital/oncology/trial", unit=PATIENT)
    for cost, event in EVENTS:
        account.reserve(cost, datasets=[VISITS], event=event)
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKED, home.url, str(home.key), str(home.anchor)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.stdout.splitlines() == [str(balance) for balance in ledger.balances()], answer.stderr


def test_a_ledger_whose_entries_stated_one_rho_opens_and_goes_on(tmp_path: Path) -> None:
    """Written by the code of the first migration; its key protects nothing."""
    home = older(tmp_path, "0001-zcdp")
    ledger = home.open()
    assert ledger.verify() == ()
    kept, replayed = books_of(ledger)
    assert kept == replayed
    research = ledger.balance("hospital/research")
    rho = Fraction(1, 800) + Fraction(1, 2 * 777)
    assert (research.method, research.filter_cap, research.filter_spent) == (
        "zcdp",
        Fraction(243559703, 10**10),
        rho,
    )
    assert kept.kept["population patients"].filter_spent == rho
    (waiting,) = (charge for charge in kept.charges.values() if charge.queued and charge.state is State.RESERVED)
    losses = (("account hospital/research", Fraction(1, 1554)), ("population patients", Fraction(1, 1554)))
    assert waiting.losses == losses
    ledger.confirm_clock("it lay in a drawer")
    account = ledger.account("hospital/research", unit=PATIENT)
    account.reserve(EVENTS[0][0], datasets=[VISITS], event=EVENTS[0][1])
    assert ledger.expire() == (waiting.number,)  # queued and never started: it is given back
    assert ledger.balance("hospital/research").filter_spent == Fraction(2, 800)
    assert ledger.verify() == ()
