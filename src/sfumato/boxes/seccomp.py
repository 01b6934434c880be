"""Filters of system calls: a list of what is allowed, as a program of the kernel's packet filter.

Everything that is not on the list is answered with an error, and the process goes on without it. Known for x86-64 and
AArch64; elsewhere there is no filter and no box.
"""

import errno
import platform
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sfumato.errors import Unsupported

__all__ = ["Machine", "filter_program", "final_filter", "machine", "starting_filter"]

_LOAD_WORD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER_AT, _MACHINE_AT, _SECOND_AT = 0, 4, 24
_X32 = 0x40000000

X86_64 = {
    "read": 0, "write": 1, "close": 3, "stat": 4, "fstat": 5, "lstat": 6, "poll": 7, "lseek": 8, "mmap": 9,
    "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15,
    "ioctl": 16, "pread64": 17, "readv": 19, "writev": 20, "access": 21, "select": 23, "sched_yield": 24,
    "mremap": 25, "madvise": 28, "dup": 32, "dup2": 33, "nanosleep": 35, "getpid": 39, "execve": 59, "exit": 60,
    "uname": 63, "fcntl": 72, "getcwd": 79, "readlink": 89, "gettimeofday": 96, "getrlimit": 97, "getrusage": 98,
    "sysinfo": 99, "times": 100, "getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110,
    "sigaltstack": 131, "arch_prctl": 158, "prctl": 157, "gettid": 186, "futex": 202, "sched_getaffinity": 204,
    "getdents64": 217, "set_tid_address": 218, "clock_gettime": 228, "clock_getres": 229,
    "clock_nanosleep": 230, "exit_group": 231, "openat": 257, "newfstatat": 262, "readlinkat": 267,
    "pselect6": 270, "ppoll": 271, "set_robust_list": 273, "prlimit64": 302, "seccomp": 317, "getrandom": 318,
    "statx": 332, "rseq": 334, "landlock_create_ruleset": 444, "landlock_add_rule": 445,
    "landlock_restrict_self": 446, "faccessat2": 439,
}  # fmt: skip
AARCH64 = {
    "getcwd": 17, "dup": 23, "dup3": 24, "fcntl": 25, "ioctl": 29, "openat": 56, "close": 57, "getdents64": 61,
    "lseek": 62, "read": 63, "write": 64, "readv": 65, "writev": 66, "pread64": 67, "pselect6": 72, "ppoll": 73,
    "readlinkat": 78, "newfstatat": 79, "fstat": 80, "exit": 93, "exit_group": 94, "set_tid_address": 96,
    "futex": 98, "set_robust_list": 99, "nanosleep": 101, "clock_gettime": 113, "clock_getres": 114,
    "clock_nanosleep": 115, "sched_getaffinity": 123, "sched_yield": 124,
    "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135, "rt_sigreturn": 139, "times": 153,
    "uname": 160, "getrlimit": 163, "getrusage": 165, "prctl": 167, "gettimeofday": 169, "getpid": 172,
    "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177, "gettid": 178, "sysinfo": 179,
    "brk": 214, "munmap": 215, "mremap": 216, "execve": 221, "mmap": 222, "mprotect": 226, "madvise": 233,
    "prlimit64": 261, "seccomp": 277, "getrandom": 278, "statx": 291, "rseq": 293, "faccessat": 48,
    "faccessat2": 439, "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446,
}  # fmt: skip
ONCE = (
    *("execve", "prctl", "seccomp", "ioctl", "prlimit64", "sysinfo"),
    *("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"),
)
"""What the launcher needs until it has locked itself in; the code of a researcher never has it.

Of these, sysinfo tells load, free memory and number of processes of the host, and so what ran before.
"""
CONTROL = (0, 1, 2, 3, 1030)
"""What fcntl may do: copies and flags of descriptors. Locks, leases and notices of changes reach other processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A processor as the kernel names it in a filter, and the numbers of its calls."""

    audit: int
    calls: dict[str, int]


_MACHINES = {"x86_64": Machine(audit=0xC000003E, calls=X86_64), "aarch64": Machine(audit=0xC00000B7, calls=AARCH64)}


def machine() -> Machine:
    """The processor of this host; refused where its calls are not known."""
    found = _MACHINES.get(platform.machine())
    if found is None or platform.system() != "Linux":
        raise Unsupported("system calls can be filtered on Linux for x86-64 and AArch64; no code was run.")
    return found


def _allowed(without: Iterable[str]) -> tuple[int, ...]:
    return tuple(sorted(number for name, number in machine().calls.items() if name not in set(without)))


def filter_program(allowed: Iterable[int], on: Machine, control: Sequence[int] = CONTROL) -> bytes:
    """The filter: calls of another machine and calls that are not listed give the error EPERM.

    No call ends the process: the kernel writes the number of such a call into the log of the host. Of fcntl only what
    ``control`` lists is allowed.
    """
    fcntl = on.calls.get("fcntl")
    numbers = [number for number in sorted(allowed) if number != fcntl]
    program = [
        (_LOAD_WORD, 0, 0, _MACHINE_AT),
        (_JUMP_EQUAL, 1, 0, on.audit),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
        (_LOAD_WORD, 0, 0, _NUMBER_AT),
        (_JUMP_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERROR | errno.EPERM),
    ]
    for number in numbers:
        program += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    if fcntl is not None:
        program += [(_JUMP_EQUAL, 0, 1 + 2 * len(control), fcntl), (_LOAD_WORD, 0, 0, _SECOND_AT)]
        for command in control:
            program += [(_JUMP_EQUAL, 0, 1, command), (_RETURN, 0, 0, _ALLOW)]
    program.append((_RETURN, 0, 0, _ERROR | errno.EPERM))
    return b"".join(struct.pack("HBBI", *each) for each in program)


def starting_filter() -> bytes:
    """The filter that the launcher starts under."""
    return filter_program(_allowed(()), machine())


def final_filter() -> bytes:
    """The filter that the launcher puts on before it reads any code or data."""
    return filter_program(_allowed(ONCE), machine())
