"""One question to all sites, from the vote to the sum: what a coordinator sends and collects."""

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.federated.hospital import PROPOSE
from sfumato.federated.messages import SumPhase, packed
from sfumato.federated.proposal import SiteProposal, SiteVote
from sfumato.federated.server import SumServer
from sfumato.federated.terms import RoundTerms
from sfumato.federated.transports import Transport, ask_all

__all__ = ["Agreed", "agreed", "summed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """The terms of those who joined, and how each site voted by its name: ``joins``, ``declined``, ``silent``."""

    terms: RoundTerms
    votes: Mapping[str, str]


def agreed(proposal: SiteProposal, sites: Mapping[str, str], transport: Transport) -> Agreed:
    """Let all sites vote; give the terms of those who join. No key was made and nothing was charged until then."""
    request, votes, roster = packed([PROPOSE.encode(), proposal.to_json().encode()]), {}, []
    answers = ask_all(transport, dict.fromkeys(sites.values(), request))
    for name, key in sites.items():
        vote = _vote(answers[key], key, proposal.digest)
        votes[name] = "silent" if vote is None else "joins" if vote.joins else "declined"
        if votes[name] == "joins":
            roster.append(key)
    try:
        return Agreed(terms=proposal.terms(tuple(roster)), votes=votes)
    except InvalidInput as wrong:
        said = ", ".join(f"{name}: {vote}" for name, vote in votes.items())
        raise Refused(f"too few sites take part ({said}); nothing was charged. {wrong}") from None


def _vote(answer: bytes | None, key: str, proposal: str) -> SiteVote | None:
    try:
        return None if answer is None else SiteVote.opened(answer, key=key, proposal=proposal)
    except (SfumatoError, UnicodeDecodeError):
        return None


def summed(proposal: SiteProposal, terms: RoundTerms, transport: Transport) -> SumServer:
    """Run the round; give the server at its end. A site that does not answer a phase has left the round."""
    server, told = SumServer(terms=terms), b""
    digest = terms.digest.hex().encode()
    for phase in list(SumPhase)[:-1]:
        request = packed([phase.value.encode(), digest, told])
        if phase is SumPhase.ADVERTISE:
            request = packed([phase.value.encode(), proposal.to_json().encode(), *map(str.encode, terms.roster)])
        asked = [terms.roster[place - 1] for place in server.awaited]
        for answer in ask_all(transport, dict.fromkeys(asked, request)).values():
            if answer is not None:
                server = _received(server, answer)
        server, told = server.close()
    return server


def _received(server: SumServer, answer: bytes) -> SumServer:
    """The server with one more message; a foul one is as none."""
    try:
        return server.receive(answer)
    except SfumatoError:
        return server
