"""Sessions that outlive their process: every state is stored before anything that follows from it is released.

Order of a step: measure and draw, write the sealed state, move the stream's counter, release. A crash before the
counter moved leaves nothing told; after it, the state on disk has what was drawn. Proof: docs/proofs/streams.md
"""

import contextlib
import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, NoReturn, Self, SupportsIndex

from sfumato.core.budget import Budget
from sfumato.core.documents import Json
from sfumato.core.query import Query
from sfumato.core.release import Release
from sfumato.core.units import Unit
from sfumato.errors import Refused
from sfumato.gate.sealed import SealedState, read_sealed, remove_sealed, write_sealed
from sfumato.gate.session import Opened, SessionGate

__all__ = ["Checkpointed"]

FAILED = (
    "rows of this {what} could not be read, and that ended it: this version of its data is closed. Nothing was "
    "released, and the charge counts. Check what its rows are made from, then declare it as a new version."
)


class Checkpointed(ABC):
    """What all open streams share: a charge, perhaps a file for their state, and an end.

    Guarantee: with a file and a ledger, of all copies of a state at most one goes on, and an older one never does; so
    far as the ledger's own anchor tells. In memory there are no copies: it cannot be copied, pickled, or used after a
    fork. Sensitive: the state; it is encrypted and authenticated on disk.
    """

    WHAT: ClassVar[str] = "stream"

    def __init__(
        self, gate: SessionGate, opened: Opened, path: Path | None, held: contextlib.ExitStack | None = None
    ) -> None:
        """Begin; ``held`` is the hold on the file of the state, taken before the charge."""
        self._gate, self._opened, self._path = gate, opened, path
        self._lock, self._stack = threading.RLock(), held or contextlib.ExitStack()
        self._done, self._closed, self._serial, self._process = False, False, 0, os.getpid()
        self._failed, self._position = False, ""

    @property
    def query(self) -> Query:
        """What the stream was opened for. Public."""
        return self._opened.query

    @property
    def unit(self) -> Unit:
        """Who is protected. Public."""
        return self._gate.unit

    @property
    def charged(self) -> Budget:
        """What the whole stream cost, charged when it was opened."""
        return self._opened.charged

    @property
    def position(self) -> str:
        """Where its source goes on from, as the source told it with the last step. Sensitive."""
        return self._position

    def take_position(self, position: str) -> None:
        """Seal with the next step where the source goes on after it: both are stored, or neither."""
        with self._lock:
            self._position = position

    def uninterrupted(self) -> contextlib.AbstractContextManager[object]:
        """Hold the stream for several calls: while it is held no other thread tells anything from it.

        For what asks where the stream is and then goes on from there.
        """
        return self._lock

    @property
    def failed(self) -> bool:
        """Whether the stream ended because rows could not be read. Public."""
        return self._failed

    def fail(self) -> bool:
        """End the stream for good: rows of a step could not be read, and whether others can could reveal what they
        hold.

        The charge is kept, this version of the data is closed, and no state of the stream goes on. False if the data
        was closed already: of those that fail at once, one may tell so.
        """
        with self._lock:
            self._failed = True
            try:
                return self._gate.fail(self._opened)
            finally:
                if self._path is not None:
                    remove_sealed(self._path)
                self._end()

    def start(self) -> Self:
        """Write the first state, if there is a file for it."""
        if self._path is not None:
            self._write()
        return self

    def resume(self) -> Self:
        """Go on from the state on disk; an older one, or a copy that was overtaken, is refused."""
        path = self._path
        if path is None:
            raise Refused(f"a {self.WHAT} without a file has no state to resume from; nothing was done.")
        try:
            header, state, body = read_sealed(path, self._gate.secret("state"), what=self.WHAT)
            if {**header, "serial": self._serial} != self._header() or len(body) != state.get("bytes", 0):
                raise Refused(f"{path} is the state of another {self.WHAT} or another charge; nothing was resumed.")
            self._gate.move(self._opened, header["serial"], state["nonce"])
            self._opened = replace(self._opened, issued=state["issued"])
            self._serial, self._position = header["serial"], state.get("position", "")
            self._restore_body(body)
            self._restore(state)
            self.save()  # from now on no copy of the old state can go on
        except BaseException:
            self._end()
            raise
        return self

    def save(self) -> None:
        """Store the state, then move the stream's counter: only after both may anything be released.

        Without a file there is no count; whether the charge still stands is asked all the same.
        """
        if self._path is None:
            self._gate.check(self._opened)
        else:
            self._serial += 1
            self._write()

    @contextlib.contextmanager
    def _unbroken(self) -> Iterator[None]:
        """A step that is released whole, or ends the stream: half a step must never be the start of another one."""
        try:
            yield
        except BaseException:
            self._end()
            raise

    def _released(self, query: Query, values: tuple[int, ...]) -> Release:
        """End the stream: sign and store what it told. The state is gone then, for nothing can go on from it."""
        self.save()  # a stream that a copy has overtaken does not know all that was released
        release = self._gate.close(self._opened, query, values)
        if self._path is not None:
            remove_sealed(self._path)
        self._end()
        self._closed = True
        return release

    def _write(self) -> None:
        nonce = secrets.token_hex(16)
        state: dict[str, Json] = {**self._state(), "nonce": nonce, "issued": self._opened.issued}
        if self._position:
            state["position"] = self._position
        try:
            if self._path is not None:
                body = self._body()
                state = state if body is None else {**state, "bytes": len(body)}
                write_sealed(self._path, self._gate.secret("state"), self._header(), state, body, self.WHAT)
            self._gate.move(self._opened, self._serial, nonce)
        except BaseException:
            self._end()  # what was drawn was not told, and never is by this process
            raise

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise Refused(
            f"an open {self.WHAT} is not copied: two of them would release from one charge. Nothing was copied. To go "
            "on in another process, open it with a file for its state and resume it there."
        )

    def _header(self) -> dict[str, Json]:
        """Which stream a state belongs to, and its place in the count. Public."""
        opened = self._opened
        number: int = opened.reservation.number
        return {"ledger": opened.home, "charge": number, "question": opened.question, "serial": self._serial}

    def _end(self) -> None:
        self._done = True
        self._stack.close()

    def _check_usable(self) -> None:
        if self._process != os.getpid():
            raise Refused(
                f"this {self.WHAT} runs in another process, and a forked copy would release from the same charge; "
                "nothing was released. Go on where it was opened."
            )
        if self._failed:
            raise Refused(FAILED.format(what=self.WHAT))
        if self._done and not self._closed and self._path is not None:
            raise Refused(f"this {self.WHAT} stopped within a step; nothing was released. Resume it from {self._path}.")
        if self._done:
            raise Refused(f"this {self.WHAT} is closed; nothing was released. Open another one, with a new budget.")

    def _body(self) -> bytes | None:
        """What of the state is bytes, if anything; its size is public. Sensitive."""
        return None

    def _restore_body(self, body: bytes) -> None:
        """Go on from the bytes; called before the rest."""
        return

    @abstractmethod
    def _state(self) -> dict[str, Json]:
        """All that is needed to go on. Sensitive."""

    @abstractmethod
    def _restore(self, state: SealedState) -> None:
        """Go on from that."""
