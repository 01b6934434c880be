"""The generated networks have the shapes that the tutorials speak of, and the same ones each time."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples import contacts, proteins
from sfumato.errors import InvalidInput


def test_contacts_are_between_patients_of_the_register(tmp_path: Path) -> None:
    table = pq.read_table(contacts.generate(tmp_path))
    assert table.schema == pa.schema([("source", pa.string()), ("target", pa.string()), ("day", pa.int64())])
    register = contacts.patients_of()
    assert set(table["source"].to_pylist()) | set(table["target"].to_pylist()) <= set(register)
    assert Counter(register.values()) == dict.fromkeys(contacts.WARDS, 120)
    days = table["day"].to_pylist()
    assert 0 <= min(days) < max(days) < contacts.DAYS
    rows = list(zip(table["source"].to_pylist(), table["target"].to_pylist(), days, strict=True))
    assert len(set(rows)) == len(rows)
    assert all(one != other for one, other, _ in rows)


def test_a_few_patients_meet_very_many_and_most_contacts_stay_in_a_ward(tmp_path: Path) -> None:
    table = pq.read_table(contacts.generate(tmp_path))
    edges = {tuple(sorted(pair)) for pair in zip(table["source"].to_pylist(), table["target"].to_pylist(), strict=True)}
    degree = Counter(name for pair in edges for name in pair)
    assert 4_000 < len(edges) < 5_000
    assert 60 < max(degree.values()) <= 100
    assert sum(many > 30 for many in degree.values()) < 20
    register = contacts.patients_of()
    across = sum(register[one] != register[other] for one, other in edges)
    assert 0.1 < across / len(edges) < 0.2


def test_affinities_are_of_pairs_of_proteins_and_within_the_bound(tmp_path: Path) -> None:
    table = pq.read_table(proteins.generate(tmp_path))
    rows = table.to_pylist()
    assert {row["source"] for row in rows} | {row["target"] for row in rows} <= set(proteins.PROTEINS)
    assert len({frozenset((row["source"], row["target"])) for row in rows}) == len(rows)
    assert all(0 < row["affinity"] <= proteins.MOST for row in rows)
    inside = [row["affinity"] for row in rows if row["source"][0] == row["target"][0]]
    assert sum(inside) / len(inside) > 0.5


@pytest.mark.parametrize("made", [contacts, proteins])
def test_the_same_seed_gives_the_same_network_and_another_another(made: object, tmp_path: Path) -> None:
    one, same, other = (
        pq.read_table(made.generate(tmp_path / str(place), seed=seed))  # type: ignore[attr-defined]
        for place, seed in enumerate((1, 1, 2))
    )
    assert one.equals(same)
    assert not one.equals(other)


@pytest.mark.parametrize("made", [contacts, proteins])
def test_a_folder_that_cannot_be_written_is_named(made: object, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", "utf-8")
    with pytest.raises(InvalidInput, match="was not written"):
        made.generate(tmp_path / "file")  # type: ignore[attr-defined]
