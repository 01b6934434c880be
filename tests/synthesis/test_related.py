"""``table.synthesize_related``: persons and their rows from one charge, linked by numbers that mean nobody."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import csv, parquet

import sfumato as sf
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused
from sfumato.reports.verify import verify
from sfumato.synthesis.measured import MeasuredTable
from sfumato.synthesis.related_result import SyntheticRelations
from sfumato.synthesis.related_rows import ChildShape, RelatedShape, made_family
from sfumato.tables import Table
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from sfumato.tables.related import _pairs, _singles
from sfumato.vault import Vault

PERSONS = 3_000
MOST = 3
WARDS = np.array(["A", "B", "C"])
ONE = sf.Limit(groups=1, rows_per_group=1)
SPEND = {"epsilon": 4, "delta": "1/1000000"}


def people() -> tuple[pa.Table, pa.Table]:
    """Old people have more stays; wards go with age and stay the same; the old pay more."""
    draw = np.random.default_rng(11)
    old = draw.integers(0, 2, PERSONS)
    number = np.minimum(draw.poisson(0.6 + 1.4 * old), 8)
    owner = np.repeat(np.arange(PERSONS), number)
    place = np.concatenate([np.arange(each) for each in number])
    ward = np.where(draw.random(len(owner)) < 0.8, 2 * old[owner], 1)
    for row in range(1, len(owner)):  # of the same person, mostly as before
        if owner[row] == owner[row - 1] and draw.random() < 0.8:
            ward[row] = ward[row - 1]
    cost = draw.uniform(0, 50, len(owner)) + 50 * old[owner]
    mixed = draw.permutation(len(owner))  # the order in which rows are stored says nothing
    stays = pa.table(
        {
            "id": owner[mixed],
            "day": [date(2026, 1, 1 + int(it)) for it in place[mixed]],
            "ward": WARDS[ward[mixed]],
            "cost": cost[mixed],
        }
    )
    return pa.table({"id": np.arange(PERSONS), "age": np.array(["young", "old"])[old]}), stays


PEOPLE, STAYS = people()


def world(unit: Any = None, budget: Any = None) -> tuple[Vault, Table, Table]:
    vault = sf.Vault(
        unit=unit or sf.user("id", relation="add/remove"),
        budget=budget or sf.Budget(epsilon=100, delta="1/1000000"),
        name="trial",
    )
    above = vault.table(PEOPLE, name="people", version="1", keys={"age": ["young", "old"]}, limit=ONE)
    bounds = {"cost": (0, 100), "day": (date(2026, 1, 1), date(2026, 1, 31))}
    below = vault.table(STAYS, name="raw", version="1", keys={"ward": WARDS.tolist()}, bounds=bounds)  # type: ignore[arg-type]
    return vault, above, below


def child(table: Table, **given: Any) -> sf.ChildRows:
    return sf.ChildRows(
        table,
        **{"order": "day", "most": MOST, "columns": ["ward", "cost"], "follow": ["ward"], "bins": {"cost": 4}, **given},
    )


@pytest.fixture(scope="module")
def made() -> SyntheticRelations:
    _, above, below = world()
    return above.synthesize_related({"stays": child(below)}, persons=PERSONS, **SPEND)


def joined(persons: pa.Table, stays: pa.Table) -> dict[str, NDArray[Any]]:
    """Rows of persons beside their person, in order, up to the limit, with the ward before."""
    order = "number" if "number" in stays.column_names else "day"
    rows = stays.sort_by([("id", "ascending"), (order, "ascending")]).to_pydict()
    ages = dict(zip(persons["id"].to_pylist(), persons["age"].to_pylist(), strict=True))
    owner = np.array(rows["id"])
    starts = np.r_[True, owner[1:] != owner[:-1]]
    place = np.arange(len(owner)) - np.maximum.accumulate(np.where(starts, np.arange(len(owner)), 0)) + 1
    before = np.where(starts, "", np.r_[[""], rows["ward"][:-1]])
    kept = place <= MOST
    return {
        "place": place[kept],
        "age": np.array([ages[it] for it in rows["id"]])[kept],
        "ward": np.array(rows["ward"])[kept],
        "cost": np.array(rows["cost"])[kept],
        "before": before[kept],
    }


def share(rows: dict[str, NDArray[Any]], of: tuple[str, str], given: tuple[str, str]) -> float:
    there = rows[given[0]] == given[1]
    return float((rows[of[0]][there] == of[1]).mean())


def test_rows_go_with_their_persons_with_each_other_and_with_the_row_before(made: SyntheticRelations) -> None:
    persons, stays = made.tables["persons"], made.tables["stays"]
    real, found = joined(PEOPLE, STAYS), joined(persons, stays)
    for of in (("ward", "A"), ("ward", "B"), ("ward", "C")):
        for given in (("age", "young"), ("age", "old"), ("before", "A"), ("before", "B"), ("before", "C")):
            assert abs(share(real, of, given) - share(found, of, given)) < 0.15, (of, given)
    for age in ("young", "old"):
        assert abs(real["cost"][real["age"] == age].mean() - found["cost"][found["age"] == age].mean()) < 8
        there = [np.bincount(it["place"][it["age"] == age], minlength=MOST + 1) / PERSONS for it in (real, found)]
        assert np.abs(there[0] - there[1]).max() < 0.03
    # Without the row before, a ward would follow from age alone.
    assert share(found, ("ward", "B"), ("before", "B")) > share(found, ("ward", "B"), ("age", "old")) + 0.3


def test_numbers_link_the_tables_and_mean_nobody(made: SyntheticRelations) -> None:
    persons, stays = made.tables["persons"], made.tables["stays"]
    assert persons.column_names == ["id", "age"]
    assert stays.column_names == ["id", "number", "ward", "cost"]
    assert persons["id"].to_pylist() == list(range(1, PERSONS + 1))
    assert set(stays["id"].to_pylist()) <= set(persons["id"].to_pylist())
    counted: dict[int, list[int]] = {}
    for owner, number in zip(stays["id"].to_pylist(), stays["number"].to_pylist(), strict=True):
        counted.setdefault(owner, []).append(number)
    assert all(numbers == list(range(1, len(numbers) + 1)) and len(numbers) <= MOST for numbers in counted.values())
    # Persons come in no order: those with many stays are not at one end.
    half = np.array(stays["id"]) <= PERSONS / 2
    assert 0.45 < half.mean() < 0.55


@pytest.mark.claim("S1-17")
def test_one_charge_for_persons_with_all_their_rows(made: SyntheticRelations) -> None:
    vault, above, below = world()
    once = above.synthesize_related({"stays": child(below)}, persons=200, **SPEND)
    assert (vault.spent.epsilon, str(vault.spent.delta)) == (4, "1/1000000")
    assert verify(once.release.certificate.document).consistent
    again = above.synthesize_related({"stays": child(below)}, persons=200, **SPEND)
    assert again.tables == once.tables
    assert vault.spent.epsilon == 4
    query = once.release.statement.query
    assert isinstance(query, WeightedMarginals)
    moved = query.sensitivity(sf.user("id", relation="replace"), ONE)
    assert moved.l2 is not None
    assert moved.l2.squared == 2 * sum(weight**2 for weight in query.weights)
    assert once.release.statement.limit == ONE
    for text in (made.explain(), made.explain("zh"), str(made), repr(made)):
        assert "stays" in text
    assert "3,000" in made.explain()
    assert made.quality.most == {"stays": MOST}
    assert len(made.quality.child_chi_squared["stays"]) == 2


def test_the_number_of_persons_is_declared_or_noisy() -> None:
    _, above, below = world()
    rows = {"stays": child(below, columns=["ward"], follow=[], bins={}, most=1)}
    made = above.synthesize_related(rows, **SPEND)
    assert made.tables["persons"].num_rows == round(made.quality.estimated_persons)
    assert abs(made.quality.estimated_persons - PERSONS) < 50
    assert not made.quality.declared_persons
    assert "noisy number" in made.explain()
    assert above.synthesize_related(rows, persons=17, **SPEND).tables["persons"].num_rows == 17


def test_few_persons_for_the_noise_are_measured_column_by_column() -> None:
    _, above, below = world()
    asked = above.related_synthesis({"stays": child(below)}, persons=100)
    assert asked.plan(epsilon="1/100").reason == "singles"
    assert asked.plan(epsilon=40, delta="1/1000000").reason == "pairs"
    made = asked.release(epsilon="1/100")
    assert made.tables["persons"].num_rows == 100
    assert "few persons" in made.explain()
    assert made.explain("zh")


def test_several_children_and_the_order_itself() -> None:
    _, above, below = world()
    children = {
        "stays": child(below, columns=["ward", "day"], bins={"day": 5}),
        "costs": child(below, columns=["cost"], most=2, follow=[], order="cost"),
    }
    made = above.synthesize_related(children, persons=500, **SPEND)
    assert list(made.tables) == ["persons", "stays", "costs"]
    rows = made.tables["stays"].to_pydict()
    for one in range(1, len(rows["id"])):
        if rows["id"][one] == rows["id"][one - 1]:
            assert rows["day"][one] >= rows["day"][one - 1]
    assert max(made.tables["costs"]["number"].to_pylist()) <= 2


def test_persons_are_made_of_the_rows_where_they_have_no_table() -> None:
    _, _, below = world()
    made = below.per_person(first=sf.first("ward", by="day")).synthesize_related(
        {"stays": child(below, columns=["ward"], follow=[], bins={}, most=2)}, persons=300, **SPEND
    )
    assert made.tables["persons"].column_names == ["id", "first"]
    assert made.tables["stays"].num_rows > 250  # everybody here has one at least


def test_codes_of_persons_and_of_rows_stand_in_their_groups() -> None:
    """Wards in two wings, C of which is not declared; and ages, each in a group of its own."""
    vault, above, below = world()
    rows = below.with_keys(ward=["A", "B"])
    wings = sf.Hierarchy({"A": "north", "B": "south", "C": "south"}, level="wing", rest="another")
    made = above.synthesize_related(
        {"stays": child(rows, hierarchies={"ward": wings})},
        persons=PERSONS,
        hierarchies={"age": {"young": "people", "old": "people"}},
        **SPEND,
    )
    assert vault.spent.epsilon == 4
    persons, stays = made.tables["persons"], made.tables["stays"]
    assert persons.column_names == ["id", "age_group", "age"]
    assert stays.column_names == ["id", "number", "wing", "cost", "ward"]
    pairs = set(zip(stays["wing"].to_pylist(), stays["ward"].to_pylist(), strict=True))
    assert pairs == {("north", "A"), ("south", "B"), ("south", "another")}
    real = joined(PEOPLE, STAYS)["ward"]
    for code, ward in (("A", "A"), ("B", "B"), ("another", "C")):
        share_of = np.mean(np.array(stays["ward"].to_pylist()) == code)
        assert abs(share_of - np.mean(real == ward)) < 0.05
    old = np.mean(np.array(persons["age"].to_pylist()) == "old")
    assert abs(old - np.mean(np.array(PEOPLE["age"].to_pylist()) == "old")) < 0.05
    assert made.quality.codes == ("age", "ward")
    assert "drawn within their groups" in made.explain()


def test_files_are_written_into_a_folder(made: SyntheticRelations, tmp_path: Path) -> None:
    paths = made.to_parquet(tmp_path / "made")
    assert [path.name for path in paths] == ["persons.parquet", "stays.parquet"]
    for path, table in zip(paths, made.tables.values(), strict=True):
        read = parquet.read_table(path)
        assert read.equals(table)
        assert read.schema.metadata[b"sfumato.release"].decode() == made.release.statement.identifier
    assert csv.read_csv(made.to_csv(tmp_path / "texts")[1]).num_rows == made.tables["stays"].num_rows
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="cannot be written"):
        made.to_parquet(tmp_path / "file")


def test_what_makes_no_sense_is_refused_before_anything_is_read() -> None:
    vault, above, below = world()
    wrong: list[tuple[dict[str, Any], dict[str, Any], type[Exception], str]] = [
        ({"persons": child(below)}, {}, InvalidInput, "is called 'persons'"),
        ({"age": child(below)}, {}, InvalidInput, "is called 'persons'"),
        ({}, {}, InvalidInput, "maps names of tables"),
        ({"stays": below}, {}, InvalidInput, "maps names of tables"),
        ({"stays": child(below, columns=["ward", "id"])}, {}, NotDeclared, "made up anew"),
        ({"stays": child(below, columns=["ward"])}, {}, InvalidInput, "none of the columns"),
        ({"stays": child(below, follow=["wrd"])}, {}, InvalidInput, "none of the columns"),
        ({"stays": child(below, columns=["ward", "ward"], bins={})}, {}, InvalidInput, "different columns"),
        ({"stays": child(below, columns=["nothing"], follow=[], bins={})}, {}, NotDeclared, "neither declared keys"),
        ({"stays": child(below, bins={"cost": sf.QuantileBins(3)})}, {}, InvalidInput, "to be chosen"),
        ({"stays": child(below.group_by("ward"))}, {}, InvalidInput, "neither grouped"),
        ({"stays": child(world()[2])}, {}, InvalidInput, "same vault"),
        ({"stays": child(below)}, {"persons": 0}, InvalidInput, "whole number"),
        ({"stays": child(below)}, {"bins": {"agee": 3}}, InvalidInput, "none of the columns"),
        ({"stays": child(below, bins={"cost": 1_000}, most=20)}, {}, InvalidInput, "together"),
    ]
    for children, given, error, words in wrong:
        with pytest.raises(error, match=words) as caught:
            above.synthesize_related(children, **given, **SPEND)
        assert "nothing was" in str(caught.value).lower(), words
    for most in (0, 21, True):
        with pytest.raises(InvalidInput, match="whole number"):
            child(below, most=most)
    with pytest.raises(InvalidInput, match="one row a person"):
        below.synthesize_related({"stays": child(below)}, **SPEND)
    with pytest.raises(InvalidInput, match="nothing was made"):
        above.related_synthesis({"stays": child(below)}).made(above.count().release(epsilon=1), "pairs")
    assert vault.spent.epsilon == 1
    records = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="rows")
    alone = records.table(PEOPLE, name="people", version="1", keys={"age": ["young", "old"]})
    with pytest.raises(Refused, match="persons are protected"):
        alone.synthesize_related({"stays": child(below)}, epsilon=1)


@pytest.mark.parametrize("plan", [_pairs, _singles])
def test_rows_follow_from_tables_whatever_these_are(plan: Any) -> None:
    """Tables of noise alone, or of nothing, make persons and rows within their cells all the same."""
    shape = RelatedShape(
        persons=(2,), children=(ChildShape(sizes=(2, 3), most=3, follow=(0,)), ChildShape(sizes=(2,), most=1))
    )
    random = np.random.default_rng(3)
    for factor in (-1.0, 0.0, 1.0):
        tables = [
            MeasuredTable(
                columns=some,
                counts=factor * np.abs(random.normal(0, 30, [shape.sizes[place] for place in some])),
                sigma=30.0,
            )
            for some in plan(shape)
        ]
        made = made_family(tables, shape, 60, 60.0, np.random.default_rng(1))
        assert made.persons.shape == (60, 1)
        for child_shape, rows in zip(shape.children, made.children, strict=True):
            assert (rows.codes >= 0).all()
            assert (rows.codes < np.array(child_shape.sizes)).all()
            assert (np.bincount(rows.owner, minlength=60) <= child_shape.most).all()


def test_steps_are_kept_where_columns_are_measured_alone() -> None:
    """Values that never change: the second row has the value of the first though nothing else is known."""
    shape = RelatedShape(persons=(2,), children=(ChildShape(sizes=(2,), most=2, follow=(0,)),))
    counts = {
        (0,): [50, 50],
        (1,): [0, 0, 100],
        (2,): [30, 70, 0],
        (3,): [30, 70, 0],
        (2, 3): [[30, 0, 0], [0, 70, 0], [0, 0, 0]],
    }
    tables = [
        MeasuredTable(columns=some, counts=np.array(held, dtype=float), sigma=1.0) for some, held in counts.items()
    ]
    rows = made_family(tables, shape, 100, 100.0, np.random.default_rng(1)).children[0]
    values = rows.codes[:, 0].reshape(100, 2)
    assert (values[:, 0] == values[:, 1]).all()
    assert 50 < values[:, 0].sum() < 90


def test_persons_and_all_their_rows_are_one_charge_which_fits_or_is_not_made() -> None:
    vault, above, below = world(budget=sf.Budget(epsilon=1))
    for spend in ({"epsilon": "11/10"}, {"epsilon": 2}):
        with pytest.raises(BudgetExceeded):
            above.synthesize_related({"stays": child(below)}, persons=10, **spend)
    assert vault.spent == sf.Budget.none()
    made = above.synthesize_related({"stays": child(below)}, persons=10, epsilon=1)
    assert made.release.charged == vault.spent == sf.Budget(epsilon=1)
    assert above.synthesize_related({"stays": child(below)}, persons=10, epsilon=1).tables == made.tables
