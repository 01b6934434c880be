"""The picture of the page on maps, drawn by the code that stands on it: ``python -m tests.docs.maps``."""

import contextlib
import re
import tempfile
from pathlib import Path
from typing import Any

from sfumato.reports import plots

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "maps.md"
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "map-of-districts.svg"


def drawn() -> Any:
    """The chart that the code of the page makes."""
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
            exec(block, names)  # noqa: S102 - our own page
    return names["chart"]


if __name__ == "__main__":
    plots.save(drawn(), PICTURE)
