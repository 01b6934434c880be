"""Ways around the ledger that a reviewer found: each is shut, and stays so."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.core.stored import Stored
from sfumato.errors import BudgetExceeded, InvalidInput, LedgerError, NotDeclared, Refused, SfumatoError
from sfumato.governance.agreements import Agreement
from sfumato.governance.anchor import SignedHead
from sfumato.governance.board import Action, Choice, Outcome
from sfumato.governance.digest import digest_of
from sfumato.governance.entries import Expired, LedgerOpened, Recovered, Released, Reserved, Row
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import drawn_on
from sfumato.governance.periods import Cadence
from sfumato.governance.policies import BaseAndReserve
from sfumato.governance.time_windows import TimeWindows
from sfumato.governance.verify import check_record
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished, readable
from tests.governance.signers import key_of, reseated
from tests.governance.test_anchor import Backup
from tests.governance.test_conformance import Clock
from tests.governance.test_governed import BOARD, STAY, TENTH, TERMS, asked, charged, governed, passed, same_books, year

ONE = Budget(epsilon=1)


def recovered(home: Home, **more: object) -> Ledger:
    return Ledger.recover(home.url, key=home.key, anchor=home.anchor, reason="a disk failed", **more)  # type: ignore[arg-type]


def windows(lifetime: int) -> TimeWindows:
    return TimeWindows(
        unit=STAY, stretch=Cadence.MONTHLY, every=Cadence.MONTHLY, cap=ONE, lifetime=Budget(epsilon=lifetime)
    )


def stays(home: Home, lifetime: int = 24) -> Ledger:
    ledger = home.create()
    roomy = Budget(epsilon=100)
    ledger.open_account("hospital", unit=STAY, cap=roomy, reason="decided by the tests")
    ledger.declare_population("patients", unit=STAY, cap=roomy, reason="decided by the tests")
    ledger.declare_dataset(VISITS, population="patients", cap=roomy)
    ledger.set_windows("hospital", windows(lifetime))
    return ledger


@pytest.mark.claim("S1-23")
def test_a_recovery_charges_windows_that_are_opened_after_it_and_ends_a_lifetime(home: Home) -> None:
    ledger = stays(home)
    backup = Backup(home)
    one = ledger.account("hospital", unit=STAY)
    one.reserve(ONE, datasets=[VISITS], reads=("2026-01-01", "2026-12-31"))
    backup.restore()
    back = recovered(home)
    one = back.account("hospital", unit=STAY)
    life = next(balance for balance in back.balances() if balance.name == "lifetime hospital")
    assert life.left == Budget.none()  # nobody knows of how many entries the lost charges were
    for days in (("2026-01-01", "2026-01-31"), ("2027-01-01", "2027-01-31")):
        with pytest.raises(BudgetExceeded):
            one.reserve(Budget(epsilon="1/1000"), datasets=[readable(back)], reads=days)
    with back.record.reading() as transaction:  # also where the board raises the lifetime again
        window, _ = drawn_on(transaction, "window hospital 2027-05", TENTH)
    assert window.left == Budget.none()
    same_books(back)


@pytest.mark.claim("S1-23")
def test_after_a_recovery_a_person_may_have_lost_the_gap_in_windows_that_nobody_opened(home: Home) -> None:
    person = PATIENT
    ledger, roomy = home.create(), Budget(epsilon=100)
    ledger.open_account("hospital", unit=person, cap=roomy, reason="decided by the tests")
    ledger.declare_population("patients", unit=person, cap=roomy, reason="decided by the tests")
    ledger.declare_dataset(VISITS, population="patients", cap=roomy)
    ledger.set_windows("hospital", TimeWindows(unit=person, every=Cadence.MONTHLY, cap=ONE, most_windows=3))
    one = ledger.account("hospital", unit=person)
    one.reserve(TENTH, datasets=[VISITS], reads=("2026-01-01", "2026-01-31"))
    backup = Backup(home)
    for month in (2, 3):
        one.reserve(TENTH, datasets=[VISITS], reads=(f"2026-0{month}-01",) * 2)
    backup.restore()
    back = recovered(home)
    standing = back.window_standing("hospital")
    assert standing.windows == (("2026-01", Budget(epsilon="3/10")),)  # the gap of 2/10 may have been this month's
    assert standing.lifetime == standing.all_along == Budget(epsilon="3/10")
    one = back.account("hospital", unit=person)
    one.reserve(Budget(epsilon="8/10"), datasets=[readable(back)], reads=("2026-05-01", "2026-05-31"))
    with pytest.raises(BudgetExceeded, match="window hospital 2026-06"):
        one.reserve(Budget(epsilon="9/10"), datasets=[readable(back)], reads=("2026-06-01", "2026-06-30"))
    same_books(back)


@pytest.mark.claim("S1-23", "X-10")
def test_what_was_declared_in_lost_entries_does_not_start_anew(home: Home) -> None:
    ledger = furnished(home)
    backup = Backup(home)
    births = Dataset(name="births", edition="1")

    def declared(book: Ledger) -> None:
        book.declare_population("newborn", unit=PATIENT, cap=ONE, reason="decided by the tests")
        book.declare_dataset(births, population="newborn", cap=ONE)

    declared(ledger)
    ledger.account(ACCOUNT, unit=PATIENT).reserve(ONE, datasets=[births])
    backup.restore()
    back = recovered(home)
    declared(back)
    with pytest.raises(BudgetExceeded):
        back.account(ACCOUNT, unit=PATIENT).reserve(Budget(epsilon="1/1000"), datasets=[births])
    same_books(back)


@pytest.mark.long
def test_odd_fractions_shut_neither_a_balance_nor_the_anchor(home: Home) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    primes = (number for number in range(10**30 + 1, 10**30 + 10**6, 2) if pow(2, number - 1, number) == 1)
    refused = 0
    for prime in (next(primes) for _ in range(60)):
        try:
            waiting = account.reserve(Budget(epsilon=Fraction(10**28, prime)), datasets=[VISITS], queued=True)
            if prime % 3:
                account.release(waiting)
        except LedgerError:
            refused += 1
    for _ in range(3):
        account.reserve(TENTH, datasets=[VISITS])
    number = ledger.head().head.number
    for digits in (61, 5000):
        with pytest.raises((LedgerError, InvalidInput)):
            ledger.reprice(number, cost=Budget(epsilon=1 + Fraction(1, 10**digits)), reason="x")
    assert home.open().head().head.number == number
    same_books(ledger)


def test_nothing_is_written_that_could_not_be_read_again(home: Home) -> None:
    ledger = governed(home)
    before = ledger.head()
    with pytest.raises((LedgerError, InvalidInput)):
        asked(ledger, Action.RAISE, account=ACCOUNT, amount=Budget(epsilon=10**4400))
    for reads in ((1, 2), ("2026-01-01",), ("a", "b", "c"), ["2026-01-01", "2026-01-02"]):
        with pytest.raises(InvalidInput, match="reads must be"):
            ledger.account(ACCOUNT, unit=PATIENT).reserve(TENTH, datasets=[VISITS], reads=reads)  # type: ignore[arg-type]
    assert ledger.head() == before
    same_books(ledger)


def test_an_approved_board_is_seated_once_and_never_after_a_later_one(home: Home) -> None:
    ledger = governed(home)
    first, second = (
        reseated(BOARD, members=("ada", "ben", "cho", "eve")),
        reseated(BOARD, members=("ada", "ben", "dov")),
    )
    passed(ledger, asked(ledger, Action.BOARD, subject=digest_of(first)))
    passed(ledger, asked(ledger, Action.BOARD, subject=digest_of(second)))
    ledger.seat(second, by="director", reason="elected", proposal=2)
    for board, proposal in ((first, 1), (second, 2)):
        with pytest.raises(Refused, match="no approved proposal names this board"):
            ledger.seat(board, by="director", reason="again", proposal=proposal)
    same_books(ledger)


@pytest.mark.claim("S1-28")
def test_a_community_is_not_voted_out_before_it_could_speak(home: Home) -> None:
    ledger = governed(home)
    (valley,) = BOARD.communities
    for board in (
        reseated(BOARD, communities=()),
        reseated(BOARD, communities=(replace(valley, datasets=("other",)),)),
        reseated(BOARD, communities=(replace(valley, representatives=("ben",)),)),
        replace(BOARD, keys=tuple((name, "b" * 64 if name == "mele" else key) for name, key in BOARD.keys)),
        replace(BOARD, keys=tuple(pair for pair in BOARD.keys if pair[0] != "mele")),
    ):
        number = asked(ledger, Action.BOARD, subject=digest_of(board))
        passed(ledger, number)  # two members are quick
        with pytest.raises(Refused, match="none of its representatives voted for"):
            ledger.seat(board, by="director", reason="simpler", proposal=number)
    agreed = reseated(BOARD, communities=())
    number = asked(ledger, Action.BOARD, subject=digest_of(agreed))
    ledger.vote(number, by="mele", key=key_of("mele"), choice=Choice.YES)
    passed(ledger, number)
    ledger.seat(agreed, by="director", reason="as the valley wished", proposal=number)
    same_books(ledger)


@pytest.mark.claim("S1-28", "S1-29")
def test_a_dataset_is_not_raised_past_its_community_and_its_sites(home: Home) -> None:
    ledger = governed(home, terms=replace(TERMS, sites=("north",)))
    for balance in ("dataset visits", "population patients"):
        number = asked(ledger, Action.RAISE, account=balance, amount=ONE)
        proposal = ledger.minutes().proposal(number)
        assert (proposal.datasets, proposal.sites) == (("visits",), ("north",))
        for voter in ("ben", "cho"):
            decision = ledger.vote(number, by=voter, key=key_of(voter), choice=Choice.YES)
            assert decision is None  # the committee is asked too
        decision = ledger.vote(number, by="mele", key=key_of("mele"), choice=Choice.NO, reason="no more")
        assert decision is not None
        assert decision.outcome is Outcome.VETOED
    ledger.veto(by="mele", key=key_of("mele"), community="valley", dataset="visits", reason="enough")
    with pytest.raises(Refused, match="under a community's veto"):
        asked(ledger, Action.RAISE, account="dataset visits", amount=ONE)
    same_books(ledger)


def test_a_vote_is_for_the_proposal_as_it_stands(home: Home) -> None:
    """The broken twin signs the number alone: then votes for a little pass for votes for much."""
    ledger = governed(home)
    number = asked(ledger, Action.RAISE, account=ACCOUNT, amount=TENTH)
    passed(ledger, number)
    rows, previous, number_of = [], "0" * 64, 0
    for row in ledger.rows():
        body = (
            row.body.replace('"epsilon":"1/10"', '"epsilon":"1000/1"') if '"board.proposal"' in row.body else row.body
        )
        forged = Row(row.number, row.kind, body, previous, "")
        previous, number_of = forged.expected, row.number
        rows.append(replace(forged, digest=previous))
    assert number_of == ledger.head().head.number
    said = [finding.problem for finding in check_record(rows, heads=())]
    assert any("is not signed with the key" in problem for problem in said)
    assert tuple(check_record(ledger.rows(), heads=())) == ()


def forged(ledger: Ledger, *entries: object, drop: int = 0) -> list[Row]:
    """The record with entries after it that the holder of the ledger's key chained himself."""
    rows = list(ledger.rows())
    rows = rows[: len(rows) - drop]
    for entry in entries:
        rows.append(Row.after(rows[-1].number, rows[-1].digest, entry))  # type: ignore[arg-type]
    return rows


