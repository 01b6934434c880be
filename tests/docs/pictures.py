"""The pictures of the documentation, drawn by the code: ``python -m tests.docs.pictures``."""

import tempfile
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.demo.network import REGIONS, generate

COUNTS_BY_REGION = Path(__file__).parents[2] / "docs" / "images" / "counts-by-region.svg"


def counts_by_region() -> Any:
    """Visits for an influenza-like illness by region of the generated network, at ε = 1/2, with 95% intervals."""
    vault = sf.Vault(unit=sf.user("patient_id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="pictures")
    with tempfile.TemporaryDirectory() as folder:
        visits = vault.table(
            generate(folder),
            name="visits",
            version="2026-10",
            limit=sf.Limit(groups=2, rows_per_group=3),
            keys={"region": REGIONS},
        )
        return visits.where(sf.col("diagnosis") == "ILI").group_by("region").count().release(epsilon=0.5).plot()


if __name__ == "__main__":
    COUNTS_BY_REGION.parent.mkdir(exist_ok=True)
    counts_by_region().save(str(COUNTS_BY_REGION))
