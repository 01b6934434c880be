"""A stream as an analyst holds it: public facts, and the gate that can open it."""

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from sfumato.core.budget import Budget
from sfumato.core.deprecation import renamed, withdrawn
from sfumato.core.exact import Exact, natural
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.suggestion import no_attribute
from sfumato.core.units import User
from sfumato.errors import InvalidInput, Refused
from sfumato.gate.sealed import charge_of, locked
from sfumato.gate.session import Opened, SessionGate
from sfumato.streams.alarms import Alarms
from sfumato.streams.choice import STRATEGIES
from sfumato.streams.noise import SeriesNoise
from sfumato.streams.running import RunningTotals
from sfumato.streams.total import RunningTotal
from sfumato.streams.watching import Watching

__all__ = ["AlarmQuestion", "GrowthWarning", "Stream", "TotalQuestion", "growth"]

LONG = 100
LATE = ("refuse", "now")


class GrowthWarning(UserWarning):
    """Totals of a person who may count in every step of a long stream: the noise grows with its length."""


@withdrawn(gate="the vault that declared the stream")
@renamed(each="max_per_event")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stream:
    """A declared stream; it holds no data. Public: every field.

    ``times`` is in how many steps a unit may count, ``separation`` how many steps apart; ``max_per_event``
    is by how much an event, or all that one person does in a step, may count.
    """

    gate: InitVar[SessionGate]
    _gate: SessionGate = field(init=False, repr=False)
    dataset: Dataset
    horizon: int
    lower: int
    upper: int
    max_per_event: int
    times: int
    separation: int
    late: str
    groups: tuple[str, ...]
    unknown: bool = False

    def __post_init__(self, gate: SessionGate) -> None:
        object.__setattr__(self, "_gate", gate)
        natural(self.horizon, "horizon")
        if self.late not in LATE:
            raise InvalidInput(f"late is one of {', '.join(LATE)}; nothing was done.")

    def __repr__(self) -> str:
        groups = f", {len(self.groups):,} groups" if self.groups else ""
        return (
            f"Stream {self.dataset.name!r}, version {self.dataset.edition!r}; {self.horizon:,} steps{groups}, "
            f"{self.lower:,} to {self.upper:,} in each; it holds no data"
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name)

    def running_total(
        self, *, strategy: str = "best", keep: bool = True, reading: int | None = None
    ) -> "TotalQuestion":
        """Ask for the total after each step.

        ``reading`` says what will be read of it: the sums of that many steps in a row, such as 7 for weeks of days, and
        totals from the start if it is left out. ``strategy`` is ``best`` for that, or one of ``buffers``, ``square
        root``, ``optimal`` (up to 1,024 steps, where working it out takes half a minute), ``tree``, ``increments`` and
        ``totals``, which are there to compare. Without ``keep`` the stream needs the same few numbers of memory however
        long it is, and its certificate holds none of its totals.
        """
        query = RunningTotal(
            dataset=self.dataset,
            horizon=self.horizon,
            told=self.horizon,
            lower=self.lower,
            upper=self.upper,
            each=self.max_per_event,
            times=self.times,
            separation=self.separation,
            groups=self.groups,
            kept=keep,
        )
        if strategy not in STRATEGIES:
            raise InvalidInput(f"strategy is one of {', '.join(STRATEGIES)}; nothing was done.")
        if reading is not None:
            natural(reading, "reading", most=self.horizon)
        return TotalQuestion(stream=self, query=query, strategy=strategy, reading=reading)

    def alarms(self, *, threshold: int, alarms: int, watched: str = "step", drift: int = 0) -> "AlarmQuestion":
        """Ask at which steps a number reaches a threshold, at most ``alarms`` times.

        ``watched`` is the ``step`` itself, the ``total`` since the last alarm, or its ``cusum`` above a ``drift``.
        """
        if self.groups:
            raise InvalidInput("alarms watch one number, and this stream has groups; nothing was done.")
        query = Alarms(
            dataset=self.dataset,
            watched=watched,
            threshold=threshold,
            drift=drift,
            alarms=alarms,
            horizon=self.horizon,
            told=0,
            lower=self.lower,
            upper=self.upper,
            each=self.max_per_event,
            times=self.times,
            separation=self.separation,
        )
        return AlarmQuestion(stream=self, query=query)

    @property
    def limit(self) -> Limit | None:
        """How much of each person counts, where persons are protected."""
        if not isinstance(self._gate.unit, User):
            return None
        return Limit(groups=self.times, rows_per_group=self.max_per_event)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalQuestion:
    """Running totals that can be opened."""

    stream: Stream
    query: RunningTotal
    strategy: str
    reading: int | None = None

    def mechanism(self, *, epsilon: Exact, delta: Exact = 0) -> SeriesNoise:
        """The noise that a spend makes; reads nothing and spends nothing."""
        self._warn()
        stream, spend = self.stream, Budget.asked(epsilon=epsilon, delta=delta)
        self.query.sensitivity(stream._gate.unit, stream.limit)  # units that this stream cannot protect are refused
        return self.query.mechanism(
            stream._gate.unit, spend, self.strategy, unknown=stream.unknown, reading=self.reading
        )

    def margins(self, *, epsilon: Exact, delta: Exact = 0, confidence: Exact = Fraction(19, 20)) -> tuple[float, ...]:
        """The margin of the total after each step, for a spend; reads nothing and spends nothing."""
        import numpy as np

        from sfumato.streams.margins import StreamMargins
        from sfumato.streams.reconstruction import reconstruction_of

        mechanism = self.mechanism(epsilon=epsilon, delta=delta)
        zeros = np.zeros(mechanism.strategy.numbers, dtype=np.int64)
        _, squares, sizes = reconstruction_of(mechanism.strategy).read(zeros, self.query.horizon)
        return tuple(StreamMargins(mechanism).at(squares, sizes, confidence).tolist())

    def open(
        self, *, epsilon: Exact, delta: Exact = 0, state: str | Path | None = None, idempotency: str | None = None
    ) -> RunningTotals:
        """Charge the whole stream, once and before anything is read, and start it.

        ``state`` is a file where the stream writes itself down, encrypted, before it releases anything. With a durable
        ledger :meth:`resume` goes on in another process. Under an ``idempotency`` key even a process that died before
        its first step finds its charge again.
        """
        return self._begun(epsilon, delta, state, idempotency).start()

    def resume(
        self, *, epsilon: Exact, delta: Exact = 0, state: str | Path, idempotency: str | None = None
    ) -> RunningTotals:
        """Go on with a stream from its file, as if nothing had happened; nothing more is charged."""
        return self._begun(epsilon, delta, state, idempotency, again=True).resume()

    def released(self, *, epsilon: Exact, delta: Exact = 0, idempotency: str | None = None) -> Release:
        """The release of such a stream that was closed before, by a process that may be gone; costs nothing."""
        stream, spend = self.stream, Budget.asked(epsilon=epsilon, delta=delta)
        mechanism = self.mechanism(epsilon=epsilon, delta=delta)
        return stream._gate.told(self.query, mechanism, stream.limit, spend, idempotency=idempotency)

    def _begun(
        self, epsilon: Exact, delta: Exact, state: str | Path | None, idempotency: str | None, *, again: bool = False
    ) -> RunningTotals:
        stream, spend = self.stream, Budget.asked(epsilon=epsilon, delta=delta)
        mechanism, path = self.mechanism(epsilon=epsilon, delta=delta), None if state is None else Path(state)
        with ExitStack() as held:
            _hold(held, path, idempotency, again=again)
            find = _finder(stream._gate, path, idempotency) if again else stream._gate.open
            opened = find(self.query, mechanism, stream.limit, spend, idempotency=idempotency)
            return RunningTotals(stream._gate, opened, path=path, late=stream.late, held=held.pop_all())

    def _warn(self) -> None:
        query = self.query
        if isinstance(self.stream._gate.unit, User) and query.times == query.horizon >= LONG:
            warnings.warn(growth(query.horizon), GrowthWarning, stacklevel=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmQuestion:
    """Alarms that can be opened."""

    stream: Stream
    query: Alarms

    def open(self, *, epsilon: Exact, state: str | Path | None = None, idempotency: str | None = None) -> Watching:
        """Charge all alarms, once and before anything is read, and start to watch."""
        return self._begun(epsilon, state, idempotency).start()

    def resume(self, *, epsilon: Exact, state: str | Path, idempotency: str | None = None) -> Watching:
        """Go on with a watch from its file, as if nothing had happened; nothing more is charged."""
        return self._begun(epsilon, state, idempotency, again=True).resume()

    def released(self, *, epsilon: Exact, idempotency: str | None = None) -> Release:
        """The release of such a watch that was closed before, by a process that may be gone; costs nothing."""
        stream, spend = self.stream, Budget.asked(epsilon=epsilon)
        mechanism = self.query.mechanism(stream._gate.unit, stream.limit, spend)
        return stream._gate.told(self.query, mechanism, stream.limit, spend, idempotency=idempotency)

    def _begun(
        self, epsilon: Exact, state: str | Path | None, idempotency: str | None, *, again: bool = False
    ) -> Watching:
        stream, spend = self.stream, Budget.asked(epsilon=epsilon)
        mechanism = self.query.mechanism(stream._gate.unit, stream.limit, spend)
        path = None if state is None else Path(state)
        with ExitStack() as held:
            _hold(held, path, idempotency, again=again)
            find = _finder(stream._gate, path, idempotency) if again else stream._gate.open
            opened = find(self.query, mechanism, stream.limit, spend, idempotency=idempotency)
            return Watching(stream._gate, opened, path=path, held=held.pop_all())


def growth(steps: int) -> str:
    """What to know of totals at user level over a number of steps, per unit of Gaussian noise.

    >>> growth(1000)[:74]
    'a person may count in all 1000 steps. Noise on the totals themselves would'
    """
    direct = (steps * (steps + 1) * (2 * steps + 1) / 6) ** 0.5
    return (
        f"a person may count in all {steps} steps. Noise on the totals themselves would have a standard deviation of "
        f"{direct:,.0f} per unit; noise on the increments, which is what runs, has one of at most {steps:,} at the "
        "last step, and no method has less there. Bound how often a person counts to lower it: limit=Limit(groups=10, "
        "rows_per_group=1)."
    )


def _finder(gate: SessionGate, path: Path | None, idempotency: str | None) -> Callable[..., Opened]:
    """What finds the charge of a stream: under its key or, without one, by the number in its state."""
    charge = None if idempotency is not None or path is None else charge_of(path)
    return partial(gate.find, charge=charge)


def _hold(held: ExitStack, path: Path | None, idempotency: str | None, *, again: bool) -> None:
    """Take hold of the file of a state; whatever can be refused is refused here, before anything is charged."""
    if idempotency is not None and path is None:
        # A charge that can be found again without the state of its stream would let the stream begin anew.
        raise InvalidInput("an idempotency key is for a stream with a state file; nothing was spent. Say state=….")
    if path is None:
        return
    if not path.absolute().parent.is_dir():
        raise InvalidInput(f"there is no folder for {path}; nothing was read and nothing was spent.")
    held.enter_context(locked(path))
    if not again and path.exists():
        raise Refused(
            f"{path} holds the state of a stream already; nothing was read and nothing was spent. Resume that "
            "stream, or choose another file."
        )
