"""The client: draws the reports of one person, on that person's device, with the standard library alone.

Nothing but the report leaves. Randomness is the operating system's; all arithmetic is in whole numbers.
"""

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any, NoReturn  # a state as JSON, whose every part is checked

from sfumato.core.documents import Json, canonical, parse
from sfumato.core.exact import Exact, natural, rational
from sfumato.errors import InvalidInput, Refused
from sfumato.local.collection import Collection, collection_from_json
from sfumato.local.means import MEANS
from sfumato.local.oracle import MOST_VALUES, Report, is_below
from sfumato.noise.bits import Bits, SystemBits

__all__ = ["Client", "read_report", "write_report"]

_REPORT = re.compile(r'(0|[1-9][0-9]{0,39})|"((?:[0-9a-f]{2})*)"')
_LONGEST = MOST_VALUES // 4 + 64  # characters: two for eight values, and room for quotes and spaces


class Client:
    """One person's side of a collection.

    Guarantee: that of the collection, at user level, as long as the state goes on where it stopped: a device that
    forgets its state begins to count anew. So the state must be durable before a report leaves: give ``save``.
    Sensitive: the values and ``state()``; public: the reports, and that there was one. A value that is refused is
    followed by silence, which is seen: every person needs an answer inside the domain.
    After ``reports`` reports every further one is refused. In a memoised collection, a value beyond the ``distinct``
    first ones is answered with the report sent last, so that no refusal reveals it.
    Threads may share a client. Another process may not: it would count for itself.

    >>> from sfumato.local import Collection, KaryResponse
    >>> asked = Collection(name="smoking", ask=KaryResponse(epsilon=1, values=2), labels=("no", "yes"))
    >>> Client(asked).report("yes") in (0, 1)
    True
    """

    __slots__ = ("_bits", "_last", "_lock", "_memory", "_process", "_sent", "collection")

    def __init__(self, collection: Collection | str, *, bits: Bits | None = None) -> None:
        self.collection = collection_from_json(collection) if isinstance(collection, str) else collection
        self._bits: Bits = SystemBits() if bits is None else bits
        self._memory: dict[int, Report] = {}
        self._last: Report | None = None
        self._sent = 0
        self._lock = threading.RLock()  # ``save`` may ask for the state
        self._process = os.getpid()

    def __reduce__(self) -> NoReturn:
        raise Refused("a client is not copied, since the copy would count anew; nothing was done. Keep its state().")

    @property
    def sent(self) -> int:
        """How many reports were drawn."""
        return self._sent

    @property
    def spent(self) -> Fraction | None:
        """What the reports so far cost at user level; in a memoised collection the declared cost, from the first one.

        None where no number holds: ``collection.cost()`` then says what does. How many different values there were is
        itself private, so it is not what is shown.
        """
        if not self._sent:
            return Fraction(0)
        return self.collection.cost().epsilon if self.collection.memoised else self._sent * self.collection.ask.epsilon

    def report(self, value: Exact | None, *, save: Callable[[str], object] | None = None) -> Report:
        """Draw the next report for a value: a label, the number of a value, or for a mean a number in [−1, 1].

        ``save`` is given the new state, and must have made it durable when it returns; only then the report is handed
        out. If it raises, the report is not handed out, and counts as sent. Without it, a device that is stopped after
        sending goes on from an older state, and sends a fresh report beyond those agreed to.
        """
        if os.getpid() != self._process:
            raise Refused(
                "this client belongs to another process, which would count for itself; nothing was reported. Go on "
                "in one process alone, with Client.resumed."
            )
        with self._lock:
            if self._sent >= self.collection.reports:
                raise Refused(
                    f"all {self.collection.reports} reports of this collection were sent; nothing was reported. "
                    "A new collection with its own cost must be agreed to."
                )
            truth = self._truth(value)
            self._sent += 1  # before anything is drawn
            drawn: Report
            if self.collection.memoised:
                drawn = self._remembered(truth)
            else:
                drawn = self.collection.ask.report(truth, self._bits)  # type: ignore[arg-type]  # the value that it asks for
            self._last = drawn
            if save is not None:
                save(self.state())
            return drawn

    def _truth(self, value: Exact | None) -> int | Fraction:
        """The value as it is asked for; anything else is refused in words that do not repeat it."""
        asked = self.collection.ask
        if isinstance(asked, MEANS):
            with suppress(InvalidInput):  # raised below, where it has no context: that would name the value
                return rational(value, "value")  # type: ignore[arg-type]  # refuses None
            raise InvalidInput("the value is not a finite number; nothing was reported. Give one in [−1, 1].")
        if isinstance(value, str) or (self.collection.other is not None and not is_below(value, asked.values)):
            return self.collection.index(value)
        return int(asked._truth(value))  # type: ignore[arg-type]  # refuses all but a number in range

    def _remembered(self, truth: int | Fraction) -> Report:
        asked, known = self.collection.ask, self._memory
        fresh: Report = asked.report(truth, self._bits)  # type: ignore[arg-type]  # the value that it asks for; drawn also for a known one
        if truth in known:
            return known[truth]  # type: ignore[index]  # nothing is remembered of a mean
        if self._last is not None and len(known) >= self.collection.charged:
            return self._last
        known[truth] = fresh  # type: ignore[index]  # as above: nothing is remembered of a mean
        return fresh

    def state(self) -> str:
        """What must be kept to go on later, as JSON. Secret: it holds the values; it never leaves the device."""
        with self._lock:
            memory: Json = {str(value): write_report(report) for value, report in self._memory.items()}
            last = None if self._last is None else write_report(self._last)
            state: Json = {"collection": self._mark(), "sent": self._sent, "memory": memory, "last": last}
        return canonical(state)

    def _mark(self) -> str:
        """What tells this collection from every other one."""
        return hashlib.sha256(self.collection.to_json().encode()).hexdigest()

    @classmethod
    def resumed(cls, collection: Collection | str, state: str, *, bits: Bits | None = None) -> "Client":
        """Go on with a state that was kept; one of another collection, or that no client can have, is refused."""
        client, ours = cls(collection, bits=bits), True
        with suppress(
            KeyError, TypeError, ValueError, AttributeError
        ):  # raised below: a context would reveal the state
            body: Any = parse(state)
            ours = body["collection"] == client._mark()
            if ours and client._restored(body):
                return client
        if not ours:
            raise InvalidInput("this is the state of a client of another collection; nothing was resumed.")
        raise InvalidInput("this is not the state of a client; nothing was resumed.")

    def _restored(self, body: Mapping[str, Any]) -> bool:
        """Take over a state, and say whether a client of this collection can have it."""
        self._sent = natural(body["sent"], "sent", least=0)
        self._last = None if body["last"] is None else read_report(body["last"])
        self._memory = {int(key): read_report(text) for key, text in body["memory"].items()}
        asked, known = self.collection.ask, self._memory
        drawn = [*known.values(), *([] if self._last is None else [self._last])]
        values = range(0 if isinstance(asked, MEANS) else asked.values)
        return (
            sorted(map(str, known)) == sorted(body["memory"])  # each value written in one way, and once
            and all(value in values for value in known)
            and all(asked.possible(report) for report in drawn)
            and len(known) <= min(self._sent, self.collection.distinct or 0)
            and (self._last is None or (self._last in known.values() if self.collection.memoised else self._sent > 0))
            and (self._last is not None or not known)
            and self._sent <= self.collection.reports
        )


def write_report(report: Report) -> str:
    """A report as JSON: a whole number, or a bitmap as hexadecimal text.

    >>> write_report(7), write_report(b"\\x01\\xff")
    ('7', '"01ff"')
    """
    return json.dumps(report.hex() if isinstance(report, bytes) else report)


def read_report(text: object) -> Report:
    """Read a report; anything else is refused. It may come from anywhere, so only the two plain forms are read at all.

    >>> read_report('"01ff"')
    b'\\x01\\xff'
    """
    found = _REPORT.fullmatch(text.strip()) if isinstance(text, str) and len(text) <= _LONGEST else None
    if found is None:
        raise InvalidInput("a report is a whole number or a bitmap in hexadecimal digits; this was not read.")
    number, digits = found.groups()
    return bytes.fromhex(digits) if number is None else int(number)
