"""Divergences, associations and the cells of rows: against definitions, and back from the values of every column."""

from datetime import date
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats.contingency import association

from sfumato.synthesis.agreement import (
    agreement_of,
    associations,
    cells_of,
    coded,
    cramers_v,
    jensen_shannon,
    total_variation,
)
from sfumato.synthesis.columns import BinnedColumn, ListedColumn
from sfumato.synthesis.measured import Layout, MeasuredTable

RANDOM = np.random.default_rng(3)


def test_divergences_are_those_of_their_definition() -> None:
    one, two = RANDOM.dirichlet(np.ones(7), 5), RANDOM.dirichlet(np.ones(7), 5)
    found = jensen_shannon(one, two)
    assert np.allclose(found, [jensenshannon(p, q, base=2) ** 2 for p, q in zip(one, two, strict=True)])
    assert float(jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0]))) == 1.0
    assert np.allclose(total_variation(one, two), [abs(p - q).sum() / 2 for p, q in zip(one, two, strict=True)])


def test_association_is_cramers() -> None:
    counts = RANDOM.integers(1, 50, (4, 3))
    assert abs(cramers_v(counts.astype(float)) - association(counts)) < 1e-9
    assert cramers_v(np.array([[3.0, 0.0], [7.0, 0.0]])) == 0.0
    assert cramers_v(np.zeros((2, 2))) == 0.0
    layout = Layout((2, 3, 2))
    codes = RANDOM.integers(0, 2, (500, 3)).astype(np.int32)
    codes[:, 2] = codes[:, 0]
    found = associations(layout.pair_counts(codes), layout)
    assert found[0, 2] == found[2, 0] == 1.0
    assert found[0, 1] < 0.2


COLUMNS = [
    ListedColumn(name="ward", values=("A", "B", "C"), missing=True),
    ListedColumn(name="ill", values=(True, False)),
    ListedColumn(name="day", values=(date(2026, 1, 1), date(2026, 2, 1))),
    ListedColumn(name="grade", values=(3, 1, 2)),
    BinnedColumn(name="age", edges=tuple(map(Fraction, (0, 18, 65, 120))), whole=True, missing=True),
    BinnedColumn(name="kg", edges=(Fraction(0), Fraction(5, 2), Fraction(4)), whole=False),
    BinnedColumn(
        name="admitted",
        edges=tuple(Fraction(date(2026, month, 1).toordinal()) for month in (1, 2, 3)),
        whole=True,
        days=True,
    ),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_values_are_read_back_as_the_cells_that_they_were_drawn_from(column) -> None:
    codes = np.array([*range(column.size)] * 50, dtype=np.int32)
    drawn = column.drawn(codes, RANDOM) if isinstance(column, BinnedColumn) else None
    values = pa.chunked_array([column.arrow(codes, drawn)])
    assert (coded(column, values) == codes).all()


def test_a_value_in_no_cell_is_told_apart() -> None:
    listed = ListedColumn(name="ward", values=("A", "B"))
    codes = np.stack([coded(listed, pa.chunked_array([["A", "X", "B"]])), np.zeros(3, dtype=np.int32)], axis=1)
    assert codes[:, 0].tolist() == [0, -1, 1]
    assert cells_of(codes, (0, 1), (2, 1)).tolist() == [1.0, 1.0]


def test_rows_that_have_the_measured_tables_are_as_far_as_noise_sets_them_and_others_further() -> None:
    sizes, names = (4, 5), ("a", "b")
    codes = np.stack([RANDOM.integers(0, size, 4_000) for size in sizes], axis=1).astype(np.int32)
    truth = cells_of(codes, (0, 1), sizes)
    noisy = MeasuredTable(columns=(0, 1), counts=(truth + RANDOM.normal(0, 15, 20)).reshape(sizes), sigma=15.0)
    (near,) = agreement_of([noisy], names, codes, sizes, 4_000.0, RANDOM)
    assert near.columns == ("a", "b")
    assert 0.3 < near.divergence / near.divergence_of_noise < 3
    (far,) = agreement_of([noisy], names, codes // 2, sizes, 4_000.0, RANDOM)
    assert far.divergence > 20 * far.divergence_of_noise
    for one, two in combinations((near, far), 2):
        assert one.noise == two.noise == 15.0
