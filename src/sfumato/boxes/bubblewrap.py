"""Level B: namespaces of the kernel of the host, by bubblewrap."""

import contextlib
import ctypes
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import ClassVar

from sfumato.boxes import inside
from sfumato.boxes.seccomp import starting_filter
from sfumato.boxes.started import StartedBox, started_box
from sfumato.boxes.view import PACKAGES, BoxView

__all__ = ["Bubblewrap"]

_OWN_MEMORY, _TASKS = 64, 64


class Bubblewrap:
    """Bubblewrap with nothing but an interpreter and packages to read; the program inside adds Landlock."""

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset()
    NOT_HIDDEN: ClassVar[str] = (
        "a program can read a clock and the number of its processor; it shares caches of the processor and of files "
        "with what ran before it; where it crashes, the log of the kernel may show an address that it chose; on a host "
        "that is too busy for its slots a run ends later, by steps of a fixed length"
    )

    def missing(self) -> str | None:
        """What this host lacks."""
        return None if shutil.which("bwrap") and self.landlock() > 0 else "bubblewrap and a Linux kernel with Landlock"

    def landlock(self) -> int:
        """The version of Landlock that the kernel has; 0 where it has none."""
        if sys.platform != "linux":
            return 0
        libc = ctypes.CDLL(None, use_errno=True)
        return max(0, int(libc.syscall(inside.CREATE, None, ctypes.c_size_t(0), 1)))

    @contextlib.contextmanager
    def started(self, view: BoxView, *, memory: int, cores: Sequence[int]) -> Iterator[StartedBox]:
        """A box that starts; it is gone at the end."""
        with tempfile.TemporaryFile() as program:
            program.write(starting_filter())
            program.seek(0)
            at = program.fileno()
            command = _command(view, at)
            held = memory + _OWN_MEMORY
            with started_box(command, memory=held, tasks=_TASKS, cores=cores, passed=(at,)) as box:
                yield box


def _command(view: BoxView, filter_at: int) -> Sequence[str]:
    found = shutil.which("bwrap")
    assert found is not None  # noqa: S101 - nothing is missing
    hidden = [part for path in view.empty for part in ("--tmpfs", path, "--remount-ro", path)]
    bind = [part for path, place in view.shown for part in ("--ro-bind", path, place)]
    return [
        found,
        *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--as-pid-1"),
        *("--cap-drop", "ALL", "--uid", "65534", "--gid", "65534", "--hostname", "box", "--clearenv"),
        *("--dir", PACKAGES, *bind, *hidden),
        *("--dir", "/empty", "--remount-ro", "/", "--chdir", "/empty"),
        *("--seccomp", str(filter_at), "--", *view.command),
    ]
