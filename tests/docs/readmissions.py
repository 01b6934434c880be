"""The tutorial on readmissions, run; its picture is drawn by ``python -m tests.docs.readmissions``."""

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.docs.test_docs import DOCS, blocks

PAGE = DOCS / "tutorial" / "readmissions.md"
PICTURE = DOCS / "images" / "readmissions.svg"


def run(page: Path = PAGE) -> dict[str, Any]:
    """The names of the page after its last block, run in a folder of its own; what it prints is dropped."""
    names: dict[str, Any] = {"__name__": page.stem}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            for block in blocks(page, "python"):
                exec(block.body, names)  # noqa: S102 - the documentation is ours
        finally:
            os.chdir(before)
    return names


if __name__ == "__main__":
    from sfumato.reports.plots import save

    save(run()["release"].plot(column="readmitted"), PICTURE)
