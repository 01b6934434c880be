"""The tutorial for biostatisticians, run; its pictures are drawn by ``python -m tests.docs.biostatistics``."""

from pathlib import Path

from tests.docs.readmissions import run
from tests.docs.test_docs import DOCS

__all__ = ["PAGE", "PICTURES", "run"]

PAGE = DOCS / "tutorial" / "biostatistics.md"
PICTURES: dict[str, Path] = {
    name: DOCS / "images" / f"biostatistics-{name}.svg" for name in ("compared", "curves", "odds")
}
"""By the name of the result on the page that each is drawn of."""


if __name__ == "__main__":
    from sfumato.reports.plots import save

    names = run(PAGE)
    for name, path in PICTURES.items():
        save(names[name].plot(), path)
