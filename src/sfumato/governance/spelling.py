"""One spelling for each name: what looks the same on a screen must be the same account, dataset or community.

A name is taken in Unicode form NFC, where an accent is one sign with its letter. One that is written otherwise is
refused with the right spelling, and so is the right one where an old ledger holds another: it has to be used as it is.
"""

import unicodedata
from collections.abc import Iterable

from sfumato.errors import InvalidInput, Refused
from sfumato.governance.ledger_state import LedgerState

__all__ = ["check_new", "check_spelling"]


def check_spelling(names: Iterable[str], what: str) -> None:
    r"""Refuse a name that is not in NFC, with the spelling that is.

    >>> check_spelling(["café"], "the name of a dataset")
    >>> try:
    ...     check_spelling(["cafe\u0301"], "the name of a dataset")
    ... except InvalidInput as wrong:
    ...     print(str(wrong).rpartition("Write it")[2])
     in Unicode form NFC: 'caf\xe9'
    """
    for name in names:
        plain = unicodedata.normalize("NFC", name)
        if plain != name:
            raise InvalidInput(
                f"{what}, {name!a}, is spelt with signs of its own for accents, and another spelling would look "
                f"the same; nothing was changed. Write it in Unicode form NFC: {plain!a}"
            )


def check_new(state: LedgerState, line: str, name: str, what: str) -> None:
    """Refuse a name of a new balance that is not in NFC, or another spelling of one that is there.

    ``line`` is the whole name of the balance. Plain letters have one spelling, so nothing is looked up for them.
    """
    check_spelling([name], what)
    if line.isascii():
        return
    plain = unicodedata.normalize("NFC", line)
    for other in state.balances():
        if other.name != line and unicodedata.normalize("NFC", other.name) == plain:
            raise Refused(
                f"{what} is there already in another spelling, {other.name!a}, from before names had one; nothing "
                "was changed. Use that one, letter by letter."
            )
