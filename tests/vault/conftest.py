from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.tables import Table

ROWS = pa.table(
    {
        "patient_id": ["a", "a", "a", "b", "c", None],
        "region": ["north", "north", "south", "north", "west", "north"],
        "diagnosis": ["ILI", "ILI", "ILI", None, "ILI", "ILI"],
    }
)


@pytest.fixture
def visits_file(tmp_path: Path) -> Path:
    path = tmp_path / "visits.parquet"
    pq.write_table(ROWS, path)
    return path


@pytest.fixture
def vault() -> sf.Vault:
    return sf.Vault(unit=sf.user("patient_id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="patients")


@pytest.fixture
def declare(visits_file: Path) -> Callable[..., Table]:
    def table(vault: sf.Vault, data: object = visits_file, **changes: object) -> Table:
        facts: dict[str, object] = {
            "name": "visits",
            "version": "2026-10",
            "limit": sf.Limit(groups=2, rows_per_group=1),
            "keys": {"region": ["north", "south", "west", "east"]},
        }
        return vault.table(data, **(facts | changes))  # type: ignore[arg-type]

    return table
