"""Ballots: signed at home, carried by anybody, counted once for what they say; every replay and forgery is refused."""

import json
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.documents import Registry
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused, SfumatoError
from sfumato.governance import decision_state
from sfumato.governance.agreements import Agreement
from sfumato.governance.ballots import Ballot
from sfumato.governance.board import Action, Board, Choice, Outcome, Proposal, VetoLifted, Vote, fingerprint
from sfumato.governance.decision_state import DecisionState
from sfumato.governance.digest import digest_of
from sfumato.governance.entries import Acted, BoardSeated, Entry, Migrated, Recovered, Row
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import replay
from sfumato.governance.verify import check_record
from tests.governance.homes import PATIENT, Home, furnished, sqlite_home
from tests.governance.signers import key_of, keyed, reseated
from tests.governance.test_anchor import Backup
from tests.governance.test_conformance import Clock
from tests.governance.test_governed import BOARD, TENTH, TERMS, WHY, asked, charged, governed, passed, same_books
from tests.governance.test_store_faults import older

RIVER = {"community": "valley", "dataset": "visits"}


@pytest.fixture
def lite(tmp_path: Path) -> Home:
    return sqlite_home(tmp_path)


def carried(ballot: Ballot) -> Ballot:
    """What arrives, when a ballot is sent as a file."""
    return Ballot.read(ballot.text())


def refused(ledger: Ledger, ballot: Ballot, words: str) -> None:
    """A ballot is refused with these words, and nothing is changed."""
    before = ledger.head()
    with pytest.raises(Refused, match=words):
        ledger.submit(ballot)
    assert ledger.head() == before


def yes(ledger: Ledger, number: int, name: str) -> Ballot:
    return carried(ledger.ballot(vote=number)).signed(key_of(name), choice=Choice.YES, reason="as discussed")


def test_a_vote_is_signed_away_from_the_ledger_and_handed_in_by_anybody(home: Home) -> None:
    ledger = governed(home)
    number = asked(ledger)
    papers = [carried(ledger.ballot(vote=number)) for _ in range(2)]
    signed = [paper.signed(key_of(name), choice=Choice.YES) for paper, name in zip(papers, ("ben", "cho"), strict=True)]
    for ballot in signed:
        cast = ledger.submit(carried(ballot))
    assert isinstance(cast, Vote)
    decision = ledger.minutes().decision(number)
    assert decision is not None
    assert (decision.outcome, decision.yes) == (Outcome.APPROVED, ("ben", "cho"))
    assert [ledger.minutes().signer(vote) for vote in ledger.minutes().votes(number)] == [
        key_of(name).public_text for name in ("ben", "cho")
    ]
    charged(ledger)
    same_books(ledger)


def test_every_kind_of_act_goes_by_ballot(home: Home) -> None:
    ledger = governed(home)
    about: dict[str, Any] = {"action": Action.DATASET, "subject": "visits", "reasons": WHY, "datasets": ("visits",)}
    paper = carried(ledger.request_ballot(by="ada", **about))
    other = asked(ledger)  # somebody asked in between: the request gets its number when it is entered
    made = ledger.submit(carried(paper.signed(key_of("ada"))))
    assert isinstance(made, Proposal)
    assert (made.number, made.proposer) == (other + 1, "ada")
    ledger.submit(carried(ledger.ballot(withdraw=made.number)).signed(key_of("ada")))
    assert ledger.minutes().decision(made.number).outcome is Outcome.WITHDRAWN  # type: ignore[union-attr]
    ledger.submit(carried(ledger.ballot(veto="visits", community="valley")).signed(key_of("mele"), reason="no"))
    assert ledger.minutes().decision(other).outcome is Outcome.VETOED  # type: ignore[union-attr]
    lift = ledger.submit(carried(ledger.ballot(lift="visits", community="valley")).signed(key_of("mele"), reason="yes"))
    assert isinstance(lift, VetoLifted)
    assert lift.veto is not None
    assert ledger.minutes().vetoes("visits") == ()
    same_books(ledger)


