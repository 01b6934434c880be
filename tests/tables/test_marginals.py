"""Sets of contingency tables: one charge, one sensitivity for all of them, each cell with its name."""

from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.mechanisms import Laplace
from sfumato.reports.verify import verify
from sfumato.tables import Table
from sfumato.tables.queries.marginals import Marginals
from sfumato.vault import Vault

EXACTLY = 10_000  # an ε at which noise is 0 but for a chance below e^-1000
ROWS = [("F", "young", True), ("F", "old", True), ("M", "old", False), ("M", "old", True), ("X", "old", True)]


def world(unit: Any = None, limit: Any = None) -> tuple[Vault, Table]:
    vault = sf.Vault(unit=unit or sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10**6), name="trial")
    columns = dict(zip(("sex", "age", "ill"), (list(column) for column in zip(*ROWS, strict=True)), strict=True))
    keys = {"sex": ["F", "M"], "age": ["young", "old"], "ill": [True, False]}
    return vault, vault.table(
        pa.table({"id": [1, 1, 2, 3, 3], **columns}), name="v", version="1", keys=keys, limit=limit
    )


def test_every_table_is_counted_and_named() -> None:
    vault, table = world()
    release = table.marginals(["sex"], ["age", "ill"], "ill").release(epsilon=EXACTLY)
    assert release.to_arrow().select(["marginal", "cell", "count"]).to_pylist() == [
        {"marginal": "sex", "cell": "F", "count": 2},
        {"marginal": "sex", "cell": "M", "count": 2},
        {"marginal": "age × ill", "cell": "young · True", "count": 1},
        {"marginal": "age × ill", "cell": "young · False", "count": 0},
        {"marginal": "age × ill", "cell": "old · True", "count": 3},
        {"marginal": "age × ill", "cell": "old · False", "count": 1},
        {"marginal": "ill", "cell": "True", "count": 4},
        {"marginal": "ill", "cell": "False", "count": 1},
    ]
    assert verify(release.certificate.document).consistent
    assert vault.spent == sf.Budget(epsilon=EXACTLY)
    assert release["count"].at(marginal="sex").values == (2, 2)
    assert release["count"].at(marginal="ill", cell="False").values == (1,)


def test_filters_hold_for_every_table() -> None:
    _, table = world()
    release = table.where(sf.col("ill") == True).marginals(["sex"], ["age"]).release(epsilon=EXACTLY)  # noqa: E712
    assert release.values == (2, 1, 1, 3)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("unit", "limit", "l1", "l2"),
    [
        (sf.record(relation="add/remove"), None, 3, 3),
        (sf.record(relation="replace"), None, 6, 6),
        (sf.user("id", relation="add/remove"), sf.Limit(groups=1, rows_per_group=2), 6, 12),
        (sf.user("id", relation="add/remove"), sf.Limit(groups=2, rows_per_group=2), 12, 24),
        (sf.family(2, "id", relation="add/remove"), sf.Limit(groups=1, rows_per_group=2), 12, 48),
    ],
    ids=str,
)
def test_what_a_unit_moves_adds_up_over_the_tables(unit: Any, limit: Any, l1: int, l2: int) -> None:
    _, table = world(unit, limit)
    question = table.marginals(["sex"], ["age"], ["sex", "age"])
    claim = question.query.sensitivity(unit, limit)
    assert claim.l1 is not None
    assert claim.l2 is not None
    assert (claim.l1.value, claim.l2.squared) == (l1, l2)
    mechanism = question.release(epsilon=1).statement.mechanism
    assert isinstance(mechanism, Laplace)
    assert mechanism.scale == l1


def test_the_limit_is_kept_in_each_table_by_itself() -> None:
    """Person 1 is young once and old once, and F both times: one group of each table is kept."""
    _, table = world(sf.user("id", relation="add/remove"), sf.Limit(groups=1, rows_per_group=2))
    release = table.marginals(["sex"], ["age"]).release(epsilon=EXACTLY)
    assert release.values[:2] == (2, 2)
    assert sum(release.values[2:]) == 1 + 1 + 2


def test_preview_and_price_are_those_of_counts() -> None:
    vault, table = world()
    question = table.marginals(["sex"], ["age"])
    preview = question.preview(epsilon=1)
    assert preview.numbers == 4
    assert preview.margin == preview.mechanism.law.margin("0.95")
    assert preview.joint_margin == preview.mechanism.law.margin("0.95", numbers=4)
    found = question.epsilon_for(margin=10)
    assert question.preview(epsilon=found).margin <= 10
    assert question.epsilon_for(margin=10, joint=True) > found
    assert vault.spent == sf.Budget(epsilon=0)


@pytest.mark.parametrize("tables", [(), ([],), (["sex"], []), (["sex"], ["sex"]), (["sex", "sex"],)])
def test_lists_that_make_no_sense_are_refused(tables: Any) -> None:
    with pytest.raises(InvalidInput, match="nothing was done"):
        world()[1].marginals(*tables)


def test_columns_must_be_declared_and_groups_left_out() -> None:
    _, table = world()
    with pytest.raises(NotDeclared, match="'id' are not declared"):
        table.marginals(["sex"], ["id"])
    with pytest.raises(InvalidInput, match="Leave group_by"):
        table.group_by("sex").marginals(["age"])
    with pytest.raises(InvalidInput, match="must not be called count"):
        table.with_keys(count=[1]).marginals(["count"])


def test_it_is_a_query_of_its_own_order() -> None:
    _, table = world()
    query = table.marginals(["sex"], ["age"]).query
    assert isinstance(query, Marginals)
    assert (query.size, query.measure, query.names) == (4, "count", ("count",))
    assert table.marginals(["age"], ["sex"]).query != query
