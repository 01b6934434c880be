"""Backups of a service while it runs, and the way back: its tables, its ledger, and files of stewards if asked for.

A backup holds no key, no anchor, no settings and no state of a stream: an anchor that comes back with its ledger sees
nothing, and noise that comes back with a stream would be used twice. Sessions, links and tokens stay out as well,
since one that has ended since would open the service again; so do addresses of brokers that may hold a password. The
ledger part is a backup of the ledger, and goes the same way back: what its anchor says was lost is charged. What was
closed in the service's own tables since then nobody knows, so that all of it comes back shut. A backup is signed by the
key of the ledger, and nothing that was changed in it is believed.
"""

import hashlib
import json
import os
import re
import secrets
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any  # what JSON holds

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from sfumato.core.documents import canonical
from sfumato.core.signature import SigningKey, signature_holds
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.governance import backup as ledger_backup
from sfumato.governance import settings as ledger_settings
from sfumato.governance.backup import Restored
from sfumato.server.app import areas
from sfumato.server.database import METADATA, Database
from sfumato.server.datasets.databases import is_table
from sfumato.server.datasets.onboarding import ENDINGS
from sfumato.server.datasets.tables import BROUGHT_BACK, DATASETS
from sfumato.server.identity.tables import PEOPLE
from sfumato.server.jobs.queue import MOST_ATTEMPTS, JobOutcome
from sfumato.server.jobs.tables import JOBS
from sfumato.server.live.feeds import OVER, without_secrets
from sfumato.server.live.tables import FEEDS, STREAMS
from sfumato.server.publishing.tables import PUBLICATIONS
from sfumato.server.roles import ServiceRole
from sfumato.server.service import DATA, RELEASE_KEY
from sfumato.server.settings import ServiceSettings

__all__ = ["BackupMade", "ServiceRestored", "backup", "restore"]

KIND, VERSION = "service backup", 2
SIGNED = b"sfumato service backup\n"
"""What a signature of a backup begins with; the key signs nothing else that does."""
MANIFEST, TABLES = "manifest.json", "tables.jsonl"
LEDGERS = ("ledger.db", "ledger.jsonl")
AREAS = "areas"
MAP = re.compile(r"(?!\.)[^/\\\0]{1,200}\.areas\.json")
PLAIN = re.compile(r"(?!\.)[^/\\\0]{1,200}")
LEFT_OUT = frozenset({"sessions", "links", "tokens"})
STOPPED = "the service was brought back from a backup before it came to this question; ask again."
STREAM_STOPPED = "the service was brought back from a backup, which holds no state of a stream. Open a new one."
MOST_MANIFEST = 2**24


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupMade:
    """A backup that was written: the last entry of its ledger, and how many rows and files it holds."""

    entries: int
    rows: int
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRestored:
    """A service that was brought back; ``without`` are the versions of datasets whose file is not there.

    ``administrators`` are those who can sign in; everybody else is shut out until one of them lets them in.
    """

    ledger: Restored
    rows: int
    files: int
    without: tuple[tuple[str, str], ...]
    administrators: tuple[str, ...]
    feeds: tuple[str, ...]
    """Feeds that wait for their address."""


def backup(folder: str | Path, file: str | Path, *, data: bool = False) -> BackupMade:
    """Write a backup of a service to a new file that its owner alone can read; the service may go on meanwhile.

    Tables are read in one state, and the ledger after them: whatever a table says was released is in the ledger.
    ``data`` takes the files of declared datasets too; tables of databases never. The key of the ledger signs it.
    """
    home, place = Path(folder).absolute(), Path(file).absolute()
    if place.exists() or place.is_symlink():
        raise InvalidInput(f"{place} already exists and was not overwritten. Name another file.")
    _ = areas()  # which declare their tables
    where = ledger_settings.found(home)
    key = SigningKey.load(where.key)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".backup-") as draft, closing(_database(home)) as tables:
        held = Path(draft)
        with tables.reading() as connection:
            rows = _write(held / TABLES, _lines(connection))
            declared = connection.execute(sa.select(DATASETS.c.place)).scalars().all()
        _check_places(declared)
        ledger = held / LEDGERS["://" in where.url]
        with closing(ledger_settings.reading(home)) as book:
            end, identifier = ledger_backup.backup(book, ledger), book.identifier
        members = {TABLES: held / TABLES, ledger.name: ledger}
        members |= {f"{DATA}/{path.name}": path for path in (_files(home, declared) if data else ())}
        members |= {f"{AREAS}/{path.name}": path for path in sorted((home / AREAS).glob("*.areas.json"))}
        part = place.with_name(f"{place.name}.{secrets.token_hex(4)}")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                facts: dict[str, str | int] = {
                    "ledger": identifier,
                    "entries": end.number,
                    "digest": end.digest,
                    "at": end.at,
                }
                _pack(out, members, facts, key)
                out.flush()
                os.fsync(out.fileno())
            os.link(part, place)  # never over another file
        finally:
            part.unlink(missing_ok=True)
    return BackupMade(entries=end.number, rows=rows, files=len(members) - 2)


