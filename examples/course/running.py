"""Run a notebook without Jupyter: its code cells, in order, in one namespace."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

__all__ = ["cells", "run"]


def cells(path: Path) -> list[tuple[str, str]]:
    """The code cells of a notebook: the tag of each, or nothing, and its code."""
    whole = json.loads(path.read_text("utf-8"))
    return [
        ("".join(cell["metadata"].get("tags", [])), "".join(cell["source"]))
        for cell in whole["cells"]
        if cell["cell_type"] == "code"
    ]


def run(path: Path, *, instead: Mapping[str, str] = MappingProxyType({}), until: str = "") -> dict[str, Any]:
    """Run the code cells of a notebook and return what they have defined.

    ``instead`` gives code that takes the place of cells, by their code; a check that does not accept what stands before
    it raises ``AssertionError``. After the cell whose code is ``until`` the rest is left out.
    """
    names: dict[str, Any] = {"__name__": path.stem}
    for place, (_, code) in enumerate(cells(path), 1):
        ours = compile(instead.get(code, code), f"{path.name}, code cell {place}", "exec", dont_inherit=True)
        exec(ours, names)  # noqa: S102 - the notebooks are ours
        if code == until:
            break
    return names
