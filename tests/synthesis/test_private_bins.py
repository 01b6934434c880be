"""Bins that are chosen by private quantiles: charges add up to the ε that was asked for, and edges follow the data."""

from contextlib import closing
from dataclasses import replace
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidInput, Refused
from sfumato.reports.verify import verify
from sfumato.synthesis.columns import BinnedColumn
from sfumato.tables import Table
from sfumato.tables.private_bins import FOR_BINS, PrivatelyBinned, edges_of, rounded
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.vault import Vault
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, furnished, sqlite_home

ROWS = 2_000
BOUNDS: dict[str, Any] = {
    "stay": (1, 365),
    "cost": (0, 1_000_000),
    "admitted": (date(2026, 1, 1), date(2026, 12, 31)),
}


def stays(rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(5)
    sex = draw.integers(0, 2, rows)
    return pa.table(
        {
            "id": draw.integers(0, rows // 2, rows),
            "sex": np.array(["F", "M"])[sex],
            "stay": np.ceil(draw.exponential(4 + 4 * sex)).astype(np.int64),
            "cost": draw.lognormal(7, 1, rows),
            "admitted": pa.array(20_454 + draw.integers(0, 31, rows).astype(np.int32)).cast(pa.date32()),
        }
    )


def world(budget: Any = None, unit: Any = None, limit: Any = None) -> tuple[Vault, Table]:
    vault = sf.Vault(
        unit=unit or sf.record(relation="add/remove"),
        budget=budget or sf.Budget(epsilon=100, delta="1/1000000"),
        name="trial",
    )
    return vault, vault.table(stays(), name="stays", version="1", keys={"sex": ["F", "M"]}, bounds=BOUNDS, limit=limit)


@pytest.mark.parametrize("epsilon", ["1", "7/3"])
def test_all_charges_add_up_to_the_epsilon_that_was_asked_for(epsilon: str, tmp_path: Any) -> None:
    vault, table = world()
    bins = {"stay": sf.QuantileBins(6), "cost": sf.QuantileBins(4, share="1/8"), "admitted": sf.QuantileBins(3)}
    made = table.synthesize(epsilon=epsilon, delta="1/10000000", rows=500, bins=bins)
    whole = Fraction(epsilon)
    assert vault.spent == made.spend
    assert (made.spend.epsilon, made.spend.delta) == (whole, 0)  # of four columns Laplace noise is smaller
    amounts = [each.statement.spend.epsilon for each in made.bins]
    assert amounts == [whole * FOR_BINS / 2, whole / 8, whole * FOR_BINS / 2]
    assert made.release.statement.spend.epsilon == whole - sum(amounts)
    kinds = [type(each.statement.query) for each in (*made.bins, made.release)]
    assert kinds == [Quantiles, Quantiles, Quantiles, WeightedMarginals]
    assert all(verify(each.certificate.document).consistent for each in (*made.bins, made.release))
    named = (
        parquet.read_schema(made.to_parquet(tmp_path / "rows.parquet")).metadata[b"sfumato.releases_before"].decode()
    )
    assert named.split(",") == [each.statement.identifier for each in made.bins]
    for text in (made.explain(), made.explain("zh")):
        assert "3" in text
        assert str(made.spend) in text
    # Asked again, everything comes from storage: the same rows, and nothing is charged.
    again = table.synthesize(epsilon=epsilon, delta="1/10000000", rows=500, bins=bins)
    assert again.rows == made.rows
    assert vault.spent.epsilon == whole


def test_edges_lie_where_the_rows_are() -> None:
    """Bins of one width put all costs into the first of 16 bins; those of quantiles do not."""
    _, table = world()
    plain = table.synthesize(["sex", "cost"], epsilon=4, rows=ROWS).rows["cost"]
    chosen = table.synthesize(["sex", "cost"], epsilon=4, rows=ROWS, bins={"cost": sf.QuantileBins(8)})
    truth = np.median(stays()["cost"].to_numpy())
    assert pc.approximate_median(plain).as_py() > 10 * truth
    assert abs(pc.approximate_median(chosen.rows["cost"]).as_py() / truth - 1) < 0.3
    days = table.synthesize(["sex", "admitted"], epsilon=5, rows=ROWS, bins={"admitted": sf.QuantileBins(6)}).rows
    first = pc.sum(pc.less_equal(days["admitted"], date(2026, 2, 1))).as_py()
    assert first > 0.8 * ROWS


def test_persons_with_several_rows_are_protected_in_every_charge() -> None:
    unit, limit = sf.user("id", relation="replace"), sf.Limit(groups=1, rows_per_group=2)
    vault, table = world(unit=unit, limit=limit)
    made = table.synthesize(["sex", "stay"], epsilon=3, rows=100, bins={"stay": sf.QuantileBins(3)})
    assert [each.statement.limit for each in (*made.bins, made.release)] == [limit, limit]
    assert vault.spent.epsilon == 3
    other = table.with_limit(sf.Limit(groups=1, rows_per_group=1))
    other.synthesize(["sex", "stay"], epsilon=2, rows=100, bins={"stay": sf.QuantileBins(3)})
    assert vault.spent.epsilon == 5


BINS = {"stay": sf.QuantileBins(4)}
FEW = ["sex", "stay"]


@pytest.mark.parametrize(
    ("budget", "spend"),
    [
        (sf.Budget(epsilon=1), {"epsilon": "11/10"}),
        (sf.Budget(epsilon="1/2"), {"epsilon": 1}),  # the edges alone fit: a tenth of it
        (sf.Budget(epsilon="1/10"), {"epsilon": 1}),
        (sf.Budget(epsilon=1), {"epsilon": 1, "delta": "1/1000"}),
    ],
    ids=str,
)
def test_nothing_is_charged_where_all_charges_together_do_not_fit(budget: sf.Budget, spend: dict[str, Any]) -> None:
    vault, table = world(budget=budget)
    with pytest.raises(BudgetExceeded, match="Nothing was read and nothing was spent") as caught:
        table.synthesize(**spend, rows=100, bins=BINS)
    assert "asked for together" in caught.value.__notes__[0]
    assert vault.spent == sf.Budget.none()


def test_a_vault_kept_in_rho_has_no_private_bins() -> None:
    vault, table = world(budget=sf.Budget(rho=1))
    with pytest.raises(Refused, match="kept in ρ"):
        table.synthesize(epsilon="1/2", rows=100, bins=BINS)
    assert vault.spent.rho == 0


@pytest.mark.parametrize("level", ["department", "project", "dataset", "population"])
def test_every_balance_of_a_ledger_is_asked_about_both_charges(level: str, tmp_path: Any) -> None:
    """What the account has left says nothing of data and people that others draw on too."""
    caps: dict[str, Any] = {level: sf.Budget(epsilon="1/2")}
    with closing(furnished(sqlite_home(tmp_path), **caps)) as ledger:
        vault = sf.Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT, population=500)
        rows = stays().rename_columns(["patient_id", *stays().column_names[1:]])
        limit = sf.Limit(groups=1, rows_per_group=1)
        given: dict[str, Any] = {"keys": {"sex": ["F", "M"]}, "bounds": BOUNDS, "limit": limit}
        table = vault.table(rows, name=VISITS.name, version=VISITS.edition, **given)
        asked = table.synthesis(FEW, rows=100, bins=BINS)
        with pytest.raises(BudgetExceeded):
            asked.release(epsilon=1)
        assert vault.spent == sf.Budget.none()
        made = asked.release(epsilon="1/2", idempotency="night")
        assert vault.spent == made.spend == sf.Budget(epsilon="1/2")
        assert asked.release(epsilon="1/2", idempotency="night").rows == made.rows
        assert vault.spent == made.spend


def test_asked_again_nothing_is_charged_though_nothing_is_left() -> None:
    vault, table = world(budget=sf.Budget(epsilon=1))
    made = table.synthesize(FEW, epsilon=1, rows=100, bins=BINS)
    assert vault.left == sf.Budget.none()
    assert table.synthesize(FEW, epsilon=1, rows=100, bins=BINS).rows == made.rows
    with pytest.raises(BudgetExceeded):
        table.synthesis(FEW, rows=100, bins=BINS).release(epsilon=1, fresh=True)
    # Edges that are paid for leave the tables as the only charge.
    vault, table = world(budget=sf.Budget(epsilon=1))
    asked = table.synthesis(FEW, rows=100, bins=BINS)
    assert isinstance(asked, PrivatelyBinned)
    question, amount = asked.questions(epsilon=1)["stay"]
    question.release(epsilon=amount)
    assert asked.release(epsilon=1).spend == vault.spent == sf.Budget(epsilon=1)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sex": sf.QuantileBins(4)}, "has keys and no bounds"),
    ({"sx": sf.QuantileBins(4)}, "none of the columns"),
    ({"stay": sf.QuantileBins(4, share="2/5"), "cost": sf.QuantileBins(4, share="2/5")}, "more than half"),
]


