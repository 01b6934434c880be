"""Optional parts of a test: skipped with a reason where absent, required where CI says so."""

import importlib.util
import os
from pathlib import Path

import pytest

from sfumato.errors import MissingExtra
from sfumato.reports.browser import find

ROOT = Path(__file__).parents[1]
REQUIRED = os.environ.get("SFUMATO_REQUIRE_ALL") == "1"


def dataset(name: str) -> Path:
    """A file of the public datasets that lie beside the project, in ``../shared/data``."""
    path = ROOT.parent / "shared" / "data" / name
    if not path.is_file():
        absent(f"the public dataset {name} does not lie beside the project")
    return path


def package(name: str) -> None:
    """An optional package."""
    if importlib.util.find_spec(name) is None:
        absent(f"the package {name} is not installed")


def browser() -> Path:
    """A browser that can print and be driven: Chromium, Chrome or Edge."""
    package("playwright")
    try:
        return find()
    except MissingExtra:
        absent("no Chromium, Chrome or Edge is installed")
        raise


def boxes(level: str | None = None) -> None:
    """A host that can shut boxes for programs of researchers, at this level or at any."""
    from sfumato.boxes.levels import BoxLevel, box_level, enclosure

    if level is None and box_level() is None:
        absent("neither gVisor nor bubblewrap with Landlock is on this host")
    if level is not None and (missing := enclosure(BoxLevel(level)).missing()) is not None:
        absent(f"boxes of level {level} need {missing}")


def absent(reason: str) -> None:
    """Skip, or fail where every part is required."""
    if REQUIRED:
        pytest.fail(f"{reason}, and every optional part is required here")
    pytest.skip(reason, allow_module_level=True)
