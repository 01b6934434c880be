"""The quick reader of answers gives what the general one gives, of any text, or leaves it to that one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode
from sfumato.errors import SfumatoError
from sfumato.governance.entries import START, Committed, DatasetClosed, Reserved, Row
from sfumato.governance.rows import NODE, stored, stored_together
from sfumato.governance.stored_answer import answer_in, entry_of
from sfumato.governance.verify import check_record
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, furnished, sqlite_home

ENTRY = Committed(at="2026-01-01T00:00:00+00:00", charge=7, question='a "q"', certificate='{"a":"\\\\ε\\n"}')
TEXT = canonical(encode(ENTRY))
WRONG = {
    "another field": TEXT[:-1] + ',"x":1}',
    "a field twice": TEXT.replace('"charge":7', '"charge":7,"charge":7'),
    "a fraction": TEXT.replace('"charge":7', '"charge":7.0'),
    "a leading zero": TEXT.replace('"charge":7', '"charge":07'),
    "a negative number": TEXT.replace('"charge":7', '"charge":-7'),
    "white space": TEXT.replace(",", ", "),
    "half a pair": TEXT.replace("ε", "\ud800"),
    "half a pair, escaped": TEXT.replace("ε", "\\ud800"),
    "a control sign": TEXT.replace("ε", "\x01"),
    "another kind": TEXT.replace("ledger.committed", "ledger.released"),
    "another version": TEXT.replace('"version":1', '"version":2'),
    "cut short": TEXT[:-20],
    "more behind it": TEXT + " ",
    "not closed": TEXT.replace('","charge"', ',"charge"'),
}


def _row(body: str) -> Row:
    return Row(number=1, kind=Committed.KIND, body=body, previous=START, digest="")


def _general(body: str) -> object:
    try:
        return _row(body).entry
    except SfumatoError as wrong:
        return str(wrong)


def _quick(body: str) -> object:
    try:
        return entry_of(_row(body))
    except SfumatoError as wrong:
        return str(wrong)


@given(st.text(), st.text(), st.integers(min_value=0, max_value=2**63))
def test_what_a_ledger_writes_is_read_as_it_was_written(question: str, certificate: str, charge: int) -> None:
    entry = replace(ENTRY, question=question, certificate=certificate, charge=charge)
    try:
        body = canonical(encode(entry))
    except SfumatoError:
        return  # text that has no bytes is not written
    assert _quick(body) == entry
    assert _general(body) == entry


def test_most_answers_are_read_quickly() -> None:
    assert answer_in(TEXT) == ENTRY


@pytest.mark.parametrize("wrong", WRONG)
def test_any_other_text_is_left_to_the_general_reader(wrong: str) -> None:
    assert answer_in(WRONG[wrong]) is None
    assert _quick(WRONG[wrong]) == _general(WRONG[wrong])


@given(st.integers(0, len(TEXT) - 1), st.characters())
def test_one_sign_more_or_another_one_changes_nothing_between_the_two(place: int, sign: str) -> None:
    for body in (TEXT[:place] + sign + TEXT[place:], TEXT[:place] + sign + TEXT[place + 1 :]):
        assert _quick(body) == _general(body)


def test_what_waits_for_a_server_is_one_text() -> None:
    assert json.loads(stored({NODE: [("a", b"\x00\xff")]})) == {"of_node": [{"path": "a", "children": "\\x00ff"}]}
    assert stored_together().count("INSERT INTO") == 7
    assert len(stored_together()) < 4096  # a driver reads the words of a longer statement anew each time


def test_every_text_comes_back_from_a_store_as_it_was(home: Home) -> None:
    ledger = furnished(home)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    texts = ['"', "\\", '\\"', "\n\t\r\x01\x7f", "ε 中文 🦊", "%s ? $1 {}", "\\x00", "null", ""]
    for text in texts:
        account.commit_text(account.reserve(Budget(epsilon=1), datasets=[VISITS]), f"q{text}", text)
    assert [account.answer(f"q{text}") for text in texts] == texts
    assert ledger.verify() == ()


def test_a_replay_notices_that_a_version_was_closed_between_two_charges(tmp_path: Path) -> None:
    """The lines of a charge are worked out once for many, and anew after every other entry."""
    with_closed = furnished(sqlite_home(tmp_path))
    account = with_closed.account(ACCOUNT, unit=PATIENT)
    for _ in range(2):
        account.reserve(Budget(epsilon=1), datasets=[VISITS])
    rows = list(with_closed.rows())
    first, second = (row for row in rows if isinstance(row.entry, Reserved))
    end = Row.after(first.number, first.digest, DatasetClosed(at=first.entry.at, dataset=VISITS))
    late = Row.after(end.number, end.digest, second.entry)
    forged = [row for row in rows if row.number <= first.number] + [end, late]
    found = [str(one) for one in check_record(iter(forged), heads=(), unsigned=True)]
    assert any("was closed after its engine failed" in one for one in found)
    assert not list(check_record(iter(rows), heads=(), unsigned=True))
