"""Bugs that were planted on purpose: the fuzzer finds each of them.

Some are bugs of the grammar as other libraries had them, some of the limits, some of the claims. Where nothing but the
law of neighbours may tell, what is worked out by hand is not asked. Groups that are chosen by what others do need more
people than the fuzzer draws; ``test_count_neighbours.py`` has them.
"""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from sfumato.core.limits import Limit
from sfumato.core.units import Relation, record
from sfumato.engines import bounded
from sfumato.engines.bounded import Share, totals_by_cell
from sfumato.engines.compile import _Compiler
from sfumato.engines.dialects.duckdb import DuckDB
from sfumato.engines.expressions import Cut, Type, col
from sfumato.engines.lattice import Lattice
from sfumato.engines.operands import Operand
from sfumato.engines.sufficient_statistics import Powers
from sfumato.tables import statistic_plan
from sfumato.tables.contribution import Contribution, Move, contribution, joint_reach
from sfumato.tables.queries import aggregate, count
from sfumato.tables.statistic_plan import _reach
from tests.laws import fuzzing
from tests.laws.fuzzing import Batch, Moved, Wrong, judge, round_of
from tests.laws.plans import engine
from tests.laws.readings import Escaped
from tests.laws.scenarios import share_for

pytestmark = pytest.mark.no_cover  # thousands of plans: measuring coverage would double their time

FEW = 5  # plans to a batch: what is planted shows in any of them
ROUNDS = 25  # of eight or nine batches
Patch = pytest.MonkeyPatch


@cache
def prepared(start: int) -> list[Batch]:
    """Batches that every bug is looked for in; drawn once, and the same each time."""
    return round_of(start, FEW)


def hunt(rounds: int = ROUNDS) -> int:
    """Judge one batch after the other; raises at the first that fails. The number of plans judged."""
    return sum(judge(batch) for start in range(rounds) for batch in prepared(start))


def found_by_the_law(patch: Patch) -> str:
    """What the law of neighbours says, nothing being worked out by hand."""
    patch.setattr(fuzzing, "compare", lambda batch, answers: None)
    with pytest.raises(Moved) as told:
        hunt()
    return str(told.value)


asked_as_it_is = cache(fuzzing.asked)


@pytest.fixture
def same_answers(monkeypatch: Patch) -> None:
    """Where nothing but a claim is wrong, the engine is asked about each batch once for all such claims."""
    monkeypatch.setattr(fuzzing, "asked", asked_as_it_is)


def world_of(compiler: _Compiler) -> str:
    """The column that tells datasets apart, under whatever name the plan has given it."""
    return next(name for name in compiler.table.columns if name.endswith("world"))


@pytest.mark.long
@pytest.mark.usefixtures("same_answers")
def test_without_a_planted_bug_the_same_hunt_finds_nothing() -> None:
    assert hunt(rounds=1) > 5 * FEW


# ---------------------------------------------------------------------------------------------------- the grammar


@pytest.mark.long
def test_a_cast_that_forgets_what_it_could_not_read_is_found(monkeypatch: Patch) -> None:
    true = _Compiler._cast

    def planted(self: _Compiler, part: Operand, to: Type) -> Operand:
        return replace(true(self, part, to), missing=part.missing)

    monkeypatch.setattr(_Compiler, "_cast", planted)
    with pytest.raises(Wrong):
        hunt()


def test_a_cast_that_fails_is_found(monkeypatch: Patch) -> None:
    def planted(self: _Compiler, part: Operand, to: Type) -> Operand:
        return Operand(type=to, value=part.value.cast("int64" if to is Type.WHOLE else "float64"), missing=part.missing)

    monkeypatch.setattr(_Compiler, "_cast", planted)
    with pytest.raises((duckdb.ConversionException, Wrong)):
        hunt()


@pytest.mark.long
def test_a_cast_that_fails_for_other_rows_too_is_found(monkeypatch: Patch) -> None:
    import ibis

    true = _Compiler._cast

    def planted(self: _Compiler, part: Operand, to: Type) -> Operand:
        found = true(self, part, to)
        if found.missing is None or part.type is not Type.TEXT:
            return found
        failed = found.missing.cast("int64").sum().over(ibis.window(group_by=world_of(self)))
        return replace(found, missing=found.missing | (failed % 2 == 1), plain=None)

    monkeypatch.setattr(_Compiler, "_cast", planted)
    found_by_the_law(monkeypatch)


@pytest.mark.long
def test_a_cut_that_puts_nan_into_a_bin_is_found(monkeypatch: Patch) -> None:
    true = _Compiler._cut
    monkeypatch.setattr(_Compiler, "_cut", lambda self, node: replace(true(self, node), missing=None))
    with pytest.raises(Wrong):
        hunt()


@pytest.mark.long
def test_a_cut_whose_bins_hang_on_other_rows_is_found(monkeypatch: Patch) -> None:
    import ibis

    true = _Compiler._cut

    def planted(self: _Compiler, node: Cut) -> Operand:
        found = true(self, node)
        if found.missing is None:
            return found
        failed = found.missing.cast("int64").sum().over(ibis.window(group_by=world_of(self)))
        return replace(found, value=ibis.cases((failed % 2 == 1, ibis.literal(node.labels[0])), else_=found.value))

    monkeypatch.setattr(_Compiler, "_cut", planted)
    found_by_the_law(monkeypatch)


# ------------------------------------------------------------------------------------------------------ the limits


