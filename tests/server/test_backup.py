"""A backup is written while the service goes on, holds no key and no anchor, and refills no budget."""

import hashlib
import io
import json
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.app import app
from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance import settings as ledger_settings
from sfumato.reports.publication import Grounds
from sfumato.reports.verify import parsed, verify
from sfumato.server.backup import MANIFEST, TABLES, _check_places, _signed, backup, restore
from sfumato.server.jobs.queue import JobOutcome
from sfumato.server.live.feeds import Feed, Feeds, LiveStream
from sfumato.server.publishing.grounds import Publications
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from tests.server.asked_services import ACCOUNT, BY_WARD, CANARY, asked, furnished
from tests.server.visiting import Visiting

OTHER = 'SELECT COUNT(*) AS n FROM "visits"'
DATABASES = ("ledger.db", "ledger.db-wal", "ledger.db-shm", "service.db", "service.db-wal", "service.db-shm")
Change = Callable[[tarfile.TarFile, tarfile.TarInfo, bytes], None]
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
    return kept(saved[0], tmp_path / "service")


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
        assert release not in Publications(service.database, now=service.now).all()
        assert list(service.datasets) == []
        assert service.datasets.reopen("visits", "2026-10").closed is None
        assert service.datasets["visits"].edition == "2026-10"
        assert service.tokens.find((saved[0].parent / "token").read_text("utf-8")) is None
        ada = service.people.get("ada")
        assert ada is not None
        assert ada.closed
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
    key = SigningKey.load(home / "ledger.key")
    for name, change in CHANGES.items():
        wrong = tmp_path / f"{name}.tar"
        with tarfile.open(file) as packed, tarfile.open(wrong, "w") as made:
            made.key = key  # type: ignore[attr-defined]  # for changes that whoever has it could make
            for info in packed:
                inner = packed.extractfile(info)
                assert inner is not None
                change(made, info, inner.read())
        with pytest.raises(InvalidInput, match=r"no whole backup|is not one of|not signed|lies neither"):
            restore(home, wrong, older=True)
        assert not (home / "service.db").exists() or not rows_in(home)
    (tmp_path / "text.tar").write_text("nothing", "utf-8")
    for other in ("text.tar", "none.tar"):
        with pytest.raises(InvalidInput):
            restore(home, tmp_path / other)
    assert not (home / "ledger.db").exists()
    assert list((home / "data").iterdir()) == []
    with pytest.raises(InvalidInput, match="not overwritten"):
        backup(folder, file)


def put(made: tarfile.TarFile, info: tarfile.TarInfo, body: bytes, name: str | None = None) -> None:
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


def _told_anew(change: Callable[[bytes], bytes], *, signed: bool) -> Change:
    """Other rows, whose digest the manifest states; ``signed`` by the ledger's key, which nobody else has."""

    def changed(made: tarfile.TarFile, info: tarfile.TarInfo, body: bytes) -> None:
        if info.name == TABLES:
            body = change(body)
            made.digest = hashlib.sha256(body).hexdigest()  # type: ignore[attr-defined]  # until the manifest comes
        if info.name == MANIFEST:
            stated = json.loads(body)
            stated["members"][TABLES] = made.digest  # type: ignore[attr-defined]
            key = made.key if signed else SigningKey.new()  # type: ignore[attr-defined]
            body = json.dumps({**stated, "signature": key.sign(_signed(stated))}).encode()
        put(made, info, body)

    return changed


def _unsigned(made: tarfile.TarFile, info: tarfile.TarInfo, body: bytes) -> None:
    if info.name == MANIFEST:
        stated = json.loads(body)
        del stated["signature"]
        body = json.dumps(stated).encode()
    put(made, info, body)


def _an_administrator(body: bytes) -> bytes:
    return body.replace(b'"roles": "analyst"', b'"roles": "admin"')


CHANGES: dict[str, Change] = {
    "edited": _edited,
    "beside": _beside,
    "linked": _linked,
    "short": _short,
    "unsigned": _unsigned,
    "another key": _told_anew(_an_administrator, signed=False),
    "session": _told_anew(lambda body: body + b'["sessions", {"digest": "a"}]\n', signed=True),
    "key": _told_anew(lambda body: body.replace(b'"data/visits.parquet"', b'"ledger.key"'), signed=True),
    "above": _told_anew(lambda body: body.replace(b'"data/visits.parquet"', b'"data/../ledger.key"'), signed=True),
    "plans": _told_anew(lambda body: body.replace(b'"data/visits.parquet"', b'"plans/.a/../../a.csv"'), signed=True),
    "elsewhere": _told_anew(lambda body: body.replace(b'"data/visits.parquet"', b'"/etc/hostname"'), signed=True),
    "address": _told_anew(lambda body: body.replace(b'"data/visits.parquet"', b'"postgresql://db/a"'), signed=True),
}


def rows_in(home: Path) -> int:
    """How many people and datasets there are in the tables of a service."""
    with closing(sqlite3.connect(home / "service.db")) as connection:
        asked = "SELECT (SELECT COUNT(*) FROM people) + (SELECT COUNT(*) FROM datasets)"
        return int(connection.execute(asked).fetchone()[0])