def test_a_paper_says_in_plain_words_what_is_decided(lite: Home) -> None:
    ledger = governed(lite)
    paper = ledger.ballot(vote=asked(ledger))
    said = "\n".join(paper.words)
    for words in (
        "a vote on request 1, which ada made",
        "The request is to open a dataset: visits of 2026",
        "Datasets: visits",
        f"What is gained: {WHY.benefit}",
        f"What those in the data risk: {WHY.risk}",
        f"Why this much: {WHY.choice}",
        "It can be decided until",
        "This ballot can be handed in until",
        ledger.identifier,
        "Not signed yet.",
    ):
        assert words in said
    signed = paper.signed(key_of("ben"), choice=Choice.NO, reason="too risky")
    assert signed.words[-1] == f"ben votes no, with the key {key_of('ben').public_text}: too risky"
    assert json.loads(signed.text())["words"] == list(signed.words)
    ledger.veto(by="mele", key=key_of("mele"), **RIVER, reason="we were not asked")
    veto, lift = ledger.ballot(veto="visits", community="valley"), ledger.ballot(lift="visits", community="valley")
    assert "It does not expire." in veto.words
    assert "by mele: we were not asked" in lift.words[0]


def test_the_words_of_a_file_are_those_of_its_fields(lite: Home) -> None:
    """Whoever reads the file in an editor must not read something else than what is signed."""
    ledger = governed(lite)
    text = ledger.ballot(vote=asked(ledger)).text()
    body = json.loads(text)
    body["words"][1] = "The request is to do nothing at all."
    with pytest.raises(Refused, match="the words of this file are not those of what would be signed"):
        Ballot.read(json.dumps(body))
    with pytest.raises(Refused, match="the words"):
        Ballot.read(json.dumps({name: part for name, part in body.items() if name != "words"}))
    with pytest.raises(Refused, match="the words"):
        Ballot.read(text.replace(WHY.benefit, "nothing", 1))
    for wrong in ("", "{}", "[]", "no", '{"kind":"budget","version":1,"epsilon":"1/1","delta":"0/1"}', "[" * 100_000):
        with pytest.raises(InvalidInput, match="is not a ballot"):
            Ballot.read(wrong)


# ------------------------------------------------------------------------------------------------------------ replays


def test_the_same_ballot_counts_once(home: Home) -> None:
    ledger = governed(home)
    about: dict[str, Any] = {"action": Action.DATASET, "subject": "visits", "reasons": WHY, "datasets": ("visits",)}
    request = ledger.request_ballot(by="ada", **about).signed(key_of("ada"))
    ledger.submit(request)
    refused(ledger, request, "was handed in before")
    vote = yes(ledger, 1, "ben")
    ledger.submit(vote)
    refused(ledger, vote, "was handed in before")
    no = ledger.ballot(veto="visits", community="valley").signed(key_of("mele"), reason="no")
    ledger.submit(no)
    lift = ledger.ballot(lift="visits", community="valley").signed(key_of("mele"), reason="yes")
    ledger.submit(lift)
    refused(ledger, no, "was handed in before")  # else whoever kept the file could veto again
    ledger.veto(by="mele", key=key_of("mele"), **RIVER, reason="again")
    refused(ledger, lift, "was handed in before")
    same_books(ledger)


def test_an_old_lift_does_not_work_against_a_new_veto(home: Home) -> None:
    ledger = governed(home)
    ledger.veto(by="mele", key=key_of("mele"), **RIVER, reason="no")
    paper = ledger.ballot(lift="visits", community="valley")
    kept, used = (paper.signed(key_of("mele"), reason=words) for words in ("one", "two"))
    ledger.submit(used)
    ledger.veto(by="mele", key=key_of("mele"), **RIVER, reason="no")  # in the same second, with the same words
    refused(ledger, kept, "does not lift the veto of 'valley' that stands now")
    newest = ledger.ballot(lift="visits", community="valley")
    refused(ledger, replace(kept, veto=newest.veto), "not signed with the key")
    with pytest.raises(Refused, match="no veto of 'valley' over 'other' stands"):
        ledger.ballot(lift="other", community="valley")


