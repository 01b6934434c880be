"""The first box of each level is tried by a hostile program that looks for ways out; a level with one is not used."""

import os
import secrets
import tempfile
import time
from fractions import Fraction
from functools import cache

import pyarrow as pa

from sfumato.boxes.box import Box, BoxLimits
from sfumato.boxes.control_groups import control_groups_hold
from sfumato.boxes.levels import BoxLevel, box_levels, check_level
from sfumato.boxes.packages import packages_of
from sfumato.errors import Refused, Unsupported

__all__ = ["ATTEMPTS", "check_starts", "tested_level", "ways_out"]

_KNOWN = 12.0  # what a box says that works

ATTEMPTS: dict[str, str] = {
    "descriptors that were left open": "assert any(map(readable, range(3, 64)))",
    "a file of the host": "open(PLANTED, 'rb').read()",
    "files of the system": "os.listdir('/etc')",
    "variables of the host": "assert set(os.environ) - KNOWN",
    "processes": "os.listdir('/proc')[0]",
    "a file of its own": "open('/empty/x', 'wb')",
    "a file among the libraries": "open('/packages/x', 'wb')",
    "network by UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "network by TCP": "socket.socket(socket.AF_INET)",
    "a socket of the host": "socket.socket(socket.AF_UNIX)",
    "a second process": "os.fork() or os._exit(0)",
    "a thread": "threading.Thread(target=int).start()",
    "memory beyond its limit": "mmap.mmap(-1, 1 << 32)",
    "memory that others see": "os.memfd_create('x')",
    "load of the host": "assert libc.sysinfo(ctypes.create_string_buffer(128)) == 0",
    "another namespace": "assert libc.unshare(0x10000000) == 0",
    "a process to trace": "assert libc.ptrace(16, 1, 0, 0) == 0",
    "signals": "os.kill(1, 0)",
    "another processor": "os.sched_setaffinity(0, range(64))",
    "a lock that others see": "fcntl.lockf(os.open(os.__file__, os.O_RDONLY), fcntl.LOCK_SH | fcntl.LOCK_NB)",
}
"""Ways out that are looked for, each a line that fails where there is none; later ones may open files themselves."""

_PROGRAM = """
import ctypes, fcntl, mmap, os, socket, threading
libc = ctypes.CDLL(None)
KNOWN = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LC_CTYPE", "PWD"}
def readable(number):
    try: return bool(os.read(number, 1))
    except OSError: return False
def tried(line):
    try: exec(line, globals()); return 1.0
    except BaseException: return 0.0
def analyse(rows):
    return [float(sum(rows["x"].to_pylist())), *map(tried, LINES)]
"""


def ways_out(box: Box, code: str = _PROGRAM) -> tuple[str, ...] | None:
    """The ways out that a hostile program finds in a box; None where the box does not even answer."""
    with tempfile.NamedTemporaryFile() as planted:
        planted.write(secrets.token_bytes(16))
        planted.flush()
        told = f"PLANTED = {os.path.realpath(planted.name)!r}\nLINES = {list(ATTEMPTS.values())!r}\n"
        said = box.answer(told + code, pa.table({"x": pa.array([4, 8])}))
    if said is None or said[0] != _KNOWN:
        return None
    return tuple(name for name, found in zip(ATTEMPTS, said[1:], strict=True) if found)


@cache
def tested_level() -> BoxLevel:
    """The strongest level of this host whose first box keeps a hostile program in; refused where none does.

    Reads nothing.
    """
    check_level(None)  # refused where there are no boxes
    said = []
    for level in box_levels():
        found = _found_at(level)
        if found == ():
            return level
        said.append(
            f"level {level.value} does not answer as it should"
            if found is None
            else f"level {level.value} leaves ways out: {', '.join(found)}"
        )
    raise Refused(
        f"boxes on this host cannot be used ({'; '.join(said)}). No code was run and nothing was spent. Run on a host "
        "where gVisor runs, or namespaces, Landlock and filters of system calls work."
    )


def _found_at(level: BoxLevel) -> tuple[str, ...] | None:
    """What the hostile program finds at a level; None where no box of it answers."""
    limits = BoxLimits(seconds=Fraction(2), libraries=(), numbers=1 + len(ATTEMPTS))
    try:
        return ways_out(Box(limits=limits, level=level))
    except Unsupported:
        return None


@cache
def check_starts(limits: BoxLimits, level: BoxLevel) -> float:
    """How many seconds a box takes to start, where no program runs; refused where none starts. Reads nothing.

    Limits that no box starts with are those with a library that fails to be imported, say.
    """
    packages_of(limits.libraries)  # found once a process, as is what follows: neither is a part of a start
    control_groups_hold()
    begun = time.monotonic()
    with Box(limits=limits, level=level).warm() as box:
        box.ready()
        return time.monotonic() - begun
