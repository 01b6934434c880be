"""The settings of a ledger: where its database, its key, its anchor and its witness are, in one small TOML file.

Paths in the file are taken from the folder that it lies in, so that a ledger can be moved as a whole.
"""

import json
import os
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.signature import SigningKey, read_public_key
from sfumato.errors import InvalidInput, LedgerError, NotDeclared

if TYPE_CHECKING:
    from sfumato.governance.anchor import SignedHead
    from sfumato.governance.ledger import Ledger

__all__ = ["NAME", "OWNER", "VARIABLE", "Settings", "file_of", "found", "made", "opened", "owner_of", "reading"]

NAME = "ledger.toml"
VARIABLE = "SFUMATO_LEDGER"
OWNER = "unix:"
_FIELDS = ("url", "key", "anchor")
_ROLES = ("root", "release", "administer")
"""Keys of a ledger whose keys have roles; ``root`` is public."""
_FILES = {"root": "root.pub", "release": "release.key", "administer": "administer.key"}
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
    root: Path | None = None
    release: Path | None = None
    administer: Path | None = None
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
                **{name: folder / _home(fields[name]) for name in _ROLES if name in fields},
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
        roles = {name: getattr(self, name) for name in _ROLES}
        said |= {name: _short(path, folder) for name, path in roles.items() if path is not None}
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
    if str(given).startswith(OWNER):
        raise NotDeclared(_of_an_owner(given))
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


def owner_of(given: str | Path | None = None) -> str | None:
    """The address of the owner process that is meant, ``unix:/path/to/socket``; None where it is a ledger itself.

    It is given, stands in the environment, or is the ``url`` of a settings file that names nothing else.

    >>> owner_of("unix:/run/sfumato/ledger.sock")
    'unix:/run/sfumato/ledger.sock'
    """
    meant = os.environ.get(VARIABLE) or NAME if given is None else given
    if str(meant).startswith(OWNER):
        return str(meant)
    if "://" in str(meant):
        return None
    place = file_of(meant)
    if not place.is_file():
        return None
    url = _parsed(place).get("url")
    if not isinstance(url, str) or not url.startswith(OWNER):
        return None
    if set(_parsed(place)) != {"url"}:
        raise InvalidInput(f"{place} names an owner process, which keeps key and anchor itself. Nothing was done.")
    return url


def opened(given: str | Path | None = None) -> "Ledger":
    """The ledger that is meant, compared with its anchor."""
    from sfumato.governance.ledger import Ledger

    settings = found(given)
    return Ledger.open(
        settings.url,
        key=_key(settings),
        anchor=settings.anchor,
        root=settings.root,
        release=settings.release,
        administer=settings.administer,
        witness=settings.witness,
    )


def reading(
    given: str | Path | None = None,
    *,
    key: str | Path | None = None,
    head: "SignedHead | None" = None,
    checked: bool = True,
) -> "Ledger":
    """The ledger that is meant, for reading: with the public ``key``, or the public half beside the one it names.

    It is held to its anchor where one may read that, and to ``head``. Where one may not, and where somebody who brought
    a ``key`` has no anchor at all, it is held to ``head`` alone, or to nothing (``Ledger.held_to_nothing``).
    """
    from sfumato.governance.ledger import Ledger

    settings = found(given)
    trusted = _public(settings) if key is None else key
    file = settings.anchor if isinstance(settings.anchor, Path) else None
    seen = key is None or file is None or file.exists()
    anchor = settings.anchor if seen and (file is None or _readable(file)) else None
    return Ledger.read(settings.url, key=trusted, anchor=anchor, head=head, checked=checked)


def _readable(anchor: Path) -> bool:
    """Whether one may read the anchor; a missing one is left to whoever opens it, who says so."""
    try:
        with anchor.open("rb"):
            return True
    except PermissionError:
        return False
    except OSError:
        return True


def _public(settings: Settings) -> str | Path:
    """The root where there is one, else the public half of the ledger's key: without the private one, if it can be."""
    if settings.root is not None:
        return settings.root
    beside = Path(f"{settings.key}.pub")
    if beside.is_file():
        return beside
    return SigningKey.load(_key(settings)).public_text