def test_a_ballot_is_for_one_ledger(tmp_path: Path) -> None:
    ledgers = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        ledgers.append(governed(sqlite_home(tmp_path / name)))
    number, _ = (asked(ledger) for ledger in ledgers)
    refused(ledgers[1], yes(ledgers[0], number, "ben"), "is for the ledger")
    moved = replace(yes(ledgers[0], number, "ben"), ledger=ledgers[1].identifier)
    refused(ledgers[1], moved, "another entry")
    end = ledgers[1].head().head
    there = ledgers[1].minutes().proposal(number)
    refused(ledgers[1], replace(moved, head=end.number, digest=end.digest, proposal=there), "not signed with the key")


def test_a_ballot_is_not_for_a_copy_that_went_its_own_way(tmp_path: Path) -> None:
    """The copy has the same identifier, board and request: the head tells them apart."""
    (tmp_path / "one").mkdir()
    home = sqlite_home(tmp_path / "one")
    ledger = governed(home)
    number = asked(ledger)
    ledger.close()
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    copy = Home(url=str(tmp_path / "two" / "ledger.db"), folder=str(tmp_path / "two" / "apart"))
    for place in (home, copy):
        place.open().open_account("hospital/own", unit=PATIENT, cap=TENTH, reason="each for itself")
    refused(copy.open(), yes(home.open(), number, "ben"), "a copy that went its own way")


def test_an_old_ballot_is_refused_by_a_board_that_was_seated_anew(home: Home) -> None:
    ledger = governed(home)
    number = asked(ledger)
    kept, veto = yes(ledger, number, "cho"), ledger.ballot(veto="visits", community="valley")
    larger = reseated(BOARD, members=(*BOARD.members, "eva"))
    change = asked(ledger, Action.BOARD, subject=digest_of(larger))
    passed(ledger, change)
    ledger.seat(larger, by="director", reason="eva joins", proposal=change)
    refused(ledger, kept, "is for the board that entry .* seated")
    refused(ledger, veto.signed(key_of("mele"), reason="no"), "is for the board that entry")
    entry = ledger.ballot(vote=number).board
    refused(ledger, replace(kept, board=entry, keys=larger.keys), "not signed with the key|was not written between")
    passed(ledger, number)
    same_books(ledger)


def test_a_ballot_is_handed_in_before_it_expires_and_a_veto_at_any_time(home: Home) -> None:
    clock = Clock()
    ledger = furnished(home, clock=clock)
    ledger.seat(BOARD, by="director", reason="the statute of 2026")
    ledger.declare_terms(TERMS)
    number = asked(ledger, lasts=timedelta(days=30))
    ledger.veto(by="mele", key=key_of("mele"), **RIVER, reason="no")
    lift = ledger.ballot(lift="visits", community="valley").signed(key_of("mele"), reason="yes")
    about: dict[str, Any] = {"action": Action.EXCEPTION, "subject": "x", "reasons": WHY}
    request = ledger.request_ballot(by="ada", **about).signed(key_of("ada"))
    never = ledger.ballot(veto="visits", community="valley").signed(key_of("mele"), reason="late")
    for _ in range(3):
        clock.now += timedelta(days=5)
        asked(ledger, Action.EXCEPTION)  # somebody uses the ledger
    assert number == 1
    refused(ledger, lift, "could be handed in until")
    with pytest.raises(InvalidInput, match="must expire after it is made"):
        ledger.submit(request)
    later = replace(lift, expires="2999-01-01T00:00:00+00:00")
    refused(ledger, later, "not signed with the key")
    ledger.lift_veto(by="mele", key=key_of("mele"), **RIVER, reason="yes")
    ledger.submit(never)
    assert ledger.minutes().vetoes("visits")[0].reason == "late"
    same_books(ledger)


# ---------------------------------------------------------------------------------------------------------- forgeries


def flips(ballot: Ballot) -> Iterator[tuple[str, Callable[[], Ballot]]]:
    """The ballot with one field, or one part of a field, changed, for each of them, by whoever carries the file."""
    text = ballot.text()

    def changed(place: tuple[str | int, ...], value: object) -> Ballot:
        body = json.loads(text)
        part = body
        for step in place[:-1]:
            part = part[step]
        part[place[-1]] = value
        body["words"] = list(_words(body))
        return Ballot.read(json.dumps(body))

    def walk(part: object, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], object]]:
        if isinstance(part, dict):
            for name, inner in part.items():
                if name not in ("words", "kind", "version"):
                    yield from walk(inner, (*place, name))
        elif isinstance(part, list):
            for index, inner in enumerate(part):
                yield from walk(inner, (*place, index))
        else:
            yield place, part

    for place, value in walk(json.loads(text), ()):
        for other in others(value):
            yield ".".join(map(str, place)), lambda place=place, other=other: changed(place, other)  # type: ignore[misc]