@pytest.mark.parametrize(("bins", "words"), WRONG, ids=str)
def test_what_makes_no_sense_is_refused_before_anything_is_read(bins: dict[str, Any], words: str) -> None:
    vault, table = world()
    with pytest.raises(sf.errors.SfumatoError, match=words) as caught:
        table.synthesize(epsilon=1, rows=100, bins=bins)
    assert "nothing was" in str(caught.value).lower()
    for number in (1, True, 65, 2.5):
        with pytest.raises(InvalidInput, match="from 2 to 64"):
            sf.QuantileBins(number)  # type: ignore[arg-type]
    two = table.with_bounds(stay=(1, 2))
    with pytest.raises(InvalidInput, match="two values at most"):
        two.synthesize(epsilon=1, rows=100, bins={"stay": sf.QuantileBins(4)})
    assert vault.spent == sf.Budget.none()


def test_plans_read_nothing_and_know_the_part_of_epsilon() -> None:
    vault, table = world()
    asked = table.synthesis(rows=5_000, bins={"stay": sf.QuantileBins(6)})
    assert isinstance(asked, PrivatelyBinned)
    assert asked.left(2) == Fraction(9, 5)
    (question, amount) = asked.questions(epsilon=2)["stay"]
    assert amount == Fraction(1, 5)
    assert question.query.names == ("p16_6667", "p33_3333", "median", "p66_6667", "p83_3333")
    assert asked.plan(epsilon=1).tables
    with pytest.raises(InvalidInput, match="several questions"):
        asked.question(epsilon=1)
    assert vault.spent == sf.Budget.none()


