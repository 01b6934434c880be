"""What a public table holds is part of a question: a changed mapping is another question."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.errors import InvalidInput, Refused
from sfumato.reports.verify import verify
from sfumato.tables import Table
from sfumato.tables.joins import Join
from sfumato.tables.public import PublicTable
from sfumato.vault import Vault
from tests.governance.homes import ACCOUNT, PATIENT, furnished, sqlite_home

Declare = Callable[..., Table]
REGIONS = {"region": ["north", "south", "west", "east"], "side": ["up", "down", "left", "right"]}


def asked(ledger: Any, declare: Declare, mapping: dict[str, list[Any]]) -> Any:
    """The count by side, from a vault of its own, as another process would ask it."""
    vault = Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT)
    sides = vault.public(pa.table(mapping), name="sides")  # the version is "1" if nobody says another
    return declare(vault).join(sides, on="region").group_by("sides.side").count().release(epsilon="1/10")


def test_a_changed_public_table_does_not_get_the_old_answer(tmp_path: Path, declare: Declare) -> None:
    ledger = furnished(sqlite_home(tmp_path), project=sf.Budget(epsilon=1))
    first = asked(ledger, declare, REGIONS)
    again = asked(ledger, declare, REGIONS)
    assert (again.repeated, again.certificate) == (True, first.certificate)
    assert verify(first.certificate.document).consistent
    moved = REGIONS | {"side": ["down", "up", "left", "right"]}
    other = asked(ledger, declare, moved)
    assert (other.repeated, other.charged) == (False, sf.Budget(epsilon="1/10"))
    assert other.statement.query.labels() == first.statement.query.labels()  # all else is the same
    assert asked(ledger, declare, moved).repeated


CONTENTS: list[dict[str, Any]] = [
    {"a": ["x", "yz"]},
    {"a": ["xy", "z"]},
    {"a": ["yz", "x"]},
    {"b": ["x", "yz"]},
    {"a": ["x", None]},
    {"a": ["x", "None"]},
    {"a": pa.array([1, 2], pa.int64())},
    {"a": pa.array([1, 2], pa.float64())},
    {"a": ["1", "2"]},
    {"a": [True, False]},
    {"a": ["x"], "b": ["yz"]},
    {"a": ["x", "yz"], "b": [None, "x"]},
    {"a": pa.array([], pa.string())},
]


def test_contents_that_differ_have_digests_that_differ() -> None:
    dataset = Dataset(name="places", edition="1")
    found = [PublicTable.of(pa.table(columns), dataset).content for columns in CONTENTS]
    assert len(set(found)) == len(CONTENTS)
    assert found == [PublicTable.of(pa.table(columns), dataset).content for columns in CONTENTS]
    assert all(len(digest) == 32 for digest in found)


def test_private_rows_have_no_digest() -> None:
    with pytest.raises(InvalidInput, match="a digest of private rows would reveal something about them"):
        Join(dataset=Dataset(name="labs", edition="1"), on=(("id", "id"),), public=False, content="0" * 32)


def test_a_question_with_the_public_table_of_another_vault_is_refused(declare: Declare) -> None:
    def vault() -> sf.Vault:
        return sf.Vault(unit=PATIENT, budget=sf.Budget(epsilon=1), name="patients")

    here, there = vault(), vault()
    foreign = there.public(pa.table(REGIONS | {"side": ["x", "y", "z", "w"]}), name="sides")
    here.public(pa.table(REGIONS), name="sides")
    with pytest.raises(Refused, match="its content is another"):
        declare(here).join(foreign, on="region").count().release(epsilon=1)
    assert here.spent == sf.Budget(epsilon=0)


def test_an_answer_on_the_stewards_word_is_not_handed_out_without_it(tmp_path: Path, declare: Declare) -> None:
    ledger = furnished(sqlite_home(tmp_path), project=sf.Budget(epsilon=1))

    def ask(*, derived: bool) -> Any:
        vault = Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT)
        return declare(vault, derived=derived).count().release(epsilon="1/10")

    assert [ask(derived=derived).repeated for derived in (True, False, True, False)] == [False, False, True, True]