def _words(body: dict[str, Any]) -> tuple[str, ...]:
    """The words that the altered fields would have; a forger can work them out too."""
    found: Ballot = Registry((Ballot, *Ballot.PARTS)).decode({k: part for k, part in body.items() if k != "words"})
    return found.words


def others(value: object) -> list[object]:
    match value:
        case bool() | None:
            return ["x", 1]
        case int():
            return [value + 1, max(1, value - 1) if value > 1 else value + 2]
        case str():
            swaps = {"yes": "no", "no": "yes"}
            more = value.replace("2026", "2027") if "2026" in value else value + " "
            last = "0" if value[-1:] != "0" else "1"
            return [swaps.get(value, more), value[:-1] + last, None]
    return []


@pytest.mark.parametrize("matter", ["vote", "withdraw", "request", "veto", "lift"])
def test_a_signed_ballot_that_is_changed_anywhere_is_refused(lite: Home, matter: str) -> None:
    ledger = governed(lite)
    number = asked(ledger)
    if matter == "lift":
        ledger.veto(by="mele", key=key_of("mele"), **RIVER, reason="no")
    papers: dict[str, Callable[[], Ballot]] = {
        "vote": lambda: ledger.ballot(vote=number).signed(key_of("ben"), choice=Choice.YES, reason="yes"),
        "withdraw": lambda: ledger.ballot(withdraw=number).signed(key_of("ada")),
        "request": lambda: ledger.request_ballot(
            by="ada", action=Action.EXCEPTION, subject="x", reasons=WHY, account="hospital"
        ).signed(key_of("ada")),
        "veto": lambda: ledger.ballot(veto="visits", community="valley").signed(key_of("mele"), reason="no"),
        "lift": lambda: ledger.ballot(lift="visits", community="valley").signed(key_of("mele"), reason="yes"),
    }
    ballot = papers[matter]()
    before, tried = ledger.head(), set()
    for place, forged in flips(ballot):
        tried.add(place.partition(".")[0])
        try:
            ledger.submit(forged())
        except SfumatoError:
            assert ledger.head() == before, place
        else:
            pytest.fail(f"{place} was changed, and the ballot was entered")
    assert {"ledger", "board", "head", "digest", "nonce", "keys", "signer", "signature", "reason", "matter"} <= tried
    ledger.submit(ballot)  # as it was signed it counts
    assert ledger.verify() == ()


def test_nobody_votes_for_somebody_else(home: Home) -> None:
    ledger = governed(home)
    number = asked(ledger)
    paper = ledger.ballot(vote=number)
    with pytest.raises(Refused, match="does not know the key"):
        paper.signed(SigningKey.new(), choice=Choice.YES)
    ben = paper.signed(key_of("ben"), choice=Choice.YES)
    refused(ledger, replace(ben, signer="cho"), "not signed with the key")
    mine = SigningKey.new()
    swapped = tuple((name, mine.public_text if name == "cho" else key) for name, key in BOARD.keys)
    refused(ledger, replace(paper, keys=swapped).signed(mine, choice=Choice.YES), "was altered")
    exchanged = tuple((name, key_of("ben").public_text if name == "cho" else key) for name, key in BOARD.keys)
    exchanged = tuple(pair for pair in exchanged if pair[0] != "ben")
    refused(ledger, replace(paper, keys=exchanged).signed(key_of("ben"), choice=Choice.YES), "was altered")
    refused(ledger, paper, "is not signed")
    with pytest.raises(Refused, match="is signed already"):
        ben.signed(key_of("cho"), choice=Choice.NO)
    for given in ({"choice": None}, {"choice": Choice.YES, "by": "cho"}):
        with pytest.raises((Refused, NotDeclared)):
            ledger.vote(number, by=str(given.get("by", "ben")), choice=given["choice"], key=key_of("ben"))  # type: ignore[arg-type]