def restore(folder: str | Path, file: str | Path, *, older: bool = False) -> ServiceRestored:
    """Bring a service back into its folder, which has its settings, its keys and its anchor, and empty databases.

    Guarantee: budgets are never refilled: a ledger that is older than its anchor is refused, and with ``older`` stays
    shut until ``sfumato ledger recover`` has charged what is lost. Nothing is written of a backup that the ledger's key
    did not sign. Nobody is signed in afterwards, no token opens anything, and no question or stream that waited goes on
    by itself. What somebody may have closed since is shut: every publication is withdrawn, every dataset is closed, and
    everybody but administrators is shut out, until somebody decides anew on each.
    """
    home = Path(folder).absolute()
    _ = areas()
    where, backed_up = ledger_settings.found(home), Path(file)
    for key in (where.key, home / RELEASE_KEY):
        if not key.is_file():
            raise NotDeclared(f"{key} is not there; nothing was restored. Bring your copy of it back first.")
    with tempfile.TemporaryDirectory(dir=home, prefix=".restore-") as draft, closing(_database(home)) as tables:
        found = _unpack(backed_up, Path(draft), SigningKey.load(where.key).public_text)
        rows = list(_rows(found[TABLES]))
        _check_places(row["place"] for name, row in rows if name == DATASETS.name)
        tables.create()
        with tables.reading() as connection:
            _check_empty(connection)
        ledger = next(found[name] for name in LEDGERS if name in found)
        with tables.writing() as connection:
            for table in METADATA.sorted_tables:
                mine = [row for name, row in rows if name == table.name]
                if mine:
                    connection.execute(sa.insert(table), mine)
            _stop_what_waited(connection)
            _shut(connection)
            declared = connection.execute(sa.select(DATASETS.c.name, DATASETS.c.edition, DATASETS.c.place)).all()
            done = ledger_backup.restore(  # where it is refused, no row of the tables stays either
                where.url, key=where.key, anchor=where.anchor, root=where.root, file=ledger, older=older
            )
        files = 0
        for name, path in found.items():
            if "/" in name:
                (home / name).parent.mkdir(mode=0o700, exist_ok=True)
                path.replace(home / name)
                files += 1
    without = tuple(
        (row.name, row.edition) for row in declared if not is_table(row.place) and not _there(home, row.place)
    )
    return ServiceRestored(
        ledger=done,
        rows=len(rows),
        files=files,
        without=without,
        administrators=tuple(sorted(row["login"] for name, row in rows if name == PEOPLE.name and _stays_in(row))),
        feeds=tuple(row["name"] for name, row in rows if name == FEEDS.name and not row["url"]),
    )


# ------------------------------------------------------------------------------------------------------------- to write


def _database(home: Path) -> Database:
    return Database.at(ServiceSettings.load(home).database, home)


def _lines(connection: Connection) -> Iterator[str]:
    there = set(sa.inspect(connection).get_table_names())
    for table in METADATA.sorted_tables:
        if table.name in LEFT_OUT or table.name not in there:
            continue
        for row in connection.execute(sa.select(table)):
            said = dict(row._mapping)
            if table is FEEDS:
                said["url"] = without_secrets(said["url"])
            yield json.dumps([table.name, said], ensure_ascii=False)


def _write(place: Path, lines: Iterable[str]) -> int:
    number = 0
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        for number, line in enumerate(lines, 1):  # noqa: B007 - counted
            file.write(line + "\n")
    return number


def _files(home: Path, places: Iterable[str]) -> list[Path]:
    """The uploaded files that datasets have; others were never declared, or lie elsewhere."""
    names = {Path(place).name for place in places if place.startswith(f"{DATA}/")}
    return [home / DATA / name for name in sorted(names) if (home / DATA / name).is_file()]


def _pack(out: IO[bytes], members: Mapping[str, Path], facts: Mapping[str, str | int], key: SigningKey) -> None:
    digests = {}
    with tarfile.open(fileobj=out, mode="w") as packed:
        for name, path in members.items():
            digests[name] = _digest(path)
            info = tarfile.TarInfo(name)
            info.size, info.mode = path.stat().st_size, 0o600
            with path.open("rb") as file:
                packed.addfile(info, file)
        stated = {"kind": KIND, "version": VERSION, **facts, "members": digests}
        text = json.dumps({**stated, "signature": key.sign(_signed(stated))}, indent=1).encode()
        info = tarfile.TarInfo(MANIFEST)
        info.size, info.mode = len(text), 0o600
        with tempfile.TemporaryFile() as last:
            last.write(text)
            last.seek(0)
            packed.addfile(info, last)


def _signed(stated: Mapping[str, Any]) -> bytes:
    """What the key signs: all that a manifest states, which has the digest of every member."""
    return SIGNED + canonical({name: value for name, value in stated.items() if name != "signature"}).encode()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --------------------------------------------------------------------------------------------------------- to read back


