"""A budget in ρ (zero-concentrated privacy): spent exactly to the last rational, in memory and in a ledger."""

from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import sfumato as sf
from sfumato.accounting.filter_cost import filter_cost
from sfumato.core.documents import encode
from sfumato.core.events import DiscreteLaplace
from sfumato.core.guarantees import ZCDP
from sfumato.core.release import Release
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused
from sfumato.reports.verify import verify
from sfumato.tables.table import Table
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, furnished, sqlite_home

ROWS = pa.table({"patient_id": [i // 2 for i in range(40)], "k": ["ab"[i % 2] for i in range(40)]})
LIMIT = sf.Limit(groups=2, rows_per_group=1)
EPSILONS = [Fraction(1, 3), Fraction(1, 7), Fraction(2, 11), Fraction(1, 10)]
ALL = sum((each**2 / 2 for each in EPSILONS), Fraction(0))


def opened(rho: Fraction | str, rows: pa.Table = ROWS) -> tuple[sf.Vault, Table]:
    vault = sf.Vault(unit=PATIENT, budget=sf.Budget(rho=rho), name="clinic")
    return vault, vault.table(rows, name="visits", version="1", limit=LIMIT, keys={"k": ["a", "b"]})


@pytest.mark.parametrize("order", [*permutations(EPSILONS)][::5])
def test_it_is_spent_to_the_last_rational_and_no_further(order: tuple[Fraction, ...]) -> None:
    vault, visits = opened(ALL)
    for epsilon in order:
        visits.count().release(epsilon=epsilon, fresh=True)
    assert vault.spent.rho == vault.budget.rho == ALL
    assert vault.left.rho == vault.left.epsilon == 0
    with pytest.raises(BudgetExceeded, match="has ρ = 0 left; this release asks for ρ"):
        visits.count().release(epsilon="1/1000000000", fresh=True, even_if_useless=True)
    assert vault.spent.rho == ALL, "a refusal changes nothing"


def test_one_part_in_a_trillion_less_does_not_hold_the_last_release() -> None:
    vault, visits = opened(ALL - Fraction(1, 10**12))
    for epsilon in EPSILONS[:-1]:
        visits.count().release(epsilon=epsilon, fresh=True)
    with pytest.raises(BudgetExceeded, match="Nothing was read and nothing was spent"):
        visits.count().release(epsilon=EPSILONS[-1], fresh=True)
    assert vault.left.rho == EPSILONS[-1] ** 2 / 2 - Fraction(1, 10**12)
    assert vault.left.epsilon < EPSILONS[-1]
    visits.count().release(epsilon=vault.left.epsilon, fresh=True)  # what is said to be left does fit


def test_gaussian_noise_adds_its_own_rho() -> None:
    vault, _ = opened("1/2")
    names, limit = [str(place) for place in range(100)], sf.Limit(groups=100, rows_per_group=1)
    asked = vault.table(ROWS, name="many", version="1", limit=limit, keys={"k": names}).group_by("k").count()
    releases = [asked.release(epsilon=1, delta=delta, fresh=True) for delta in (1e-6, 1e-5, 1e-3)]
    assert [each.statement.event.KIND for each in releases] == ["event.gaussian"] * 3
    lost = sum((filter_cost(each.statement.event, None) for each in releases), Fraction(0))
    assert vault.spent.rho == lost
    assert sum(own_rho(each) for each in releases) <= lost, "rounded up where the rational is long, never down"
    assert lost < 3 * Fraction(1, 2), "less than three times ε²/2"
    assert vault.spent.epsilon == ZCDP(rho=lost).epsilon_at(vault.budget.delta) < 3


def own_rho(release: Release) -> Fraction:
    event = release.statement.event
    return event.l2_squared / (2 * event.sigma_squared)  # type: ignore[attr-defined,no-any-return]


def test_what_has_a_delta_of_its_own_is_refused_with_the_way_out() -> None:
    vault, visits = opened("1/2")
    with pytest.raises(Refused, match=r"brings δ = .*Nothing was read and nothing was spent.*budget is one of ε and δ"):
        visits.find_keys("k").release(epsilon=1, delta=1e-6)
    assert vault.spent.rho == 0


def test_certificates_and_texts_state_rho() -> None:
    _, visits = opened("1/2")
    release = visits.count().release(epsilon="1/10")
    assert verify(release.certificate.document).findings == ()
    account = release.statement.account
    assert (account.method, account.filter_cap, account.filter_spent) == ("zcdp", Fraction(1, 2), Fraction(1, 200))
    assert "ρ = 1/200" in release.explain()
    assert "ρ = 1/200" in release.explain("zh")
    assert encode(account.budget) == encode(sf.Budget(rho="1/2").without_rho)


# By brute force, through the path of the product: the whole sequence on neighbours, at every order that is tried.


def divergence(scale: Fraction, shift: int, order: float) -> float:
    """The Rényi divergence of discrete Laplace noise from itself, shifted: summed over the whole numbers around."""
    at = np.arange(-4000, 4001)

    def log(centre: int) -> NDArray[np.float64]:
        weights = -np.abs(at - centre) / float(scale)
        found: NDArray[np.float64] = weights - np.logaddexp.reduce(weights)
        return found

    return float(np.logaddexp.reduce(order * log(0) + (1 - order) * log(shift)) / (order - 1))


def neighbours() -> list[tuple[pa.Table, pa.Table]]:
    """Tables that differ by all rows of one patient."""
    without = ROWS.filter(pa.compute.not_equal(ROWS["patient_id"], 3))
    more = pa.concat_tables([ROWS, pa.table({"patient_id": [99] * 5, "k": list("aabbb")})])
    return [(ROWS, without), (ROWS, more), (without, more.filter(pa.compute.not_equal(more["patient_id"], 3)))]


def exact(rows: pa.Table) -> tuple[int, ...]:
    """What is counted under the limit; at ε = 500 noise has a probability below 1e-200."""
    vault = sf.Vault(unit=PATIENT, budget=sf.Budget(epsilon=500), name="exact")
    table = vault.table(rows, name="visits", version="1", limit=LIMIT, keys={"k": ["a", "b"]})
    return table.group_by("k").count().release(epsilon=500).values


def furthest() -> float:
    """The largest divergence of two releases for neighbours, over its order and the ρ that was charged for them."""
    found = 0.0
    for left, right in neighbours():
        vault, visits = opened("1", left)
        releases = [visits.group_by("k").count().release(epsilon=each, fresh=True) for each in ("1/2", "1/5")]
        shifts = [abs(a - b) for a, b in zip(exact(left), exact(right), strict=True)]
        scales = [each.statement.mechanism.scale for each in releases]  # type: ignore[attr-defined]
        assert vault.spent.rho is not None
        for order in (1.01, 1.5, 2.0, 3.0, 8.0, 64.0):
            lost = sum(divergence(scale, shift, order) for scale in scales for shift in shifts)
            found = max(found, lost / (order * float(vault.spent.rho)))
    return found


def test_what_is_charged_bounds_the_divergence_of_neighbours_at_every_order() -> None:
    """Deterministic: sums over the laws of the noise. A quarter of ρ, as a bounded range would have, is too little."""
    found = furthest()
    assert found <= 1 + 1e-9
    assert 4 * found > 1, "the deliberately broken charge is seen"
    assert isinstance(opened("1")[1].count().release(epsilon=1).statement.event, DiscreteLaplace)


# The ledger holds the same, in the form that its record had before.


def test_an_account_of_a_ledger_can_be_opened_in_rho(tmp_path: Path) -> None:
    ledger = furnished(sqlite_home(tmp_path), project=sf.Budget(rho="1/100", delta=1e-7))
    vault = sf.Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT)
    visits = vault.table(ROWS, name=VISITS.name, version=VISITS.edition, limit=LIMIT)
    for _ in range(2):
        release = visits.count().release(epsilon="1/10", fresh=True)
    balance = ledger.balance(ACCOUNT)
    assert (balance.method, balance.rho, balance.rho_spent) == ("zcdp", Fraction(1, 100), Fraction(1, 100))
    assert balance.cap.delta == Fraction(1, 10**7)
    with pytest.raises(BudgetExceeded, match="has ρ = 0 left"):
        visits.count().release(epsilon="1/1000", fresh=True)
    assert ledger.verify() == ()
    assert verify(release.certificate.document).findings == ()
    ledger.close()


def test_where_the_ledger_cannot_hold_rho_it_says_what_to_do(tmp_path: Path) -> None:
    ledger, rho = furnished(sqlite_home(tmp_path)), sf.Budget(rho=1)
    with pytest.raises(Refused, match="put ρ on the account or on the population"):
        ledger.declare_dataset(sf_dataset(), population="patients", cap=rho)
    with pytest.raises(InvalidInput, match="kept by a zCDP filter"):
        ledger.open_account("clinic", unit=PATIENT, cap=rho, reason="tried", method="rdp", order=20)
    ledger.declare_population("others", unit=PATIENT, cap=rho, reason="tried")
    assert [each.rho for each in ledger.balances() if each.name == "population others"] == [1]
    ledger.close()


def sf_dataset() -> object:
    from sfumato.core.query import Dataset

    return Dataset(name="other", edition="1")


# The amount itself.


def test_a_budget_is_stated_one_way_or_the_other() -> None:
    with pytest.raises(NotDeclared, match="one of the two"):
        sf.Budget()
    with pytest.raises(NotDeclared, match="one of the two"):
        sf.Budget(epsilon=1, rho=1)
    with pytest.raises(InvalidInput, match="delta = 0 must be above 0"):
        sf.Budget(rho=1, delta=0)
    with pytest.raises(InvalidInput, match="rho = -1 must not be below 0"):
        sf.Budget(rho=-1)
    with pytest.raises(InvalidInput, match="too many digits"):
        sf.Budget(rho=Fraction(1, 3**90))
    with pytest.raises(InvalidInput, match="or rho above 0"):
        sf.Vault(unit=PATIENT, budget=sf.Budget(rho=0), name="clinic")
    with pytest.raises(NotDeclared, match="judged against the number of people"):
        sf.Vault(unit=PATIENT, budget=sf.Budget(rho=1, delta="1/10"), name="clinic")


def test_an_amount_of_rho_is_compared_and_never_added_or_written_down_by_itself() -> None:
    half, one = sf.Budget(rho="1/2"), sf.Budget(rho=1)
    assert one.covers(half)
    assert not half.covers(one)
    assert half == sf.Budget(rho="1/2") != half.without_rho
    assert half.epsilon >= ZCDP(rho=Fraction(1, 2)).epsilon_at(half.delta)
    for wrong in (lambda: half + one, lambda: half - half, lambda: half.covers(sf.Budget(epsilon=1))):
        with pytest.raises(InvalidInput, match="added up by the account"):
            wrong()
    with pytest.raises(InvalidInput, match="State this amount as ε and δ"):
        encode(half)
    assert eval(repr(half), {"Budget": sf.Budget}) == half  # noqa: S307 - its own text
    assert str(sf.Budget(epsilon=1, delta=1e-6)) == "ε = 1, δ = 1/1000000"