@pytest.mark.parametrize("missing", ["rows_per_group", pytest.param("groups", marks=pytest.mark.long)])
def test_a_limit_that_is_not_enforced_is_found(missing: str, monkeypatch: Patch) -> None:
    def planted(kind: str, limit: Limit) -> Share | None:
        return share_for(kind, replace(limit, **{missing: 2**31}))

    monkeypatch.setattr(fuzzing, "share_for", planted)
    found_by_the_law(monkeypatch)


@pytest.mark.long
def test_values_two_steps_beyond_the_bound_are_found(monkeypatch: Patch) -> None:
    true = bounded.on_lattice
    monkeypatch.setattr(bounded, "on_lattice", lambda lattice, given: _beyond(true(lattice, given), lattice))
    found_by_the_law(monkeypatch)


def _beyond(place: Any, lattice: Lattice) -> Any:
    import ibis

    return ibis.ifelse(place == lattice.steps, place + 2, place)


@pytest.mark.long
def test_undeclared_keys_in_a_cell_of_their_own_are_found(monkeypatch: Patch) -> None:
    true = fuzzing.key_column
    monkeypatch.setattr(fuzzing, "key_column", lambda keys: replace(true(keys), other=True))
    with pytest.raises(Escaped):
        hunt()


def test_undeclared_keys_in_the_first_cell_are_found(monkeypatch: Patch) -> None:
    true = bounded.kept_rows

    def planted(table: Any, *, keys: Any, **asked: Any) -> Any:
        kept = true(table, keys=[replace(key, other=True) for key in keys], **asked)
        cell = kept.rows[kept.cell] % max(1, prod(key.size for key in keys))
        return replace(kept, rows=kept.rows.mutate(**{kept.cell: cell}))

    monkeypatch.setattr(bounded, "kept_rows", planted)
    with pytest.raises(Wrong):
        hunt()


@pytest.mark.long
def test_summation_in_single_precision_is_found(monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        bounded, "total", lambda column, _: column.cast("float64").sum().cast("float32").cast("float64")
    )
    found_by_the_law(monkeypatch)


def worlds_at_a_power_of_two() -> pa.Table:
    """2^14 rows whose total is just below 2^54 in world 0, and just above it with one row more in world 1."""
    top, rows = 2**40, 2**14 - 1
    values = [top] * rows + [top // 2 + 6]
    return pa.table(
        {
            "x": pa.array([*values, *values, top], pa.float64()),
            "world": pa.array([0] * len(values) + [1] * (len(values) + 1), pa.int64()),
        }
    )


@pytest.mark.parametrize("broken", [False, True], ids=["whole numbers", "doubles"])
def test_summation_in_double_precision_moves_further_than_the_row(monkeypatch: Patch, *, broken: bool) -> None:
    """Beyond 2^53 doubles are rounded, and near a power of two not all alike: one row of 2^40 moves the sum by more."""
    if broken:
        monkeypatch.setattr(DuckDB, "total", lambda _, column: column.cast("float64").sum())
    engine().con.register("at_a_power_of_two", worlds_at_a_power_of_two())
    lattice = Lattice(value=col("x").node, low=Fraction(0), high=Fraction(2**40), steps=2**40)
    gauge = Powers(lattice=lattice, degree=1)
    table = engine().table("at_a_power_of_two")
    found = totals_by_cell(table, where=None, keys=[], share=None, gauges=[gauge], world="world").to_pyarrow()
    above = dict(zip(found["world"].to_pylist(), found["part1"].to_pylist(), strict=True))
    claim = joint_reach([_reach(gauge)], contribution(record(relation="add/remove"), None), cells=1)
    assert (int(above[1]) - int(above[0]) > claim.linf.value) is broken


# ------------------------------------------------------------------------------------------------------ the claims


@pytest.mark.usefixtures("same_answers")
def test_a_replaced_person_counted_once_is_found(monkeypatch: Patch) -> None:
    def planted(reaches: Any, given: Contribution, *, cells: int) -> Any:
        return joint_reach(reaches, replace(given, relation=Relation.ADD_REMOVE), cells=cells)

    for module in (aggregate, count):
        monkeypatch.setattr(module, "joint_reach", planted)
    assert "under replace" in found_by_the_law(monkeypatch)


@pytest.mark.long
@pytest.mark.usefixtures("same_answers")
def test_a_family_counted_as_one_person_is_found(monkeypatch: Patch) -> None:
    def planted(reaches: Any, given: Contribution, *, cells: int) -> Any:
        return joint_reach(reaches, replace(given, members=1), cells=cells)

    for module in (aggregate, count):
        monkeypatch.setattr(module, "joint_reach", planted)
    assert "family" in found_by_the_law(monkeypatch)


@pytest.mark.long
@pytest.mark.usefixtures("same_answers")
def test_a_bound_off_by_two_is_found(monkeypatch: Patch) -> None:
    def planted(height: int) -> Move:
        return Move(l1=2 * height - 2, l2_squared=2 * height**2, linf=height)

    monkeypatch.setattr(statistic_plan, "_across", planted)
    assert "'l1" in found_by_the_law(monkeypatch)


@pytest.mark.usefixtures("same_answers")
def test_a_bound_half_as_large_is_found(monkeypatch: Patch) -> None:
    def planted(height: int) -> Move:
        return Move(l1=Fraction(height, 2), l2_squared=Fraction(height**2, 4), linf=Fraction(height, 2))

    monkeypatch.setattr(statistic_plan, "_along", planted)
    found_by_the_law(monkeypatch)
