"""The rounds of a training run as the coordinator makes them: who is there, one secure sum, and its transcript."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import Refused, SfumatoError
from sfumato.federated.file_transport import AnswersAwaited
from sfumato.federated.messages import SumPhase, packed
from sfumato.federated.proposal import SiteVote
from sfumato.federated.server import SumResult, SumServer
from sfumato.federated.terms import RoundTerms
from sfumato.federated.training.training_proposal import TrainingProposal
from sfumato.federated.training.training_site import PROPOSE_RUN, READY, TRAIN
from sfumato.federated.training.written import written
from sfumato.federated.transports import Transport, ask_all

__all__ = ["RunRounds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRounds:
    """Asks sites for the rounds of one run; with ``transcript``, a file, a round is gone on with after a crash.

    What the file holds is what sites sent: a coordinator that asks again is sent the same bytes.
    """

    proposal: TrainingProposal
    transport: Transport
    transcript: Path | None = None

    def votes(self, sites: Mapping[str, str]) -> dict[str, str]:
        """How the sites vote on the run, by name: ``joins``, ``declined`` or ``silent``."""
        request = packed([TRAIN, PROPOSE_RUN, self.proposal.to_json().encode()])
        return self._voted(sites, request)

    def ready(self, number: int, sites: Mapping[str, str]) -> tuple[str, ...]:
        """Which of these sites take part in a round, by public key."""
        request = packed([TRAIN, READY, self.proposal.digest.encode(), str(number).encode()])
        found = self._voted(sites, request)
        return tuple(key for name, key in sites.items() if found[name] == "joins")

    def terms(self, number: int, sites: Mapping[str, str]) -> RoundTerms:
        """The terms of a round: those of one that was begun, or of those who are there now."""
        begun = self._begun()
        if begun is not None and begun.terms.number == number and self._belongs(begun.terms):
            return begun.terms
        return self.proposal.terms(number, self.ready(number, sites))

    def summed(self, terms: RoundTerms, weights: bytes) -> SumResult | None:
        """The sum of a round; None where too few sites stayed, and the round is lost."""
        begun = self._begun()
        server = SumServer(terms=terms)
        if begun is not None and begun.terms == terms:
            server = begun
        try:
            for phase in list(SumPhase)[:-1]:
                told = _told(server, phase)
                if server.phase is phase:
                    server = self._collected(server, phase, told, weights)
            return server.result()
        except AnswersAwaited:
            raise
        except Refused:
            return None

    def _collected(self, server: SumServer, phase: SumPhase, told: bytes, weights: bytes) -> SumServer:
        terms = server.terms
        head = [TRAIN, phase.value.encode(), self.proposal.digest.encode(), str(terms.number).encode()]
        rest = [weights, *map(str.encode, terms.roster)] if phase is SumPhase.ADVERTISE else [told]
        asked = [terms.roster[place - 1] for place in server.awaited]
        for answer in self._asked(asked, packed([*head, *rest])).values():
            if answer is not None:
                server = _received(server, answer)
        server, _ = server.close()
        if self.transcript is not None:
            written(self.transcript, server.to_bytes())
        return server

    def _begun(self) -> SumServer | None:
        if self.transcript is None or not self.transcript.exists():
            return None
        return SumServer.from_bytes(self.transcript.read_bytes())

    def _belongs(self, terms: RoundTerms) -> bool:
        return terms == self.proposal.terms(terms.number, terms.roster)

    def _voted(self, sites: Mapping[str, str], request: bytes) -> dict[str, str]:
        answers, votes = self._asked(list(sites.values()), request), {}
        for name, key in sites.items():
            vote = _vote(answers[key], key, self.proposal.digest)
            votes[name] = "silent" if vote is None else "joins" if vote.joins else "declined"
        return votes

    def _asked(self, sites: Sequence[str], request: bytes) -> Mapping[str, bytes | None]:
        return ask_all(self.transport, dict.fromkeys(sites, request))


def _told(server: SumServer, phase: SumPhase) -> bytes:
    """What is sent to the sites for a phase: it follows from the messages of the phase before."""
    if phase is SumPhase.ADVERTISE:
        return b""
    before = SumServer(terms=server.terms, over=server.over[: phase.order - 1], open=server.over[phase.order - 1])
    return before.close()[1]


def _vote(answer: bytes | None, key: str, proposal: str) -> SiteVote | None:
    try:
        return None if answer is None else SiteVote.opened(answer, key=key, proposal=proposal)
    except (SfumatoError, UnicodeDecodeError):
        return None


def _received(server: SumServer, answer: bytes) -> SumServer:
    """The server with one more message; a foul one is as none."""
    try:
        return server.receive(answer)
    except SfumatoError:
        return server
