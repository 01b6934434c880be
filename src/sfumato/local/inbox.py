"""The server's door: what comes in may be anything, and only reports that a client can have sent are kept."""

from collections import Counter
from collections.abc import Iterable

from sfumato.errors import InvalidInput
from sfumato.local.client import read_report
from sfumato.local.collection import Collection
from sfumato.local.means import Mean
from sfumato.local.oracle import Oracle, Report

__all__ = ["Inbox", "sift"]


class Inbox:
    """Takes reports as text, and counts those that it refuses, by reason: unreadable, impossible, too many.

    ``sender`` may be any token that says nothing but who is who; each of them is heard as often as the collection asks.
    Without tokens nobody can tell that a report came twice. A well-formed lie is taken, for no check can see it:
    ``ask.pull`` says how far one can move an estimate. Public: everything here. Needs the standard library alone.

    >>> from sfumato.local import KaryResponse
    >>> inbox = Inbox(Collection(name="smoking", ask=KaryResponse(epsilon=1, values=2)))
    >>> [inbox.take(text, sender=name) for text, name in (("1", "a"), ("0", "a"), ("7", "b"), ("{", "c"))]
    [True, False, False, False]
    >>> inbox.reports, dict(inbox.refused)
    ([1], {'too many': 1, 'impossible': 1, 'unreadable': 1})
    """

    __slots__ = ("_heard", "collection", "refused", "reports")

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.reports: list[Report] = []
        self.refused: Counter[str] = Counter()
        self._heard: Counter[str] = Counter()

    def take(self, text: object, *, sender: str | None = None) -> bool:
        """Keep a report and say True, or count it as refused and say False. Nothing that is sent raises an error."""
        if sender is not None and self._heard[sender] >= self.collection.reports:
            self.refused["too many"] += 1
            return False
        try:
            report = read_report(text)
        except InvalidInput:
            self.refused["unreadable"] += 1
            return False
        if not self.collection.ask.possible(report):
            self.refused["impossible"] += 1
            return False
        if sender is not None:
            self._heard[sender] += 1
        self.reports.append(report)
        return True


def sift(ask: Oracle | Mean, reports: Iterable[object]) -> tuple[list[Report], int]:
    """The reports that a client can have sent, and how many others there were.

    >>> from sfumato.local import KaryResponse
    >>> sift(KaryResponse(epsilon=1, values=2), [0, 1, 2, -1, None, 1.0, "1", b"1"])
    ([0, 1], 6)
    """
    given = list(reports)
    kept: list[Report] = [report for report in given if ask.possible(report)]  # type: ignore[misc]
    return kept, len(given) - len(kept)
