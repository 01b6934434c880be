"""What is importable, what importing costs, and that every declaration is registered."""

import subprocess
import sys

import pytest

import sfumato
from sfumato import graphs, laws, mechanisms, tables
from sfumato.core import events, guarantees, sensitivity, units
from sfumato.engines import expressions
from sfumato.reports.declarations import DECLARATIONS

HEAVY = ("torch", "ibis", "duckdb", "pandas", "polars", "scipy.stats", "fastapi", "starlette", "numpy", "pyarrow")


@pytest.mark.parametrize("statement", ["import sfumato", "import sfumato; sfumato.user; sfumato.Budget; sfumato.load"])
def test_importing_stays_light(statement: str) -> None:
    code = f"{statement}\nimport sys\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_every_public_name_is_there_and_no_other_is() -> None:
    for name in sfumato.__all__:
        assert getattr(sfumato, name) is not None
    assert dir(sfumato) == sorted(sfumato.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Valut'"):
        sfumato.Valut  # noqa: B018


@pytest.mark.parametrize(
    "module", [events, expressions, graphs, guarantees, laws, mechanisms, sensitivity, tables, units]
)
def test_every_declaration_can_be_read_from_a_certificate(module: object) -> None:
    exported = [getattr(module, name) for name in module.__all__]  # type: ignore[attr-defined]
    declared = [item for item in exported if isinstance(item, type) and isinstance(getattr(item, "KIND", None), str)]
    assert declared
    assert {item.KIND for item in declared} <= DECLARATIONS.kinds  # type: ignore[attr-defined]
