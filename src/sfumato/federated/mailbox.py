"""What a coordinator has asked and sites have not answered yet: one place between who asks and who carries it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from threading import Condition

from sfumato.errors import Refused

__all__ = ["Mailbox", "request_number"]


def request_number(site: str, request: bytes) -> str:
    """The number of a request to a site: the same for the same bytes, also after either side has been killed.

    >>> request_number("north", b"vote")[:8]
    '7547770a'
    """
    return sha256(b"sfumato request 1\0" + site.encode() + b"\0" + request).hexdigest()


@dataclass(slots=True)
class _Asked:
    site: str
    request: bytes
    waiting: int = 0
    done: bool = False
    answer: bytes | None = None


class Mailbox:
    """Requests by number, each for one site, until whoever asked has the answer or waits no more.

    Guarantee: a site sees its own requests alone and answers those alone; of two different answers the first stands.
    """

    def __init__(self) -> None:
        self._changed, self._open = Condition(), dict[str, _Asked]()

    def ask_all(self, requests: Mapping[str, bytes], *, seconds: float) -> dict[str, bytes | None]:
        """Ask each site its own; wait until all have answered, and no longer than that many seconds."""
        numbers = {site: request_number(site, request) for site, request in requests.items()}
        end = time.monotonic() + seconds
        with self._changed:
            for site, number in numbers.items():
                self._open.setdefault(number, _Asked(site, requests[site])).waiting += 1
            self._changed.notify_all()
            asked = [self._open[number] for number in numbers.values()]
            try:
                self._changed.wait_for(lambda: all(one.done for one in asked), max(0.0, end - time.monotonic()))
            finally:
                for number in numbers.values():
                    self._open[number].waiting -= 1
                    if not self._open[number].waiting:
                        del self._open[number]
        return {one.site: one.answer for one in asked}

    def next(self, site: str, *, seconds: float) -> tuple[str, bytes] | None:
        """The number and the bytes of what a site is asked, once there is something; None if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: self._first(site), seconds) or None

    def awaits(self, site: str, number: str) -> bool:
        """Whether an answer of this site to this request is of use."""
        with self._changed:
            return number in self._open and self._open[number].site == site

    def answer(self, site: str, number: str, answer: bytes | None) -> None:
        """Take the answer of a site, None where it gives none; one that nobody waits for is refused."""
        with self._changed:
            if number not in self._open or self._open[number].site != site:
                raise Refused("nobody waits for this answer of this site; it was not taken.")
            asked = self._open[number]
            if asked.done and asked.answer != answer:
                raise Refused("this site has given another answer to this request; the new one was not taken.")
            asked.done, asked.answer = True, answer
            self._changed.notify_all()

    def _first(self, site: str) -> tuple[str, bytes] | None:
        for number, asked in self._open.items():
            if asked.site == site and not asked.done:
                return number, asked.request
        return None
