"""What a signed head states is held to the record by everybody who is shown one: the witness, verification, a restore.

Each of these attackers holds a key that signs, or signed once; the chain of digests is whole, so that nothing but the
check of what the head states can notice.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.governance.anchor import FileAnchor, SignedHead
from sfumato.governance.backup import backup, restore
from sfumato.governance.entries import Row
from sfumato.governance.ledger import Ledger
from sfumato.governance.verify import check_record
from sfumato.governance.witness import Witness
from sfumato.governance.witnessed import Extension, SignedExtension
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, furnished, sqlite_home
from tests.governance.rooted import Rooted, charged

HALF = Budget(epsilon="1/2")
OTHER = "ab" * 32


@pytest.fixture
def here(tmp_path: Path) -> Rooted:
    return Rooted(sqlite_home(tmp_path))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(furnished(sqlite_home(tmp_path))) as made:
        account = made.account(ACCOUNT, unit=PATIENT)
        for number in range(3):
            account.commit_text(account.reserve(HALF, datasets=[VISITS]), f"question {number}", "{}")
        yield made


def signed_again(row: Row, key: SigningKey, **states: str) -> Row:
    """A row whose head states something else, or is signed by somebody else; its digest and its place are the same."""
    return replace(row, head=SignedHead.sign(replace(SignedHead.read(row.head).head, **states), key).text)


@pytest.mark.parametrize("place", [8, 12])
def test_a_head_that_states_another_tree_than_its_rows_is_found(ledger: Ledger, place: int) -> None:
    """In the middle, where another signature speaks for the row, and at the end."""
    rows = list(ledger.rows())
    assert rows[-1].number == 12
    assert list(check_record(rows, heads=())) == []
    forged = [signed_again(row, ledger.key, tree=OTHER) if row.number == place else row for row in rows]
    found = [(finding.entry, finding.problem) for finding in check_record(forged, heads=())]
    assert found == [(place, "was signed with another tree of entries than follows from the record")]


def test_a_witness_countersigns_no_head_that_states_another_tree_than_its_rows(ledger: Ledger, tmp_path: Path) -> None:
    witness = Witness.create(tmp_path / "witness")
    witness.enrol(ledger.head(), ledger.key.public_text)
    head, rows = ledger.head(), tuple((row.number, row.digest) for row in ledger.rows())
    forged = SignedHead.sign(replace(head.head, tree=OTHER), ledger.key)

    def told(said: SignedHead) -> SignedExtension:
        return SignedExtension.sign(Extension(head=said.text, since=0, rows=rows, lease=HALF), ledger.key)

    with pytest.raises(InvalidInput, match="another tree of entries than its rows make; nothing was witnessed"):
        witness.extend(told(forged))
    assert witness.ledgers() == [(ledger.identifier, 0, False)]
    witness.extend(told(head))
    assert witness.ledgers() == [(ledger.identifier, head.head.number, False)]


def test_with_roles_each_row_is_signed_by_a_key_that_might_not_by_the_one_below_it(here: Rooted) -> None:
    """A good signature of a later row speaks for the chain, and not for who appended the rows above it."""
    old = SigningKey.new()
    with closing(here.furnished()) as ledger:
        ledger.certify(old.public_text, role="charge", holder="spare", root=here.root)
        charged(ledger)
        ledger.revoke(old.public_text, role="charge", reason="stolen", root=here.root)
        for _ in range(3):
            charged(ledger)
        rows = list(ledger.rows())
    given = {"heads": (SignedHead.read(rows[-1].head),), "key": here.root.public_text}
    assert list(check_record(rows, **given)) == []  # type: ignore[arg-type]
    last = rows[-1].number
    for thief, place in ((old, last - 1), (SigningKey.new(), last - 1), (here.administer, last - 2)):
        forged = [signed_again(row, thief) if row.number == place else row for row in rows]
        for replayed in (True, False):
            found = list(check_record(forged, replayed=replayed, **given))  # type: ignore[arg-type]
            assert [(one.entry, one.problem) for one in found] == [
                (place, "carries a signature that does not hold for it")
            ]
    allowed = next(row.number for row in rows if row.kind == "ledger.reserved")  # before the key was revoked
    assert list(check_record([signed_again(row, old) if row.number == allowed else row for row in rows], **given)) == []  # type: ignore[arg-type]


def test_a_backup_with_roles_is_restored_beside_an_anchor_that_a_charging_key_signed(
    here: Rooted, tmp_path: Path
) -> None:
    with closing(here.furnished()) as ledger:
        charged(ledger)
        backup(ledger, tmp_path / "kept.jsonl")
        end = ledger.head()
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    honest = here.home.anchor.read_bytes()
    given = {"key": here.charge, "anchor": here.home.anchor, "file": tmp_path / "kept.jsonl"}
    for thief in (SigningKey.new(), here.administer, here.release, here.root):
        here.home.anchor.unlink()
        FileAnchor(here.home.anchor).create(SignedHead.sign(end.head, thief))
        with pytest.raises(Refused, match="belongs to another ledger than the backup; nothing was restored"):
            restore(here.home.url, root=here.root.public_text, **given)  # type: ignore[arg-type]
        with pytest.raises(Refused, match="belongs to another ledger"):
            restore(here.home.url, root=here.root.public_text, older=True, **given)  # type: ignore[arg-type]
    here.home.anchor.write_bytes(honest)
    done = restore(here.home.url, root=here.root.public_text, **given)  # type: ignore[arg-type]
    assert (done.entries, done.lost) == (end.head.number, False)
    with closing(here.open()) as again:
        charged(again)
        assert again.verify() == ()