def test_edges_are_never_none_and_never_the_same() -> None:
    """Whatever quantiles come out there are two bins at least; equal ones are one edge."""
    _, table = world()
    release = table.quantiles("stay", [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]).release(epsilon=50)
    for low, high, whole in ((1, 365, True), (1, 365, False), (400, 402, True), (-9, 0, True), (500, 700, False)):
        column = BinnedColumn(name="stay", edges=(Fraction(low), Fraction(high)), whole=whole)
        edges = edges_of(column, release)
        assert edges
        assert edges == sorted(set(edges))  # type: ignore[type-var]
        assert all(low < edge < high for edge in edges)  # type: ignore[operator]
    assert rounded(Fraction(123_456), Fraction(10**6)) == 123_000
    assert rounded(Fraction(1, 3), Fraction(1)) == Fraction(333, 1_000)


def test_what_the_tables_would_be_refused_for_is_refused_before_the_edges_are_paid_for() -> None:
    vault, table = world()
    lacking = table.with_keys(nothing=["a", "b"])
    with pytest.raises(InvalidInput, match="no column 'nothing'"):
        lacking.synthesize(["nothing", "stay"], epsilon=1, rows=10, bins={"stay": sf.QuantileBins(3)})
    assert vault.spent == sf.Budget.none()


def test_an_error_after_the_edges_were_paid_for_says_so() -> None:
    """Others may charge the account between the two charges."""
    vault, table = world(budget=sf.Budget(epsilon=1))
    asked = table.synthesis(rows=10, bins={"stay": sf.QuantileBins(3)})
    assert isinstance(asked, PrivatelyBinned)
    whole = asked.with_edges

    def meanwhile(edges: Any) -> Any:
        table.count().release(epsilon="1/2")
        return whole(edges)

    with pytest.raises(BudgetExceeded) as caught:
        replace(asked, with_edges=meanwhile).release(epsilon=1)
    assert "chosen before it, for ε = 1/10" in caught.value.__notes__[0]
    assert vault.spent == sf.Budget(epsilon="6/10")
