"""Post-processing: free, and blind to data. δ is judged by what is declared, not by what is there."""

import subprocess
import sys
import textwrap
import typing
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.budget import default_delta
from sfumato.core.release import Release
from sfumato.reports.explain import explain
from sfumato.reports.page import page
from sfumato.reports.plots import intervals
from sfumato.tables import Table
from sfumato.vault import Vault
from tests.parts import ROOT

Declare = Callable[..., Table]
ROWS = pa.table({"patient_id": ["a", "b"], "region": ["north", "south"]})


@pytest.mark.claim("S4-01", "S1-01")
def test_nothing_that_is_made_of_a_release_costs_or_refunds(vault: Vault, declare: Declare, tmp_path: Path) -> None:
    release = declare(vault).group_by("region").count().release(epsilon="1/2")
    before = vault.spent, vault.left
    smoothed = [sum(release.values) / len(release.values)] * len(release.values)
    path = release.certificate.save(tmp_path / "release.json")
    for derived in (
        smoothed,
        release.interval(0.5),
        release.interval(0.99, joint=True),
        release.to_pandas().round(-1),
        release.to_polars(),
        release.explain("en"),
        release.plot(language="zh"),
        page(release),
        sf.load(path).to_arrow(),
    ):
        assert derived is not None
        assert (vault.spent, vault.left) == before
    assert sf.load(path).charged == sf.Budget(epsilon=0)


@pytest.mark.claim("S4-01")
@pytest.mark.parametrize("step", [lambda rows: explain(rows, "en"), intervals, page], ids=["words", "picture", "page"])
def test_a_step_that_is_handed_rows_is_rejected(step: Callable[[object], object]) -> None:
    with pytest.raises(errors.InvalidInput, match="takes releases"):
        step(ROWS)


@pytest.mark.claim("S4-01")
def test_and_so_it_is_by_its_type() -> None:
    assert typing.get_type_hints(page)["release"] is Release


@pytest.mark.long
def test_a_checker_of_types_refuses_rows(tmp_path: Path) -> None:
    code = """
        import pandas as pd
        from sfumato.reports.page import page
        rows: list[dict[str, int]] = [{"patient": 1}]
        page(rows)
    """
    file = tmp_path / "leak.py"
    file.write_text(textwrap.dedent(code), encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(file)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert 'Argument 1 to "page" has incompatible type "list[dict[str, int]]"; expected "Release"' in answer.stdout


@pytest.mark.claim("S2-03")
def test_delta_is_judged_by_the_declared_population() -> None:
    def vault(delta: object, population: int | None) -> Vault:
        budget = sf.Budget(epsilon=1, delta=delta)  # type: ignore[arg-type]
        return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=budget, name="x", population=population)

    for delta in ("1/1000", "1/500", "1/2"):
        with pytest.raises(errors.Refused, match="one person at random"):
            vault(delta, 1000)
    assert vault("1/1001", 1000).budget.delta == Fraction(1, 1001)
    assert vault("1/1000000", None).budget.delta == Fraction(1, 10**6)
    with pytest.raises(errors.NotDeclared, match="population"):
        vault("1/999999", None)
    few = vault("1/1001", 1000).table(pa.table({"id": [1]}), name="t", limit=sf.Limit(groups=1, rows_per_group=1))
    assert few.count().preview(epsilon=1).margin == 3  # one row, and yet nothing is refused: n is the declared one
    assert default_delta(10**6) == Fraction(1, 10**7)
    assert default_delta(10) == Fraction(1, 10**6)
    with pytest.raises(errors.InvalidInput, match="population"):
        vault("1/1001", 0)