def _unpack(file: Path, draft: Path, trusted: str) -> dict[str, Path]:
    """The members of a backup by their names, each with the digest that its manifest states; a key signed that."""
    broken = InvalidInput(f"{file} is no whole backup of a service of this version; nothing was restored.")
    if not file.is_file():
        raise InvalidInput(f"there is no backup {file}; nothing was restored.")
    found: dict[str, Path] = {}
    stated: dict[str, Any] = {}
    try:
        with tarfile.open(file, mode="r:") as packed:
            for number, info in enumerate(packed):
                inner = packed.extractfile(info) if info.isreg() else None
                if inner is None or info.name in found or not _known(info.name):
                    raise broken
                if info.name == MANIFEST:
                    stated = json.loads(inner.read(MOST_MANIFEST))
                    continue
                found[info.name] = draft / f"part-{number}"
                _copy(inner, found[info.name])
    except (tarfile.TarError, ValueError, EOFError, RecursionError):
        raise broken from None
    if not isinstance(stated, dict) or (stated.get("kind"), stated.get("version")) != (KIND, VERSION):
        raise broken
    if stated.get("members") != {name: _digest(path) for name, path in found.items()}:
        raise broken
    if not signature_holds(trusted, str(stated.get("signature")), _signed(stated)):
        raise InvalidInput(
            f"{file} is not signed by the ledger's key: somebody changed it, it is of another service, or the key was "
            "changed after it. Nothing was restored. Take another copy; after a change of the key, bring the former "
            "key back for as long as you restore."
        )
    if TABLES not in found or sum(name in found for name in LEDGERS) != 1:
        raise broken
    return found


def _known(name: str) -> bool:
    if name in (MANIFEST, TABLES, *LEDGERS):
        return True
    folder, _, last = name.partition("/")
    return (folder == DATA and bool(PLAIN.fullmatch(last))) or (folder == AREAS and bool(MAP.fullmatch(last)))


def _copy(inner: IO[bytes], place: Path) -> None:
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        while part := inner.read(2**20):
            out.write(part)


def _rows(place: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of the tables; one that this version does not know is refused before anything is written."""
    with place.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                name, row = json.loads(line)
                table = METADATA.tables[name]
                if name in LEFT_OUT or set(row) - {column.name for column in table.columns}:
                    raise KeyError(name)
            except (ValueError, TypeError, KeyError, RecursionError):
                raise InvalidInput(
                    f"row {number} of the backup is not one of a service of this version; nothing was restored. "
                    "Restore it with the sfumato that wrote it."
                ) from None
            yield name, {column.name: row.get(column.name) for column in table.columns}


def _check_empty(connection: Connection) -> None:
    for table in METADATA.sorted_tables:
        if connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one():
            raise Refused(
                "the service's own tables hold rows already; nothing was restored. Move the database aside, and keep "
                "it."
            )


def _stop_what_waited(connection: Connection) -> None:
    """Questions that waited are refused; those that had begun are settled by the ledger, and never begun again."""
    refused = {"phase": "done", "outcome": JobOutcome.REFUSED.value, "words": STOPPED}
    connection.execute(sa.update(JOBS).where(JOBS.c.phase == "waiting").values(refused))
    connection.execute(sa.update(JOBS).where(JOBS.c.phase == "started").values(attempts=MOST_ATTEMPTS))
    open_ones = sa.update(STREAMS).where(STREAMS.c.phase.not_in(OVER))
    connection.execute(open_ones.values(phase="refused", words=STREAM_STOPPED))


def _shut(connection: Connection) -> None:
    """Close all that somebody may have closed after the backup was made: its tables are older than that."""
    gone = sa.update(PUBLICATIONS).where(PUBLICATIONS.c.withdrawn.is_(None))
    connection.execute(gone.values(withdrawn=time.time()))
    connection.execute(sa.update(DATASETS).where(DATASETS.c.closed.is_(None)).values(closed=BROUGHT_BACK))
    for row in connection.execute(sa.select(PEOPLE)).all():
        if not _stays_in(row._asdict()):
            connection.execute(sa.update(PEOPLE).where(PEOPLE.c.login == row.login).values(closed=True))


def _stays_in(person: Mapping[str, Any]) -> bool:
    """Whether somebody can sign in after a restore, to let others in."""
    return not person["closed"] and ServiceRole.ADMIN.value in person["roles"].split()


def _check_places(places: Iterable[object]) -> None:
    """Refuse a place that is no file of data in a folder of the service, and no table that settings name."""
    for place in map(str, places):
        *folders, last = place.split("/")
        inside = folders and all(map(PLAIN.fullmatch, folders)) and PLAIN.fullmatch(last) and last.endswith(ENDINGS)
        if not (is_table(place) or inside):
            raise InvalidInput(
                "a dataset lies neither in a folder of the service nor in a database of the settings; nothing was "
                "written. A backup takes those alone: have a steward declare its file by the form, before the backup "
                "is made."
            )


def _there(home: Path, place: str) -> bool:
    return "://" in place or (home / place).exists()