def test_one_person_has_one_voice_whatever_the_spelling(home: Home) -> None:
    name = "zoë"
    other = unicodedata.normalize("NFD", name)
    assert name != other
    with pytest.raises(InvalidInput, match="differ by their spelling alone"):
        reseated(BOARD, members=(*BOARD.members, name, other))
    board = reseated(BOARD, members=(*BOARD.members, name), quorum=3)
    ledger = governed(home, board=board)
    number = asked(ledger)
    ledger.vote(number, by=name, choice=Choice.YES, key=key_of(name))
    with pytest.raises(Refused, match="is not known to the board"):
        ledger.vote(number, by=other, choice=Choice.YES, key=key_of(name))
    with pytest.raises(Refused, match="cast once"):
        ledger.vote(number, by=name, choice=Choice.YES, key=key_of(name))
    spelt = replace(yes(ledger, number, name), signer=other)
    refused(ledger, spelt, "is not known to the board")


def test_a_key_has_one_voice_also_under_a_new_name(home: Home) -> None:
    """The board is seated anew with the same key under another name: who asked or voted does not vote again."""
    board = reseated(BOARD, members=("ada", "ben", "cho", "dai"), quorum=2)
    ledger = governed(home, board=board)
    number = asked(ledger)
    ledger.vote(number, by="ben", choice=Choice.YES, key=key_of("ben"))
    renamed = reseated(BOARD, members=("ada2", "ben2", "cho", "dai"), quorum=2)
    own = {"ada2": "ada", "ben2": "ben"}
    renamed = replace(
        renamed, keys=tuple((name, key_of(own.get(name, name)).public_text) for name in sorted(renamed.people))
    )
    change = asked(ledger, Action.BOARD, subject=digest_of(renamed))
    passed(ledger, change)
    ledger.seat(renamed, by="director", reason="new names", proposal=change)
    for name in ("ada2", "ben2"):
        with pytest.raises(Refused, match="whoever holds a key has one voice"):
            ledger.vote(number, by=name, choice=Choice.YES, key=key_of(own[name]))
    assert ledger.minutes().decision(number) is None


def test_a_proposer_does_not_approve_through_another_key(home: Home) -> None:
    """A new key under the same name is still the same person."""
    ledger = governed(home)
    number, second = asked(ledger), SigningKey.new()
    with pytest.raises(Refused, match="acts by signature"):
        ledger.vote(number, by="ada", choice=Choice.YES, key=second)
    renewed = replace(BOARD, keys=tuple((n, second.public_text if n == "ada" else k) for n, k in BOARD.keys))
    change = asked(ledger, Action.BOARD, subject=digest_of(renewed), by="ben")
    passed(ledger, change, "ada", "cho")
    ledger.seat(renewed, by="director", reason="ada has a new key", proposal=change)
    with pytest.raises(Refused, match="whoever proposes does not vote"):
        ledger.vote(number, by="ada", choice=Choice.YES, key=second)
    with pytest.raises(Refused, match="acts by signature"):
        ledger.vote(number, by="ada", choice=Choice.YES, key=key_of("ada"))


# ------------------------------------------------------------------------------ whoever holds the key of the ledger


def forged(ledger: Ledger, make: Callable[[str], Entry]) -> list[str]:
    """What an auditor finds in the record with an entry that whoever holds the ledger's key chained to it."""
    rows = list(ledger.rows())
    end = rows[-1]
    rows.append(Row.after(end.number, end.digest, make(ledger.head().head.at)))
    with pytest.raises(SfumatoError):
        replay(rows)
    return [str(found) for found in check_record(rows, heads=(), unsigned=True)]


