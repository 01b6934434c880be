"""The search over rows keeps its books, and many tables are read in one go."""

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.synthesis import row_search
from sfumato.synthesis.bound_columns import BoundColumns
from sfumato.synthesis.making import nothing_forbidden
from sfumato.synthesis.measured import Codes, Layout
from sfumato.synthesis.row_making import ReleasedTable

LAYOUT = Layout((3, 2, 4, 5, 2))
ROWS = 600
THREES = list(combinations(range(5), 3))


def drawn(seed: int) -> Codes:
    random = np.random.default_rng(seed)
    return np.stack([random.integers(0, size, ROWS) for size in LAYOUT.sizes], axis=1).astype(np.int32)


def shares(rows: Codes, table: tuple[int, ...]) -> NDArray[np.float32]:
    shape = [LAYOUT.sizes[column] for column in table]
    cells = np.ravel_multi_index(list(rows[:, table].T), shape)
    counts = np.bincount(cells, minlength=int(np.prod(shape))) / len(rows)
    return counts.reshape(shape).astype(np.float32)


def searching(rows: Codes, allowed: NDArray[np.bool_] | None = None) -> row_search._State:
    """Rows on their way to the tables of others, all tables of two and three columns."""
    may = nothing_forbidden(LAYOUT) if allowed is None else allowed
    aim = drawn(9)
    pairs = LAYOUT.pair_counts(aim) / np.float32(ROWS)
    triples: dict[tuple[int, ...], NDArray[np.float32]] = {table: shares(aim, table) for table in THREES}
    everything = np.ones((5, 5), dtype=np.bool_)
    return row_search._State(rows, pairs, may, LAYOUT, triples, everything)


@pytest.mark.parametrize("together", [False, True])
def test_what_a_move_changes_is_what_the_rows_now_have(together: bool) -> None:
    rows, random = drawn(1), np.random.default_rng(2)
    state = searching(rows)
    before = np.abs(state.threes.excess).sum() + np.abs(state.excess).sum() / 2
    site = BoundColumns(columns=(0, 3), cells=np.unique(rows[:, (0, 3)], axis=0))
    for column in range(5):
        if together:
            state.move_together(rows, site, random)
        else:
            state.move(rows, column, random)
    anew = searching(rows)
    np.testing.assert_allclose(state.excess, anew.excess, atol=1e-3)
    np.testing.assert_allclose(state.threes.excess, anew.threes.excess, atol=1e-3)
    assert np.abs(state.threes.excess).sum() + np.abs(state.excess).sum() / 2 < before


@pytest.mark.parametrize("together", [False, True])
def test_no_move_breaks_a_declared_rule(together: bool) -> None:
    """The value 0 of column 0 never stands beside 0 of column 2, though the tables that rows are brought to have it."""
    rows, random = drawn(1), np.random.default_rng(2)
    rows[(rows[:, 0] == 0) & (rows[:, 2] == 0), 2] = 1
    allowed = nothing_forbidden(LAYOUT)
    one, two = LAYOUT.starts[0], LAYOUT.starts[2]
    allowed[one, two] = allowed[two, one] = False
    state = searching(rows, allowed)
    start = rows.copy()
    site = BoundColumns(columns=(0, 3), cells=np.unique(rows[:, (0, 3)], axis=0))
    for column in (0, 2, 0, 2):
        if together:
            state.move_together(rows, site, random)
        else:
            state.move(rows, column, random)
    assert (rows != start).any()
    assert not ((rows[:, 0] == 0) & (rows[:, 2] == 0)).any()


def test_places_of_a_column_are_those_of_its_tables() -> None:
    rows = drawn(1)
    threes = searching(rows).threes
    for column in range(5):
        along, beside = threes.along(column), threes.beside(rows, column)
        own = [(table, excess) for table, excess in threes.tables if column in table]
        assert beside.shape == (ROWS, len(own))
        for place, (table, excess) in enumerate(own):
            cells = np.ravel_multi_index(list(rows[:, table].T), [LAYOUT.sizes[each] for each in table])
            np.testing.assert_array_equal(along[beside[:, place], rows[:, column]], excess[cells])


def test_a_table_of_a_release_is_read_by_its_own_numbers_alone() -> None:
    """Many tables of one release: each reading all of it would take minutes with a few hundred tables."""

    class Read(list[int]):
        times = 0

        def __getitem__(self, place: Any) -> Any:
            type(self).times += 1
            return super().__getitem__(place)

        def __iter__(self) -> Any:
            raise AssertionError("all numbers of the release are read")

    release: Any = SimpleNamespace(
        statement=SimpleNamespace(values=Read(range(1_000)), law=SimpleNamespace(variance=4))
    )
    table = ReleasedTable(columns=(0, 1), places=np.array([[10, 11], [20, 21]]), release=release, weight=2)
    assert table.measured.counts.tolist() == [[5.0, 5.5], [10.0, 10.5]]
    assert table.measured.sigma == 1.0
    assert Read.times == 8
