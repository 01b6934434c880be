"""The pages on streams that draw; their pictures are drawn by ``python -m tests.docs.streams``."""

import tempfile
from pathlib import Path

from tests.docs.networks import IMAGES, run
from tests.docs.test_docs import DOCS

PLACES, PERSONS = (DOCS / "tutorial" / name for name in ("office-and-city.md", "meters-and-messages.md"))
LOOP = DOCS / "how-to" / "act-on-a-stream.md"


def main() -> None:
    """Draw everything anew."""
    for page in (PLACES, PERSONS, LOOP):
        with tempfile.TemporaryDirectory() as folder:
            run(page, Path(folder))
            for picture in Path(folder).glob("*.svg"):
                (IMAGES / picture.name).write_bytes(picture.read_bytes())


if __name__ == "__main__":
    main()