def findings(rows: list[Row], *heads: SignedHead) -> str:
    return " | ".join(str(finding) for finding in check_record(rows, heads=heads, unsigned=True))


def test_a_charge_without_its_lines_or_its_approval_is_found(home: Home) -> None:
    ledger = governed(home)
    passed(ledger, asked(ledger))
    charged(ledger)
    (honest,) = [row.entry for row in ledger.rows() if isinstance(row.entry, Reserved)]
    assert isinstance(honest, Reserved)
    assert findings(forged(ledger, honest)) == ""
    fewer = replace(honest, lines=honest.lines[:-2])
    assert "does not count against all that it draws on" in findings(forged(ledger, fewer))
    assert "states no purpose" in findings(forged(ledger, replace(honest, purpose=None)))
    assert "rests on other approvals" in findings(forged(ledger, replace(honest, approvals=())))


def test_a_board_that_was_hidden_while_somebody_charged_is_found(home: Home) -> None:
    """No key is needed for this, only the database: the head's column says that nothing was ever decided."""
    ledger = governed(home)
    home.execute("UPDATE head SET decisions = ''")
    for fooled in (lambda: home.open(), lambda: ledger.account(ACCOUNT, unit=PATIENT), lambda: charged(ledger)):
        with pytest.raises(LedgerError, match="is not the signed end of the record"):
            fooled()


