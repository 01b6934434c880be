"""What a site remembers of its rounds: in memory, or sealed in a folder, written before anything is sent."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.federated.messages import packed, unpacked
from sfumato.federated.proposal import SiteProposal
from sfumato.federated.site import SumSite
from sfumato.gate.sealed import derived_secret, locked, read_sealed, write_sealed

__all__ = ["SiteRound", "SiteRounds"]

WHAT = "round"


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

    One process at a time has the folder: two would sign two lists of survivors. Files are sealed with what the site's
    own key gives, each for its round.
    """

    def __init__(self, key: SigningKey, folder: Path | None) -> None:
        self._key, self._folder, self._secret = key, folder, derived_secret(key, "rounds of a site")
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
                self._known[digest] = self._read(path, digest)
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
            body = packed([state.proposal.to_json().encode(), state.site.to_bytes(), state.answering])
            write_sealed(self._path(digest), self._secret, {"round": digest}, {}, body, WHAT)
        self._known[digest] = state

    def _path(self, digest: str) -> Path:
        if self._folder is None or len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise InvalidInput("the digest of terms has 64 hexadecimal digits; nothing was sent.")
        return self._folder / f"{digest}.round"

    def _read(self, path: Path, digest: str) -> SiteRound:
        header, _, body = read_sealed(path, self._secret, what=WHAT)
        parts = unpacked(body)
        if header != {"round": digest} or len(parts) != 3:
            raise InvalidInput(f"{path} is not the state of the round that it is named after; nothing was sent.")
        proposal = SiteProposal.from_json(parts[0].decode())
        return SiteRound(proposal=proposal, site=SumSite.from_bytes(parts[1], self._key), answering=parts[2])
