"""Files of n and of n + 1 people: with the same release they are the same, and nothing else of the data is in them."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.synthesis.result import SyntheticTable
from sfumato.synthesis.row_making import RowMaking
from tests.synthesis.test_synthesize import people, world

NUMBER = 400
IDENTIFIER = "5" * 32


def noise(place: int) -> int:
    """What is added to a number, the same in every world."""
    return (7919 * place) % 1201 - 600


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every release has one identifier and one noise: what is different is so because of the data."""
    monkeypatch.setattr("sfumato.gate.notary.secrets.token_hex", lambda size: IDENTIFIER)
    for mechanism in (Laplace, Gaussian):
        monkeypatch.setattr(mechanism, "add_noise", the_same_noise)


def the_same_noise(self: object, exact: Sequence[int], words: object) -> tuple[int, ...]:
    return tuple(number + noise(place) for place, number in enumerate(exact))


def the_same_release(self: object, exact: Sequence[int], words: object) -> tuple[int, ...]:
    """As if the noise had made up for the difference: a release that both worlds can have."""
    return tuple(3_000 + noise(place) for place in range(len(exact)))


def made(number: int, **asked: Any) -> SyntheticTable:
    table = world(people(number))[1]
    bins = {"age": 4}
    return table.synthesize(["sex", "ward", "age"], bins=bins, epsilon=1, delta="1/1000000", **asked)


def all_of(file: SyntheticTable, *, files: bool) -> list[Any]:
    return [
        file.rows.to_pydict(),
        [rows.to_pydict() for rows in file.files(2).rows] if files else [],
        file.quality,
        file.explain(),
        [str(figure) for figure in (file.count({"sex": "F"}), file.share({"ward": "A"}))],
    ]


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("asked", [{}, {"rows": 300}, {"rows": 300, "expected_rows": 5_000}], ids=str)
def test_the_file_is_a_function_of_the_release_and_the_declarations(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for mechanism in (Laplace, Gaussian):
        monkeypatch.setattr(mechanism, "add_noise", the_same_release)
    one, two = (all_of(made(number, **asked), files=not asked) for number in (NUMBER, NUMBER + 1))
    assert one == two


@pytest.mark.usefixtures("still")
def test_with_the_same_noise_the_files_differ_through_the_measurements() -> None:
    """One row more moves one cell of each table; the number of rows is the noisy total, which moves by one."""
    one, two = made(NUMBER), made(NUMBER + 1)
    query = one.release.statement.query
    moved = [after - before for before, after in zip(one.release.values, two.release.values, strict=True)]
    assert sorted(filter(None, moved)) == sorted(query.weights)  # type: ignore[attr-defined]  # of the marginals
    assert abs(two.quality.estimated_rows - one.quality.estimated_rows - 1) < 1e-9
    for each in (one, two):
        assert each.rows.num_rows == round(each.quality.estimated_rows)
    assert made(NUMBER, rows=250).rows.num_rows == made(NUMBER + 1, rows=250).rows.num_rows == 250


@pytest.mark.usefixtures("still")
def test_a_file_with_as_many_rows_as_the_data_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken copy: the true number of rows is written."""
    for mechanism in (Laplace, Gaussian):
        monkeypatch.setattr(mechanism, "add_noise", the_same_release)
    found = []
    for number in (NUMBER, NUMBER + 1):
        rows: pa.Table = people(number)
        monkeypatch.setattr(RowMaking, "_number", lambda self, tables, rows=rows: rows.num_rows)
        found.append(world(rows)[1].synthesize(["sex", "ward"], epsilon=1).rows)
    assert found[0] != found[1]


def test_how_many_rows_are_written_does_not_choose_the_tables() -> None:
    table = world(people(10))[1]
    columns = ["sex", "ward", "age"]
    spend = {"epsilon": 1, "delta": "1/1000000"}
    for rows in (None, 1, 100, 10**8):
        assert table.synthesis(columns, rows=rows).plan(**spend).reason == "pairs"
    few, many = (table.synthesis(columns, rows=100, expected_rows=number) for number in (10, 10**6))
    assert few.plan(epsilon="1/20").reason == "singles"
    assert many.plan(**spend).reason == "triples"
