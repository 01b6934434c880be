"""The first box of a process is tried: a hostile program looks for ways out, and a box that has one is not used."""

import os
import secrets
import tempfile
from fractions import Fraction
from functools import cache

import pyarrow as pa

from sfumato.boxes.box import Box, BoxLevel, BoxLimits, box_level
from sfumato.errors import Refused

__all__ = ["ATTEMPTS", "check_starts", "tested_level", "ways_out"]

_KNOWN = 12.0  # what a box says that works

ATTEMPTS: dict[str, str] = {
    "descriptors that were left open": "assert any(map(readable, range(3, 64)))",
    "a file of the host": "open(PLANTED, 'rb').read()",
    "files of the system": "os.listdir('/etc')",
    "variables of the host": "assert set(os.environ) - KNOWN",
    "processes": "os.listdir('/proc')",
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
    """The level of boxes on this host, once one was tried; refused where a program gets out of it. Reads nothing."""
    limits = BoxLimits(seconds=Fraction(2), libraries=(), numbers=1 + len(ATTEMPTS))
    found = ways_out(Box(limits=limits))  # refused where there are no boxes
    level = box_level()
    if level is None or found is None:
        raise Refused("a box on this host does not answer as it should; no code was run and nothing was spent.")
    if found:
        raise Refused(
            f"a box on this host leaves ways out: {', '.join(found)}. No code was run and nothing was spent. Run on a "
            "host where namespaces, Landlock and filters of system calls work."
        )
    return level


@cache
def check_starts(limits: BoxLimits) -> None:
    """Refuse limits that no box starts with, such as a library that fails to be imported. Reads nothing."""
    with Box(limits=limits).warm() as box:
        box.ready()
