"""The tutorial on readmissions, run: its names after the last block."""

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.docs.test_docs import DOCS, blocks

PAGE = DOCS / "tutorial" / "readmissions.md"
PICTURE = DOCS / "images" / "readmissions.svg"


def run() -> dict[str, Any]:
    """Run the blocks of the page in a folder of their own; what they print is dropped."""
    names: dict[str, Any] = {"__name__": PAGE.stem}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            for block in blocks(PAGE, "python"):
                exec(block.body, names)  # noqa: S102 - the documentation is ours
        finally:
            os.chdir(before)
    return names
