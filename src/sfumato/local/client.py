"""The client: draws the reports of one person, on that person's device, with the standard library alone.

Nothing but the report leaves. Randomness is the operating system's; all arithmetic is in whole numbers.
"""

import hashlib
import json
import re
from fractions import Fraction
from typing import Any

from sfumato.core.documents import canonical, parse
from sfumato.core.exact import Exact, natural
from sfumato.errors import InvalidInput, Refused
from sfumato.local.collection import Collection, collection_from_json
from sfumato.local.means import MEANS
from sfumato.local.oracle import MOST_VALUES, Report
from sfumato.noise.bits import Bits, SystemBits

__all__ = ["Client", "read_report", "write_report"]

_REPORT = re.compile(r'(0|[1-9][0-9]{0,39})|"((?:[0-9a-f]{2})*)"')
_LONGEST = MOST_VALUES // 4 + 64  # characters: two for eight values, and room for quotes and spaces


class Client:
    """One person's side of a collection.

    Guarantee: that of the collection, at user level, as long as the state goes on where it stopped: a device that
    forgets its state begins to count anew. Sensitive: the values and ``state()``; public: the reports.
    After ``reports`` reports every further one is refused. In a memoised collection, a value beyond the ``distinct``
    first ones is answered with the report sent last, so that no refusal tells of it.

    >>> from sfumato.local import Collection, KaryResponse
    >>> asked = Collection(name="smoking", ask=KaryResponse(epsilon=1, values=2), labels=("no", "yes"))
    >>> Client(asked).report("yes") in (0, 1)
    True
    """

    __slots__ = ("_bits", "_last", "_memory", "_sent", "collection")

    def __init__(self, collection: Collection | str, *, bits: Bits | None = None) -> None:
        self.collection = collection_from_json(collection) if isinstance(collection, str) else collection
        self._bits: Bits = SystemBits() if bits is None else bits
        self._memory: dict[int, Report] = {}
        self._last: Report | None = None
        self._sent = 0

    @property
    def sent(self) -> int:
        """How many reports were drawn."""
        return self._sent

    @property
    def spent(self) -> Fraction:
        """What the reports so far cost at user level; in a memoised collection the declared cost, from the first one.

        How many different values there were is itself private, so it is not what is shown.
        """
        if self.collection.memoised:
            return self.collection.cost().epsilon if self._sent else Fraction(0)
        return self._sent * self.collection.ask.epsilon

    def report(self, value: Exact) -> Report:
        """Draw the next report for a value: a label, the number of a value, or for a mean a number in [−1, 1]."""
        if self._sent >= self.collection.reports:
            raise Refused(
                f"all {self.collection.reports} reports of this collection were sent; nothing was reported. "
                "A new collection with its own cost must be agreed to."
            )
        asked = self.collection.ask
        if isinstance(asked, MEANS):
            drawn: Report = asked.report(value, self._bits)
        else:
            truth = self.collection.index(value) if isinstance(value, str) else value
            drawn = self._remembered(truth) if self.collection.memoised else asked.report(truth, self._bits)  # type: ignore[arg-type]
        self._sent += 1
        self._last = drawn
        return drawn

    def _remembered(self, truth: Exact) -> Report:
        asked, known = self.collection.ask, self._memory
        fresh = asked.report(truth, self._bits)  # type: ignore[arg-type]  # always drawn: a known value takes as long
        if truth in known:
            return known[truth]  # type: ignore[index]
        if self._last is not None and len(known) >= (self.collection.distinct or 0):
            return self._last
        known[truth] = fresh  # type: ignore[index]
        return fresh

    def state(self) -> str:
        """What must be kept to go on later, as JSON. Secret: it holds the values; it never leaves the device."""
        memory = {str(value): write_report(report) for value, report in self._memory.items()}
        last = None if self._last is None else write_report(self._last)
        state = {"collection": self._mark(), "sent": self._sent, "memory": memory, "last": last}
        return canonical(state)  # type: ignore[arg-type]

    def _mark(self) -> str:
        """What tells this collection from every other one."""
        return hashlib.sha256(self.collection.to_json().encode()).hexdigest()

    @classmethod
    def resumed(cls, collection: Collection | str, state: str, *, bits: Bits | None = None) -> "Client":
        """Go on with a state that was kept; a state of another collection is refused."""
        client = cls(collection, bits=bits)
        body: Any = parse(state)
        try:
            mark = body["collection"]
            client._sent = natural(body["sent"], "sent", least=0)
            client._memory = {int(key): read_report(text) for key, text in body["memory"].items()}
            client._last = None if body["last"] is None else read_report(body["last"])
        except (KeyError, TypeError, ValueError, AttributeError, InvalidInput):
            raise InvalidInput("this is not the state of a client; nothing was resumed.") from None
        if mark != client._mark():
            raise InvalidInput("this is the state of a client of another collection; nothing was resumed.")
        return client


def write_report(report: Report) -> str:
    """A report as JSON: a whole number, or a bitmap as hexadecimal text.

    >>> write_report(7), write_report(b"\\x01\\xff")
    ('7', '"01ff"')
    """
    return json.dumps(report.hex() if isinstance(report, bytes) else report)


def read_report(text: object) -> Report:
    """Read a report; what is none is refused. It may come from anywhere, so only the two plain forms are read at all.

    >>> read_report('"01ff"')
    b'\\x01\\xff'
    """
    found = _REPORT.fullmatch(text.strip()) if isinstance(text, str) and len(text) <= _LONGEST else None
    if found is None:
        raise InvalidInput("a report is a whole number or a bitmap in hexadecimal digits; this was not read.")
    number, digits = found.groups()
    return bytes.fromhex(digits) if number is None else int(number)
