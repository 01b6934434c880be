"""Control groups of Linux around boxes, in either version, where this process may make them: memory and processes.

They are an addition: limits of the process itself hold in any case. A group is made inside the one that this process
is in, so that whatever holds this process holds its boxes too.
"""

import contextlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["GroupHome", "control_group", "control_groups_hold", "entering", "homes_of"]

_PATIENCE = 2.0
_FILES = {
    1: {"memory": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), "pids": ("pids.max",)},
    2: {"memory": ("memory.max", "memory.swap.max"), "pids": ("pids.max",)},
}
# A shell moves itself into the groups that are named before "--" and becomes the command.
_ENTERS = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 0; shift; done; shift; exec "$@"'
_TAKES_MEMORY = "kept = bytearray(192 << 20)"
_TAKES_PROCESSES = "import os, sys\nfor _ in range(24):\n  if os.fork() == 0: import time; time.sleep(1); os._exit(0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHome:
    """A folder where groups of some controllers can be made, and the version of its files."""

    folder: Path
    version: int
    controllers: tuple[str, ...]

    def limits(self, *, memory: int, tasks: int) -> Mapping[str, str]:
        """The files of a group and what is written into them; the second of memory is about swap."""
        said = {"memory": str(memory << 20), "pids": str(tasks)}
        written: dict[str, str] = {}
        for controller in self.controllers:
            first, *more = _FILES[self.version][controller]
            written[first] = said[controller]
            written |= dict.fromkeys(more, "0" if self.version == 2 else said[controller])
        return written


def entering(files: Sequence[str], command: Sequence[str]) -> Sequence[str]:
    """A command that enters groups before it does anything else; one that cannot enter ends well, and does nothing.

    >>> entering((), ["true"])
    ['true']
    """
    return ["/bin/sh", "-c", _ENTERS, "sh", *files, "--", *command] if files else command


def homes_of(groups: str, mounts: str) -> list[GroupHome]:
    """Where groups may be made, from ``/proc/self/cgroup`` and ``/proc/self/mountinfo``; in version 2 from within out.

    >>> homes_of("4:memory:/mine", "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory")
    [GroupHome(folder=PosixPath('/sys/fs/cgroup/memory/mine'), version=1, controllers=('memory',))]
    """
    mine = {names: path for _, names, path in (line.split(":", 2) for line in groups.splitlines() if line)}
    homes = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        root, place = fields[3], Path(fields[4])
        if kind[0] == "cgroup2" and "" in mine:
            own = _below(place, root, mine[""])
            around = [own] if own == place else [own, own.parent]
            homes += [GroupHome(folder=each, version=2, controllers=("memory", "pids")) for each in around]
        elif kind[0] == "cgroup":
            for names, path in mine.items():
                held = tuple(name for name in ("memory", "pids") if name in names.split(","))
                if held and set(held) <= set(kind[2].split(",")):
                    homes.append(GroupHome(folder=_below(place, root, path), version=1, controllers=held))
    return homes


def _below(place: Path, root: str, path: str) -> Path:
    inner = path.removeprefix(root) if root != "/" else path
    return place / inner.lstrip("/")


@cache
def _working_homes() -> tuple[GroupHome, ...]:
    """Homes whose groups were seen to hold memory and processes; empty where one of the two does not hold."""
    try:
        found = homes_of(Path("/proc/self/cgroup").read_text(), Path("/proc/self/mountinfo").read_text())
    except OSError:
        return ()
    by_controllers: dict[tuple[str, ...], GroupHome] = {}
    for home in found:
        if home.controllers not in by_controllers and _can_make(home):
            by_controllers[home.controllers] = home
    whole = [home for home in by_controllers.values() if len(home.controllers) == 2][:1]
    homes = tuple(whole or by_controllers.values())
    return homes if {"memory", "pids"} == {name for home in homes for name in home.controllers} else ()


def _can_make(home: GroupHome) -> bool:
    """Whether a group can be made there with all its limits."""
    try:
        if not (home.folder / "cgroup.procs").is_file():
            return False
        if home.version == 2:
            with contextlib.suppress(OSError):
                (home.folder / "cgroup.subtree_control").write_text("+memory +pids")
        with _group(home, memory=512, tasks=64):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def _group(home: GroupHome, *, memory: int, tasks: int) -> Iterator[Path]:
    folder = home.folder / f"sfumato-box-{os.getpid()}-{secrets.token_hex(8)}"
    folder.mkdir()
    try:
        for name, said in home.limits(memory=memory, tasks=tasks).items():
            if "sw" not in name or (folder / name).exists():  # a host without swap has no file for it
                (folder / name).write_text(said)
        yield folder / "cgroup.procs"
    finally:
        _removed(folder)


def _removed(folder: Path) -> None:
    """Remove a group once the kernel has counted its processes out."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > end:
                return  # an empty group holds nobody
            time.sleep(0.002)
        else:
            return


@contextlib.contextmanager
def _groups(homes: Sequence[GroupHome], *, memory: int, tasks: int) -> Iterator[tuple[str, ...]]:
    with contextlib.ExitStack() as opened:
        yield tuple(str(opened.enter_context(_group(home, memory=memory, tasks=tasks))) for home in homes)


@cache
def control_groups_hold() -> bool:
    """Whether groups of this host hold: one that takes memory and one that takes processes are stopped in them."""
    homes = _working_homes()
    return bool(homes) and not any(_gets_through(homes, code) for code in (_TAKES_MEMORY, _TAKES_PROCESSES))


def _gets_through(homes: Sequence[GroupHome], code: str) -> bool:
    with _groups(homes, memory=64, tasks=16) as files:
        command = entering(files, [sys.executable, "-I", "-S", "-c", code])
        ended = subprocess.run(command, env={}, capture_output=True, check=False)  # noqa: S603 - a fixed command
    return ended.returncode == 0


@contextlib.contextmanager
def control_group(*, memory: int, tasks: int) -> Iterator[tuple[str, ...]]:
    """A group of ``memory`` MiB and at most ``tasks`` tasks in each home: the files that take a process into it.

    None where groups do not hold on this host. It is gone at the end.
    """
    homes = _working_homes() if control_groups_hold() else ()
    with _groups(homes, memory=memory, tasks=tasks) as files:
        yield files
