"""A box: one program over one block of rows, shut off from everything, with one answer of a fixed size and time.

At every level a box has an empty environment, an interpreter and libraries to read, a list of allowed system calls and
limits of resources; how it is shut besides is in :mod:`sfumato.boxes.levels`, and so is what it does not hide.
"""

import contextlib
import json
import math
import os
import select
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import pyarrow as pa
import pyarrow.ipc

from sfumato.boxes.levels import BoxEnclosure, BoxLevel, check_level, enclosure
from sfumato.boxes.packages import packages_of
from sfumato.boxes.seccomp import final_filter
from sfumato.boxes.started import StartedBox
from sfumato.boxes.view import PACKAGES, BoxView, view_of
from sfumato.core.exact import natural, positive
from sfumato.errors import InvalidInput, Unsupported

__all__ = [
    "Box",
    "BoxLimits",
    "WarmBox",
    "box_setup",
    "encoded",
    "most_memory",
    "opened_box",
    "write_within",
]

_LONGEST_START, _CLEARING = 60.0, 0.1
_PIECE, _ROWS_AT_ONCE = 1 << 16, 1 << 14
_LONGEST_CODE = 1 << 20
_USUAL_MEMORY = 4096  # that of a script, which imports more than a block


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxLimits:
    """What one block gets: ``seconds`` of time, which are always waited out, and ``memory`` in MiB of address space.

    A program is stopped a tenth of the time before the end, so that its memory is cleared when the next one starts.
    ``numbers`` is the size of the answer. No box has more memory than :func:`most_memory`. Public: every field.
    """

    seconds: Fraction = Fraction(2)
    memory: int = 2048
    numbers: int = 1
    libraries: tuple[str, ...] = ("pandas",)
    """What is imported before the rows come. With pandas rows are a DataFrame, without it a table of pyarrow."""
    core: int | None = None
    """The core that boxes run on, one at a time; the last one if not said."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", positive(self.seconds, "seconds"))
        natural(self.memory, "memory", least=512, most=most_memory())
        natural(self.numbers, "numbers", most=10_000)
        given: object = self.libraries
        if isinstance(given, str) or not all(name.isidentifier() for name in self.libraries):
            raise InvalidInput("libraries are a tuple of names as they are imported; no code was run.")
        if self.core is not None and self.core not in os.sched_getaffinity(0):
            raise InvalidInput("core is the number of a processor that this process may use; no code was run.")

    @property
    def place(self) -> int:
        """The processor that boxes run on."""
        return max(os.sched_getaffinity(0)) if self.core is None else self.core

    @property
    def starting(self) -> tuple[int, ...]:
        """Those that they start on: where no program runs, if there are any."""
        return tuple(sorted(os.sched_getaffinity(0) - {self.place})) or (self.place,)

    def resources(self) -> dict[str, int]:
        """Limits by their names."""
        return {
            "AS": self.memory << 20,
            "CPU": math.ceil(self.seconds) + 5,
            "FSIZE": 0,
            "NOFILE": 64,
            "CORE": 0,
            "MEMLOCK": 0,
            "MSGQUEUE": 0,
        }


def most_memory() -> int:
    """How many MiB a box may have: half of what the host has, and what a box has if nothing is said in any case.

    A program that takes all memory of the host ends other processes: the run, or the box of the next block. Who sees
    that a run ended would learn what is in a block, without noise.

    >>> most_memory() >= BoxLimits().memory
    True
    """
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return max(_USUAL_MEMORY, pages * size >> 21)


@dataclass(slots=True, kw_only=True)
class Box:
    """Boxes of one kind, each used once. A box that is warm has its libraries and nothing of anybody.

    Guarantee, at the stated level: the answer is a function of the code and of one block of rows (and of what
    the level does not hide); its size and the time it takes are the same whatever happens inside. Assumes: the kernel
    keeps its word.
    """

    limits: BoxLimits = field(default_factory=BoxLimits)
    level: BoxLevel | None = None
    """How it is shut; the strongest level that this host looks able to give if not said."""
    starts_in: float = 0.0
    """How many seconds it takes to start, as was seen before any data: a run plans by it. Public."""

    def __post_init__(self) -> None:
        self.level = check_level(self.level)

    def answer(self, code: str, block: pa.Table) -> tuple[float, ...] | None:
        """Run a program over one block; give its numbers, or None where it gave none. It takes the whole slot.

        Sensitive: the answer, which is one block's and is released by nobody as it is.
        """
        with self.warm() as ready:
            return ready.answer(code, block)

    @contextlib.contextmanager
    def warm(self) -> Iterator["WarmBox"]:
        """A box that has started and waits; it is gone at the end."""
        with opened_box(self.level, view_of(packages_of(self.limits.libraries)), self.limits) as (box, setup):
            yield WarmBox(box, self.limits, setup)


class WarmBox:
    """One box that waits for a program and its rows."""

    def __init__(self, process: StartedBox, limits: BoxLimits, setup: dict[str, object]) -> None:
        self._process, self._limits, self._shut = process, limits, False
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        os.set_blocking(process.stdin.fileno(), False)
        self._send(time.monotonic() + _LONGEST_START, json.dumps(setup).encode())

    def ready(self, *, seconds: float = _LONGEST_START) -> None:
        """Wait until the box is shut and its libraries are there; refused where it does not get there."""
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        if self._shut:
            return
        if _read(self._process.stdout.fileno(), 1, time.monotonic() + seconds) != b"R":
            raise Unsupported(
                "a box could not be shut on this host, or a library could not be imported in it; no code was run and "
                "nothing was read. Try libraries=() to tell which."
            )
        self._process.settle([self._limits.place])
        self._shut = True

    def answer(self, code: str, block: pa.Table) -> tuple[float, ...] | None:
        """Numbers of the program, or None; after the whole slot, whatever happens."""
        self.ready()
        program = encoded(code)
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        end = time.monotonic() + float(self._limits.seconds)
        size = 8 * self._limits.numbers
        stop = end - float(self._limits.seconds) * _CLEARING
        self._send(stop, program)
        self._send_rows(stop, block)
        said = _read(self._process.stdout.fileno(), size + 1, stop)
        self._process.kill()
        time.sleep(max(0.0, end - time.monotonic()))
        numbers = struct.unpack(f"<{self._limits.numbers}d", said) if len(said) == size else ()
        return numbers if numbers and all(map(math.isfinite, numbers)) else None

    def _send_rows(self, until: float, block: pa.Table) -> None:
        """Write rows in pieces, and an empty one at the end: a large block takes no more time than there is."""
        sink = pa.PythonFile(_Frames(lambda piece: self._send(until, piece)), mode="w")
        with pa.ipc.new_stream(sink, block.schema) as stream:
            for batch in block.to_batches(max_chunksize=_ROWS_AT_ONCE):
                if time.monotonic() >= until:
                    return
                stream.write_batch(batch)
        self._send(until, b"")

    def _send(self, until: float, *parts: bytes) -> None:
        """Write frames as long as there is time and somebody who reads."""
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        for part in parts:
            for piece in (struct.pack("<Q", len(part)), part):
                write_within(self._process.stdin.fileno(), piece, until)


class _Frames:
    """What pyarrow takes for a file: it hands on what is written to it."""

    closed = False

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._hand_on = send

    def write(self, data: bytes) -> int:
        if data:
            self._hand_on(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """The pipe stays open."""


@contextlib.contextmanager
def opened_box(
    level: BoxLevel | None, view: BoxView, limits: BoxLimits
) -> Iterator[tuple[StartedBox, dict[str, object]]]:
    """A box of a level that starts where no program runs, and what the program in it is told; it is gone at the end."""
    way = enclosure(check_level(level))
    with way.started(view, memory=limits.memory, cores=limits.starting) as box:
        yield box, box_setup(limits, view, way)


def box_setup(limits: BoxLimits, view: BoxView, way: BoxEnclosure) -> dict[str, object]:
    """What the program in a box is told before it shuts itself in."""
    return {
        "environment": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        "packages": [PACKAGES],
        "limits": {name: most for name, most in limits.resources().items() if name not in way.LEFT_OUT},
        "landlock": way.landlock(),
        "readable": list(view.readable),
        "filter": final_filter().hex(),
        "libraries": list(limits.libraries),
        "numbers": limits.numbers,
    }


def encoded(code: str) -> bytes:
    """A program as it is handed over; refused where it is no text, or longer than a mebibyte."""
    try:
        written = code.encode()
    except UnicodeEncodeError:
        raise InvalidInput("the code is no text that can be written as UTF-8; no code was run.") from None
    if len(written) > _LONGEST_CODE:
        raise InvalidInput(f"the code has {len(written):,} bytes, and {_LONGEST_CODE:,} are allowed; no code was run.")
    return written


def write_within(descriptor: int, data: bytes, until: float) -> None:
    """Write into a pipe that does not block, until the end of the time; what a closed pipe misses is left."""
    left = memoryview(data)
    while left and (rest := until - time.monotonic()) > 0:
        if select.select([], [descriptor], [], rest)[1]:
            try:
                left = left[os.write(descriptor, left[:_PIECE]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return


def _read(descriptor: int, most: int, until: float) -> bytes:
    """Up to this many bytes until the end of the stream or of the time."""
    parts, left = b"", most
    while left and (rest := until - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], rest)[0]:
            break
        part = os.read(descriptor, left)
        if not part:
            break
        parts, left = parts + part, left - len(part)
    return parts