def made(
    given: str | Path = ".",
    *,
    url: str | None = None,
    anchor: str | Path | None = None,
    key: str | Path | None = None,
    root: str | Path | None = None,
    next_root: str | Path | None = None,
    witness: str | None = None,
) -> Settings:
    """Make a ledger and its settings file; nothing that exists is overwritten.

    Without ``url`` the database is an SQLite file beside the settings, without ``anchor`` the anchor lies there too: it
    then notices a record that was cut short, but not one backup of both. A ``key`` that exists is used. With a ``root``
    keys have roles: one for releases and one for administration are made beside the settings, and the public half of
    the root is copied there; ``next_root`` is the public key of the root after it.
    """
    from sfumato.governance.anchor_database import anchor_at
    from sfumato.governance.ledger import Ledger
    from sfumato.governance.store import Store

    if root is None and next_root is not None:
        raise NotDeclared("the next root is named beside a root; nothing was made. Say which one: --root FILE")
    place = file_of(given)
    folder = place.absolute().parent
    database = Path(given).name if Path(given).suffix in _DATABASES else f"{place.stem}.db"
    settings = Settings(
        file=place,
        url=str(folder / database) if url is None else _based(url, Path.cwd()),
        key=folder / f"{place.stem}.key" if key is None else Path(key).absolute(),
        anchor=folder / f"{place.stem}.anchor" if anchor is None else _anchor(str(anchor), Path.cwd()),
        witness=witness,
        **({} if root is None else {name: folder / f"{place.stem}.{_FILES[name]}" for name in _ROLES}),
    )
    file = settings.anchor if isinstance(settings.anchor, Path) else None
    for taken in filter(None, (place, file, settings.root, settings.release, settings.administer)):
        if taken.exists() or taken.is_symlink():
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
    rooted = None if root is None else SigningKey.load(root)
    coming = None if next_root is None else read_public_key(next_root)
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
    if rooted is not None and settings.root is not None:
        settings.root.write_text(rooted.public_text + "\n", encoding="ascii")
        for own in filter(None, (settings.release, settings.administer)):
            SigningKey.new().save(own)
    Ledger.create(
        settings.url,
        key=signing,
        anchor=settings.anchor,
        root=rooted,
        next_root=coming,
        release=settings.release,
        administer=settings.administer,
        witness=settings.witness,
    ).close()
    settings.write()
    return settings


def _of_an_owner(given: str | Path) -> str:
    return (
        f"{given} is an owner process, which is for charging: vaults, sfumato query, graph, stream and suggest-limit. "
        "Nothing was done. This needs the ledger itself, by its settings file, as the user who keeps it."
    )


def _parsed(place: Path) -> dict[str, object]:
    try:
        body: dict[str, object] = tomllib.loads(place.read_text("utf-8"))
    except OSError as wrong:
        raise LedgerError(f"the settings {place} could not be read: {wrong.strerror}. Nothing was done.") from None
    except (RecursionError, ValueError) as wrong:  # ValueError: no TOML, no UTF-8, or a number of thousands of digits
        where = f": {wrong}" if isinstance(wrong, tomllib.TOMLDecodeError) else ""
        raise InvalidInput(f"{place} is not TOML in UTF-8{where}. No ledger was opened.") from None
    return body


def _read(place: Path) -> dict[str, str]:
    body = _parsed(place)
    if str(body.get("url")).startswith(OWNER):
        raise NotDeclared(_of_an_owner(str(body["url"])))
    fields: dict[str, str] = {}
    for name in _FIELDS:
        said = body.get(name)
        if not isinstance(said, str) or not said or "\0" in said:
            raise NotDeclared(
                f'{place} does not say {name} = "…"; no ledger was opened. Settings hold url, key and anchor.'
            )
        fields[name] = said
    for name in _ROLES:
        said = body.get(name)
        if said is None:
            continue
        if not isinstance(said, str) or not said or "\0" in said:
            raise InvalidInput(f'{place} does not say {name} = "…" as a file; no ledger was opened.')
        fields[name] = said
    if "witness" in body:
        said = body["witness"]
        if not isinstance(said, str) or not said.startswith("http"):
            raise InvalidInput(f"{place}: witness is the address of a witness, http://…; no ledger was opened.")
        fields["witness"] = said
    if set(body) - {*_FIELDS, *_ROLES, "witness"}:
        unknown = ", ".join(sorted(map(repr, set(body) - {*_FIELDS, *_ROLES, "witness"})))
        raise InvalidInput(f"{place} has unknown fields: {unknown}. No ledger was opened. Take them out.")
    return fields


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
