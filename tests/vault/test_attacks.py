"""Attacks on the spine that worked once, or nearly: each must go on failing."""

import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.tables import Count, Table
from sfumato.vault import Vault

Declare = Callable[..., Table]


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    silent = lambda scale, size, words: np.zeros(size, dtype=np.int64)  # noqa: E731
    monkeypatch.setattr("sfumato.noise.sample_discrete_laplace", silent, raising=False)


@pytest.mark.usefixtures("exact")
def test_a_folder_named_like_a_column_does_not_override_it(vault: Vault, declare: Declare, visits_file: Path) -> None:
    place = visits_file.parent / "patient_id=7" / "region=west"
    place.mkdir(parents=True)
    shutil.copy(visits_file, place / "visits.parquet")
    plain = declare(vault).group_by("region").count().release(epsilon="1/4")
    nested = declare(vault, place / "visits.parquet", version="2").group_by("region").count().release(epsilon="1/4")
    assert nested.values == plain.values == (2, 1, 1, 0)


def test_a_file_that_is_swapped_after_its_types_were_checked_is_refused(
    vault: Vault, declare: Declare, visits_file: Path
) -> None:
    question = declare(vault).count()
    question.release(epsilon="1/8")
    rows = pq.read_table(visits_file)
    pq.write_table(rows.set_column(0, "patient_id", pa.array([1.0, float("nan")] * 3)), visits_file)
    with pytest.raises(errors.EngineFailed, match="has changed"):
        question.release(epsilon="1/16")
    assert vault.spent == sf.Budget(epsilon="1/8")


def test_a_dataset_whose_engine_failed_is_closed_for_good(vault: Vault, declare: Declare, tmp_path: Path) -> None:
    """Half a character in one row fails lazily, so failing or not would answer questions about that row, for free."""
    broken = pa.StringArray.from_buffers(3, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xffb"))
    rows = pa.table({"patient_id": ["a", "b", "c"], "note": broken, "region": ["north", "south", "west"]})
    path = tmp_path / "broken.parquet"
    pq.write_table(rows, path)
    table = declare(vault, path)
    outcomes = []
    for guess in ("north", "south", "west"):
        question = table.where((sf.col("region") == guess) & (sf.col("note") == "x")).count()
        try:
            question.release(epsilon="1/1000")
            outcomes.append("answered")
        except errors.EngineFailed:
            outcomes.append("failed")
        except errors.Refused:
            outcomes.append("refused")
    assert outcomes.count("failed") <= 1
    if "failed" in outcomes:
        assert set(outcomes[outcomes.index("failed") + 1 :]) <= {"refused"}


def test_a_frame_is_a_copy_from_its_declaration_on(vault: Vault, declare: Declare) -> None:
    frame = pd.DataFrame({"patient_id": [1, 2, 3, 4], "region": ["north"] * 4})
    question = declare(vault, frame, limit=sf.Limit(groups=1, rows_per_group=1)).count()
    frame.loc[:, "patient_id"] = 0
    release = question.release(epsilon=1)
    assert abs(release.values[0] - 4) < 60  # one person would give 1; the margin at ε = 1 is far below either way
    with_null = pd.DataFrame({"patient_id": [1, 2], "empty": [None, None]})
    declare(vault, with_null, version="2", keys={})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is how POSIX servers multiply")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_copy_cannot_spend_the_budget_again(vault: Vault, declare: Declare) -> None:
    question = declare(vault).count()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            question.release(epsilon=1)
            said: object = "released"
        except BaseException as wrong:  # noqa: BLE001 - the child reports whatever happened and leaves
            said = type(wrong).__name__
        os.write(write, pickle.dumps(said))
        os._exit(0)
    os.waitpid(child, 0)
    assert pickle.loads(os.read(read, 1000)) == "LedgerError"  # noqa: S301 - our own bytes
    assert vault.left == sf.Budget(epsilon=1)


@pytest.mark.parametrize(
    "epsilon",
    ["1e100000000", "1e-100000000", "1/" + "9" * 150, Fraction(1, 10**60 + 1), "1e-300", 10**7, "0." + "1" * 300],
)
def test_an_epsilon_of_absurd_length_or_size_is_refused_at_the_door(
    vault: Vault, declare: Declare, epsilon: object
) -> None:
    with pytest.raises(errors.InvalidInput):
        declare(vault).count().release(epsilon=epsilon)  # type: ignore[arg-type]
    assert vault.spent == sf.Budget(epsilon=0)


def test_the_unit_and_the_query_cannot_be_swapped(vault: Vault, declare: Declare) -> None:
    table = declare(vault)
    with pytest.raises(AttributeError):
        vault.unit = sf.record(relation="replace")  # type: ignore[misc]

    @dataclass(frozen=True, kw_only=True)
    class Modest(Count):
        def sensitivity(self, unit: object, limit: object) -> Sensitivity:  # type: ignore[override]
            return Sensitivity.of(l1="1/1000000")

    with pytest.raises(errors.Unsupported, match="Modest"):
        vault.release(Modest(dataset=table.dataset), sf.Budget(epsilon="1/1000"), fresh=False)


def test_a_certificate_cannot_be_changed_behind_the_store(vault: Vault, declare: Declare) -> None:
    question = declare(vault).count()
    first = question.release(epsilon=1)
    first.certificate.document["statement"]["values"][0] = 77  # type: ignore[index, call-overload]
    assert question.release(epsilon=1).certificate.document["statement"]["values"] == list(first.values)  # type: ignore[index, call-overload]


@pytest.mark.parametrize("limit", [{"groups": 2**70, "rows_per_group": 1}, {"groups": 1, "rows_per_group": 2**70}])
def test_a_limit_beyond_what_the_engine_adds_is_refused_before_any_charge(limit: dict[str, int]) -> None:
    with pytest.raises(errors.InvalidInput, match="at most"):
        sf.Limit(**limit)


@pytest.mark.parametrize("name", ["", " ", "\ud800", "x" * 1000])
def test_a_name_that_cannot_be_written_down_is_refused(name: str) -> None:
    with pytest.raises(errors.InvalidInput):
        Dataset(name=name, edition="1")
    with pytest.raises(errors.SfumatoError):
        sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=1), name=name)
