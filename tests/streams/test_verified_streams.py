"""Certificates of streams: what is stated must follow from itself, and a forger cannot make a reader wait."""

import copy
import time
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.documents import encode
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.verify import verify
from sfumato.vault import Vault
from tests.governance.homes import sqlite_home
from tests.reports.forgeries import signed_anew

KEY = SigningKey.new()
EVENT, PERSON = sf.event(relation="add/remove"), sf.user("id", relation="add/remove")
Change = Callable[[dict[str, Any]], None]


@cache
def closed(strategy: str = "square root", delta: float = 1e-7, *, persons: bool = False) -> Any:
    """The document of a short stream that was closed."""
    budget = sf.Budget(epsilon=10, delta=1e-6)
    vault = Vault(unit=PERSON if persons else EVENT, budget=budget, name="er", key=KEY)
    limit = sf.Limit(groups=2, rows_per_group=1) if persons else None
    stream = vault.stream(name="er", version="1", horizon=8, bounds=(0, 9), limit=limit)
    total = stream.running_total(strategy=strategy).open(epsilon=1, delta=delta)
    for _ in range(5):
        total.add(people=["a", "b"]) if persons else total.add(3)
    return total.close().certificate.document


def forged(document: Any, *changes: Change) -> dict[str, Any]:
    """Changed, sealed again and signed with the very key of the vault."""
    changed: dict[str, Any] = copy.deepcopy(document)
    for change in changes:
        change(changed["statement"])
    signed_anew(changed, KEY)
    return changed


def put(path: str, value: Any) -> Change:
    def change(statement: dict[str, Any]) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            statement = statement[parent]
        statement[name] = value

    return change


def follow(statement: dict[str, Any]) -> None:
    """What a careful forger does: whatever follows from mechanism and query is worked out anew."""
    said = DECLARATIONS.decode(statement, "statement")
    moved = said.query.sensitivity(said.unit, said.limit)
    statement["sensitivity"] = encode(moved)
    statement["event"] = encode(said.mechanism.loss(moved))
    statement["law"] = encode(said.mechanism.law)


def holds(document: Any) -> bool:
    return verify(document, key=KEY.public_text).authenticated


@pytest.mark.parametrize(
    ("strategy", "delta", "persons"),
    [("square root", 1e-7, False), ("buffers", 1e-7, True), ("tree", 0, False), ("increments", 0, True)],
)
def test_an_honest_certificate_verifies_and_its_copy_signed_anew_does_too(
    strategy: str, delta: float, persons: bool
) -> None:
    document = closed(strategy, delta, persons=persons)
    assert holds(document)
    assert holds(forged(document, follow))  # the twin of all that follows: nothing was changed


