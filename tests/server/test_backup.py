"""A backup is written while the service goes on, holds no key and no anchor, and refills no budget."""

import json
import shutil
import tarfile
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.core.budget import Budget
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance import settings as ledger_settings
from sfumato.reports.publication import Grounds
from sfumato.reports.verify import parsed, verify
from sfumato.server.backup import MANIFEST, TABLES, backup, restore
from sfumato.server.jobs.queue import JobOutcome
from sfumato.server.publishing.grounds import Publications
from sfumato.server.service import Service
from tests.server.asked_services import ACCOUNT, BY_WARD, CANARY, asked

OTHER = 'SELECT COUNT(*) AS n FROM "visits"'
DATABASES = ("ledger.db", "ledger.db-wal", "ledger.db-shm", "service.db", "service.db-wal", "service.db-shm")
SECRETS = ("ledger.key", "release.key", "ledger.anchor")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """The folder of a service, its backup, and a release that is in it; another one was charged since."""
    folder = tmp_path_factory.mktemp("saved")
    with asked(folder / "service") as made:
        first = made.ended(made.submitted().name)
        assert first.outcome is JobOutcome.RELEASED
        held = made.desk.queue.take
        made.desk.queue.take = lambda lane: None  # type: ignore[method-assign]  # no worker comes to the next one
        waits = made.submitted('SELECT COUNT(*) AS n FROM "visits" WHERE "age" > 41').name
        grounds = Grounds(reason="beds are planned by it", legal_basis="section 7")
        Publications(made.service.database, now=made.service.now).put(str(first.release), grounds, by="stella")
        token = made.token()
        done = backup(made.service.folder, folder / "sunday.tar", data=True)
        assert (done.files, done.entries > 5, done.rows > 5) == (1, True, True)
        assert made.service.tokens.find(token) is not None
        made.desk.queue.refused(waits, "in the way")
        made.ended(waits)
        made.desk.queue.take = held  # type: ignore[method-assign]
        assert made.ended(made.submitted(OTHER).name).outcome is JobOutcome.RELEASED
        assert made.spent == Fraction(1, 5)
    (folder / "job").write_text(waits, "utf-8")
    (folder / "token").write_text(token, "utf-8")
    return folder / "service", folder / "sunday.tar", str(first.release)


@pytest.fixture
def home(saved: tuple[Path, Path, str], tmp_path: Path) -> Path:
    """A folder after its databases and data were lost: settings, keys and the anchor are what is left."""
    place = tmp_path / "service"
    (place / "data").mkdir(parents=True)
    for path in saved[0].iterdir():
        if path.is_file() and path.name not in DATABASES:
            shutil.copy2(path, place)
    return place


def test_a_backup_holds_no_key_no_anchor_no_session_and_no_name_of_a_folder(saved: tuple[Path, Path, str]) -> None:
    folder, file, _ = saved
    assert file.stat().st_mode & 0o077 == 0
    with tarfile.open(file) as packed:
        names = packed.getnames()
    assert set(names) == {TABLES, "ledger.db", "data/visits.parquet", MANIFEST}
    content = file.read_bytes()
    for name in SECRETS:
        assert (folder / name).read_bytes().strip() not in content
    for word in (b'"sessions"', b'"tokens"', b'"links"', str(folder).encode()):
        assert word not in content


def test_an_older_backup_is_refused_and_refills_no_budget(saved: tuple[Path, Path, str], home: Path) -> None:
    _, file, release = saved
    with pytest.raises(Refused, match="the backup ends at entry"):
        restore(home, file)
    done = restore(home, file, older=True)
    assert done.ledger.lost
    with pytest.raises(LedgerError):
        Service.open(home)
    from sfumato.governance.ledger import Ledger

    where = ledger_settings.found(home)
    Ledger.recover(where.url, key=where.key, anchor=where.anchor, reason="the disk failed").close()
    service = Service.open(home)
    try:
        assert service.ledger.balance(ACCOUNT).spent.epsilon >= Fraction(1, 5)
        assert service.ledger.balance(ACCOUNT).left.epsilon <= Fraction(19, 5)
        text = service.ledger.certificate(release)
        assert text is not None
        assert verify(parsed(text)).consistent
        assert release in Publications(service.database, now=service.now).all()
        assert service.datasets["visits"].edition == "2026-10"
        assert service.tokens.find((saved[0].parent / "token").read_text("utf-8")) is None
        assert service.people.get("ada") is not None
    finally:
        service.close()


