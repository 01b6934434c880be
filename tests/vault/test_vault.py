"""Charge before read, store before deliver, and what becomes of a charge when something fails."""

import gc
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.mechanisms import Laplace
from sfumato.noise import Words
from sfumato.noise.sampler import IntArray
from sfumato.tables import Table
from sfumato.vault import Vault

Declare = Callable[..., Table]


class NoNoise:
    """A broken sampler for tests: with it the exact counts under the limit become visible."""

    def __call__(self, scale: Fraction, size: int, words: Words) -> IntArray:
        return np.zeros(size, dtype=np.int64)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.noise.lattice.sample_discrete_laplace", NoNoise())


@pytest.mark.usefixtures("exact")
def test_a_count_by_region_goes_through_the_spine(vault: Vault, declare: Declare) -> None:
    release = declare(vault).where(sf.col("diagnosis") == "ILI").group_by("region").count().release(epsilon="1/2")
    # a: north clipped from 2 to 1, south 1; b has no diagnosis; c: west 1; the row without a person does not count.
    assert release.values == (1, 1, 1, 0)
    assert release.to_arrow().column_names == ["region", "count", "count_data_low", "count_data_high", "limit"]
    assert release.charged == sf.Budget(epsilon=0.5)
    assert vault.spent == sf.Budget(epsilon="1/2")
    assert release.statement.mechanism == Laplace(l1=Fraction(2), scale=Fraction(4))


def test_the_noise_is_really_drawn(vault: Vault, declare: Declare) -> None:
    question = declare(vault, limit=sf.Limit(groups=2, rows_per_group=10)).group_by("region").count()
    draws = {question.release(epsilon="1/100", fresh=True).values for _ in range(5)}
    assert len(draws) == 5  # scale 2000: two equal draws of four numbers have probability below 1e-12


@pytest.mark.claim("S4-01", "S1-01")
def test_the_same_question_again_is_the_stored_answer_at_no_cost(vault: Vault, declare: Declare) -> None:
    table = declare(vault)
    first = table.group_by("region").count().release(epsilon=0.5)
    again = table.group_by("region").count().release(epsilon="1/2")
    assert again.repeated
    assert again.charged == sf.Budget(epsilon=0)
    assert again.values == first.values
    assert vault.left == sf.Budget(epsilon="1/2")


def test_another_epsilon_another_filter_or_fresh_is_another_charge(vault: Vault, declare: Declare) -> None:
    table = declare(vault)
    question = table.group_by("region").count()
    question.release(epsilon="1/8")
    assert not question.release(epsilon="1/16").repeated
    assert not question.release(epsilon="1/8", fresh=True).repeated
    assert not table.where(sf.col("diagnosis") == "ILI").group_by("region").count().release(epsilon="1/8").repeated
    assert vault.spent == sf.Budget(epsilon="7/16")


def test_one_question_in_two_spellings_has_one_stored_answer(vault: Vault, declare: Declare) -> None:
    table = declare(vault)
    ill, north = sf.col("diagnosis") == "ILI", sf.col("region") == "north"
    table.where(ill & north).count().release(epsilon="1/8")
    assert table.where(north).where(ill).count().release(epsilon=0.125).repeated


@pytest.mark.claim("S4-03")
def test_a_tenth_fits_ten_times_and_not_eleven(vault: Vault, declare: Declare) -> None:
    question = declare(vault).count()
    for _ in range(10):
        question.release(epsilon=0.1, fresh=True)
    assert vault.left == sf.Budget(epsilon=0)
    with pytest.raises(errors.BudgetExceeded, match="ε = 0 left; this release asks for ε = 1/10") as refusal:
        question.release(epsilon=0.1, fresh=True)
    assert "Nothing was read and nothing was spent" in str(refusal.value)
    with pytest.raises(errors.BudgetExceeded):
        question.release(epsilon="1/1000000000000000", fresh=True)


