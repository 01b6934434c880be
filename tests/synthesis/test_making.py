"""From noisy tables to rows: near the tables, within the rules, and the same each time."""

from datetime import date
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import InvalidInput
from sfumato.synthesis import row_search
from sfumato.synthesis.columns import BinnedColumn, ListedColumn, equal_bins, in_order
from sfumato.synthesis.making import Made, made_rows, nothing_forbidden
from sfumato.synthesis.measured import Layout, MeasuredTable, one_way, total_of
from sfumato.synthesis.mixture import fitted

LAYOUT = Layout((3, 4, 2, 5))
ROWS = 4_000


def people(rows: int = ROWS) -> NDArray[np.int64]:
    """Rows in which every column depends on the first."""
    random = np.random.default_rng(7)
    first = random.integers(0, 3, rows)
    noisy = [(first + (random.random(rows) < 0.3) * random.integers(0, size, rows)) % size for size in (4, 2, 5)]
    return np.stack([first, *noisy], axis=1)


def counted(rows: NDArray[np.int64], table: tuple[int, ...]) -> NDArray[np.float64]:
    shape = [LAYOUT.sizes[place] for place in table]
    cells = np.ravel_multi_index(list(rows[:, table].T), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape).astype(float)


def measured(number: int, sigma: float, seed: int = 1) -> list[MeasuredTable]:
    random = np.random.default_rng(seed)
    return [
        MeasuredTable(columns=table, counts=found + random.normal(0, sigma, found.shape), sigma=sigma)
        for table in combinations(range(4), number)
        for found in [counted(people(), table)]
    ]


def error(codes: NDArray[np.int32], columns: int) -> float:
    away = []
    for table in combinations(range(4), columns):
        truth, found = counted(people(), table), counted(codes.astype(np.int64), table)
        away.append(np.abs(truth / truth.sum() - found / found.sum()).sum() / 2)
    return float(np.mean(away))


def made(tables: list[MeasuredTable], rows: int = ROWS, seed: int = 3, allowed: object = None) -> Made:
    may = nothing_forbidden(LAYOUT) if allowed is None else allowed
    return made_rows(tables, LAYOUT, rows, may, np.random.default_rng(seed))  # type: ignore[arg-type]


@pytest.mark.parametrize(("number", "two", "three"), [(1, 0.4, 0.6), (2, 0.02, 0.06), (3, 0.02, 0.035)])
def test_rows_are_near_the_tables_that_were_measured(number: int, two: float, three: float) -> None:
    found = made(measured(number, 3.0))
    assert found.codes.shape == (ROWS, 4)
    assert error(found.codes, 1) < 0.01
    assert error(found.codes, 2) < two
    assert error(found.codes, 3) < three
    assert (found.misfit is None) == (number == 1)


def test_columns_that_were_measured_alone_are_independent() -> None:
    found = made(measured(1, 0.01))
    assert error(found.codes, 2) > 0.1
    assert error(found.codes, 1) < 0.001


def test_the_search_brings_rows_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    near = made(measured(2, 3.0))
    monkeypatch.setattr(row_search, "PASSES", 0)
    drawn = made(measured(2, 3.0))
    assert near.distance is not None
    assert drawn.distance is not None
    assert near.distance < 0.5 * drawn.distance


