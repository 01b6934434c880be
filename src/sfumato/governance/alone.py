"""One process at a time, beside a ledger in SQLite: locks on files, which the system takes back from who dies."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sfumato.errors import LedgerError

__all__ = ["alone"]

_files: set[int] = set()  # held by this process


@contextmanager
def alone(place: Path, *, beside: Path) -> Iterator[None]:
    """Hold a file at ``place``, made for this, against all other processes of this machine; they wait.

    Guarantee: blocks with the same place never overlap, and where a process dies in one the next goes on: what holds
    is the process, never a file that it left. Who may write to ``beside`` may hold it. Assumes: threads of one process
    come one at a time.
    """
    try:
        file = _held(place, (beside.stat().st_mode & 0o222) << 1)
    except OSError as wrong:
        raise LedgerError(
            f"a file beside the ledger {beside.name} cannot be used: {wrong.strerror}. Nothing was read and nothing "
            "was spent. Repair its folder and try again."
        ) from None
    _files.add(file)
    try:
        yield
    finally:
        if file in _files:
            _files.discard(file)
            with suppress(FileNotFoundError, PermissionError):  # one that is left, in a folder of others, holds nobody
                place.unlink()
            os.close(file)


def _held(place: Path, mode: int) -> int:
    """The file, locked; one that its holder has thrown away meanwhile is not the one that others will find."""
    while True:
        file = os.open(place, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, mode)
        try:
            if os.fstat(file).st_nlink > 1:  # another file, such as a key, which the mode would open to others
                raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))
            if os.fstat(file).st_uid == os.geteuid():
                os.fchmod(file, mode)  # whatever the mask of this user is
            fcntl.flock(file, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), place.stat()):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _forked() -> None:
    """A process that was forked off holds nothing, and keeps nothing held when its parent dies."""
    for file in _files:
        os.close(file)
    _files.clear()


os.register_at_fork(after_in_child=_forked)