def test_what_was_closed_since_stays_closed_until_somebody_decides_anew(tmp_path: Path) -> None:
    service = furnished(tmp_path / "service")
    service.people.add("stella", shown="Stella", roles=[ServiceRole.STEWARD])
    service.people.add("ida", shown="Ida", roles=[ServiceRole.ADMIN])
    service.people.add("otto", shown="Otto", roles=[ServiceRole.ADMIN])
    service.people.change("otto", roles=[ServiceRole.ADMIN], accounts=[], closed=True)
    stated = Publications(service.database, now=service.now)
    grounds = Grounds(reason="beds are planned by it", legal_basis="section 7")
    stated.put("a release", grounds, by="stella")
    backup(service.folder, tmp_path / "sunday.tar", data=True)
    service.datasets.close("visits", "2026-10")
    stated.withdraw("a release")
    service.people.change("ben", roles=[ServiceRole.ANALYST], accounts=[], closed=True)
    service.close()
    home = kept(tmp_path / "service", tmp_path / "home")
    done = restore(home, tmp_path / "sunday.tar")
    assert (done.ledger.lost, done.administrators) == (False, ("ida",))
    again = Service.open(home)
    try:
        assert list(again.datasets) == []
        assert not Publications(again.database, now=again.now).all()
        assert [person.login for person in again.people.all() if not person.closed] == ["ida"]
        again.people.change("stella", roles=[ServiceRole.STEWARD], accounts=[], closed=False)
        steward = Visiting(again).sign_in("stella")
        assert "closed since a backup brought it back" in steward.get("/data/visits").text
        assert steward.post("/data/visits/reopen", {"edition": "2026-10"}, page="/data/visits").status_code == 303
        assert list(again.datasets) == ["visits"]
        steward.post("/data/visits/close", {"edition": "2026-10"}, page="/data/visits")
        with pytest.raises(Refused, match="waits to be opened"):  # somebody closed it: that stays
            again.datasets.reopen("visits", "2026-10")
        Publications(again.database, now=again.now).put("a release", grounds, by="stella")
        assert list(Publications(again.database, now=again.now).all()) == ["a release"]
    finally:
        again.close()


def test_a_version_that_waits_to_be_opened_again_can_be_closed_for_good(tmp_path: Path) -> None:
    service = furnished(tmp_path / "service")
    backup(service.folder, tmp_path / "sunday.tar", data=True)
    service.close()
    home = kept(tmp_path / "service", tmp_path / "home")
    restore(home, tmp_path / "sunday.tar")
    again = Service.open(home)
    try:
        assert again.datasets.versions("visits")[0].brought_back
        again.datasets.close("visits", "2026-10")
        with pytest.raises(Refused):
            again.datasets.reopen("visits", "2026-10")
    finally:
        again.close()


def test_no_password_of_a_broker_is_in_a_backup_and_its_feed_waits_for_its_address(tmp_path: Path) -> None:
    addresses = {
        "ward": f"redis://reader:{CANARY}@127.0.0.1:6379/0",
        "door": f"redis://127.0.0.1:6379/0?password={CANARY}",
        "roof": "redis://127.0.0.1:6379/0",
    }
    service = furnished(tmp_path / "service")
    for name, url in addresses.items():
        declare_feed(service, name, url)
    backup(service.folder, tmp_path / "sunday.tar")
    service.close()
    assert CANARY.encode() not in (tmp_path / "sunday.tar").read_bytes()
    home = kept(tmp_path / "service", tmp_path / "home")
    assert sorted(restore(home, tmp_path / "sunday.tar").feeds) == ["door", "ward"]
    again = Service.open(home)
    try:
        feeds = Feeds(again.database, again.ledger, again.now)
        with pytest.raises(Refused, match="waits for its address"):
            asked_stream(feeds, "ward")
        with pytest.raises(Refused, match="there is a feed"):
            declare_feed(again, "ward", addresses["ward"], key="other")
        again.people.add("sara", shown="Sara", roles=[ServiceRole.STEWARD])
        assert Visiting(again).sign_in("sara").get("/live/feeds").text.count("waits for its address") == 2
        entries = again.ledger.head().head.number
        assert declare_feed(again, "ward", addresses["ward"]).url == addresses["ward"]
        assert again.ledger.head().head.number == entries
        assert asked_stream(feeds, "ward").feed == "ward"
        with pytest.raises(Refused, match="there is a feed"):
            declare_feed(again, "ward", addresses["roof"])
        assert feeds.feed("ward").url == addresses["ward"]
    finally:
        again.close()


def declare_feed(service: Service, name: str, url: str, *, key: str = "events") -> Feed:
    return Feeds(service.database, service.ledger, service.now).declare(
        name=name,
        edition="1",
        url=url,
        key=key,
        time="at",
        person="patient_id",
        relation="add/remove",
        population="patients",
        cap=Budget(epsilon=1),
        trim=False,
        by="stella",
    )


def asked_stream(feeds: Feeds, name: str) -> LiveStream:
    return feeds.drafted(
        feed=name, title="", account=ACCOUNT, by="ada", every=60, horizon=10, days=1, spend=Budget(epsilon="1/10")
    )


def kept(folder: Path, home: Path) -> Path:
    """A folder after its databases and data were lost: settings, keys and the anchor are what is left."""
    (home / "data").mkdir(parents=True)
    for path in folder.iterdir():
        if path.is_file() and path.name not in DATABASES:
            shutil.copy2(path, home)
    return home


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


def test_places_of_data_are_files_in_a_folder_of_the_service_or_tables() -> None:
    _check_places(["data/visits.parquet", "plans/arrivals/2026-09.parquet", "database:clinic/public.visits"])
    for place in (
        "ledger.key",
        "/etc/a.csv",
        "data/../ledger.csv",
        "keys/ada.key",
        "a.csv",
        "data/",
        "",
        "data//a.csv",
    ):
        with pytest.raises(InvalidInput, match="lies neither"):
            _check_places([place])
