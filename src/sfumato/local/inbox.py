"""The server's door: what comes in may be anything, and only reports that a client can have sent are kept."""

import os
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import NoReturn

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput, Refused
from sfumato.local.client import read_report
from sfumato.local.collection import Collection
from sfumato.local.means import Mean
from sfumato.local.oracle import Oracle, Report

__all__ = ["Inbox", "listed", "sift"]


class Inbox:
    """Takes reports as text, round by round, and counts those that it refuses, by reason.

    A collection with T reports a person has T rounds. ``sender`` is a text, number or bytes that say nothing but who is
    who; each sender is heard once in a round. Without it nobody can tell that a report came twice.
    A well-formed lie is taken, for no check can see it: ``ask.pull`` says how far one can move an estimate, and a
    sender has one in a round. Public: everything here. Needs the standard library alone.

    Guarantee: of each sender at most one report is kept in a round, also where threads share the inbox: whether a
    sender was heard is asked, and written down, in one step. Another process may not share it, and it is not copied:
    the copy would hear everybody again.

    Refused are: unreadable, impossible, too many (of one sender in a round), no such round, no such sender.

    >>> from sfumato.local import KaryResponse
    >>> inbox = Inbox(Collection(name="smoking", ask=KaryResponse(epsilon=1, values=2)))
    >>> [inbox.take(text, sender=name) for text, name in (("1", "a"), ("0", "a"), ("7", "b"), ("{", "c"))]
    [True, False, False, False]
    >>> inbox.reports, dict(inbox.refused)
    ([1], {'too many': 1, 'impossible': 1, 'unreadable': 1})
    """

    __slots__ = ("_heard", "_kept", "_lock", "_process", "collection", "refused")

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.refused: Counter[str] = Counter()
        self._kept: dict[int, list[Report]] = {}
        self._heard: set[tuple[int, str | int | bytes]] = set()
        self._lock = threading.Lock()
        self._process = os.getpid()

    def __reduce__(self) -> NoReturn:
        raise Refused(
            "an inbox is not copied, since the copy would hear every sender again; nothing was copied. Keep what "
            "reports_of(…) hands out."
        )

    def take(self, text: object, *, sender: object = None, round: object = None) -> bool:
        """Keep a report and say True, or count it as refused and say False. Nothing that is sent raises an error.

        ``round`` counts from 1 and may be left out only where a person reports once.
        """
        if round is None and self.collection.reports > 1:
            raise InvalidInput(
                f"a person reports {self.collection.reports} times, and it was not said in which round this is; "
                "nothing was taken. Give round=1 for the first."
            )
        if os.getpid() != self._process:
            raise Refused(
                "this inbox belongs to another process, and a copy of it would hear every sender again; nothing was "
                "taken. Hand reports to the process that made it."
            )
        at = 1 if round is None else round
        if isinstance(at, bool) or not isinstance(at, int) or not 1 <= at <= self.collection.reports:
            return self._refuse("no such round")
        if not (sender is None or isinstance(sender, str | int | bytes)):
            return self._refuse("no such sender")
        if sender is not None and (at, sender) in self._heard:  # before the text is read, which takes longer
            return self._refuse("too many")
        try:
            report = read_report(text)
        except InvalidInput:
            return self._refuse("unreadable")
        if not self.collection.ask.possible(report):
            return self._refuse("impossible")
        with self._lock:  # asked again: while this one was read, another thread may have kept a report of the sender
            late = sender is not None and (at, sender) in self._heard
            if not late:
                if sender is not None:
                    self._heard.add((at, sender))
                self._kept.setdefault(at, []).append(report)
        return not late or self._refuse("too many")

    def _refuse(self, reason: str) -> bool:
        with self._lock:
            self.refused[reason] += 1
        return False

    def reports_of(self, round: int) -> list[Report]:
        """The reports of one round, in the order in which they came: one a sender, so that they are independent."""
        at = natural(round, "round", most=self.collection.reports)
        with self._lock:
            return list(self._kept.get(at, ()))

    @property
    def reports(self) -> list[Report]:
        """The reports of the one round there is; refused where persons report more than once."""
        if self.collection.reports > 1:
            raise Refused(
                f"a person reports {self.collection.reports} times here, and the reports of one person are not "
                "independent: no interval would hold for all of them together. Nothing was handed out. "
                "Estimate each round by itself: reports_of(1), reports_of(2), …"
            )
        return self.reports_of(1)


def sift(ask: Oracle | Mean, reports: Iterable[object]) -> tuple[list[Report], int]:
    """The reports that a client can have sent, and how many others there were.

    >>> from sfumato.local import KaryResponse
    >>> sift(KaryResponse(epsilon=1, values=2), [0, 1, 2, -1, None, 1.0, "1", b"1"])
    ([0, 1], 6)
    """
    given = listed(reports)
    kept: list[Report] = [report for report in given if ask.possible(report)]  # type: ignore[misc]  # possible reports are of the right type
    return kept, len(given) - len(kept)


def listed(reports: object) -> list[object]:
    """Reports as a list; what has keys, forgets how often, or is one text or bitmap is no row of reports.

    >>> listed(iter((1, 1, 0)))
    [1, 1, 0]
    """
    if isinstance(reports, Mapping | Set | str | bytes | bytearray | memoryview) or not isinstance(reports, Iterable):
        raise InvalidInput(
            f"reports came as {type(reports).__name__}; nothing was counted. Give a list or an array, one report each."
        )
    return list(reports)