def test_entries_that_the_ledger_would_never_make_are_found(home: Home) -> None:
    ledger = furnished(home)
    number = charged(ledger)
    at = ledger.head().head.at
    key = ledger.key.public_text
    second = LedgerOpened(at=at, identifier="0" * 32, key=key)
    assert "opened once" in findings(forged(ledger, second))
    assert "rows may have been read" in findings(forged(ledger, Released(at=at, charge=number)))
    assert "rows may have been read" in findings(forged(ledger, Expired(at=at, charge=number, counted=False)))
    early = Expired(at="2020-01-01T00:00:00+00:00", charge=number, counted=True)
    assert "made before the one" in findings(forged(ledger, early))
    assert "does not say when" in findings(forged(ledger, replace(early, at="not a time")))


def test_a_recovery_gives_no_head_up_without_paying_for_it(home: Home) -> None:
    ledger = furnished(home)
    charged(ledger)
    published = ledger.head()
    at = published.head.at
    free = Recovered(at=at, reason="x", anchored="", lost=1, gap=Budget.none())
    rows = forged(ledger, drop=1)
    rows.append(Row.after(rows[-1].number + 1, rows[-1].digest, free))
    assert "without charging what that head states" in findings(rows, published)
    rows[-1] = Row.after(rows[-2].number + 1, rows[-2].digest, replace(free, gap=TENTH))
    assert findings(rows, published) == ""


