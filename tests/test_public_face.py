"""What is importable, what importing costs, and that every declaration is registered."""

import subprocess
import sys

import pytest

import sfumato
from sfumato import graphs, laws, mechanisms, tables
from sfumato.core import events, guarantees, sensitivity, units
from sfumato.engines import expressions
from sfumato.reports.declarations import DECLARATIONS
from sfumato.tables.measures import ASKED
from sfumato.tables.measures.average import mean

HEAVY = ("torch", "ibis", "duckdb", "pandas", "polars", "scipy.stats", "fastapi", "starlette", "numpy", "pyarrow")


@pytest.mark.parametrize("statement", ["import sfumato", "import sfumato; sfumato.user; sfumato.Budget; sfumato.load"])
def test_importing_stays_light(statement: str) -> None:
    code = f"{statement}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_every_public_name_is_there_and_no_other_is() -> None:
    for name in sfumato.__all__:
        assert getattr(sfumato, name) is not None
    assert dir(sfumato) == sorted({*sfumato.__all__, *ASKED})
    with pytest.raises(AttributeError, match="no attribute 'Valut'"):
        sfumato.Valut  # noqa: B018


def test_a_measure_that_no_list_names_is_a_public_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ASKED, "harmonic_mean", mean)
    assert "harmonic_mean" not in sfumato.__all__
    assert dir(sfumato) == sorted({*sfumato.__all__, "harmonic_mean"})
    assert sfumato.harmonic_mean is mean


@pytest.mark.parametrize(
    "module", [events, expressions, graphs, guarantees, laws, mechanisms, sensitivity, tables, units]
)
def test_every_declaration_can_be_read_from_a_certificate(module: object) -> None:
    exported = [getattr(module, name) for name in module.__all__]  # type: ignore[attr-defined]
    declared = [item for item in exported if isinstance(item, type) and isinstance(getattr(item, "KIND", None), str)]
    assert declared
    assert {item.KIND for item in declared} <= DECLARATIONS.kinds  # type: ignore[attr-defined]
