"""The picture of the guide to the local model: ``python -m tests.local.picture`` draws it anew."""

import tempfile
from pathlib import Path

from tests.docs.networks import IMAGES, run
from tests.docs.test_docs import DOCS

PAGE = DOCS / "how-to" / "local-model.md"
NAME = "local-shares.svg"


def main() -> None:
    """Run the page, and keep what it draws."""
    with tempfile.TemporaryDirectory() as folder:
        run(PAGE, Path(folder))
        (IMAGES / NAME).write_bytes((Path(folder) / NAME).read_bytes())


if __name__ == "__main__":
    main()
