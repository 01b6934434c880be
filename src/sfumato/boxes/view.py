"""What a box sees of the host: an interpreter, some libraries and one file that starts, all of them to read alone.

Every level shows the same at the same places.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.boxes import inside
from sfumato.boxes.packages import BoxPackage

__all__ = ["PACKAGES", "BoxView", "interpreter_folders", "view_of"]

PACKAGES = "/packages"
_PROGRAM = "/inside.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxView:
    """Files and folders of the host with their places in a box, folders that are empty there, and what is started.

    Public: all of it; nothing of anybody's data is a file of a box.
    """

    shown: tuple[tuple[str, str], ...]
    empty: tuple[str, ...]
    command: tuple[str, ...]
    readable: tuple[str, ...]
    """Folders that a program may read."""


def view_of(packages: Sequence[BoxPackage], *, also: Sequence[tuple[str, str]] = (), start: str = _PROGRAM) -> BoxView:
    """The interpreter and these packages; ``also`` are more files and folders, ``start`` is the one that starts."""
    places = [place for package in packages for place in package.places]
    chosen = [(str(place), f"{PACKAGES}/{place.name}") for place in places]
    return BoxView(
        shown=(*((path, path) for path in interpreter_folders()), *chosen, (inside.__file__, _PROGRAM), *also),
        empty=tuple(_installed()),
        command=(_interpreter(), "-I", "-S", "-B", start),
        readable=(*(path for path in interpreter_folders() if Path(path).is_dir()), PACKAGES),
    )


def interpreter_folders() -> list[str]:
    """Folders of the interpreter and of system libraries, which are the same in the box."""
    system = [path for path in ("/lib", "/lib64", "/usr/lib", "/usr/lib64") if Path(path).exists()]
    return [*system, _interpreter() if sys.base_prefix == "/usr" else sys.base_prefix]


def _interpreter() -> str:
    return str(Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))


def _installed() -> list[str]:
    """Folders in those of the interpreter where anything may be installed: in a box they are empty."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    inside_of = [(Path(sys.base_prefix, "lib"), (version,)), (Path("/usr/lib"), (version, "python3"))]
    names = ("site-packages", "dist-packages")
    places = [folder / each / name for folder, versions in inside_of for each in versions for name in names]
    return [str(place) for place in dict.fromkeys(places) if place.is_dir() and not place.is_symlink()]