@pytest.mark.claim("S1-28")
def test_a_recovery_ends_approvals_because_a_veto_may_be_lost(home: Home) -> None:
    ledger = governed(home)
    passed(ledger, asked(ledger))
    backup = Backup(home)
    ledger.veto(by="mele", key=key_of("mele"), community="valley", dataset="visits", reason="we were not asked")
    backup.restore()
    back = recovered(home, approvals={"ben": key_of("ben"), "cho": key_of("cho")})
    with pytest.raises(Refused, match="no approval of 'visits'"):
        charged(back)
    passed(back, asked(back))
    charged(back)
    same_books(back)


def test_data_that_were_closed_among_lost_entries_are_not_open_again(home: Home) -> None:
    """Which questions fail could reveal what a row holds; and nobody knows any more whether one did."""
    ledger = furnished(home)
    other = Dataset(name="births", edition="1")
    ledger.declare_dataset(other, population="patients", cap=ONE)
    backup = Backup(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    account.reserve(TENTH, datasets=[VISITS])
    account.close([VISITS], {VISITS: Stored(since=0, names=frozenset({"a file"}))})
    backup.restore()
    back = recovered(home)
    account = back.account(ACCOUNT, unit=PATIENT)
    for before in (VISITS, other):
        with pytest.raises(Refused, match=r"may have closed it.*nothing was spent.*declare them as a new version"):
            account.reserve(TENTH, datasets=[before])
        with pytest.raises(Refused, match="may have closed it"):
            account.left_for([before])
    account.reserve(TENTH, datasets=[readable(back)])  # the steward's word that it was mended
    assert "All data are closed" in " ".join(Agreement.to(last_recovery(back), "a" * 32, ()).words)
    same_books(back)


def test_a_recovery_that_lost_nothing_closes_no_data(home: Home) -> None:
    clock = Clock()
    ledger = furnished(home, clock=clock)
    now, clock.now = clock.now, datetime(2099, 1, 1, tzinfo=UTC)
    ledger.confirm_clock("somebody who did not look")
    clock.now = now
    back = recovered(home, clock=clock)
    assert not last_recovery(back).closes
    assert not Agreement.to(last_recovery(back), "a" * 32, ()).entry("").closes
    charged(back)
    assert back.verify() == ()


def test_an_account_without_a_delta_that_a_lost_delta_shut_says_so_and_is_opened_by_a_raise(home: Home) -> None:
    """A raise of its cap, and a release with that δ, may be among the lost entries: so the δ is charged to it too."""
    ledger = governed(home, project=Budget(epsilon=2))
    lost = Budget(epsilon=1, delta="1/10000")
    ledger.open_account("hospital/library", unit=PATIENT, cap=Budget(epsilon=9, delta="1/1000"), reason="a")
    passed(ledger, asked(ledger))
    charged(ledger)
    backup = Backup(home)
    use = {"purpose": "research/health", "recipient": "public"}
    ledger.account("hospital/library", unit=PATIENT, **use).reserve(lost, datasets=[VISITS])
    backup.restore()
    back = recovered(home, approvals={"ben": key_of("ben"), "cho": key_of("cho")})
    passed(back, asked(back))
    with pytest.raises(BudgetExceeded, match=r"has nothing left") as shut:
        charged(back)
    assert "It is δ = 1/10000 beyond its cap, by a recovery after entries were lost" in str(shut.value)
    assert "its δ is used up and its ε is not (= 9/10 is left)" in str(shut.value)
    assert "raised by that much: sfumato budget request" in str(shut.value)
    amount = Budget(epsilon=0, delta=lost.delta)
    passed(back, asked(back, Action.RAISE, account=ACCOUNT, amount=amount, subject="the gap"))
    charged(back)
    same_books(back)


def last_recovery(ledger: Ledger) -> Recovered:
    return [entry for row in ledger.rows() if isinstance(entry := row.entry, Recovered)][-1]


def test_amounts_beyond_the_plan_that_was_approved_are_not_adopted(home: Home) -> None:
    ledger = governed(home)
    schedule = year()
    passed(ledger, asked(ledger, Action.PLAN, account=ACCOUNT, subject=digest_of(schedule.plan)))
    (line,) = schedule.lines
    dear = replace(schedule, lines=(replace(line, amount=Fraction(1, 5)),))
    with pytest.raises(Refused, match="go beyond the cap that it states"):
        ledger.adopt_plan(ACCOUNT, dear)
    ledger.adopt_plan(ACCOUNT, schedule)


def test_names_and_keys_of_a_board_are_told_apart(home: Home) -> None:
    key = SigningKey.new().public_text
    for wrong in (
        {"members": ("ada", "Ada", "ben")},
        {"members": ("ada", "ada ", "ben")},
        {"members": ("ada", "a\u200bda", "ben")},
        {"keys": (("ada", key), ("ben", key))},
        {"keys": (("zoe", key),)},
    ):
        with pytest.raises(InvalidInput):
            replace(BOARD, **wrong)
    ledger = governed(home)
    for alias in ("Ada", "ada ", "someone"):
        with pytest.raises(Refused, match="is not known to the board"):
            asked(ledger, by=alias)
    with pytest.raises(InvalidInput, match="gives no amount"):
        asked(ledger, amount=ONE)
    open_to_all = reseated(BOARD, proposers=("analyst",))
    assert "analyst" in open_to_all.people


def test_with_a_board_new_people_and_new_trees_are_its_decision(home: Home) -> None:
    ledger = governed(home)
    ledger.open_account("hospital/new", unit=PATIENT, cap=ONE, reason="within the hospital's cap")
    for opening in (
        lambda: ledger.open_account("other", unit=PATIENT, cap=ONE, reason="x"),
        lambda: ledger.declare_population("staff", unit=PATIENT, cap=ONE, reason="x"),
    ):
        with pytest.raises(Refused, match="was not decided by the board"):
            opening()
    passed(ledger, asked(ledger, Action.EXCEPTION, subject="population staff", amount=ONE))
    with pytest.raises(Refused, match="was not decided by the board"):
        ledger.declare_population("staff", unit=PATIENT, cap=ONE + ONE, reason="more than asked")
    ledger.declare_population("staff", unit=PATIENT, cap=ONE, reason="as decided")
    same_books(ledger)


def test_a_cap_is_shared_out_once(home: Home) -> None:
    ledger = furnished(home)
    rule = BaseAndReserve(base=(("a", Fraction(1, 2)),))
    ledger.allot("hospital", rule, reason="as last year")
    with pytest.raises(Refused, match="shared out already"):
        ledger.allot("hospital", replace(rule, base=(("b", Fraction(1, 100)),)), reason="more reserve")


def test_an_account_is_not_called_like_another_balance(home: Home) -> None:
    ledger = furnished(home)
    for name in ("dataset visits", "population patients", "account hospital", "window a", "lifetime a"):
        with pytest.raises(InvalidInput, match="reads like the name of a balance"):
            ledger.open_account(name, unit=PATIENT, cap=ONE, reason="x")


def test_an_anchor_that_cannot_be_read_is_recovered_from_and_kept(home: Home) -> None:
    ledger = furnished(home)
    charged(ledger)
    home.anchor.write_bytes(b"nothing that anybody could read" * 600)
    assert any("cannot be read" in finding.problem for finding in ledger.verify())
    with pytest.raises(LedgerError, match="no head that can be read"):
        charged(ledger)
    back = recovered(home, charge=TENTH)
    assert back.balance(ACCOUNT).left == Budget.none()
    assert len(list(home.anchor.parent.glob("anchor.unreadable-*"))) == 1
    with pytest.raises(BudgetExceeded):
        charged(back)
    same_books(back)


def test_a_clock_that_ran_ahead_once_does_not_shut_the_ledger_for_good(home: Home) -> None:
    clock = Clock()
    ledger = furnished(home, clock=clock)
    clock.now = datetime(2099, 1, 1, tzinfo=UTC)
    with pytest.raises(LedgerError, match=r"more than 7 days before.*sfumato ledger clock"):
        charged(ledger)
    ledger.confirm_clock("somebody who did not look")
    charged(ledger)
    clock.now = datetime(2026, 11, 16, tzinfo=UTC)
    with pytest.raises(LedgerError, match="decide to go on"):
        charged(ledger)
    back = recovered(home, clock=clock)
    clock.now += timedelta(minutes=1)
    charged(back)
    assert back.balance(ACCOUNT).spent == TENTH + TENTH
    same_books(back)


def test_a_silence_is_confirmed_once_and_then_every_one_that_is_no_longer(home: Home) -> None:
    """As of a ledger that is charged once a month, without anybody there."""
    clock = Clock()
    ledger = furnished(home, clock=clock)
    clock.now += timedelta(days=7)
    charged(ledger)
    clock.now += timedelta(days=31)
    before = ledger.head()
    for refused in (lambda: charged(ledger), lambda: ledger.expire()):
        with pytest.raises(LedgerError, match="more than 7 days before"):
            refused()
    with pytest.raises(NotDeclared, match="say why"):
        ledger.confirm_clock(" ")
    assert ledger.head() == before
    ledger.confirm_clock("once a month")
    for _ in range(3):
        charged(ledger)
        clock.now += timedelta(days=31)
    clock.now += timedelta(days=1)
    with pytest.raises(LedgerError, match="more than 31 days before"):
        charged(ledger)
    same_books(ledger)


@pytest.mark.claim("S1-27")
@pytest.mark.parametrize(
    "purpose", ["research/Insurance", "research/./insurance", "research/insur\u00adance", "research/ｉnsurance"]
)
def test_a_forbidden_purpose_is_not_passed_by_its_spelling(home: Home, purpose: str) -> None:
    ledger = governed(home)
    passed(ledger, asked(ledger))
    with pytest.raises(InvalidInput):
        charged(ledger, purpose=purpose)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"lasts": timedelta(days=4_000_000)}, "not a calendar day"),
        ({"subject": "half a pair \ud800"}, "surrogate"),
        ({"by": "ada\ud800"}, "not known to the board"),
    ],
)
def test_a_request_that_cannot_be_written_down_is_refused(home: Home, fields: dict[str, object], words: str) -> None:
    ledger = governed(home)
    before = ledger.head().head.number
    with pytest.raises(SfumatoError, match=words):
        asked(ledger, **fields)
    assert ledger.head().head.number == before


def test_a_charge_that_would_never_be_stale_is_refused(home: Home) -> None:
    account = furnished(home).account(ACCOUNT, unit=PATIENT)
    with pytest.raises(InvalidInput, match="not a calendar day"):
        account.reserve(TENTH, datasets=[VISITS], lasts=timedelta(days=4_000_000))


def test_a_site_without_a_committee_is_refused(home: Home) -> None:
    ledger = governed(home, terms=replace(TERMS, sites=("south",)))
    with pytest.raises(NotDeclared, match="'south' has no data access committee"):
        asked(ledger)
