"""The entry of an answer, read from its canonical text: of all entries the longest, and one of the two most common."""

import re
from json.decoder import scanstring  # type: ignore[attr-defined]  # what reads a text in JSON, in C
from typing import Final

from sfumato.governance.entries import Committed, Entry, Row

__all__ = ["answer_in", "entry_of"]

_BEGINS: Final = re.compile(r'\{"at":"([^"\\\x00-\x1f]*)","certificate":"')
_GOES_ON: Final = re.compile(rf',"charge":(0|[1-9][0-9]{{0,17}}),"kind":"{re.escape(Committed.KIND)}","question":"')
_ENDS: Final = f',"version":{Committed.VERSION}}}'


def entry_of(row: Row) -> Entry:
    """The entry of a row, as :attr:`~sfumato.governance.entries.Row.entry` reads it, and sooner where it can be."""
    return answer_in(row.body) or row.entry


def answer_in(body: str) -> Committed | None:
    """The entry of an answer, if this is its text as a ledger writes it, sign by sign; None: read it as any other.

    Guarantee: what it gives is what the general reader gives of the same text.

    >>> answer_in('{"at":"now","certificate":"{}","charge":3,"kind":"ledger.committed","question":"q","version":1}')
    Committed(at='now', charge=3, question='q', certificate='{}')
    >>> answer_in('{"at":"now","certificate":"{}","charge":3.0,"kind":"ledger.committed","question":"q","version":1}')
    """
    begins = _BEGINS.match(body)
    if begins is None or "\\u" in body:  # an escape can hold half a surrogate pair
        return None
    try:
        certificate, end = scanstring(body, begins.end())
        goes_on = _GOES_ON.match(body, end)
        if goes_on is None:
            return None
        question, end = scanstring(body, goes_on.end())
        if not body.isascii():
            body.encode()
    except ValueError:  # no JSON, or text that has no bytes
        return None
    if body[end:] != _ENDS:
        return None
    return Committed(at=begins[1], charge=int(goes_on[1]), question=question, certificate=certificate)