def test_what_waited_is_refused_and_what_had_begun_is_settled_by_the_ledger(
    saved: tuple[Path, Path, str], home: Path
) -> None:
    from sfumato.server.jobs.queue import JobQueue

    restore(home, saved[1], older=True)
    from sfumato.server.backup import _database

    database = _database(home)
    queue = JobQueue(database, now=lambda: 1e12)
    job = queue.job((saved[0].parent / "job").read_text("utf-8"))
    assert job.outcome is JobOutcome.REFUSED
    assert "brought back from a backup" in job.words
    assert sorted(each.outcome.value for each in queue.of(login="ada")) == ["refused", "released"]
    database.close()


def test_only_whole_backups_are_brought_back_and_only_into_empty_databases(
    saved: tuple[Path, Path, str], home: Path, tmp_path: Path
) -> None:
    folder, file, _ = saved
    with pytest.raises(Refused, match="hold rows already"):
        restore(folder, file, older=True)
    (home / "release.key").rename(tmp_path / "release.key")
    with pytest.raises(NotDeclared, match="is not there"):
        restore(home, file)
    (tmp_path / "release.key").rename(home / "release.key")
    for name, change in CHANGES.items():
        wrong = tmp_path / f"{name}.tar"
        with tarfile.open(file) as packed, tarfile.open(wrong, "w") as made:
            for info in packed:
                inner = packed.extractfile(info)
                assert inner is not None
                change(made, info, inner.read())
        with pytest.raises(InvalidInput, match=r"no whole backup|is not one of"):
            restore(home, wrong, older=True)
    (tmp_path / "text.tar").write_text("nothing", "utf-8")
    for other in ("text.tar", "none.tar"):
        with pytest.raises(InvalidInput):
            restore(home, tmp_path / other)
    assert not (home / "ledger.db").exists()
    assert list((home / "data").iterdir()) == []
    with pytest.raises(InvalidInput, match="not overwritten"):
        backup(folder, file)


def put(made: tarfile.TarFile, info: tarfile.TarInfo, body: bytes, name: str | None = None) -> None:
    import io

    other = tarfile.TarInfo(name or info.name)
    other.size = len(body)
    made.addfile(other, io.BytesIO(body))


def _edited(made: tarfile.TarFile, info: tarfile.TarInfo, body: bytes) -> None:
    put(made, info, body.replace(b'"ada"', b'"eva"') if info.name == TABLES else body)


def _beside(made: tarfile.TarFile, info: tarfile.TarInfo, body: bytes) -> None:
    put(made, info, body)
    if info.name == TABLES:
        put(made, info, b"x", "data/../ledger.anchor")


def _linked(made: tarfile.TarFile, info: tarfile.TarInfo, body: bytes) -> None:
    put(made, info, body)
    if info.name == TABLES:
        link = tarfile.TarInfo("data/file-" + "a" * 43 + ".csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        made.addfile(link)


def _short(made: tarfile.TarFile, info: tarfile.TarInfo, body: bytes) -> None:
    if info.name != MANIFEST:
        put(made, info, body)


def _another_row(made: tarfile.TarFile, info: tarfile.TarInfo, body: bytes) -> None:
    import hashlib

    more = body + b'["sessions", {"digest": "a"}]\n'
    if info.name == TABLES:
        put(made, info, more)
        made.digest = hashlib.sha256(more).hexdigest()  # type: ignore[attr-defined]  # kept until the manifest comes
        return
    if info.name == MANIFEST:
        stated = json.loads(body)
        stated["members"][TABLES] = made.digest  # type: ignore[attr-defined]
        body = json.dumps(stated).encode()
    put(made, info, body)


CHANGES = {"edited": _edited, "beside": _beside, "linked": _linked, "short": _short, "session": _another_row}


def test_the_commands(saved: tuple[Path, Path, str], home: Path, tmp_path: Path) -> None:
    def said(*words: str, code: int = 0) -> str:
        told = CliRunner().invoke(app, ["serve", *words])
        assert told.exit_code == code, told.stdout + told.stderr
        return told.stdout + told.stderr

    folder, _, _ = saved
    assert "entries of the ledger" in said("backup", str(folder), str(tmp_path / "now.tar"))
    assert json.loads(said("restore", str(tmp_path / "now.tar"), str(home), "--json"))["lost"] is False
    assert "there is no service in" in said(str(tmp_path / "backup"), code=1)  # a folder, unless it is the first word
    assert CANARY not in said("restore", str(tmp_path / "now.tar"), str(home), code=1)
    service = Service.open(home)
    try:
        assert service.ledger.balance(ACCOUNT).spent == Budget(epsilon="1/5")
        assert BY_WARD
    finally:
        service.close()
