"""Files by what they are, not by how they are spelled: a file that is read twice counts each of its records twice."""

from collections.abc import Hashable, Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["local_path", "named_twice", "stored_as"]


def local_path(name: str) -> Path | None:
    """The file that a path or a ``file:`` URL of an engine means; None for one on another machine.

    >>> local_path("file:///data/first%20visits.parquet").as_posix()
    '/data/first visits.parquet'
    >>> local_path("s3://clinic/visits.parquet") is None
    True
    """
    scheme, sign, _ = name.partition(":")
    if not sign or "/" in scheme or len(scheme) == 1:  # a drive has one letter
        return Path(name)
    address = urlsplit(name)
    if address.scheme != "file" or address.netloc or address.query or address.fragment:
        return None
    return Path(unquote(address.path))


def stored_as(file: Path) -> tuple[Hashable, ...]:
    """What a file is known by, however it is spelled: where it is, and which it is on its disk; it is not opened."""
    whole = file.resolve()
    found = whole.stat() if whole.exists() else None
    return (("path", str(whole)), *([] if found is None else [("file", found.st_dev, found.st_ino)]))


def named_twice(files: Iterable[Path]) -> bool:
    """Whether one file is there under two names: other spellings, links and hard links are all the same file."""
    seen: set[object] = set()
    for file in files:
        whole = file.resolve()
        found = whole.stat() if whole.exists() else None
        what = whole if found is None else (found.st_dev, found.st_ino)
        if what in seen:
            return True
        seen.add(what)
    return False
