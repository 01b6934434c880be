"""What a site remembers of its rounds: in memory, or in a folder, written before anything is sent."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.federated.messages import packed, unpacked
from sfumato.federated.proposal import SiteProposal
from sfumato.federated.site import SumSite
from sfumato.gate.sealed import locked

__all__ = ["SiteRound", "SiteRounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteRound:
    """One round of a site: what was proposed, where the secure sum stands, and the shares that it answers to.

    ``answering`` is written down before the charge: whatever comes later, the site masks its numbers for these shares
    and for no others. Sensitive: all of it; keep it as a key is kept.
    """

    proposal: SiteProposal
    site: SumSite
    answering: bytes = b""


class SiteRounds:
    """The rounds of one site, by the digest of their terms; in ``folder`` they outlive the process.

    One process at a time has the folder: two would sign two lists of survivors.
    """

    def __init__(self, key: SigningKey, folder: Path | None) -> None:
        self._key, self._folder = key, folder
        self._known: dict[str, SiteRound] = {}
        self._held = contextlib.ExitStack()
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held.enter_context(locked(folder / "rounds", what="site"))

    def close(self) -> None:
        """Let another process have the folder."""
        self._held.close()

    def find(self, digest: str) -> SiteRound | None:
        """The round with these terms, or None."""
        if digest not in self._known and self._folder is not None:
            path = self._path(digest)
            if path.exists():
                self._known[digest] = self._read(path.read_bytes())
        return self._known.get(digest)

    def open(self, digest: str) -> SiteRound:
        """The round with these terms; refused where this site is in none."""
        found = self.find(digest)
        if found is None:
            raise Refused("this site is in no round with these terms; nothing was sent.")
        return found

    def keep(self, digest: str, state: SiteRound) -> None:
        """Write a round down, before anything that follows from it is sent."""
        if self._folder is not None:
            text = packed([state.proposal.to_json().encode(), state.site.to_bytes(), state.answering])
            _write(self._path(digest), text)
        self._known[digest] = state

    def _path(self, digest: str) -> Path:
        if self._folder is None or len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise InvalidInput("the digest of terms has 64 hexadecimal digits; nothing was sent.")
        return self._folder / f"{digest}.round"

    def _read(self, data: bytes) -> SiteRound:
        parts = unpacked(data)
        if len(parts) != 3:
            raise InvalidInput("this is not the state of a round; nothing was sent.")
        proposal = SiteProposal.from_json(parts[0].decode())
        return SiteRound(proposal=proposal, site=SumSite.from_bytes(parts[1], self._key), answering=parts[2])


def _write(path: Path, data: bytes) -> None:
    """Put a file in its place at once, for its owner alone."""
    beside = path.with_suffix(".new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
