"""The API as designed, run line by line: what is built runs, what is not is listed and must not half-exist."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.parts import package

BUILT = {"spine", "calculus", "tables", "graphs", "streams", "learning"}


@dataclass(frozen=True, slots=True)
class Line:
    area: str
    code: str


BLOCK = [
    Line("spine", "import sfumato as sf"),
    Line(
        "spine",
        'vault = sf.Vault(unit=sf.user("patient_id", relation="add/remove"),'
        ' budget=sf.Budget(epsilon=8, delta=1e-6), name="patients")',
    ),
    Line(
        "spine",
        'visits = vault.table("visits.parquet", name="visits", version="2026-10",'
        " limit=sf.Limit(groups=3, rows_per_group=5), bounds={'sbp': (80, 220)},"
        ' keys={"zip": ZIPS, "sex": ["F", "M"]})',
    ),
    Line("spine", 'ili = visits.where(sf.col("diagnosis") == "ILI").group_by("zip").count()'),
    Line("spine", "ili.preview(epsilon=0.5)"),
    Line("spine", "r = ili.release(epsilon=0.5)"),
    Line("spine", "r.to_pandas()"),
    Line("spine", 'r.interval(0.95); r.explain("zh"); r.plot(); r.certificate.save("ili.json")'),
    Line("spine", "ili.release(epsilon=0.5)"),
    Line("spine", "ili.epsilon_for(margin=6, confidence=0.95)"),
    Line("spine", "vault.spent, vault.left"),
    Line("spine", 'sf.load("ili.json").explain()'),
    Line("tables", "visits.where(\"diagnosis = 'ILI'\")"),
    Line("tables", 'visits.group_by("sex").agg(n=sf.count(), sbp=sf.mean("sbp")).release(epsilon=0.5)'),
    Line("tables", 'visits.sql("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex").release(epsilon=0.5)'),
    Line("ledger", 'sf.Vault(unit=sf.record(relation="replace"), ledger="ledger.db", account="oncology/readmissions")'),
    Line(
        "graphs",
        'contacts = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=4), name="contacts")',
    ),
    Line("graphs", 'g = contacts.graph("contacts.csv", name="wards", version="1", nodes=4039)'),
    Line("graphs", "g.triangles().release(epsilon=1);  g.degree_sequence().release(epsilon=1)"),
    Line("graphs", "g.top_degrees(10).release(epsilon=1)"),
    Line(
        "streams",
        'sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=2), name="arrivals")'
        '.stream(name="er", horizon=1440)',
    ),
    Line(
        "learning",
        "trainer = vault.trainer(model, loss, data=visits_dataset, clip=1.0);"
        " trainer.fit(epochs=5, epsilon=1, delta=1e-7)",
    ),
    Line("calculus", "from sfumato import accounting, mechanisms, noise"),
    Line("calculus", "b = mechanisms.Laplace.calibrated(l1=1, epsilon=0.5);  b.scale"),
    Line("calculus", "b.law.quantile(0.95), b.event.to_json()"),
    Line("calculus", "noise.discrete_laplace(scale=10, size=1_000)"),
    Line("calculus", "g = mechanisms.Gaussian.calibrated(l2=1, epsilon=1, delta=1e-5);  g.sigma"),
    Line("calculus", "accounting.epsilon([b.event] * 100, delta=1e-5)"),
    Line("calculus", "accounting.calibrate_sigma(epsilon=1, delta=1e-5, steps=10_000, sampling=0.01)"),
    Line("calculus", "from sfumato.mechanisms.matrix import prefix; workload = prefix(16)"),
    Line("calculus", "mechanisms.Matrix.optimal(workload).rmse"),
    Line("learning", "from sfumato import learning"),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    rows = {
        "patient_id": ["a", "a", "b", "c"],
        "zip": ["10001", "10002", "10001", "10003"],
        "sex": ["F", "F", "M", "F"],
        "diagnosis": ["ILI", "ILI", "COPD", "ILI"],
        "sbp": [120.0, 130.0, None, 110.0],
    }
    pq.write_table(pa.table(rows), "visits.parquet")
    Path("contacts.csv").write_text("source,target\n0,1\n1,2\n2,0\n", "utf-8")
    return {"ZIPS": ["10001", "10002", "10003", "10004"], **learned()}


def learned() -> dict[str, Any]:
    """A model, a loss and units of the vault's users."""
    package("torch")
    import torch

    from sfumato.learning import Units

    ids = [f"patient {row % 20}" for row in range(60)]
    pressures = torch.sin(torch.arange(120.0)).reshape(60, 2)
    return {
        "model": torch.nn.Linear(2, 1),
        "loss": lambda outputs, targets: (outputs[:, 0] - targets).square().mean(),
        "visits_dataset": Units(
            pressures, pressures.sum(1), ids=ids, max_records_per_unit=3, n_units=20, name="visits", version="2026-10"
        ),
    }


@pytest.mark.long
def test_what_is_built_runs_and_what_is_not_is_listed(
    place: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    missing = []
    for line in BLOCK:
        if line.area in BUILT:
            exec(line.code, place)  # noqa: S102 - the block is the test
            continue
        missing.append(line)
        from sfumato.errors import SfumatoError

        # Not built means not there: a half-built line belongs to BUILT, or back to its issue.
        with pytest.raises((AttributeError, TypeError, NameError, ImportError, SfumatoError)):
            exec(line.code, place)  # noqa: S102
    assert place["vault"].spent.epsilon == 2.5
    with capsys.disabled():
        print("\nnot yet built:", ", ".join(sorted({line.area for line in missing})))