def test_nothing_is_read_and_nothing_drawn_when_the_budget_refuses(
    vault: Vault, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = declare(vault).count()
    seen: list[str] = []
    monkeypatch.setattr("sfumato.tables.store.exact_numbers", lambda *_, **__: seen.append("read") or [0])
    monkeypatch.setattr(Laplace, "add_noise", lambda *_: seen.append("drawn") or (0,))
    with pytest.raises(errors.BudgetExceeded):
        question.release(epsilon=2)
    assert seen == []
    assert vault.spent == sf.Budget(epsilon=0)


def test_the_charge_counts_before_the_read_and_the_answer_is_stored_before_delivery(
    vault: Vault, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = declare(vault).count()
    order: list[str] = []
    ledger = vault._ledger
    reserve, commit = ledger.reserve, ledger.commit
    monkeypatch.setattr(ledger, "reserve", lambda cost, **said: order.append("charge") or reserve(cost, **said))
    monkeypatch.setattr(ledger, "commit", lambda *settled: order.append("store") or commit(*settled))
    monkeypatch.setattr("sfumato.tables.store.exact_numbers", lambda *_, **__: order.append("read") or [0])
    monkeypatch.setattr(Laplace, "add_noise", lambda *_: order.append("draw") or (0,))
    question.release(epsilon=0.5)
    assert order == ["charge", "read", "draw", "store"]


def test_an_engine_that_fails_while_reading_keeps_its_charge_and_quotes_nothing(
    vault: Vault, declare: Declare, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> list[int]:
        raise RuntimeError("Could not convert 'Jane Roe' to INT32")

    question = declare(vault).count()
    monkeypatch.setattr("sfumato.tables.store.exact_numbers", fail)
    with pytest.raises(errors.EngineFailed, match="charge of ε = 1/2 is kept") as failure:
        question.release(epsilon=0.5)
    assert vault.spent == sf.Budget(epsilon="1/2")
    assert failure.value.__context__ is None
    assert failure.value.__cause__ is None


def test_a_file_that_is_missing_costs_nothing(vault: Vault, declare: Declare, tmp_path: Path) -> None:
    question = declare(vault, tmp_path / "absent.parquet").count()
    with pytest.raises(errors.EngineFailed, match="nothing was spent"):
        question.release(epsilon=0.5)
    assert vault.spent == sf.Budget(epsilon=0)


def test_preview_and_price_open_no_data(vault: Vault, declare: Declare, tmp_path: Path) -> None:
    question = declare(vault, tmp_path / "absent.parquet").group_by("region").count()
    preview = question.preview(epsilon=0.5)
    assert preview.margin == 12
    assert preview.joint_margin == 17
    assert "Nothing was read or spent" in str(preview)
    epsilon = question.epsilon_for(margin=6, confidence=0.95)
    assert question.preview(epsilon=epsilon).margin <= 6
    assert question.preview(epsilon=epsilon - Fraction(1, 10**4)).margin > 6
    joint = question.epsilon_for(margin=6, confidence=0.95, joint=True)
    assert question.preview(epsilon=joint).joint_margin <= 6 < question.preview(epsilon=epsilon).joint_margin
    assert vault.spent == sf.Budget(epsilon=0)


def test_parallel_spenders_never_exceed_the_budget(vault: Vault, declare: Declare) -> None:
    question = declare(vault).count()
    question.preview(epsilon="1/10")
    outcomes: Counter[str] = Counter()
    start = threading.Barrier(8)

    def spend() -> None:
        start.wait()
        for _ in range(3):
            try:
                question.release(epsilon="1/10", fresh=True)
                outcomes["released"] += 1
            except errors.BudgetExceeded:
                outcomes["refused"] += 1

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {"released": 10, "refused": 14}
    assert vault.left == sf.Budget(epsilon=0)


def test_a_version_names_one_state_of_the_data(vault: Vault, declare: Declare) -> None:
    declare(vault)
    with pytest.raises(errors.Refused, match="new version"):
        declare(vault)
    declare(vault, version="2026-11")
    assert declare(vault, version=None).dataset.edition != declare(vault, version=None).dataset.edition


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_a_record_vault_counts_each_row_once(declare: Declare, relation: str) -> None:
    vault = sf.Vault(unit=sf.record(relation=relation), budget=sf.Budget(epsilon=1), name="rows")
    release = declare(vault, limit=None).group_by("region").count().release(epsilon=1)
    assert release.values == (4, 1, 1, 0)
    assert release.statement.mechanism.scale == (1 if relation == "add/remove" else 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"unit": None}, errors.NotDeclared, "unit"),
        ({"unit": "patient"}, errors.InvalidInput, "unit"),
        ({"budget": None}, errors.NotDeclared, "budget"),
        ({"budget": sf.Budget(epsilon=0)}, errors.InvalidInput, "epsilon above 0"),
        ({"budget": sf.Budget(epsilon=1, delta=1)}, errors.InvalidInput, "delta below 1"),
        ({"name": None}, errors.NotDeclared, "name"),
        ({"key": "absent.pem"}, errors.InvalidInput, "sfumato key new"),
    ],
)
def test_a_vault_that_is_declared_badly(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    good = {"unit": sf.record(relation="replace"), "budget": sf.Budget(epsilon=1), "name": "x"}
    with pytest.raises(error, match=words):
        sf.Vault(**(good | arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"name": None}, errors.NotDeclared, "public name"),
        ({"name": " "}, errors.InvalidInput, "non-empty"),
        ({"keys": {"region": []}}, errors.InvalidInput, "empty"),
        ({"keys": {"region": ["north", 1]}}, errors.InvalidInput, "all text"),
        ({"bounds": {"sbp": (220, 80)}}, errors.InvalidInput, "wrong way round"),
        ({"bounds": {"sbp": (float("nan"), 80)}}, errors.InvalidInput, "not a finite number"),
        ({"data": 7}, errors.Unsupported, "not a source of rows"),
        ({"data": "visits.csv"}, errors.NotDeclared, "does not say what its columns hold"),
        ({"data": "visits.json"}, errors.Unsupported, "not a Parquet file"),
    ],
)
def test_a_table_that_is_declared_badly(
    vault: Vault, declare: Declare, changes: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        declare(vault, **changes)


@pytest.mark.parametrize("unit", [sf.edge(relation="replace"), sf.event(relation="add/remove")])
def test_rows_are_not_protected_under_a_unit_of_graphs_or_streams(unit: object, declare: Declare) -> None:
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=1), name="x")  # type: ignore[arg-type]
    with pytest.raises(errors.Refused, match="not protected"):
        declare(vault, limit=None)


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), True, "many", None])
def test_an_epsilon_that_is_none(vault: Vault, declare: Declare, epsilon: object) -> None:
    with pytest.raises(errors.InvalidInput, match="epsilon"):
        declare(vault).count().release(epsilon=epsilon)  # type: ignore[arg-type]
    assert vault.spent == sf.Budget(epsilon=0)


