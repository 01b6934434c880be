"""What is handed out: wheel and sdist, their packages and licences, and that a bare installation does what it says."""

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from scripts import distribution, sbom
from tests.docs.test_docs import REPOSITORY, blocks
from tests.parts import absent


def whole() -> None:
    """Licences and needs are read off installed packages, as the lock has them for the machines of CI."""
    missing = [name for name in sbom.locked() if not installed(name) and name not in sbom.elsewhere()]
    if missing or not sys.platform.startswith("linux"):
        absent(f"the bill is made on Linux with all locked packages; missing here: {', '.join(missing) or 'none'}")


def installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def test_the_bill_of_materials_lists_every_locked_package_once() -> None:
    bill = json.loads(sbom.FILE.read_text("utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = [(part["name"], part["version"]) for part in bill["components"]]
    assert listed == list(sbom.locked().items()), "run .venv/bin/python -m scripts.sbom"
    required = {part["name"] for part in bill["components"] if part["scope"] == "required"}
    assert {"numpy", "duckdb", "cryptography"} <= required
    assert not required & {"torch", "pyspark", "pytest", "altair", "fastapi"}


def test_every_licence_has_been_read_and_stands_on_the_page() -> None:
    whole()
    assert sbom.refused() == []
    assert sbom.bill() == json.loads(sbom.FILE.read_text("utf-8")), "run .venv/bin/python -m scripts.sbom"
    assert sbom.table() in sbom.PAGE.read_text("utf-8")


def test_a_licence_that_nobody_read_stops_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sbom, "licence", lambda name: "BUSL-1.1" if name == "rich" else "MIT")
    assert sbom.refused() == ["rich: BUSL-1.1"]
    monkeypatch.setattr(sbom, "FILE", Path("not written"))
    assert sbom.main() == 1


def test_packages_with_stricter_licences_are_no_part_of_a_bare_installation() -> None:
    whole()
    parts = sbom.groups()
    strict = {name for name in sbom.locked() if "GPL" in sbom.licence(name)}
    assert not strict & parts["base"]
    users = set().union(*(names for group, names in parts.items() if group not in ("dev", "docs")))
    assert strict & users == {"psycopg", "psycopg-binary"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return distribution.build(tmp_path_factory.mktemp("one"))


@pytest.mark.long
def test_the_same_commit_gives_the_same_bytes(built: tuple[Path, Path], tmp_path: Path) -> None:
    again = distribution.build(tmp_path)
    for one, other in zip(built, again, strict=True):
        assert hashlib.sha256(one.read_bytes()).digest() == hashlib.sha256(other.read_bytes()).digest(), one.name


@pytest.mark.long
def test_both_hold_the_package_with_its_files_and_no_tests(built: tuple[Path, Path]) -> None:
    wheel, sdist = built
    assert wheel.stat().st_size < 4_000_000
    assert sdist.stat().st_size < 4_000_000
    names = zipfile.ZipFile(wheel).namelist()
    ours = REPOSITORY / "src" / "sfumato"
    kept = [path for path in ours.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert [
        str(path.relative_to(ours.parent)) for path in kept if str(path.relative_to(ours.parent)) not in names
    ] == []
    assert not [name for name in names if name.startswith(("tests", "examples"))]
    with tarfile.open(sdist) as packed:
        inside = [member.name.partition("/")[2] for member in packed.getmembers()]
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"} <= set(inside)
    assert not [name for name in inside if name.startswith("tests/")]


@pytest.mark.long
def test_the_wheel_works_where_a_bare_installation_is_and_no_more(built: tuple[Path, Path], tmp_path: Path) -> None:
    """A fresh environment, linked to the packages that the wheel needs without extras; nothing is fetched."""
    whole()
    place = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    python = place / "bin" / "python"
    target = next((place / "lib").glob("python*/site-packages"))
    for name in sbom.groups()["base"]:
        for top in {file.parts[0] for file in metadata.files(name) or () if file.parts[0] not in ("..", "__pycache__")}:
            source = Path(str(metadata.distribution(name).locate_file(top)))
            if source.exists() and not (target / top).exists():
                (target / top).symlink_to(source)
    asked = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(built[0])]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *asked], check=True)
    clean = {name: said for name, said in os.environ.items() if not name.startswith("PYTHON")}

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = next(block.body for block in blocks(REPOSITORY / "README.md", "python") if ".release(" in block.body)
    assert "95% interval" in run(str(python), "-c", first)
    told = json.loads(run(str(place / "bin" / "sfumato"), "doctor", "--json"))
    assert told["fit"]
    assert {one["part"] for one in told["findings"] if one["state"] == "missing"} >= {"extra plots", "extra learning"}
