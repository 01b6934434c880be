"""The page that explains streams, run; its pictures are drawn by ``python -m tests.docs.explained_streams``."""

import tempfile
from pathlib import Path

from tests.docs.networks import run
from tests.docs.test_docs import DOCS

PAGE, IMAGES = DOCS / "explanation" / "streams.md", DOCS / "images"


def main() -> None:
    """Draw everything anew."""
    with tempfile.TemporaryDirectory() as folder:
        run(PAGE, Path(folder))
        for picture in Path(folder).glob("*.svg"):
            (IMAGES / picture.name).write_bytes(picture.read_bytes())


if __name__ == "__main__":
    main()
