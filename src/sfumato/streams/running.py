"""An open stream of totals: exact numbers go in, noisy totals come out, and the charge was made before either."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.documents import Json
from sfumato.core.exact import Exact, natural
from sfumato.core.release import Release
from sfumato.core.units import User
from sfumato.errors import InvalidInput, Refused
from sfumato.gate.checkpoint import Checkpointed
from sfumato.gate.sealed import SealedState
from sfumato.gate.session import Opened, SessionGate
from sfumato.laws.margins import level_of
from sfumato.streams.margins import StreamMargins
from sfumato.streams.noise import SeriesNoise
from sfumato.streams.people import People, listed, whole
from sfumato.streams.total import RunningTotal
from sfumato.streams.window import window_squares

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["RunningTotals", "Told", "ToldMany"]

Values = int | Sequence[int] | Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The noisy total after a step, and how far off it is at most with 95% confidence. Public.

    With groups, ``total`` holds one number for each, in their order.
    """

    step: int
    total: float | tuple[float, ...]
    margin: float

    def __float__(self) -> float:
        return float(self.total)  # type: ignore[arg-type]  # of several totals Python refuses it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToldMany:
    """The noisy totals after several steps, as arrays. Public."""

    first: int
    totals: "npt.NDArray[np.float64]"
    margins: "npt.NDArray[np.float64]"

    def __len__(self) -> int:
        return len(self.totals)


