"""Reading a ledger with public keys alone: everything that reads, nothing that writes, and nothing that was forged."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, Refused
from sfumato.governance import settings
from sfumato.governance.anchor import SignedHead
from sfumato.governance.board import Action, Board, Choice, Reasons
from sfumato.governance.ledger import Ledger
from sfumato.governance.overview import minutes_now, overview
from sfumato.governance.provenance import Trail
from sfumato.governance.settings import Settings
from sfumato.reports.evidence import Scope, pack
from tests.governance.homes import ACCOUNT, PATIENT, STORES, VISITS, Home, furnished, older, sqlite_home
from tests.governance.signers import key_of, keyed
from tests.governance.test_governed import TERMS

HALF = Budget(epsilon="1/2")
ON_A_FILE = pytest.mark.parametrize("home", ["sqlite"], indirect=True)
WHY = Reasons(benefit="beds", risk="a rare case", choice="±6 is enough")


@pytest.fixture
def owner(home: Home) -> Ledger:
    """A ledger with one answer, a board and a request, whose private key is gone from the disk."""
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.commit_text(account.reserve(HALF, datasets=[VISITS]), "how many?", '{"answer":7}')
    ledger.seat(keyed(Board(members=("ada", "ben", "cho"), quorum=2)), by="director", reason="the statute")
    ledger.declare_terms(TERMS)
    ledger.propose(
        by="ada", action=Action.DATASET, subject="visits", reasons=WHY, datasets=("visits",), key=key_of("ada")
    )
    home.key.rename(home.key.with_name("elsewhere"))
    return ledger


def public(home: Home) -> Path:
    return Path(f"{home.key}.pub")


@pytest.mark.parametrize("home", STORES, indirect=True)
@pytest.mark.parametrize("held_to", ["anchor", "head", "nothing"])
def test_all_that_reads_needs_the_public_key_alone(home: Home, owner: Ledger, held_to: str) -> None:
    given = {"anchor": {"anchor": home.anchor}, "head": {"head": owner.head()}, "nothing": {}}[held_to]
    reader = Ledger.read(home.url, key=public(home), **given)  # type: ignore[arg-type]
    assert reader.identifier == owner.identifier
    assert reader.balance(ACCOUNT) == owner.balance(ACCOUNT)
    assert reader.balances() == owner.balances()
    assert reader.head() == owner.head()
    assert reader.export() == owner.export()
    assert overview(reader).accounts == overview(owner).accounts
    assert minutes_now(reader).proposals == owner.minutes().proposals
    assert reader.terms("visits") == TERMS
    assert reader.verify() == reader.verify(owner.head()) == ()
    assert Trail.of(reader).charges == Trail.of(owner).charges
    assert pack(reader, Scope()).evidence["head"] == pack(owner, Scope()).evidence["head"]
    assert reader.account(ACCOUNT, unit=PATIENT).answer("how many?") == '{"answer":7}'
    assert reader.public_key == owner.key.public_text
    assert reader.held_to_nothing is (held_to == "nothing")
    # And it follows what is written meanwhile.
    owner.vote(1, by="ben", choice=Choice.NO, key=key_of("ben"))
    assert reader.head() == owner.head()


WRITES: dict[str, Callable[[Ledger], object]] = {
    "charge": lambda ledger: ledger.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS]),
    "account": lambda ledger: ledger.open_account("other", unit=PATIENT, cap=HALF, reason="mine"),
    "population": lambda ledger: ledger.declare_population("others", unit=PATIENT, cap=HALF, reason="mine"),
    "dataset": lambda ledger: ledger.declare_dataset(
        Dataset(name="visits", edition="2"), population="patients", cap=Budget(epsilon=100, delta="1/1000")
    ),
    "terms": lambda ledger: ledger.declare_terms(TERMS),
    "vote": lambda ledger: ledger.vote(1, by="ben", choice=Choice.YES, key=key_of("ben")),
    "veto": lambda ledger: ledger.veto(by="ben", community="x", dataset="visits", reason="no", key=key_of("ben")),
    "clock": lambda ledger: ledger.confirm_clock("it is right"),
    "expire": lambda ledger: ledger.expire(),
    "reprice": lambda ledger: ledger.reprice(7, cost=HALF, reason="a claim was wrong"),
    "key": lambda ledger: ledger.key,
}


@pytest.mark.parametrize("name", WRITES)
def test_nothing_that_writes_is_possible_and_nothing_is_written(home: Home, owner: Ledger, name: str) -> None:
    reader = Ledger.read(home.url, key=public(home), anchor=home.anchor)
    before = owner.head()
    with pytest.raises(Refused, match=r"opened for reading, with a public key alone.*Nothing was changed"):
        WRITES[name](reader)
    assert owner.head() == before


@ON_A_FILE
def test_a_file_is_opened_so_that_nothing_can_be_written_to_it(home: Home, owner: Ledger) -> None:
    reader = Ledger.read(home.url, key=public(home), anchor=home.anchor)
    with pytest.raises(LedgerError, match="readonly"), reader.record.store.writing() as transaction:
        transaction.put_empty()


@ON_A_FILE
def test_a_reader_leaves_no_file_behind(home: Home) -> None:
    furnished(home).close()
    before = sorted(file.name for file in Path(home.url).parent.iterdir())
    reader = Ledger.read(home.url, key=public(home), anchor=home.anchor)
    reader.balances()
    reader.close()
    assert sorted(file.name for file in Path(home.url).parent.iterdir()) == before


def test_another_key_and_a_private_key_in_the_place_of_the_public_one_are_refused(home: Home, owner: Ledger) -> None:
    with pytest.raises(LedgerError, match="signed with another key"):
        Ledger.read(home.url, key=SigningKey.new().public_text)
    with pytest.raises(InvalidInput, match="64 hexadecimal digits"):
        Ledger.read(home.url, key=home.key.with_name("elsewhere"))
    with pytest.raises(InvalidInput, match="holds a public key"):
        Ledger.open(home.url, key=public(home), anchor=home.anchor)


def copied(home: Home, folder: Path) -> Home:
    """The database as it is now; of SQLite, whose file is whole once nobody has it open."""
    folder.mkdir()
    shutil.copy(home.url, folder / "ledger.db")
    return Home(url=str(folder / "ledger.db"), folder=home.folder)


@ON_A_FILE
def test_an_old_copy_is_refused_by_anchor_or_head_and_passes_without(home: Home, tmp_path: Path) -> None:
    ledger = furnished(home)
    old_head = ledger.head()
    ledger.close()
    old = copied(home, tmp_path / "copy")
    ledger = home.open()
    ledger.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS])
    head = ledger.head()
    with pytest.raises(LedgerError, match="restored from an old backup"):
        Ledger.read(old.url, key=public(home), anchor=home.anchor)
    with pytest.raises(LedgerError, match="restored from an old backup"):
        Ledger.read(old.url, key=public(home), head=head)
    blind = Ledger.read(old.url, key=public(home))
    assert blind.held_to_nothing  # which is what the command line says
    assert blind.head() == old_head
    # An older head is a floor too, and with an anchor both count.
    assert Ledger.read(home.url, key=public(home), head=old_head).head() == head
    assert Ledger.read(home.url, key=public(home), anchor=home.anchor, head=old_head).head() == head


@ON_A_FILE
def test_a_reader_never_goes_back_while_it_is_open(home: Home) -> None:
    ledger = furnished(home)
    ledger.close()
    kept = Path(home.url).read_bytes()
    ledger = home.open()
    ledger.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS])
    ledger.close()
    reader = Ledger.read(home.url, key=public(home))
    assert reader.balance(ACCOUNT).spent == HALF
    reader.close()
    Path(home.url).write_bytes(kept)
    with pytest.raises(LedgerError, match="restored from an old backup"):
        reader.balance(ACCOUNT)


EDITS = [
    "UPDATE balance SET epsilon_spent = '0/1'",
    "UPDATE head SET epsilon = '0/1'",
    "UPDATE record SET head = ''",
    "DELETE FROM record WHERE number = (SELECT max(number) FROM record)",
]


@pytest.mark.parametrize("edit", EDITS)
def test_a_reader_without_an_anchor_is_shown_nothing_forged(home: Home, owner: Ledger, edit: str) -> None:
    home.unlocked(edit)
    with pytest.raises(LedgerError):
        Ledger.read(home.url, key=public(home)).balances()
    assert Ledger.read(home.url, key=public(home), checked=False).verify()


def test_a_head_of_another_ledger_or_key_is_refused(home: Home, owner: Ledger) -> None:
    foreign = SignedHead.sign(owner.head().head, SigningKey.new())
    with pytest.raises(LedgerError, match="is not signed for this ledger"):
        Ledger.read(home.url, key=public(home), head=foreign)


def test_a_reader_does_not_bring_tables_up_to_date(tmp_path: Path) -> None:
    home = older(tmp_path)
    before = Path(home.url).read_bytes()
    with pytest.raises(LedgerError, match="Have the owner of the ledger open it once"):
        Ledger.read(home.url, key=public(home), anchor=home.anchor)
    assert Path(home.url).read_bytes() == before


@ON_A_FILE
def test_settings_read_without_the_private_key_and_without_an_anchor_that_is_forbidden(
    home: Home, owner: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.toml"
    Settings(file=file, url=home.url, key=home.key, anchor=home.anchor).write()
    assert not settings.reading(file).held_to_nothing
    monkeypatch.setattr(settings, "_readable", lambda _: False)  # root may read everything
    assert settings.reading(file).held_to_nothing
    assert not settings.reading(file, head=owner.head()).held_to_nothing
    monkeypatch.undo()
    home.anchor.rename(home.anchor.with_name("gone"))
    with pytest.raises(LedgerError, match="is missing"):
        settings.reading(file)  # whoever brings no key of their own is told
    assert settings.reading(file, key=public(home)).held_to_nothing
    with pytest.raises(LedgerError, match=r"ledger\.key that .* names is not there"):
        settings.opened(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_who_may_read_the_file_and_nothing_else_reads_the_ledger(tmp_path: Path) -> None:
    """Not the key, not the anchor, and no file may be made beside the database."""
    with tempfile.TemporaryDirectory() as name:  # a folder of pytest's shuts others out
        Path(name).chmod(0o755)
        home = sqlite_home(Path(name))
        ledger = furnished(home)
        ledger.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS])
        ledger.close()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setgid(65534)
                os.setuid(65534)
                code = _as_nobody(home)
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _as_nobody(home: Home) -> int:
    with pytest.raises(InvalidInput, match="you are not permitted to read the key"):
        SigningKey.load(home.key)
    with pytest.raises(LedgerError, match="Permission denied"):
        Ledger.read(home.url, key=public(home), anchor=home.anchor)
    reader = Ledger.read(home.url, key=public(home))
    assert reader.balance(ACCOUNT).spent == HALF
    assert reader.verify() == ()
    return 0


@pytest.mark.parametrize("home", ["postgresql"], indirect=True)
def test_a_role_of_the_server_that_may_only_select_reads_the_ledger(home: Home, owner: Ledger) -> None:
    secret = secrets.token_hex(8)
    home.execute(
        f"CREATE ROLE auditor LOGIN PASSWORD '{secret}'",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO auditor",
    )
    try:
        url = make_url(home.url).set(username="auditor", password=secret).render_as_string(hide_password=False)
        reader = Ledger.read(url, key=public(home), anchor=home.anchor)
        assert reader.balances() == owner.balances()
        assert reader.verify() == ()
        reader.close()
    finally:
        home.execute("DROP OWNED BY auditor", "DROP ROLE auditor")