def test_a_fit_that_goes_on_fits_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that are independent of each other, with much noise: the fit that stops in time is much nearer."""
    random = np.random.default_rng(8)
    rows = np.stack([random.integers(0, size, ROWS) for size in LAYOUT.sizes], axis=1)
    tables = [
        MeasuredTable(columns=table, counts=truth + random.normal(0, 60, truth.shape), sigma=60.0)
        for table in combinations(range(4), 2)
        for truth in [counted(rows, table)]
    ]

    def away() -> tuple[float, float]:
        mixture = fitted(tables, LAYOUT, np.random.default_rng(0))
        far = 0.0
        for table in tables:
            one, two = (LAYOUT.parts[place] for place in table.columns)
            far += np.abs(mixture.pairs[one, two] - counted(rows, table.columns) / ROWS).sum()
        return far, mixture.misfit

    stopped, misfit = away()
    monkeypatch.setattr("sfumato.synthesis.mixture.stopping_at", lambda tables, total: 0.0)
    on, lower = away()
    assert lower < 0.8 * misfit
    assert stopped < 0.7 * on


def test_the_same_release_gives_the_same_rows_and_any_number_of_them() -> None:
    tables = measured(2, 5.0)
    once = made(tables, 500).codes
    assert (once == made(tables, 500).codes).all()
    assert (once != made(tables, 500, seed=4).codes).any()
    for rows in (1, 1_007):
        assert made(tables, rows).codes.shape == (rows, 4)


def test_declared_rules_hold_in_every_row() -> None:
    allowed = nothing_forbidden(LAYOUT)
    starts = LAYOUT.starts
    for one, two in ((starts[0] + 1, starts[2]), (starts[1] + 2, starts[3] + 4)):
        allowed[one, two] = allowed[two, one] = False
    for number in (1, 2, 3):
        codes = made(measured(number, 5.0), 900, allowed=allowed).codes
        assert not ((codes[:, 0] == 1) & (codes[:, 2] == 0)).any()
        assert not ((codes[:, 1] == 2) & (codes[:, 3] == 4)).any()
        assert (codes[:, 0] == 1).any()
    allowed[LAYOUT.parts[0], LAYOUT.parts[1]] = allowed[LAYOUT.parts[1], LAYOUT.parts[0]] = False
    with pytest.raises(InvalidInput, match="keeps all declared rules"):
        made(measured(2, 5.0), 50, allowed=allowed)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_tables_that_say_nothing_make_rows_all_the_same(number: int) -> None:
    for factor in (-1.0, 0.0):
        tables = [
            MeasuredTable(columns=each.columns, counts=factor * each.counts, sigma=50.0)
            for each in measured(number, 1.0)
        ]
        codes = made(tables, 50).codes
        assert (codes >= 0).all()
        assert (codes < np.array(LAYOUT.sizes)).all()


def test_totals_and_shares_are_taken_from_all_tables() -> None:
    tables = measured(2, 5.0)
    assert abs(total_of(tables) - ROWS) < 40
    shares = one_way(tables, LAYOUT)
    for column, part in enumerate(LAYOUT.parts):
        assert abs(shares[part].sum() - 1) < 1e-12
        assert np.abs(shares[part] - counted(people(), (column,)) / ROWS).max() < 0.01


def test_values_are_drawn_inside_their_bins() -> None:
    random = np.random.default_rng(2)
    age = BinnedColumn(name="age", edges=tuple(map(Fraction, (0, 18, 65, 120))), whole=True, missing=True)
    codes = np.array([0, 1, 2, 3] * 500, dtype=np.int32)
    drawn = age.drawn(codes, random)
    for cell, (low, high) in enumerate([(0, 17), (18, 64), (65, 120)]):
        some = drawn[codes == cell]
        assert (some.min(), some.max()) == (low, high)
    assert age.arrow(codes, drawn).null_count == 500
    weight = BinnedColumn(name="kg", edges=(Fraction(0), Fraction(5, 2), Fraction(4)), whole=False)
    real = weight.drawn(np.array([0, 1] * 500, dtype=np.int32), random)
    assert (real[::2] <= 2.5).all()
    assert (real[1::2] >= 2.5).all()
    day = BinnedColumn(
        name="day",
        edges=tuple(Fraction(date(2026, month, 1).toordinal()) for month in (1, 2, 3)),
        whole=True,
        days=True,
    )
    days = day.arrow(codes[:2], day.drawn(codes[:2], random)).to_pylist()
    assert [each.month for each in days] == [1, 2]


def test_cells_of_a_list_are_its_values() -> None:
    listed = ListedColumn(name="ill", values=(True, False), missing=True)
    assert listed.arrow(np.array([1, 2, 0], dtype=np.int32)).to_pylist() == [False, None, True]


def test_equal_bins_leave_no_number_out() -> None:
    for low, high, bins in ((0, 9, 4), (17, 101, 17), (0, 1, 16), (-5, 5, 3)):
        edges = equal_bins(Fraction(low), Fraction(high), bins, whole=True)
        column = BinnedColumn(name="x", edges=edges, whole=True)
        ends = [column.ends(cell) for cell in range(column.bins)]
        assert [end for pair in ends for end in range(int(pair[0]), int(pair[1]) + 1)] == list(range(low, high + 1))


def test_the_larger_value_is_at_least_the_smaller() -> None:
    random = np.random.default_rng(5)
    one = BinnedColumn(name="died", edges=tuple(map(Fraction, (0, 30, 60, 90))), whole=True, missing=True)
    two = BinnedColumn(name="age", edges=tuple(map(Fraction, (0, 45, 90))), whole=True)
    codes = np.array([(1, 0), (1, 1), (2, 1), (0, 0), (3, 1)] * 400, dtype=np.int32)
    values = {place: column.drawn(codes[:, place], random) for place, column in enumerate((one, two))}
    assert (values[0] < values[1])[codes[:, 0] < 3].any()
    in_order((one, two), codes, values, [(0, 1)])
    known = codes[:, 0] < 3
    assert (values[0] >= values[1])[known].all()
    for place, column in enumerate((one, two)):
        ends = np.array([*(column.ends(cell) for cell in range(column.bins)), (0, 200)])[codes[:, place]]
        assert ((values[place] >= ends[:, 0]) & (values[place] <= ends[:, 1]))[known].all()