class RunningTotals(Checkpointed):
    """A stream that was charged for and now runs.

    Guarantee: whatever it releases is within the charge, for inputs that are chosen after seeing what it released.
    Sensitive: all that is inside but what was released. Safe for threads. After the horizon, and once closed, every
    call is refused.
    """

    def __init__(
        self,
        gate: SessionGate,
        opened: Opened,
        *,
        path: Path | None = None,
        late: str = "refuse",
        held: ExitStack | None = None,
    ) -> None:
        from sfumato.noise import SystemWords
        from sfumato.streams.reconstruction import reconstruction_of
        from sfumato.streams.strategy_encoder import encoder_of

        if not isinstance(opened.query, RunningTotal) or not isinstance(opened.mechanism, SeriesNoise):
            raise InvalidInput("this is not a stream of totals; nothing was done.")
        super().__init__(gate, opened, path, held)
        self._query, self._mechanism, self._late = opened.query, opened.mechanism, late
        self._words, self._margins = SystemWords(), StreamMargins(self._mechanism)
        self._count, self._steps, self._shown = max(1, len(self._query.groups)), 0, 0
        self._values: list[list[int]] = [[] for _ in range(self._count)]
        self._history: list[list[float]] = [[] for _ in range(self._count)]
        self._encoders = [encoder_of(self._mechanism.strategy) for _ in range(self._count)]
        self._reconstructions = [reconstruction_of(self._mechanism.strategy) for _ in range(self._count)]
        self._people = self._counters() if isinstance(gate.unit, User) else None

    def __repr__(self) -> str:
        return f"<totals of {self._query.dataset.name!r}: {self._shown} of {self._query.horizon} steps released>"

    @property
    def steps(self) -> int:
        """How many steps were released."""
        return self._shown

    @property
    def left(self) -> int:
        """How many steps there are still."""
        return 0 if self._done else self._query.horizon - self._shown

    @property
    def totals(self) -> tuple[float, ...] | tuple[tuple[float, ...], ...]:
        """All that was released so far. Public."""
        with self._lock:
            return tuple(zip(*self._history, strict=True)) if self._query.groups else tuple(self._history[0])

    def add(
        self, value: Values | None = None, *, people: object = None, step: int | None = None, confidence: Exact = 0.95
    ) -> Told:
        """Count the next step and release the noisy total so far.

        ``value`` is a whole number (with groups one for each), held to the declared bounds without a word. Where
        persons are protected, ``people`` lists the ids of this step's events instead, or says how much each id counts
        (with groups, such lists by group). Of groups that were not declared nothing counts.
        ``step`` says which step this is, from 1: steps that were left out count 0 and are released as well; one that
        was told already is late, and is refused or counted now, as the stream was declared.
        """
        import numpy as np

        if (self._people is None) is (value is None) or (self._people is None) is (people is not None):
            raise self._wrong_kind()
        # read before the lock is taken: whatever runs while it is read may ask the stream itself
        numbers = None if value is None else self._bounded(_numbers(value, self._query.groups))
        events = None if people is None else self._listed(people)
        with self._lock:
            self._check_open()
            level_of(confidence)  # an invalid confidence is refused before anybody counts
            gap = self._gap(step)
            with self._unbroken():
                block = np.zeros((gap + 1, self._count), dtype=np.int64)
                block[gap] = numbers or self._counted([events or []], self._steps + gap)[0]
                told = self._tell(block, confidence)
        last = told.totals[-1]
        total = tuple(float(one) for one in last) if self._query.groups else float(last)
        return Told(step=told.first + gap, total=total, margin=float(told.margins[-1]))

    def add_many(
        self,
        values: "npt.ArrayLike | None" = None,
        *,
        people: Iterable[object] | None = None,
        confidence: Exact = 0.95,
    ) -> ToldMany:
        """Count several steps at once and release all their totals: an array of whole numbers, a column for each group.

        Where persons are protected, ``people`` has for each step what :meth:`add` takes. With a state on disk all of
        the steps are released, or none.
        """
        if (self._people is None) is (values is None):
            raise self._wrong_kind()
        numbers = None if values is None else self._held(values)
        listed = None if people is None else [self._listed(each) for each in people]
        with self._lock:
            self._check_open()
            level_of(confidence)
            many = len(numbers if numbers is not None else listed or ())
            if many > self.left:
                raise Refused(f"{many} steps were given and {self.left} are left; nothing was released.")
            with self._unbroken():
                block = numbers if numbers is not None else self._counted(listed or [], self._steps)
                return self._tell(block, confidence)

    def window(self, width: int, confidence: Exact = 0.95) -> Told:
        """The noisy sum of the last ``width`` steps: a difference of two released totals, which costs nothing."""
        wide = natural(width, "width")
        if not self._query.kept:
            raise Refused("this stream does not keep what it released; nothing was done. Open it with keep=True.")
        with self._lock:
            told = self._shown
            if told < wide:
                raise InvalidInput(f"only {told} steps were released; nothing was done. Ask for a shorter window.")
            sums = [each[-1] - (each[-wide - 1] if told > wide else 0.0) for each in self._history]
        squares, sizes = window_squares(self._mechanism.strategy, told, wide)
        margin = self._margins.at(squares, sizes, confidence)
        return Told(step=told, total=tuple(sums) if self._query.groups else sums[0], margin=float(margin[0]))

    def close(self) -> Release:
        """End the stream: what it told becomes a release with a certificate. Nothing more is charged."""
        with self._lock:
            self._check_usable()
            query = replace(self._query, told=self._steps)
            values = tuple(one for step in zip(*self._values, strict=True) for one in step)
            return self._released(query, values)

    def _wrong_kind(self) -> Exception:
        if self._people is None:
            return InvalidInput("a step of events is a whole number; nothing was released.")
        return Refused(
            "persons are protected here, and a number does not say whose; nothing was released. Say people=…."
        )

    def _bounded(self, numbers: Iterable[int]) -> list[int]:
        """Numbers held to the bounds of a step, whatever their size. Sensitive."""
        return [min(max(one, self._query.lower), self._query.upper) for one in numbers]

    def _listed(self, people: object) -> list[Mapping[str, int]]:
        """What each person has in each group of a step; read before anybody counts. Sensitive."""
        groups = self._query.groups
        if not groups:
            return [listed(people)]
        if not isinstance(people, Mapping):
            raise InvalidInput("people of a stream with groups are lists by group; nothing was released.")
        return [listed(people.get(name, ())) for name in groups]

    def _counted(self, steps: list[list[Mapping[str, int]]], first: int) -> "npt.NDArray[np.int64]":
        """What steps of persons count, each held to its limit, and the steps to their bounds. Sensitive."""
        import numpy as np

        counters = self._people or self._counters()
        found = [counters.counted(first + place, each) for place, each in enumerate(steps)]
        return np.array([self._bounded(row) for row in found], dtype=np.int64).reshape(-1, self._count)

    def _held(self, values: "npt.ArrayLike") -> "npt.NDArray[np.int64]":
        """Several steps of numbers, held to their bounds. Sensitive."""
        import numpy as np

        given = np.asarray(values)
        if given.dtype.kind in "fO":  # whole numbers beyond 64 bits: an error would reveal that there are some
            held = self._bounded(whole(one) for one in np.asarray(values, dtype=object).ravel())
            given = np.array(held, dtype=np.int64).reshape(given.shape)
        if given.dtype.kind not in "iu" or given.ndim != (1 if not self._query.groups else 2):
            raise InvalidInput(
                "steps are an array of whole numbers, with a column for each group; nothing was released."
            )
        if given.ndim == 2 and given.shape[1] != self._count:
            raise InvalidInput(f"each step has {self._count} groups; nothing was released.")
        below = np.minimum(given, given.dtype.type(min(self._query.upper, np.iinfo(given.dtype).max)))
        return np.asarray(np.maximum(below.astype(np.int64), self._query.lower).reshape(-1, self._count))

    def _gap(self, step: int | None) -> int:
        """How many steps were left out before this one."""
        wanted = self._steps + 1 if step is None else natural(step, "step")
        if wanted <= self._steps:
            if self._late == "refuse":
                raise Refused(
                    f"step {wanted} was released already and {self._steps + 1} is next; nothing was released."
                )
            wanted = self._steps + 1
        if wanted > self._query.horizon:
            raise Refused(f"the stream ends after step {self._query.horizon}; nothing was released.")
        return wanted - self._steps - 1

    def _tell(self, block: "npt.NDArray[np.int64]", confidence: Exact) -> ToldMany:
        """Measure, draw, store, release."""
        import numpy as np

        exact = [encoder.measure(block[:, place]) for place, encoder in enumerate(self._encoders)]
        noisy = [each + self._mechanism.drawn(len(each), self._words) for each in exact]
        first = self._steps + 1
        if self._query.kept:
            for kept, new in zip(self._values, noisy, strict=True):
                kept.extend(new.tolist())
        self._steps += len(block)
        totals, squares, sizes = self._read(noisy, len(block))
        self.save()  # with what the reconstructions hold now; nothing was released so far
        self._show(totals)
        found = totals if self._query.groups else totals[:, 0]
        return ToldMany(first=first, totals=np.asarray(found), margins=self._margins.at(squares, sizes, confidence))

    def _read(
        self, numbers: "Iterable[npt.ArrayLike]", steps: int
    ) -> "tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]":
        import numpy as np

        read = [
            one.read(np.asarray(each, dtype=np.int64), steps)
            for one, each in zip(self._reconstructions, numbers, strict=True)
        ]
        return np.stack([totals for totals, _, _ in read], axis=1), read[0][1], read[0][2]

    def _show(self, totals: "npt.NDArray[np.float64]") -> None:
        """Tell: from here on everybody may see these totals. Only ever called once their state has its place."""
        if self._query.kept:
            for kept, new in zip(self._history, totals.T.tolist(), strict=True):
                kept.extend(new)
        self._shown = self._steps

    def _check_open(self) -> None:
        self._check_usable()
        if self._steps >= self._query.horizon:
            raise Refused(
                f"the stream was opened for {self._query.horizon} steps and has had them; nothing was released. Close "
                "it, and open another one with a new budget."
            )

    def _state(self) -> dict[str, Json]:
        held = [] if self._query.kept else [each.state() for each in self._reconstructions]
        return {
            "steps": self._steps,
            "values": [[str(one) for one in each] for each in self._values],
            "meters": [[str(one) for one in encoder.state()] for encoder in self._encoders],
            "readers": [[one.hex() for one in each] for each in held],
            "people": [] if self._people is None else self._people.state(),
        }

    def _restore(self, state: SealedState) -> None:
        import numpy as np

        from sfumato.streams.reconstruction import reconstruction_of
        from sfumato.streams.strategy_encoder import encoder_of

        self._steps = state["steps"]
        self._values = [[int(one) for one in each] for each in state["values"]]
        self._encoders = [encoder_of(self._mechanism.strategy, [int(one) for one in each]) for each in state["meters"]]
        if self._people is not None:
            self._people = self._counters(state["people"])
        if not self._query.kept:
            states = ([float.fromhex(one) for one in each] for each in state["readers"])
            self._reconstructions = [reconstruction_of(self._mechanism.strategy, each) for each in states]
        totals = self._read(self._values, self._steps)[0] if self._query.kept else np.zeros((0, self._count))
        self._show(totals)

    def _counters(self, state: Iterable[tuple[str, int, int]] = ()) -> People:
        query = self._query
        return People(times=query.times, separation=query.separation, each=query.each, state=state)


def _numbers(value: Values, groups: tuple[str, ...]) -> list[int]:
    """One number for each group. Of names that were not declared nothing counts: to refuse them would reveal them."""
    if not groups:
        return [whole(value)]
    if isinstance(value, Mapping):
        return [whole(value.get(name, 0)) for name in groups]
    if not isinstance(value, Iterable) or len(numbers := list(value)) != len(groups):
        raise InvalidInput(f"a step has one number for each of {len(groups)} groups; nothing was released.")
    return [whole(one) for one in numbers]
