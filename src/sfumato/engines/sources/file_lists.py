"""Lists of files: one file, a folder, a pattern or several of these, each file read once and in one state."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from sfumato.engines.logged_folders import check_no_log, check_no_logs
from sfumato.engines.stored_files import named_twice, stored_as
from sfumato.errors import EngineFailed, InvalidInput

__all__ = ["FileList", "is_pattern"]

PATTERNS = "*?["
SIGNS = PATTERNS + "{"  # an engine would read other files for a name that holds one


def is_pattern(place: Path) -> bool:
    """Whether a path names files by a pattern.

    >>> is_pattern(Path("visits-*.csv")), is_pattern(Path("visits.csv"))
    (True, False)
    """
    return any(sign in str(place) for sign in PATTERNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileList:
    """Files of one kind, by their ``endings``; ``what`` messages call one of them."""

    places: tuple[Path, ...]
    endings: tuple[str, ...]
    what: str

    def __post_init__(self) -> None:
        for place in self.places:
            if "{" in str(place):
                raise InvalidInput(
                    f"{place.name!r} has a sign of patterns ({{) that is not known here; nothing was done. Write "
                    "patterns with * ? [ ], and ** for folders however deep; or list the files."
                )
            if not is_pattern(place):
                check_no_log(place)
        if named_twice(place for place in self.places if not is_pattern(place)):
            raise InvalidInput("the list of files names one of them twice; nothing was done.")

    @property
    def label(self) -> str:
        """The name of the file, folder or pattern, without the way to it."""
        more = len(self.places) - 1
        return repr(self.places[0].name) + (f" and {more} more files" if more else "")

    def files(self) -> list[Path]:
        """All files, in order; in a folder, those with the endings that are not hidden, however deep."""
        found: list[Path] = []
        for place in self.places:
            if is_pattern(place):
                found += sorted(map(Path, glob(str(place), recursive=True)))
            elif place.is_dir():
                inside = (file.relative_to(place) for file in place.rglob("*"))
                shown = [file for file in inside if not any(part[0] in "._" for part in file.parts)]
                found += sorted(place / file for file in shown if file.name.lower().endswith(self.endings))
            else:
                found.append(place)
        return [file for file in found if not file.is_dir()]

    def state(self) -> object:
        """Which files there are, and when they were written; none of them is read."""
        found = ((str(file), file.stat()) for file in self.files() if file.is_file())
        return [(name, at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns) for name, at in found]

    def stored(self) -> list[Hashable]:
        """What each file is known by."""
        return [what for file in self.files() for what in stored_as(file)]

    def checked(self) -> Sequence[Path]:
        """The files that are there now, each once, and none whose name an engine would take for a pattern."""
        for place in self.places:  # again: a folder may have become a table that a log decides about
            if not is_pattern(place):
                check_no_log(place)
        files = self.files()
        for file in files:
            if not file.is_file():
                raise EngineFailed(
                    f"there is no file {file.name!r} at the place given; nothing was read and nothing was spent. "
                    "Check the path that the table was declared with."
                )
        if any(sign in str(file) for file in files for sign in SIGNS):
            raise InvalidInput(
                f"a file of {self.label} has a sign of patterns (* ? [ {{) in its name, by which others would be read "
                "again; nothing was read and nothing was spent. Give it another name."
            )
        check_no_logs(files)  # of links inside the folder, too
        if named_twice(files):
            raise InvalidInput(
                f"one file of {self.label} is there under two names, and its records would count twice; nothing was "
                "read and nothing was spent. Take links and copies of names out of the folder."
            )
        if not files:
            raise EngineFailed(
                f"there is no {self.what} file at {self.label}; nothing was read and nothing was spent. "
                "Check the path that the table was declared with."
            )
        return files
