"""What runs in a box: it locks itself in, then reads one program and one block of rows, and writes one answer.

This file is started by itself, by an interpreter that has no other path than those in the first frame, and imports
nothing of this package. Order matters: libraries first, then limits, Landlock and the last filter of system calls, and
only then the code of a researcher and the rows, which arrive together.
"""

import ctypes
import json
import os
import resource
import struct
import sys
import time

LANDLOCK_FILES = (1 << 16) - 1  # every right over files that the kernel can take away
LANDLOCK_READ = (1 << 0) | (1 << 2) | (1 << 3)  # execute (to map a library), read a file, read a folder
LANDLOCK_NET, LANDLOCK_SCOPED = 0b11, 0b11
CREATE, ADD_RULE, RESTRICT = 444, 445, 446
SECCOMP = {"x86_64": 317, "aarch64": 277}
DUMPABLE = 4  # of prctl


def frame(descriptor: int) -> bytes:
    """One message: eight bytes of length, and as many bytes as they say."""
    (length,) = struct.unpack("<Q", exactly(descriptor, 8))
    return exactly(descriptor, length)


def exactly(descriptor: int, length: int) -> bytes:
    """This many bytes, or the end of the process."""
    parts = []
    while length:
        part = os.read(descriptor, min(length, 1 << 20))
        if not part:
            os._exit(1)
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def frames(descriptor: int) -> bytes:
    """Messages up to an empty one, as one."""
    parts = []
    while part := frame(descriptor):
        parts.append(part)
    return b"".join(parts)


def limit(said: dict[str, int]) -> None:
    """Memory, time, files: no more than was said, and it does not rise again."""
    for name, most in said.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))


def undumpable(libc: ctypes.CDLL) -> None:
    """Leave no image of the memory behind: where a host pipes images to a program, a limit of their size is none."""
    if libc.prctl(DUMPABLE, 0, 0, 0, 0) != 0:
        os._exit(2)


def landlock(libc: ctypes.CDLL, readable: list[str], abi: int) -> None:
    """Take every right over files but reading these folders, and all of TCP, signals and abstract sockets."""
    files = LANDLOCK_FILES & ((1 << {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)) - 1)
    rights = struct.pack("<QQQ", files, LANDLOCK_NET if abi >= 4 else 0, LANDLOCK_SCOPED if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    rules = libc.syscall(CREATE, rights, ctypes.c_size_t(size), 0)
    if rules < 0:
        os._exit(2)
    for path in readable:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = struct.pack("<Qi", LANDLOCK_READ, folder)
        if libc.syscall(ADD_RULE, rules, 1, rule, 0) != 0:
            os._exit(2)
        os.close(folder)
    if libc.syscall(RESTRICT, rules, 1 if abi >= 7 else 0) != 0:  # what was denied goes into no log of the host
        os._exit(2)
    os.close(rules)


def filtered(libc: ctypes.CDLL, program: bytes) -> None:
    """Put on the last filter of system calls."""
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("<HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    if libc.syscall(SECCOMP[os.uname().machine], 1, 0, header) != 0:
        os._exit(3)


def answered(code: bytes, rows: object, numbers: int) -> bytes:
    """What ``analyse(rows)`` of the code gives, as bytes of a fixed size; not-a-number where it gives anything else."""
    nothing = struct.pack(f"<{numbers}d", *[float("nan")] * numbers)
    try:
        names: dict[str, object] = {"__name__": "analysis"}
        exec(compile(code, "analysis.py", "exec", dont_inherit=True), names)  # noqa: S102 - this is what a box is for
        said = names["analyse"](rows)  # type: ignore[operator]  # whatever the program named so
        listed = [said] if numbers == 1 and not hasattr(said, "__len__") else list(said)
        return struct.pack(f"<{numbers}d", *map(float, listed))
    except BaseException:  # noqa: BLE001 - whatever happened is not told
        return nothing


def main() -> None:
    """Lock in, say that the box is ready, and answer once."""
    setup = json.loads(frame(0))
    os.environ.clear()
    os.environ.update(setup["environment"])
    sys.path[:] = [path for path in sys.path if path] + setup["packages"]
    sys.dont_write_bytecode = True
    import pyarrow
    import pyarrow.ipc

    for name in setup["libraries"]:  # before the rows, so that importing takes nothing of the slot
        __import__(name)

    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)
    libc = ctypes.CDLL(None, use_errno=True)
    limit(setup["limits"] | {"CPU": setup["limits"]["CPU"] + int(time.process_time())})  # importing is not counted
    undumpable(libc)
    if setup["landlock"]:
        landlock(libc, setup["readable"], setup["landlock"])
    filtered(libc, bytes.fromhex(setup["filter"]))
    os.write(1, b"R")
    code, rows = frame(0), frames(0)
    with pyarrow.ipc.open_stream(rows) as stream:
        table = stream.read_all()
    given = table.to_pandas(use_threads=False) if "pandas" in setup["libraries"] else table
    os.write(1, answered(code, given, setup["numbers"]))
    os._exit(0)


if __name__ == "__main__":
    main()
