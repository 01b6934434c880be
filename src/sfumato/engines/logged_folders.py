"""Folders with a log: tables of which only the log knows which files count.

Delta, Iceberg, Hudi and Spark's streams leave files behind whose rows were removed or replaced. Whoever reads all files
of such a folder counts people who were erased.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from sfumato.errors import Refused

__all__ = ["LOGS", "METADATA", "SNAPSHOT", "check_no_log", "check_no_logs", "log_beside", "one_of_each_folder"]

LOGS = {
    "_delta_log": "a Delta table",
    "_spark_metadata": "a folder that Spark streams to",
    ".hoodie": "a Hudi table",
}
METADATA, SNAPSHOT = "metadata", "*.metadata.json"


def check_no_log(place: Path) -> None:
    """Refuse a file or folder that a log decides about; names of files are looked at, and nothing is opened.

    Looked at are the folders that it lies in and, of a folder, all folders inside it.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "visits"
    >>> (folder / "_delta_log").mkdir(parents=True)
    >>> check_no_log(folder / "part-0.parquet")
    Traceback (most recent call last):
    sfumato.errors.Refused: 'part-0.parquet' belongs to a Delta table: ...
    """
    kind = log_beside(place)
    if kind is not None:
        raise Refused(
            f"{place.name!r} belongs to {kind}: its log says which files count, and others still hold rows that were "
            "removed or replaced, so that erased people would come back. Nothing was read and nothing was spent. Read "
            "it with the engine that keeps the log, such as Spark, and hand over that table or frame; or write its "
            "rows to Parquet files in a folder of their own."
        )


def check_no_logs(files: Iterable[Path]) -> None:
    """The same for many files: of those in one folder, one is looked at."""
    for file in one_of_each_folder(files):
        check_no_log(file)


def one_of_each_folder(files: Iterable[Path]) -> list[Path]:
    """One file of each folder, links resolved and not; where it is looked for a log, the others need not be."""
    return list({(file.absolute().parent, file.resolve().parent): file for file in files}.values())


def log_beside(place: Path) -> str | None:
    """What a file or folder belongs to by the logs around it; None where there is none."""
    for folder in _folders(place):
        kind = next((LOGS[name] for name in LOGS if (folder / name).is_dir()), None)
        if kind is None and any((folder / METADATA).glob(SNAPSHOT)):
            kind = "an Iceberg table"
        if kind is not None:
            return kind
    return None


def _folders(place: Path) -> Iterator[Path]:
    """The folders that could have such a log: by the way that was named, and by the one that links lead to."""
    whole = place.resolve()
    yield from dict.fromkeys((*place.absolute().parents, *whole.parents))
    if whole.is_dir():
        yield whole
        yield from (inside for inside in whole.rglob("*") if inside.is_dir())
