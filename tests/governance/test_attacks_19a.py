"""Attacks on the ledger that once worked: each one, as its attacker carries it out, is refused or named."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, Refused
from sfumato.governance.anchor import Head, SignedHead
from sfumato.governance.decision_state import GOVERNING
from sfumato.governance.entries import Expired, KeyRevoked, Row
from sfumato.governance.entry_tree import entered
from sfumato.governance.leaves import map_of
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import decided_on, end_of, question_key, replay
from sfumato.governance.periods import Cadence
from sfumato.governance.store import Store
from sfumato.governance.time_windows import TimeWindows
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished, older, sqlite_home
from tests.governance.owners import COST, answer, served, template
from tests.governance.rooted import Rooted, charged
from tests.governance.test_governed import TERMS

HALF = Budget(epsilon="1/2")

# ------------------------------------------------------------------------------------------------- a revoked key


def _revoked_and_refilled(here: Rooted) -> SigningKey:
    """A thief of a key that was revoked, with the database and without the anchor, signs a state of their own.

    The revocation is filed as something else, and the new head states decisions without it. The new key of the ledger.
    """
    ledger, new = here.furnished(), SigningKey.new()
    charged(ledger, "9")
    ledger.certify(new.public_text, role="charge", holder="new", root=here.root)
    ledger.revoke(here.charge.public_text, role="charge", reason="stolen", root=here.root)
    ledger.close()
    here.home.unlocked("UPDATE record SET kind = 'ledger.started' WHERE kind = 'ledger.key_revoked'")
    store = Store(here.home.url)
    with store.rewriting() as (transaction, _):
        rows = list(transaction.rows())
        state, decisions = replay(rows), ""
        for row in rows:
            if isinstance(row.entry, GOVERNING) and not isinstance(row.entry, KeyRevoked):
                decisions = decided_on(decisions, row)
        end = end_of(state)
        row = Row.after(end.number, end.digest, Expired(at=end.at, charge=7, counted=True))
        for balance in state.balances():
            state.put_balance(replace(balance, epsilon_spent=Fraction(0)))
        frontier = entered(end.frontier, row.number, row.digest)
        root = map_of(state).root()
        state.head = replace(
            end, number=row.number, digest=row.digest, decisions=decisions, frontier=frontier, state=root
        )
        said = Head(
            ledger=ledger.identifier,
            number=row.number,
            digest=row.digest,
            at=end.at,
            epsilon=end.epsilon,
            delta=end.delta,
            decisions=decisions,
            state=root,
            tree=state.head.tree,
        )
        transaction.put_row(row, SignedHead.sign(said, here.charge), frontier)
        transaction.replace_state(state)
    store.close()
    return new


def test_a_revoked_key_and_the_database_refill_nothing(tmp_path: Path) -> None:
    here = Rooted(sqlite_home(tmp_path))
    new = _revoked_and_refilled(here)
    with pytest.raises(LedgerError, match="decisions"):
        charged(here.open(key=new), "9")  # of 10, of which 9 were spent


def test_the_chain_alone_names_a_revocation_that_is_filed_as_something_else(tmp_path: Path) -> None:
    here = Rooted(sqlite_home(tmp_path))
    _revoked_and_refilled(here)
    reader = Ledger.read(here.home.url, key=here.root.public_text, anchor=here.home.anchor, checked=False)
    found = reader.verification(chain_only=True).findings
    assert any("is filed as" in finding.problem for finding in found)
    assert any("signature that does not hold" in finding.problem for finding in found)


# ------------------------------------------------------------------------- charges from before entries were lost


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return sqlite_home(tmp_path)


def _brought_back(home: Home, kept: bytes) -> Ledger:
    """An old copy of the database, and the recovery that it needs: the lost entries charged nothing."""
    Path(home.url).write_bytes(kept)
    with pytest.raises(LedgerError, match="old backup"):
        home.open()
    return Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="the disk failed")


@pytest.mark.parametrize("queued", [False, True])
def test_a_charge_whose_answer_was_lost_pays_for_no_second_draw(home: Home, *, queued: bool) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    asked: dict[str, Any] = {"datasets": [VISITS], "idempotency": "a key", "queued": queued, "question": "question"}
    charge = account.reserve(HALF, **asked)
    ledger.close()
    kept = Path(home.url).read_bytes()
    if queued:
        account.start(charge)
    account.commit_text(charge, "question", '{"drawn": 1}')  # and delivered
    ledger.close()
    account = _brought_back(home, kept).account(ACCOUNT, unit=PATIENT)
    with pytest.raises(Refused, match="declared before entries of this ledger were lost"):
        account.reserve(HALF, **asked)
    with pytest.raises(Refused, match="lost after charge"):
        account.again(charge.number, "question")
    with pytest.raises(Refused, match="lost after charge"):
        account.start(charge)
    with pytest.raises(Refused, match="lost after charge"):
        account.commit_text(charge, "question", '{"drawn": 2}')


@pytest.mark.parametrize("how", ["released", "expired"])
def test_a_queued_charge_is_not_given_back_where_its_start_may_be_lost(home: Home, how: str) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    charge = account.reserve(HALF, datasets=[VISITS], queued=True, lasts=timedelta(seconds=1))
    ledger.close()
    kept = Path(home.url).read_bytes()
    account.start(charge)
    account.commit_text(charge, "question", '{"drawn": 1}')  # and delivered
    ledger.close()
    _brought_back(home, kept).close()
    later = home.open(lambda: datetime.now(UTC) + timedelta(hours=1))
    if how == "released":
        with pytest.raises(Refused, match="lost after charge"):
            later.account(ACCOUNT, unit=PATIENT).release(charge)
    else:
        assert later.expire() == (charge.number,)
    assert later.balance(ACCOUNT).epsilon_spent == Fraction(1, 2)
    assert later.verify() == ()


# ------------------------------------------------------------------------------------- a checkpoint and two histories


def _answered(ledger: Ledger, question: str) -> None:
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.commit_text(account.reserve(HALF, datasets=[VISITS]), question, "{}")


def test_a_head_of_another_history_is_named_although_its_row_was_put_back(home: Home) -> None:
    """Whoever holds the key shows one history to a reader and another to a verifier, and then puts one row back."""
    ledger = furnished(home)
    ledger.close()
    database, anchor = Path(home.url).read_bytes(), home.anchor.read_bytes()
    _answered(ledger, "first")
    published = ledger.head()
    shown = home.execute(f"SELECT * FROM record WHERE number = {published.head.number}")[0]  # noqa: S608 - of a test
    ledger.close()
    Path(home.url).write_bytes(database)
    home.anchor.write_bytes(anchor)
    other = home.open()
    for question in ("second", "third"):
        _answered(other, question)
    remembered = other.verification().checkpoint(other.key, datetime.now(UTC)).checkpoint
    assert remembered.head.head.number > published.head.number
    assert other.verify(published, since=remembered) != ()
    other.close()
    columns = [row[1] for row in home.execute("PRAGMA table_info(record)")]
    values = {name: str(value).replace("'", "''") for name, value in zip(columns, shown, strict=True)}
    changed = ", ".join(f"{name} = '{value}'" for name, value in values.items() if name != "number")
    home.unlocked(f"UPDATE record SET {changed} WHERE number = {published.head.number}")  # noqa: S608 - of a test
    again = home.open()
    assert again.verify(published, since=remembered) != ()


def test_a_published_head_from_before_a_checkpoint_is_proven_without_a_replay(home: Home) -> None:
    ledger = furnished(home)
    _answered(ledger, "first")
    published = ledger.head()
    for question in ("second", "third"):
        _answered(ledger, question)
    remembered = ledger.verification().checkpoint(ledger.key, datetime.now(UTC)).checkpoint
    _answered(ledger, "fourth")
    done = ledger.verification(published, since=remembered)
    assert (done.findings, done.since) == ((), remembered.head.head.number)


# ------------------------------------------------------------------------------- a copy from before its witness


def test_a_copy_from_before_its_witness_was_named_charges_nothing(home: Home) -> None:
    """Old database and old anchor: their record names no witness, and so asked nobody; the settings know of one."""
    ledger = furnished(home)
    ledger.close()
    database, anchor = Path(home.url).read_bytes(), home.anchor.read_bytes()
    ledger.lease.name(SigningKey.new().public_text, lease=HALF, reason="decided by the tests")
    ledger.close()
    Path(home.url).write_bytes(database)
    home.anchor.write_bytes(anchor)
    copy = Ledger.open(home.url, key=home.key, anchor=home.anchor, witness="http://127.0.0.1:9")
    with pytest.raises(Refused, match="names none"):
        _answered(copy, "refilled")
    assert copy.balance(ACCOUNT).epsilon_spent == 0


# ---------------------------------------------------------------------------------------------------- smaller things


@pytest.mark.parametrize("revision", ["0001", "0004", "0005"])
def test_the_chain_alone_accuses_no_ledger_whose_first_rows_were_not_signed(tmp_path: Path, revision: str) -> None:
    """Who is used to findings that are none does not look at one that is."""
    ledger = older(tmp_path, revision).open()
    assert ledger.verification(chain_only=True).findings == ()


def test_a_client_that_names_no_signer_stores_nothing_of_a_key_whose_last_day_was(tmp_path: Path) -> None:
    """The charge was made on the last day of the release key, and its answer comes on the next one."""
    now = [datetime(2026, 3, 1, 23, 59, tzinfo=UTC)]
    here = Rooted(sqlite_home(tmp_path))
    ledger = here.furnished(lambda: now[0])
    key = template()[1].public_text
    ledger.certify(key, role="release", holder="ada", root=here.root, until="2026-03-01")
    with served(ledger) as owner:
        account = owner.account("hospital")
        charge = account.reserve(COST, datasets=[VISITS])
        now[0] += timedelta(minutes=2)
        with pytest.raises(Refused, match="last day was 2026-03-01"):
            account.commit(charge, "question", answer(charge))
        assert account.given(charge) is None


def test_a_client_for_another_purpose_is_given_no_answer_by_its_number(home: Home) -> None:
    """Numbers are easily counted: terms and vetoes hold for an answer that is asked for by one, too."""
    ledger = furnished(home)
    ledger.declare_terms(TERMS)
    with served(ledger) as owner:
        account = owner.account(purpose="research/oncology", recipient="public")
        charge = account.reserve(COST, datasets=[VISITS], question="question")
        account.commit(charge, "question", answer(charge))
        assert account.given(charge) is not None
        assert account.settled(charge.number, "question") is not None
        other = owner.account(purpose="research/insurance", recipient="public")
        with pytest.raises(Refused, match="research/insurance"):
            other.given(charge)
        with pytest.raises(Refused, match="research/insurance"):
            other.settled(charge.number, "question")


def test_a_client_that_names_no_datasets_is_held_to_those_that_were_charged(home: Home) -> None:
    """A stored answer, and the next place of a stream, rest on what the charge was made for, whatever a client says."""
    ledger = furnished(home)
    ledger.declare_terms(TERMS)
    with served(ledger) as owner:
        account = owner.account(purpose="research/oncology", recipient="public")
        charge = account.reserve(COST, datasets=[VISITS], question="question")
        account.commit(charge, "question", answer(charge))
        stream = account.reserve(COST, datasets=[VISITS], question="stream")
        account.advance(stream, 0, "a")
        assert account.stored("question") is not None
        other = owner.account(purpose="research/insurance", recipient="public")
        with pytest.raises(Refused, match="research/insurance"):
            other.stored("question")
        ledger.declare_terms(replace(TERMS, purposes=("care",)))
        with pytest.raises(Refused, match="research/oncology"):
            account.stored("question")
        with pytest.raises(Refused, match="research/oncology"):
            account.advance(stream, 1, "a")
        with pytest.raises(Refused, match="research/oncology"):
            account.check_running(stream)


def test_days_at_the_end_of_the_calendar_are_refused_in_words(home: Home) -> None:
    """A client that reads the year 9999 made the owner fail at its request."""
    ledger = furnished(home)
    windows = TimeWindows(unit=PATIENT, every=Cadence.QUARTERLY, cap=HALF, lifetime=HALF)
    ledger.set_windows(ACCOUNT, windows)
    with served(ledger) as owner, pytest.raises(InvalidInput, match=r"9999 have no end.*nothing was charged"):
        owner.account().reserve(HALF, datasets=[VISITS], reads=("2026-01-01", "9999-12-31"))


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_who_writes_beside_the_database_opens_no_key_to_others(home: Home, link: str) -> None:
    """A link in the place of the file that a question is held by; a database that a group shares."""
    ledger = furnished(home)
    database, key = Path(home.url), home.key
    database.chmod(0o660)
    before = key.stat().st_mode
    place = database.with_name(f"{database.name}-asked-{question_key('question')}")
    if link == "symbolic":
        place.symlink_to(key)
    else:
        place.hardlink_to(key)
    with (
        pytest.raises(LedgerError, match="a file beside the ledger"),
        ledger.account(ACCOUNT, unit=PATIENT).asking("question"),
    ):
        pass
    assert key.stat().st_mode == before


def test_a_recovery_charges_the_whole_of_an_anchor_that_its_record_cannot_lead_to(home: Home) -> None:
    """Two lines from one copy, both delivered; the shorter one is recovered beside the anchor of the longer one."""
    ledger = furnished(home)
    ledger.close()
    database, anchor = Path(home.url).read_bytes(), home.anchor.read_bytes()
    for question in ("first", "second", "third"):
        _answered(ledger, question)
    ledger.close()
    newer = home.anchor.read_bytes()
    Path(home.url).write_bytes(database)
    home.anchor.write_bytes(anchor)
    other = home.open()
    for _ in range(4):  # more charged, in fewer entries, and later
        other.account(ACCOUNT, unit=PATIENT).reserve(HALF, datasets=[VISITS])
    other.close()
    home.anchor.write_bytes(newer)
    back = Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="the disk failed")
    assert back.balance(ACCOUNT).epsilon_spent == 4 * HALF.epsilon + 3 * HALF.epsilon
    assert back.verify() == ()
