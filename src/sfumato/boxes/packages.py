"""What a box can import: the distributions of some libraries and of what these need, each with the hash of its files.

Only these folders and files are mounted in a box: no path file, no metadata of an installation, and nothing else that
is installed beside them.
"""

import hashlib
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from sfumato.errors import InvalidInput

__all__ = ["BoxPackage", "packages_of"]

ALWAYS = "pyarrow"  # what rows arrive in
OURS = "sfumato"
_LEFT_OUT = (".pth", ".dist-info", ".egg-info", ".egg-link", ".pyc")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPackage:
    """A distribution: its name, its version and where its folders and files lie on the host. Public: all of it."""

    name: str
    version: str
    places: tuple[Path, ...]

    @property
    def sha256(self) -> str:
        """The digest of all its files but compiled ones, with their names."""
        return _digest(self.places)

    def __str__(self) -> str:
        return f"{self.name} {self.version} sha256:{self.sha256}"


@cache
def packages_of(libraries: tuple[str, ...], *, of_sfumato: bool = False) -> tuple[BoxPackage, ...]:
    """The distributions that these libraries come from, with those that they need, by name.

    A library that is part of Python needs none. One that is not installed is refused, and so is Sfumato, whose settings
    lie beside its code; ``of_sfumato`` adds what it needs, without itself.

    >>> [package.name for package in packages_of(())]
    ['pyarrow']
    """
    wanted: list[str] = [ALWAYS, *(_needed(distribution(OURS).requires or ()) if of_sfumato else ())]
    for library in libraries:
        if library in sys.stdlib_module_names:
            continue
        named = [] if library == OURS else _named(library)
        if not named:
            raise InvalidInput(f"{library} is no library that a box can have on this host; no code was run.")
        wanted += named
    found: dict[str, BoxPackage] = {}
    for name in wanted:  # it grows while it is walked along
        plain = _plain(name)
        if plain in found or plain == OURS:
            continue
        try:
            one = distribution(name)
        except PackageNotFoundError:
            continue
        found[plain] = BoxPackage(name=plain, version=one.version, places=_places(one))
        wanted += _needed(one.requires or ())
    return tuple(found[name] for name in sorted(found))


def _named(library: str) -> list[str]:
    """The distributions that a library comes from: mostly the one of its own name."""
    try:
        return [distribution(library).metadata["Name"]]
    except PackageNotFoundError:
        return packages_distributions().get(library, [])


def _needed(requires: Sequence[str]) -> list[str]:
    """The names of what is needed in any case."""
    return [said[0] for each in requires if "extra ==" not in each and (said := _NAME.match(each))]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _places(one: Distribution) -> tuple[Path, ...]:
    """Its folders and files at the top, as they lie on the host."""
    tops = {file.parts[0] for file in one.files or () if file.parts}
    kept = sorted(top for top in tops if top not in ("..", "__pycache__", "/") and not top.endswith(_LEFT_OUT))
    return tuple(path for top in kept if (path := Path(str(one.locate_file(top)))).exists())


@cache
def _digest(places: tuple[Path, ...]) -> str:
    """SHA-256 of names and contents, in the order of the names."""
    whole = hashlib.sha256()
    for place in places:
        files = [place] if place.is_file() else sorted(place.rglob("*"))
        for file in files:
            if file.is_file() and not file.name.endswith(".pyc"):
                with file.open("rb") as opened:
                    content = hashlib.file_digest(opened, "sha256").hexdigest()
                whole.update(f"{file.relative_to(place.parent).as_posix()}\0{content}\n".encode())
    return whole.hexdigest()
