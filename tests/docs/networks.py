"""The two tutorials on networks, run; their pictures are drawn by ``python -m tests.docs.networks``."""

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import Any

from tests.docs.test_docs import DOCS, blocks
from tests.reports.pixels import Picture, compressed

WARDS, PROTEINS = (DOCS / "tutorial" / name for name in ("ward-contacts.md", "protein-network.md"))
IMAGES = DOCS / "images"


def run(page: Path, folder: Path) -> dict[str, Any]:
    """The names of a page after its last block, run in a folder where its files stay; what it prints is dropped."""
    names: dict[str, Any] = {"__name__": page.stem}
    before = Path.cwd()
    with contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            for block in blocks(page, "python"):
                exec(block.body, names)  # noqa: S102 - the documentation is ours
        finally:
            os.chdir(before)
    return names


def main() -> None:
    """Draw everything anew."""
    for page in (WARDS, PROTEINS):
        with tempfile.TemporaryDirectory() as folder:
            run(page, Path(folder))
            for picture in Path(folder).glob("*.svg"):
                (IMAGES / picture.name).write_bytes(picture.read_bytes())
            for picture in Path(folder).glob("*.png"):
                (IMAGES / picture.name).write_bytes(compressed(Picture.read(picture.read_bytes())))


if __name__ == "__main__":
    main()
