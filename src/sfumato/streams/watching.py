"""An open watch: exact numbers go in, alarms come out, and after the last one nothing more."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from sfumato.core.documents import Json
from sfumato.core.release import Release
from sfumato.core.units import User
from sfumato.errors import InvalidInput, Refused
from sfumato.gate.checkpoint import Checkpointed
from sfumato.gate.sealed import SealedState
from sfumato.gate.session import Opened, SessionGate
from sfumato.mechanisms.sparse_vector import AlarmReading, SparseVector, Watch
from sfumato.streams.alarms import Alarms
from sfumato.streams.people import People, listed

__all__ = ["Watching"]

HALTED = "this watch has raised all its alarms and says nothing more. Open a new one, with a new budget."


class Watching(Checkpointed):
    """A watch that was charged for and now runs. After its last alarm every call gets one and the same refusal.

    Guarantee: whatever it releases is within the charge, however long it runs. Sensitive: all that is inside.
    """

    def __init__(
        self, gate: SessionGate, opened: Opened, *, path: Path | None = None, held: ExitStack | None = None
    ) -> None:
        if not isinstance(opened.query, Alarms) or not isinstance(opened.mechanism, SparseVector):
            raise InvalidInput("this is not a watch; nothing was done.")
        super().__init__(gate, opened, path, held)
        self._query, self._mechanism = opened.query, opened.mechanism
        self._watch: Watch = self._mechanism.watch(self._query.threshold)
        self._held, self._steps, self._shown = 0, 0, 0
        self._raised: list[int] = []
        self._told: tuple[int, ...] = ()
        self._people = self._counters() if isinstance(gate.unit, User) else None

    @property
    def steps(self) -> int:
        """How many steps were looked at. Public."""
        return self._shown

    @property
    def left(self) -> int:
        """How many steps there are still. Public: it follows from the alarms."""
        return 0 if self._done or self.halted else self._query.horizon - self._shown

    @property
    def halted(self) -> bool:
        """Whether all alarms were raised. Public: it follows from the alarms."""
        return len(self._told) >= 2 * self._query.alarms

    def check(self, value: int | None = None, *, people: object = None) -> AlarmReading:
        """Look at the next step: whether it raised an alarm and, if so, the noisy gap.

        ``value`` is held to the declared bounds without a word; where persons are protected, ``people`` lists the ids
        of this step's events instead.
        """
        self._check_running()  # before the input is looked at: the same words whatever it is
        events = self._events(value, people)
        with self._lock:
            self._check_running()  # again: another thread, or whatever ran while the input was read, may have gone on
            self._check_usable()
            if self._steps >= self._query.horizon:
                raise Refused(
                    f"the watch was opened for {self._query.horizon} steps and has had them; nothing was released. "
                    "Close it, and open another one with a new budget."
                )
            with self._unbroken():
                self._held = self._query.moved_on(self._held, self._counted(value, events))
                told = self._watch.check(self._held)
                self._steps += 1
                if told.alarm:
                    self._held = 0
                    self._raised += [self._steps, told.gap or 0]
                self.save()
                self._show()
            return told

    def close(self) -> Release:
        """End the watch: its alarms become a release with a certificate. Nothing more is charged."""
        with self._lock:
            self._check_usable()
            return self._released(replace(self._query, told=self._steps), tuple(self._raised))

    def _check_running(self) -> None:
        if self.halted:
            raise Refused(HALTED)

    def _show(self) -> None:
        """Tell: from here on everybody may see what was raised. Only ever called once its state has its place."""
        self._shown, self._told = self._steps, tuple(self._raised)

    def _events(self, value: int | None, people: object) -> Mapping[str, int]:
        """What each person has in a step, or nothing; refuses an invalid step before anything is counted."""
        if self._people is None:
            if people is not None or isinstance(value, bool) or not isinstance(value, int):
                raise InvalidInput("the value of a step must be a whole number; nothing was released.")
            return {}
        if value is not None or people is None:
            raise Refused(
                "persons are protected here, and a number does not say whose; nothing was released. Say people=…."
            )
        return listed(people)

    def _counted(self, value: int | None, events: Mapping[str, int]) -> int:
        """What a step counts, held to its bounds. Sensitive."""
        if self._people is not None:
            (value,) = self._people.counted(self._steps, [events])
        return min(max(value or 0, self._query.lower), self._query.upper)

    def _counters(self, state: Iterable[tuple[str, int, int]] = ()) -> People:
        query = self._query
        return People(times=query.times, separation=query.separation, each=query.each, state=state)

    def _state(self) -> dict[str, Json]:
        left, level = self._watch.state
        return {
            "level": str(level),
            "left": left,
            "held": str(self._held),
            "steps": self._steps,
            "raised": [str(one) for one in self._raised],
            "people": [] if self._people is None else self._people.state(),
        }

    def _restore(self, state: SealedState) -> None:
        at = (state["left"], int(state["level"]))
        self._watch = self._mechanism.watch(self._query.threshold, state=at)
        self._held, self._steps = int(state["held"]), state["steps"]
        self._raised = [int(one) for one in state["raised"]]
        self._show()
        if self._people is not None:
            self._people = self._counters(state["people"])
