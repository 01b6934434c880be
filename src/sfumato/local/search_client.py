"""The device's side of a search for frequent texts: one report, then silence; with the standard library alone."""

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import NoReturn

from sfumato.core.documents import Json, canonical, parse
from sfumato.errors import InvalidInput, Refused
from sfumato.local.heavy_hitters import PrefixSearch, search_from_json
from sfumato.local.oracle import Report
from sfumato.noise.bits import Bits, SystemBits

__all__ = ["SearchClient"]


class SearchClient:
    """One person's side of a search: it reports once, whatever the server asks, and then refuses.

    Guarantee: ε-DP for the text, replaced by any other, whatever the candidates, as long as the state goes on where it
    stopped: a device that forgets it would report again. So the state must be durable before the report leaves: give
    ``save``. Sensitive: the text; public: the report, that there was one, and ``state()``.

    >>> plan = PrefixSearch(epsilon=2, alphabet="-abc", length=4, step=2, kept=8)
    >>> device = SearchClient(plan.to_json())
    >>> device.report("abba", plan.first()) >= 0, device.sent
    (True, True)
    >>> device.report("abba", plan.first())
    Traceback (most recent call last):
    sfumato.errors.Refused: the one report of this search was sent; nothing was reported. ...
    """

    __slots__ = ("_bits", "_once", "_process", "plan")

    def __init__(self, plan: PrefixSearch | str, *, bits: Bits | None = None) -> None:
        self.plan = search_from_json(plan) if isinstance(plan, str) else plan
        if not isinstance(self.plan, PrefixSearch):
            raise InvalidInput("the plan is not a PrefixSearch; nothing was done.")
        self._bits: Bits = SystemBits() if bits is None else bits
        self._once = threading.Lock()  # taken by the one report and never given back, also between threads
        self._process = os.getpid()

    def __reduce__(self) -> NoReturn:
        raise Refused("a client is not copied, since the copy would report again; nothing was done. Keep its state().")

    @property
    def sent(self) -> bool:
        """Whether the one report was drawn, or is given up because its state could not be saved."""
        return self._once.locked()

    def report(self, text: str, candidates: Sequence[str], save: Callable[[str], object] | None = None) -> Report:
        """Draw the one report: which of the candidates the text begins with, or that it begins with none of them.

        ``save`` is given the new state and must have made it durable when it returns; only then is the report drawn. If
        it fails, nothing was reported, and this client reports no more.
        """
        asked = self.plan.checked(candidates)
        place = self.plan.place(text, asked)
        if os.getpid() != self._process:
            raise Refused("this client belongs to another process; nothing was reported. Resume it from its state.")
        if not self._once.acquire(blocking=False):
            raise Refused(
                "the one report of this search was sent; nothing was reported. "
                "Another search with its own cost must be agreed to."
            )
        if save is not None:
            save(self.state())
        return self.plan.oracle(asked).report(place, self._bits)

    def state(self) -> str:
        """What must be kept to go on later, as JSON; it says of which plan it is, and whether the report was drawn."""
        return canonical({"plan": self._mark(), "sent": self.sent})

    def _mark(self) -> str:
        """What tells this plan from every other one."""
        return hashlib.sha256(self.plan.to_json().encode()).hexdigest()

    @classmethod
    def resumed(cls, plan: PrefixSearch | str, state: str, *, bits: Bits | None = None) -> "SearchClient":
        """Go on with a state that was kept; a state of another plan is refused."""
        client, body = cls(plan, bits=bits), _body(state)
        if body["plan"] != client._mark():
            raise InvalidInput("this is the state of a client of another search; nothing was resumed.")
        if body["sent"]:
            client._once.acquire()
        return client


def _body(state: str) -> dict[str, Json]:
    body = parse(state)
    if not isinstance(body, dict) or body.keys() != {"plan", "sent"} or type(body["sent"]) is not bool:
        raise InvalidInput("this is not the state of a client of a search; nothing was resumed.")
    return body
