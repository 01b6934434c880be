"""Level A: a kernel of its own in user space, gVisor's runsc, with a root folder of its own.

Calls of a program end in gVisor, which itself runs under a filter of system calls without a network. It needs neither
KVM nor root. Of the platforms of runsc this is ``ptrace``, which every build has.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from sfumato.boxes.started import StartedBox, started_box
from sfumato.boxes.view import BoxView

__all__ = ["GVisor", "bundle"]

_OWN_MEMORY, _TASKS = 512, 512
_NAMESPACES = ("pid", "network", "ipc", "uts", "mount")


class GVisor:
    """A bundle for runsc: an empty root, on which an interpreter and packages are mounted to read."""

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset({"MSGQUEUE"})
    """gVisor has no such limit, and the filter no such call."""
    NOT_HIDDEN: ClassVar[str] = (
        "a program can read a clock; it shares caches of the processor and of files with what ran before it; on a host "
        "that is too busy for its slots a run ends later, by steps of a fixed length"
    )

    def missing(self) -> str | None:
        """What this host lacks."""
        found = sys.platform == "linux" and shutil.which("runsc")
        return None if found else "gVisor (the program runsc)"

    def landlock(self) -> int:
        """None: gVisor's kernel has no Landlock; files that are not mounted are not there."""
        return 0

    @contextlib.contextmanager
    def started(self, view: BoxView, *, memory: int, cores: Sequence[int]) -> Iterator[StartedBox]:
        """A box that starts; it is gone at the end, with the folder of its bundle."""
        found = shutil.which("runsc")
        assert found is not None  # noqa: S101 - nothing is missing
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            Path(folder, "root").mkdir()
            Path(folder, "config.json").write_text(json.dumps(bundle(view)))
            command = [
                *(found, "--platform=ptrace", "--network=none", "--ignore-cgroups", f"--root={folder}/state"),
                "--file-access-mounts=exclusive",  # names are looked up once: what is shown does not change meanwhile
                *(["--rootless"] if os.geteuid() else []),
                *("run", "--bundle", folder, Path(folder).name),
            ]
            with started_box(command, memory=memory + _OWN_MEMORY, tasks=_TASKS, cores=cores) as box:
                yield box


def bundle(view: BoxView) -> dict[str, object]:
    """What runsc is told: a view, a user who is nobody, no capability, no environment, and nothing to write."""
    shown = [_mount("bind", os.path.realpath(path), place) for path, place in view.shown]
    empty = [_mount("tmpfs", "tmpfs", place) for place in (*view.empty, "/empty", "/proc", "/dev", "/sys", "/tmp")]  # noqa: S108 - in the box
    return {
        "ociVersion": "1.0.2",
        "hostname": "box",
        "root": {"path": "root", "readonly": True},
        "process": {
            "terminal": False,
            "user": {"uid": 65534, "gid": 65534},
            "args": list(view.command),
            "env": [],
            "cwd": "/empty",
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "mounts": [*shown, *empty],
        "linux": {"namespaces": [{"type": name} for name in _NAMESPACES]},
    }


def _mount(kind: str, source: str, place: str) -> dict[str, object]:
    options = ["ro", "rbind", "nosuid", "nodev"] if kind == "bind" else ["ro", "nosuid", "nodev", "noexec"]
    return {"destination": place, "type": kind, "source": source, "options": options}