LIES: dict[str, tuple[Change, ...]] = {
    "less noise": (put("mechanism.noise", "1000000/1"), follow),
    "less noise, in part": (put("mechanism.noise", "1000000/1"),),
    "less is charged": (put("spend.epsilon", "1/2"), put("guarantee.epsilon", "1/2")),
    "a unit counts less often": (put("mechanism.pattern.times", 1), follow),
    "a unit counts further apart": (put("mechanism.pattern.separation", 8), follow),
    "another change": (put("mechanism.pattern.change", "swapped"), follow),
    "another horizon": (put("mechanism.strategy.horizon", 4), follow),
    "a limit that is not the query's": (put("limit.groups", 1),),
    "a query of fewer steps a person": (put("query.times", 1),),
    "more was told than was released": (put("query.told", 6),),
    "a number was left out": (put("values", [1, 2, 3, 4]),),
    "values of a stream that kept none": (put("query.kept", False),),
    "an error of another law": (put("law.sigma", "1/1"),),
    "noise that nobody draws": (put("mechanism.noise", f"{2**60}/1"), follow),
    "coarser lattice, same noise": (put("mechanism.strategy.bits", 30), follow),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_forged_certificate_is_refused_though_the_vault_s_own_key_signed_it(lie: str) -> None:
    document = closed(persons=True)
    assert not holds(forged(document, *LIES[lie]))
    assert holds(forged(document))


def test_larger_steps_than_the_strategy_was_rounded_for_are_refused() -> None:
    document = closed("buffers", persons=True)
    assert not holds(forged(document, put("mechanism.strategy.largest", 1), follow))
    assert not holds(forged(document, put("query.upper", 9000), follow))


def test_any_strategy_may_be_stated_and_pays_for_its_own_moves() -> None:
    """Which strategy ran is as little provable as which noise was drawn; what is charged must be what is stated."""
    document = closed()
    less = put("mechanism.strategy.form", "increments")  # moves less than the square root: the noise suffices
    more = put("mechanism.strategy.form", "totals")  # moves more
    assert holds(forged(document, less, follow))
    assert not holds(forged(document, less))
    assert not holds(forged(document, more, follow))


def buffers(count: int, horizon: int, finest: int, *, times: int = 1, norm: str = "l2") -> tuple[Change, ...]:
    return (
        put("mechanism.strategy.horizon", horizon),
        put("query.horizon", horizon),
        put("mechanism.strategy.decays", [f"{finest - 2 * k - 1}/{finest}" for k in range(count)]),
        put("mechanism.strategy.weights", [f"1/{finest + 2 * k + 1}" for k in range(count)]),
        put("query.times", times),
        put("mechanism.pattern.times", times),
        put("mechanism.norm", norm),
    )


LONG: dict[str, tuple[Change, ...]] = {
    "huge fractions": buffers(16, 100, 2**6000),
    "many buffers, followed step by step": buffers(16, 2**18, 2**40, times=5),
    "a pure stream without end": buffers(2, 2**32, 2**40, norm="l1"),
    "a tree without end": (
        put("mechanism.strategy", {"kind": "strategy.tree", "version": 1, "arity": 2, "horizon": 2**40, "bits": 40}),
        put("query.horizon", 2**40),
        put("query.told", 2**40),
    ),
    "the largest doubling": (
        put("mechanism.strategy", {"kind": "strategy.doubling", "version": 1, "first": 2, "blocks": 16, "bits": 40}),
        put("query.horizon", 2 * (2**16 - 1)),
    ),
    "a pattern without end": (put("mechanism.pattern.times", 10**79), put("mechanism.pattern.separation", 10**79)),
    "no noise": (put("mechanism.noise", f"1/{10**1900}"),),
    "a row of huge numbers": (
        put("mechanism.strategy", {"kind": "strategy.rows", "version": 1, "bits": 0, "rows": [[10**79], [1, 10**79]]}),
    ),
}


@pytest.mark.parametrize("long", LONG)
def test_no_document_makes_a_reader_wait(long: str) -> None:
    document = forged(closed("buffers"), *LONG[long])
    begun = time.process_time()
    assert not holds(document)
    assert time.process_time() - begun < 5


@pytest.mark.parametrize("size", [256, pytest.param(1024, marks=pytest.mark.long)])
def test_written_rows_are_read_in_time(size: int) -> None:
    rows = [[1 + place] * (place + 1) for place in range(size)]
    strategy = put("mechanism.strategy", {"kind": "strategy.rows", "version": 1, "bits": 0, "rows": rows})
    document = forged(closed("buffers"), strategy, put("query.horizon", size))
    begun = time.process_time()
    assert not holds(document)
    assert time.process_time() - begun < 15


def test_noise_that_leaves_no_room_is_refused_before_it_is_charged() -> None:
    vault = Vault(unit=EVENT, budget=sf.Budget(epsilon=1, delta=1e-6), name="er")
    stream = vault.stream(name="er", version="1", horizon=8, bounds=(0, 10**6), max_per_event=10**6)
    with pytest.raises(errors.Refused, match="leaves room in 64 bits"):
        stream.running_total(strategy="increments").open(epsilon=Fraction(1, 10**6), delta=1e-9)
    assert vault.spent == sf.Budget.none()


@pytest.mark.parametrize(("method", "order"), [("basic", None), ("zcdp", None), ("rdp", 16)])
def test_streams_that_overlap_are_charged_to_every_kind_of_account(
    tmp_path: Path, method: str, order: int | None
) -> None:
    """Two streams and a watch at once, their steps interleaved: the account holds the sum from the start."""
    home = sqlite_home(tmp_path)
    ledger = home.create()
    cap = sf.Budget(epsilon=8, delta="1/1000000")
    ledger.declare_population("all", unit=EVENT, cap=cap, reason="test")
    ledger.declare_dataset(Dataset(name="er", edition="1"), population="all", cap=cap)
    ledger.open_account("er", unit=EVENT, cap=cap, reason="test", method=method, order=order)
    vault = Vault(unit=EVENT, ledger=ledger, account="er")
    stream = vault.stream(name="er", version="1", horizon=8)
    totals = [stream.running_total(strategy="square root").open(epsilon=1, delta=1e-7) for _ in range(2)]
    watch = stream.alarms(threshold=50, alarms=1).open(epsilon="1/2")
    before = ledger.balance("er")
    for value in (1, 2, 3):
        for total in totals:
            total.add(value)
        watch.check(value)
    for running in (watch, *totals):
        assert verify(running.close().certificate.document, key=ledger.key.public_text).authenticated
    after = ledger.balance("er")
    assert (after.epsilon_spent, after.filter_spent) == (before.epsilon_spent, before.filter_spent)
    assert after.epsilon_spent == Fraction(5, 2)
    if method == "zcdp":  # ρ = L/(2σ²) for each stream, ε²/2 for the watch
        alone = totals[0]._opened.priced.event
        assert after.filter_spent is not None
        assert after.filter_spent >= 2 * alone.l2_squared / (2 * alone.sigma_squared) + Fraction(1, 8)
    assert ledger.verify() == ()