@pytest.mark.claim("S1-20")
def test_whoever_holds_the_ledger_cannot_vote_for_others(home: Home) -> None:
    ledger = governed(home)
    number = asked(ledger)
    number_of = ledger.head().head.number + 1
    signed = ledger.ballot(vote=number).signed(key_of("ben"), choice=Choice.NO, reason="no")

    def vote(at: str, choice: Choice = Choice.YES) -> Vote:
        return Vote(proposal=number, at=at, voter="ben", choice=choice, reason="no")

    own: dict[str, Callable[[str], Entry]] = {
        "this act is not signed": lambda at: Acted(at=at, act=vote(at), signature=None),
        "is not signed with the key": lambda at: Acted(
            at=at, act=vote(at), signature=signed.signature, bound=signed.bound()
        ),
        "acts by signature": lambda at: Acted(
            at=at,
            act=vote(at),
            signature=ledger.key.sign(b"x"),
            bound=replace(signed.bound(), key=ledger.key.public_text),
        ),
        "states another": lambda at: Acted(
            at=at, act=vote("2026-01-01T00:00:00+00:00", Choice.NO), signature=signed.signature, bound=signed.bound()
        ),
    }
    for words, make in own.items():
        said = forged(ledger, make)
        assert any(words in one and f"entry {number_of}" in one for one in said), (words, said)
    assert any("could never decide" in one for one in forged(ledger, lambda at: _seat(at, replace(BOARD, keys=()))))
    assert ledger.verify() == ()


