"""A box: one program over one block of rows, shut off from everything, with one answer of a fixed size and time.

Level B is bubblewrap with empty environment and namespaces of its own, a list of allowed system calls, Landlock and
limits of resources. What a box cannot hide is said in :data:`NOT_HIDDEN`.
"""

import contextlib
import ctypes
import json
import math
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from sfumato.boxes import inside
from sfumato.boxes.packages import BoxPackage, packages_of
from sfumato.boxes.seccomp import final_filter, starting_filter
from sfumato.core.exact import natural, positive
from sfumato.errors import InvalidInput, Unsupported

__all__ = [
    "NOT_HIDDEN",
    "Box",
    "BoxLevel",
    "BoxLimits",
    "WarmBox",
    "box_command",
    "box_level",
    "box_setup",
    "encoded",
    "most_memory",
    "write_within",
]

NOT_HIDDEN = (
    "a program can read a clock and the number of its processor; it shares caches of the processor and of files with "
    "what ran before it; where it crashes, the log of the kernel may show an address that it chose; on a host that is "
    "too busy for its slots a run ends later, by steps of a fixed length"
)
_LONGEST_START, _CLEARING = 60.0, 0.1
_PIECE, _ROWS_AT_ONCE = 1 << 16, 1 << 14
_LONGEST_CODE = 1 << 20
_PACKAGES = "/packages"
_USUAL_MEMORY = 4096  # that of a script, which imports more than a block


class BoxLevel(Enum):
    """How a box is shut, from the strongest to the weakest."""

    NAMESPACES = "B"
    """Bubblewrap: namespaces, no network, no writable file, filter of system calls, Landlock, limits."""


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


def box_level() -> BoxLevel | None:
    """The level that this host can give; None where it can give none."""
    return BoxLevel.NAMESPACES if shutil.which("bwrap") and _landlock() > 0 else None


@dataclass(slots=True, kw_only=True)
class Box:
    """Boxes of one kind, each used once. A box that is warm has its libraries and nothing of anybody.

    Guarantee, at the stated level: the answer is a function of the code and of one block of rows (and of what
    :data:`NOT_HIDDEN` says); its size and the time it takes are the same whatever happens inside. Assumes: the kernel
    keeps its word.
    """

    limits: BoxLimits = field(default_factory=BoxLimits)

    def __post_init__(self) -> None:
        if box_level() is None:
            raise Unsupported(
                "this host can shut no box: bubblewrap and a Linux kernel with Landlock are needed; no code was run. "
                "Install bubblewrap."
            )

    def answer(self, code: str, block: pa.Table) -> tuple[float, ...] | None:
        """Run a program over one block; give its numbers, or None where it gave none. It takes the whole slot.

        Sensitive: the answer, which is one block's and is released by nobody as it is.
        """
        with self.warm() as ready:
            return ready.answer(code, block)

    @contextlib.contextmanager
    def warm(self) -> Iterator["WarmBox"]:
        """A box that has started and waits; it is gone at the end."""
        with tempfile.TemporaryFile() as program:
            program.write(starting_filter())
            program.seek(0)
            process = subprocess.Popen(  # noqa: S603 - a fixed command
                box_command(program.fileno(), packages_of(self.limits.libraries)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                pass_fds=(program.fileno(),),
                start_new_session=True,
            )
            try:
                yield WarmBox(process, self.limits)
            finally:
                process.kill()
                process.wait()
                for pipe in (process.stdin, process.stdout):
                    if pipe is not None:
                        with contextlib.suppress(BrokenPipeError):
                            pipe.close()


class WarmBox:
    """One box that waits for a program and its rows."""

    def __init__(self, process: "subprocess.Popen[bytes]", limits: BoxLimits) -> None:
        self._process, self._limits, self._shut = process, limits, False
        assert process.stdin is not None  # noqa: S101 - it is a pipe
        os.set_blocking(process.stdin.fileno(), False)
        self._send(time.monotonic() + _LONGEST_START, json.dumps(box_setup(limits)).encode())

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


def box_command(filter_at: int, packages: Sequence[BoxPackage]) -> Sequence[str]:
    """Bubblewrap with nothing but an interpreter and these packages to read."""
    found = shutil.which("bwrap")
    assert found is not None  # noqa: S101 - a box was made
    bind = [part for path in _folders() for part in ("--ro-bind", path, path)]
    hidden = [part for path in _installed() for part in ("--tmpfs", path, "--remount-ro", path)]
    places = [place for package in packages for place in package.places]
    chosen = [part for place in places for part in ("--ro-bind", str(place), f"{_PACKAGES}/{place.name}")]
    return [
        found,
        *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1"),
        *("--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "box", "--clearenv"),
        *(*bind, *hidden, "--dir", _PACKAGES, *chosen),
        *("--ro-bind", inside.__file__, "/inside.py", "--dir", "/empty", "--remount-ro", "/", "--chdir", "/empty"),
        *("--seccomp", str(filter_at), "--", _interpreter(), "-I", "-S", "-B", "/inside.py"),
    ]


def _interpreter() -> str:
    return str(Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))


def _folders() -> list[str]:
    """Folders of the interpreter and of system libraries, which are the same in the box."""
    system = [path for path in ("/lib", "/lib64", "/usr/lib", "/usr/lib64") if Path(path).exists()]
    return [*system, _interpreter() if sys.base_prefix == "/usr" else sys.base_prefix]


def _installed() -> list[str]:
    """Folders in those of the interpreter where anything may be installed: in a box they are empty."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    inside_of = [(Path(sys.base_prefix, "lib"), (version,)), (Path("/usr/lib"), (version, "python3"))]
    names = ("site-packages", "dist-packages")
    places = [folder / each / name for folder, versions in inside_of for each in versions for name in names]
    return [str(place) for place in dict.fromkeys(places) if place.is_dir() and not place.is_symlink()]


def box_setup(limits: BoxLimits) -> dict[str, object]:
    """What the program in a box is told before it shuts itself in."""
    cores = sorted(os.sched_getaffinity(0))
    core = cores[-1] if limits.core is None else limits.core
    return {
        "environment": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        "packages": [_PACKAGES],
        "starting": [each for each in cores if each != core] or [core],
        "cores": [core],
        "limits": limits.resources(),
        "landlock": _landlock(),
        "readable": [*(path for path in _folders() if Path(path).is_dir()), _PACKAGES],
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


def _landlock() -> int:
    """The version of Landlock that the kernel has; 0 where it has none."""
    if sys.platform != "linux":
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(inside.CREATE, None, ctypes.c_size_t(0), 1)))
