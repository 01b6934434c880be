"""What a coordinator remembers: rounds that are under way, and the transcripts of those that are over."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.core.documents import Json
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput
from sfumato.federated.messages import fingerprint
from sfumato.federated.proposal import SiteProposal
from sfumato.federated.server import SumServer
from sfumato.gate.sealed import derived_secret, locked, read_sealed, remove_sealed, write_sealed

__all__ = ["CoordinatorRounds", "OpenRound"]

PUT, UNDER_WAY, OVER = "proposal", "round", "transcript"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRound:
    """A round from the vote to its end: what was proposed, how sites voted by name, and what they have sent."""

    proposal: SiteProposal
    server: SumServer
    votes: Mapping[str, str] = field(default_factory=dict)


class CoordinatorRounds:
    """The rounds of one consortium, by their question, and transcripts by their fingerprint; in ``folder`` they last.

    What is written before the sites of a phase are asked: whoever asks again after a crash sends the same bytes. One
    process at a time has the folder. Files are sealed with what the coordinator's own key gives.
    """

    def __init__(self, key: SigningKey, folder: Path | None) -> None:
        self._secret, self._folder = derived_secret(key, "rounds of a consortium"), folder
        self._transcripts: dict[str, bytes] = {}
        self._held = contextlib.ExitStack()
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held.enter_context(locked(folder / "rounds", what="consortium"))

    @property
    def lasts(self) -> bool:
        """Whether a round outlives the process."""
        return self._folder is not None

    def close(self) -> None:
        """Let another process have the folder."""
        self._held.close()

    def find(self, question: str) -> OpenRound | None:
        """The round about a question that was begun and is not over; None where there is none."""
        name = fingerprint(question.encode())
        if self._folder is None or not self._path(name, UNDER_WAY).exists():
            return None
        state, body = self._read(name, UNDER_WAY)
        proposal, votes = state.get("proposal"), state.get("votes")
        if not isinstance(proposal, str) or not isinstance(votes, dict):
            raise InvalidInput("a round of this consortium is not in the form that it must have; nothing was asked.")
        return OpenRound(
            proposal=SiteProposal.from_json(proposal),
            server=SumServer.from_bytes(body),
            votes={str(name): str(vote) for name, vote in votes.items()},
        )

    def proposed(self, question: str, proposal: SiteProposal) -> SiteProposal:
        """What sites vote on: the proposal that was written down for this question before, else this one, from now."""
        if self._folder is None:
            return proposal
        name = fingerprint(question.encode())
        if self._path(name, PUT).exists():
            return SiteProposal.from_json(self._read(name, PUT)[1].decode())
        self._write(name, PUT, {}, proposal.to_json().encode())
        return proposal

    def keep(self, question: str, state: OpenRound) -> None:
        """Write down where a round stands, before sites are asked for more."""
        if self._folder is not None:
            name = fingerprint(question.encode())
            said: Json = {"proposal": state.proposal.to_json(), "votes": dict(state.votes)}
            self._write(name, UNDER_WAY, said, state.server.to_bytes())

    def store(self, transcript: bytes) -> str:
        """Keep the transcript of a round that is over; give its fingerprint."""
        seal = fingerprint(transcript)
        if self._folder is None:
            self._transcripts[seal] = transcript
        else:
            self._write(seal, OVER, {}, transcript)
        return seal

    def drop(self, question: str) -> None:
        """Forget a round that is over, gives no sum any more, or that too few voted for."""
        if self._folder is not None:
            for kind in (UNDER_WAY, PUT):
                remove_sealed(self._path(fingerprint(question.encode()), kind))

    def transcript(self, seal: str) -> bytes:
        """The transcript with this fingerprint."""
        found = self._transcripts.get(seal)
        if found is None and self._folder is not None and _is_name(seal) and self._path(seal, OVER).exists():
            found = self._read(seal, OVER)[1]
        if found is None or fingerprint(found) != seal:
            raise InvalidInput("this consortium has no transcript of this release; nothing was verified.")
        return found

    def _path(self, name: str, kind: str) -> Path:
        assert self._folder is not None  # noqa: S101 - asked where there is one
        return self._folder / f"{name}.{kind}"

    def _write(self, name: str, kind: str, state: Json, body: bytes) -> None:
        write_sealed(self._path(name, kind), self._secret, {kind: name}, state, body, kind)

    def _read(self, name: str, kind: str) -> tuple[Mapping[str, object], bytes]:
        header, state, body = read_sealed(self._path(name, kind), self._secret, what=kind)
        if header != {kind: name}:
            raise InvalidInput(f"{self._path(name, kind)} is not what it is named after; nothing was asked.")
        return state, body


def _is_name(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")
