"""The settings of a ledger: where its database, its key, its anchor and its witness are, in one small TOML file.

Paths in the file are taken from the folder that it lies in, so that a ledger can be moved as a whole.
"""

import json
import os
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any  # values of a TOML file, each checked

from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, NotDeclared

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger

__all__ = ["NAME", "VARIABLE", "Settings", "file_of", "found", "made", "opened", "unchecked"]

NAME = "ledger.toml"
VARIABLE = "SFUMATO_LEDGER"
_FIELDS = ("url", "key", "anchor")
_DATABASES = (".db", ".sqlite", ".sqlite3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where a ledger is. ``url`` may hold a password, so that a repr leaves it out.

    >>> where = Settings(file=Path("ledger.toml"), url="postgresql://ada:secret@db/ledger", key=Path("k"),
    ...                  anchor=Path("a"))
    >>> where.address
    'postgresql://ada:***@db/ledger'
    """

    file: Path
    url: str
    key: Path
    anchor: Path | str
    """A file, or the address of a row in another database."""
    witness: str | None = None
    """Where the witness that the record names is asked."""

    @classmethod
    def load(cls, file: str | Path) -> "Settings":
        """Read a settings file; what is wrong is said with its name."""
        place = Path(file)
        fields = _read(place)
        folder = place.absolute().parent
        try:
            return cls(
                file=place,
                url=_based(fields["url"], folder),
                key=folder / _home(fields["key"]),
                anchor=_anchor(fields["anchor"], folder),
                witness=fields.get("witness"),
            )
        except InvalidInput as wrong:
            raise InvalidInput(f"{place}: {wrong}") from None

    @property
    def address(self) -> str:
        """The database without a password, to be shown."""
        if "://" not in self.url:
            return self.url
        from sfumato.governance.store import shown

        return shown(self.url)

    @property
    def anchored_at(self) -> str:
        """The anchor without a password, to be shown."""
        if not isinstance(self.anchor, str):
            return str(self.anchor)
        from sfumato.governance.store import shown

        return shown(self.anchor)

    @property
    def same_disk(self) -> bool | None:
        """Whether anchor and database lie on one disk; None where one of them is an address."""
        if "://" in self.url or isinstance(self.anchor, str):
            return None
        return self.anchor.parent.stat().st_dev == Path(self.url).parent.stat().st_dev

    def __repr__(self) -> str:
        return f"Settings({str(self.file)!r})"

    def with_witness(self, address: str) -> "Settings":
        """The settings with the address of a witness, added to the file; one that stands there is not changed."""
        if self.witness == address:
            return self
        if self.witness is not None:
            raise LedgerError(
                f"{self.file} names a witness at {self.witness} already; nothing was changed. Edit the file."
            )
        if not address.startswith(("http://", "https://")):
            raise InvalidInput("the address of a witness is http://HOST:PORT; nothing was changed.")
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"witness = {json.dumps(address)}\n")
        return replace(self, witness=address)

    def write(self) -> None:
        """Write the file; never overwrite one. Only its owner can read it where the address holds a password."""
        folder = self.file.absolute().parent
        said = {
            "url": self.url if "://" in self.url else _short(Path(self.url), folder),
            "key": _short(self.key, folder),
            "anchor": self.anchor if isinstance(self.anchor, str) else _short(self.anchor, folder),
        }
        if self.witness is not None:
            said["witness"] = self.witness
        text = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in said.items())
        secret = self.address != self.url or self.anchored_at != str(self.anchor)
        try:
            descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if secret else 0o644)
        except FileExistsError:
            raise LedgerError(f"{self.file} already exists and was not overwritten. Choose another place.") from None
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)


def file_of(given: str | Path | None = None) -> Path:
    """The settings file that is meant by itself, its folder, the database beside it, or nothing at all.

    >>> file_of("hospital/ledger.db").as_posix(), file_of("hospital/budget.toml").as_posix()
    ('hospital/ledger.toml', 'hospital/budget.toml')
    """
    if given is None:
        given = os.environ.get(VARIABLE) or NAME
    if "://" in str(given):
        raise NotDeclared(
            "an address alone does not say which key and which anchor a ledger has; nothing was done. Give the "
            f"settings file that sfumato ledger init wrote, such as {NAME}."
        )
    place = Path(given)
    if place.is_dir() or not (place.suffix or place.is_file()):
        return place / NAME
    return place if place.suffix == ".toml" else place.with_suffix(".toml")


def found(given: str | Path | None = None) -> Settings:
    """The settings that are meant: those given, else those of the environment, else those of this folder."""
    place = file_of(given)
    if not place.is_file():
        raise NotDeclared(
            f"there is no settings file {place}, so nobody knows where the ledger is. Nothing was read and nothing "
            f"was spent. Make a ledger: sfumato ledger init; or say which one: --ledger FILE, or {VARIABLE}=FILE"
        )
    return Settings.load(place)


def opened(given: str | Path | None = None) -> "Ledger":
    """The ledger that is meant, compared with its anchor."""
    from sfumato.governance.ledger import Ledger

    settings = found(given)
    return Ledger.open(settings.url, key=_key(settings), anchor=settings.anchor, witness=settings.witness)


def unchecked(given: str | Path | None = None) -> "Ledger":
    """The same without looking at the anchor: only to verify a ledger that might be refused."""
    from sfumato.governance.ledger import Ledger

    settings = found(given)
    return Ledger.unchecked(settings.url, key=_key(settings), anchor=settings.anchor, witness=settings.witness)


def made(
    given: str | Path = ".",
    *,
    url: str | None = None,
    anchor: str | Path | None = None,
    key: str | Path | None = None,
    witness: str | None = None,
) -> Settings:
    """Make a ledger and its settings file; nothing that exists is overwritten.

    Without ``url`` the database is an SQLite file beside the settings, without ``anchor`` the anchor lies there too: it
    then notices a record that was cut short, but not one backup of both. A ``key`` that exists is used.
    """
    from sfumato.governance.anchor_database import anchor_at
    from sfumato.governance.ledger import Ledger
    from sfumato.governance.store import Store

    place = file_of(given)
    folder = place.absolute().parent
    database = Path(given).name if Path(given).suffix in _DATABASES else f"{place.stem}.db"
    settings = Settings(
        file=place,
        url=str(folder / database) if url is None else _based(url, Path.cwd()),
        key=folder / f"{place.stem}.key" if key is None else Path(key).absolute(),
        anchor=folder / f"{place.stem}.anchor" if anchor is None else _anchor(str(anchor), Path.cwd()),
        witness=witness,
    )
    file = settings.anchor if isinstance(settings.anchor, Path) else None
    for taken in (place, file):
        if taken is not None and (taken.exists() or taken.is_symlink()):
            raise LedgerError(
                f"{taken} is there already: a ledger was made here before, and nothing was changed. Use it with "
                f"--ledger {place}, or choose another place."
            )
    if file is not None and file.parent != folder and not file.parent.is_dir():
        raise InvalidInput(
            f"there is no folder {file.parent} for the anchor, and none was made: its disk may be missing. "
            "Nothing was made. Mount it, or name another place with --anchor."
        )
    known = SigningKey.load(settings.key) if settings.key.exists() else None
    if Store(settings.url).exists():
        raise LedgerError(
            f"{settings.address} holds a ledger already, and nothing was changed. Use it with its own settings file."
        )
    if file is None and anchor_at(settings.anchor).last() is not None:
        raise LedgerError(f"the anchor {settings.anchored_at} exists already; nothing was made. Name another row.")
    folder.mkdir(parents=True, exist_ok=True)
    signing = known or SigningKey.new()
    if known is None:
        signing.save(settings.key)  # before the first entry: a ledger without its key would be lost
    Ledger.create(settings.url, key=signing, anchor=settings.anchor, witness=settings.witness).close()
    settings.write()
    return settings


def _read(place: Path) -> dict[str, str]:
    try:
        body: dict[str, Any] = tomllib.loads(place.read_text("utf-8"))
    except OSError as wrong:
        raise LedgerError(f"the settings {place} could not be read: {wrong.strerror}. Nothing was done.") from None
    except (RecursionError, ValueError) as wrong:  # ValueError: no TOML, no UTF-8, or a number of thousands of digits
        where = f": {wrong}" if isinstance(wrong, tomllib.TOMLDecodeError) else ""
        raise InvalidInput(f"{place} is not TOML in UTF-8{where}. No ledger was opened.") from None
    for name in _FIELDS:
        if not isinstance(body.get(name), str) or not body[name] or "\0" in body[name]:
            raise NotDeclared(
                f'{place} does not say {name} = "…"; no ledger was opened. Settings hold url, key and anchor.'
            )
    if "witness" in body and (not isinstance(body["witness"], str) or not body["witness"].startswith("http")):
        raise InvalidInput(f"{place}: witness is the address of a witness, http://…; no ledger was opened.")
    if set(body) - {*_FIELDS, "witness"}:
        unknown = ", ".join(sorted(map(repr, set(body) - {*_FIELDS, "witness"})))
        raise InvalidInput(f"{place} has unknown fields: {unknown}. No ledger was opened. Take them out.")
    return body


def _key(settings: Settings) -> Path:
    if not settings.key.is_file():
        raise LedgerError(
            f"the key {settings.key} that {settings.file} names is not there; nothing was read and nothing was spent. "
            "Bring it back: a ledger goes on with its own key, and a new one does not open it."
        )
    return settings.key


def _based(url: str, folder: Path) -> str:
    """An address with a path of SQLite taken from a folder."""
    path = url.removeprefix("sqlite:///")
    return path if "://" in path else str(folder / _home(path))


def _anchor(text: str, folder: Path) -> Path | str:
    """An anchor: an address of another database, or a path taken from a folder."""
    if "://" not in text:
        return folder / _home(text)
    path = text.removeprefix("sqlite:///")
    return text if path == text else f"sqlite:///{folder / _home(path)}"


def _home(path: str) -> Path:
    """A path with somebody's ``~`` in its place."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InvalidInput(f"nobody knows the home folder that {path!r} begins with. No ledger was opened.") from None


def _short(path: Path, folder: Path) -> str:
    """A path as the file states it: from its own folder where it lies in there."""
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)