def test_other_code_with_the_ledgers_key_is_refused_by_this_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Votes that were entered by code that checks nothing, signed rows and all, move no charge and are named."""
    ledger = governed(home)
    number = asked(ledger)
    at = ledger.head().head.at
    with monkeypatch.context() as patched:
        patched.setattr(DecisionState, "_check_ballot", lambda _, place, *__: (None, str(place)))
        patched.setattr(decision_state, "_check_time", lambda *_: None)
        for voter in ("ben", "cho"):
            act = Vote(proposal=number, at=at, voter=voter, choice=Choice.YES, reason="")
            with ledger.record.writing() as writing:
                writing.append(Acted(at=at, act=act, signature=None))
        first = ledger.head().head.number - 1
        assert ledger.minutes().decision(number).outcome is Outcome.APPROVED  # type: ignore[union-attr]
    ledger.close()
    honest = home.open()
    for use in (lambda: charged(honest), honest.minutes, lambda: honest.ballot(vote=number)):
        with pytest.raises(LedgerError, match=f"entry {first} of the record does not follow .* is not signed"):
            use()
    assert any(found.entry == first and "is not signed" in found.problem for found in honest.verify())


def test_a_ballot_of_another_record_is_named_by_verify(home: Home) -> None:
    ledger = governed(home)
    paper = replace(ledger.ballot(vote=asked(ledger)), digest="0" * 64)
    signed = paper.signed(key_of("ben"), choice=Choice.YES)
    refused(ledger, signed, "a copy that went its own way")
    rows = list(ledger.rows())
    at = ledger.head().head.at
    entry = Acted(at=at, act=signed.act(at, 1), signature=signed.signature, bound=signed.bound())
    rows.append(Row.after(rows[-1].number, rows[-1].digest, entry))
    said = [str(found) for found in check_record(rows, heads=(), unsigned=True)]
    assert said == [f"entry {rows[-1].number}: is a ballot that was signed for another record than this one"]


def test_rows_that_pass_for_old_ones_are_found(home: Home) -> None:
    """In a ledger whose rows were always signed no row passes as one from before, with or without a word of moving."""
    ledger = governed(home)
    number = asked(ledger)
    rows = list(ledger.rows())
    at = ledger.head().head.at
    for voter in ("ben", "cho"):
        act = Vote(proposal=number, at=at, voter=voter, choice=Choice.YES, reason="")
        body = Row.after(rows[-1].number, rows[-1].digest, Acted(at=at, act=act, signature=None))
        bare = replace(body, nonce="")
        rows.append(replace(bare, digest=bare.expected))
    end = rows[-1]
    rows.append(Row.after(end.number, end.digest, Migrated(at=at, tables="0004", digest=end.digest, state="")))
    said = [str(found) for found in check_record(rows, heads=(), unsigned=True)]
    assert any("'ben' acts by signature, and this act is not signed" in one for one in said)


def _seat(at: str, board: Board) -> Entry:
    return BoardSeated(at=at, board=board, by="x", reason="x", proposal=None)


# ------------------------------------------------------------------------------------------------------ old ledgers


def test_acts_from_before_rows_were_signed_stand_and_later_ones_are_signed(tmp_path: Path) -> None:
    ledger = older(tmp_path).open()
    assert ledger.verify() == ()
    ledger.confirm_clock("it lay in a drawer")
    board = ledger.board()
    assert board is not None
    assert board.silent  # as it was then
    assert {ledger.minutes().signer(act) for act in ledger.minutes().entries} == {None}
    (standing,) = ledger.minutes().vetoes("visits")
    with pytest.raises(Refused, match=f"knows no key of '{standing.voter}'"):
        ledger.lift_veto(
            by=standing.voter, community=standing.community, dataset="visits", reason="x", key=key_of(standing.voter)
        )
    lifted = VetoLifted(at="", community=standing.community, voter=standing.voter, dataset="visits", reason="x")
    said = forged(ledger, lambda at: Acted(at=at, act=replace(lifted, at=at), signature=None))
    assert any(f"knows no key of '{standing.voter}'" in one for one in said)


def test_an_old_board_is_given_keys_once_and_nothing_else(tmp_path: Path) -> None:
    ledger = older(tmp_path).open()
    ledger.confirm_clock("it lay in a drawer")
    old = ledger.board()
    assert old is not None
    for other in (
        keyed(replace(old, members=("ada", "ben", "eve"), keys=())),
        keyed(replace(old, communities=(), keys=())),
    ):
        with pytest.raises(Refused, match="the board changes by its own decision"):
            ledger.seat(other, by="director", reason="keys")
    with pytest.raises(Refused, match="it could never decide"):
        ledger.seat(old, by="director", reason="none")
    ledger.seat(keyed(old), by="director", reason="everybody sent a public key")
    (standing,) = ledger.minutes().vetoes("visits")
    who = {"by": standing.voter, "community": standing.community, "dataset": "visits", "key": key_of(standing.voter)}
    again = replace(keyed(old), keys=tuple((name, SigningKey.new().public_text) for name, _ in keyed(old).keys))
    with pytest.raises(Refused, match="the board changes by its own decision"):
        ledger.seat(again, by="director", reason="other keys")
    ledger.lift_veto(reason="we were asked", **who)  # type: ignore[arg-type]
    assert ledger.minutes().vetoes("visits") == ()
    ledger.close()
    assert older_home(tmp_path).open().verify() == ()


def older_home(tmp_path: Path) -> Home:
    return Home(url=str(tmp_path / "old" / "ledger.db"), folder=str(tmp_path / "old"))


# ---------------------------------------------------------------------------------------------------------- recovery


def lost(home: Home, clock: Clock) -> tuple[dict[str, Any], Backup]:
    """A ledger that was restored from a backup, and how to recover it."""
    ledger = furnished(home, clock=clock)
    ledger.seat(BOARD, by="director", reason="the statute of 2026")
    backup = Backup(home)
    ledger.open_account("hospital/lost", unit=PATIENT, cap=TENTH, reason="will be lost")
    backup.restore()
    return {"key": home.key, "anchor": home.anchor, "reason": "the disk failed", "clock": clock}, backup


def test_members_agree_to_a_recovery_at_home(lite: Home) -> None:
    clock = Clock()
    where, _ = lost(lite, clock)
    paper = Agreement.read(Ledger.agreement(lite.url, **where).text())
    assert "Entries that are lost: 1. Every balance is charged" in paper.words[1]
    signed = [Agreement.read(paper.signed(key_of(name)).text()) for name in ("ben", "cho")]
    one = signed[0]
    clock.now += timedelta(hours=1)
    wrong: dict[str, Any] = {
        "too few": [one],
        "twice the same": [one, one],
        "another's name": [one, replace(one, signer="cho")],
        "another charge": [one, replace(signed[1], gap=TENTH)],
        "a paper that is not signed": [one, paper],
        "another paper": [one, replace(paper, expires="2026-11-20T00:00:00+00:00").signed(key_of("cho"))],
        "another expiry": [replace(each, expires="2999-01-01T00:00:00+00:00") for each in signed],
        "another end": [replace(each, after="0" * 64) for each in signed],
        "another ledger": [replace(each, ledger="0" * 32) for each in signed],
    }
    for what, given in wrong.items():
        with pytest.raises(Refused, match="the ledger stays shut"):
            Ledger.recover(lite.url, **where, agreements=given)
        assert what
    with pytest.raises(Refused, match="is to another recovery"):
        Ledger.recover(lite.url, **where | {"reason": "something else"}, agreements=signed)
    with pytest.raises(Refused, match="signed already, or its board does not know"):
        paper.signed(SigningKey.new())
    back = Ledger.recover(lite.url, **where, agreements=signed)
    assert back.verify() == ()
    *rows, last = back.rows()
    entry = last.entry
    assert isinstance(entry, Recovered)
    rows.append(Row.after(last.number - 1, rows[-1].digest, replace(entry, after="1" * 64)))
    said = " ".join(str(found) for found in check_record(rows, heads=(), unsigned=True))
    assert "is a recovery that was agreed to for another record" in said
    assert "is not signed with the key" in said


def test_an_agreement_expires_and_is_not_one_to_the_next_loss(lite: Home) -> None:
    clock = Clock()
    where, backup = lost(lite, clock)
    signed = [Ledger.agreement(lite.url, **where).signed(key_of(name)) for name in ("ben", "cho")]
    late = Clock()
    late.now = clock.now + timedelta(days=15)
    with pytest.raises(Refused, match="the members agreed until"):
        Ledger.recover(lite.url, **where | {"clock": late}, agreements=signed)
    Ledger.recover(lite.url, **where, agreements=signed).close()
    backup.restore()  # the same one again
    with pytest.raises(Refused, match="is to another recovery"):
        Ledger.recover(lite.url, **where, agreements=signed)
    lite.anchor.unlink()
    with pytest.raises(Refused, match="is to another recovery"):
        Ledger.recover(lite.url, **where, agreements=signed)


# --------------------------------------------------------------------------------------------------------- the shapes


def test_a_paper_is_for_one_thing(lite: Home) -> None:
    ledger = governed(lite)
    number = asked(ledger)
    several: tuple[dict[str, Any], ...] = (
        {},
        {"vote": 1, "withdraw": 1},
        {"veto": "visits"},
        {"vote": 1, "community": "valley"},
    )
    for given in several:
        with pytest.raises(InvalidInput, match="a paper is for one thing"):
            ledger.ballot(**given)
    unknown: tuple[dict[str, Any], ...] = ({"vote": 9}, {"veto": "visits", "community": "none"})
    for wrong in unknown:
        with pytest.raises(SfumatoError):
            ledger.ballot(**wrong)
    paper = ledger.ballot(vote=number)
    with pytest.raises(NotDeclared, match="yes, no or abstain"):
        paper.signed(key_of("ben"))
    with pytest.raises(InvalidInput, match="asks for no choice"):
        ledger.ballot(withdraw=number).signed(key_of("ada"), choice=Choice.YES)
    with pytest.raises(Refused, match="only 'ada' can withdraw request 1"):
        ledger.ballot(withdraw=number).signed(key_of("ben"))
    with pytest.raises(Refused, match="only 'ada' can sign this request"):
        ledger.request_ballot(by="ada", action=Action.EXCEPTION, subject="x", reasons=WHY).signed(key_of("ben"))
    passed(ledger, number)
    with pytest.raises(Refused, match="was approved"):
        ledger.ballot(vote=number)


def test_files_are_never_overwritten_and_long_ones_are_not_read(lite: Home, tmp_path: Path) -> None:
    ledger = governed(lite)
    paper, file = ledger.ballot(vote=asked(ledger)), tmp_path / "paper"
    paper.save(file)
    assert Ballot.load(file) == paper
    with pytest.raises(InvalidInput, match="was not overwritten"):
        paper.save(file)
    file.write_text(" " * 2_000_000 + paper.text(), "utf-8")
    with pytest.raises(InvalidInput, match="is not a ballot"):
        Ballot.load(file)
    for wrong in (tmp_path / "none", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read as a ballot"):
            Ballot.load(wrong)
    assert fingerprint("0123456789abcdef" * 4) == "0123 4567 89ab cdef"
