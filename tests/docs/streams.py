"""The two tutorials on streams of real data; their pictures are drawn by ``python -m tests.docs.streams``."""

import tempfile
from pathlib import Path

from tests.docs.networks import IMAGES, run
from tests.docs.test_docs import DOCS

PLACES, PERSONS = (DOCS / "tutorial" / name for name in ("office-and-city.md", "meters-and-messages.md"))


def main() -> None:
    """Draw everything anew."""
    for page in (PLACES, PERSONS):
        with tempfile.TemporaryDirectory() as folder:
            run(page, Path(folder))
            for picture in Path(folder).glob("*.svg"):
                (IMAGES / picture.name).write_bytes(picture.read_bytes())


if __name__ == "__main__":
    main()
