"""The pictures of the gallery, drawn by the lines that stand above each: ``python -m tests.docs.twenty``."""

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sfumato.reports import plots
from tests.docs.training import DOCS

PAGE = DOCS / "gallery.md"
PICTURED = re.compile(r"^```python\n((?:(?!^```).)*)^```\n\n!\[[^\]]+\]\((images/gallery-\d\d\.svg)\)$", re.M | re.S)
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def drawn() -> Iterator[tuple[Path, Any]]:
    """Every picture with its chart, in the order of the page."""
    text = PAGE.read_text("utf-8")
    pictures = dict(PICTURED.findall(text))
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for code in BLOCK.findall(text):
            exec(code, names)  # noqa: S102 - our own page
            if code in pictures:
                yield DOCS / pictures[code], names["chart"]


if __name__ == "__main__":
    for place, chart in drawn():
        plots.save(chart, place)