def test_a_delta_that_promises_nothing(vault: Vault, declare: Declare) -> None:
    with pytest.raises(errors.InvalidInput, match="guarantees nothing"):
        declare(vault).count().release(epsilon=1, delta=1)
    assert vault.spent == sf.Budget(epsilon=0)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda table: table.where(sf.col("diagnosys") == "ILI").count(), "no column 'diagnosys'"),
        (lambda table: table.where(sf.col("diagnosis") == 3).count(), "cannot be compared"),
        (lambda table: table.group_by("year").count(), "no column 'year'"),
        (lambda table: table.group_by("diagnosis").count(), "whole numbers and the column holds text"),
    ],
)
def test_a_question_that_does_not_fit_the_columns_costs_nothing(
    vault: Vault, declare: Declare, build: Callable[[Table], object], words: str
) -> None:
    table = declare(vault, keys={"year": [2025, 2026], "diagnosis": [1, 2]})
    with pytest.raises(errors.InvalidInput, match=words):
        build(table).release(epsilon=0.5)  # type: ignore[attr-defined]
    assert vault.spent == sf.Budget(epsilon=0)


def test_a_unit_column_that_is_missing_or_inexact_costs_nothing(declare: Declare) -> None:
    vault = sf.Vault(unit=sf.user("person", relation="replace"), budget=sf.Budget(epsilon=1), name="x")
    with pytest.raises(errors.InvalidInput, match="the table does not have it"):
        declare(vault).count().release(epsilon=1)
    floats = pa.table({"person": [1.0, float("nan")]})
    with pytest.raises(errors.Unsupported, match="compare exactly"):
        declare(vault, floats, version="2", keys={}).count().release(epsilon=1)
    assert vault.spent == sf.Budget(epsilon=0)


def test_a_question_of_another_vault_is_refused(vault: Vault, declare: Declare) -> None:
    other = sf.Vault(unit=sf.user("patient_id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="other")
    question = declare(vault).count()
    with pytest.raises(errors.InvalidInput, match="holds no dataset"):
        other.release(question.query, sf.Budget(epsilon=1), fresh=False)
    with pytest.raises(errors.Unsupported, match="cannot answer"):
        vault.release("count everything", sf.Budget(epsilon=1), fresh=False)  # type: ignore[arg-type]


def test_what_a_vault_holds_is_let_go_with_it() -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
    table = vault.table(pa.table({"a": [1]}), name="rows", version="1")
    held, store = weakref.ref(vault), weakref.ref(vault._stores["tables"])
    gc.disable()
    try:
        del vault
        assert table._gate is held()  # a table keeps its vault
        del table
        assert held() is None
        assert store() is None
    finally:
        gc.enable()
