"""One question to all sites, from the vote to the sum: what a coordinator sends and collects."""

from collections.abc import Callable, Mapping

from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.federated.coordinator_rounds import OpenRound
from sfumato.federated.hospital import PROPOSE
from sfumato.federated.messages import SumPhase, packed
from sfumato.federated.proposal import SiteProposal, SiteVote
from sfumato.federated.server import SumServer
from sfumato.federated.transports import Transport, ask_all

__all__ = ["agreed", "summed"]


def agreed(proposal: SiteProposal, sites: Mapping[str, str], transport: Transport) -> OpenRound:
    """Let all sites vote; give the round of those who join. No key was made and nothing was charged until then.

    Votes are told by the names of sites: ``joins``, ``declined`` or ``silent``.
    """
    request, votes, roster = packed([PROPOSE.encode(), proposal.to_json().encode()]), {}, []
    answers = ask_all(transport, dict.fromkeys(sites.values(), request))
    for name, key in sites.items():
        vote = _vote(answers[key], key, proposal.digest)
        votes[name] = "silent" if vote is None else "joins" if vote.joins else "declined"
        if votes[name] == "joins":
            roster.append(key)
    try:
        server = SumServer(terms=proposal.terms(tuple(roster)))
    except InvalidInput as wrong:
        said = ", ".join(f"{name}: {vote}" for name, vote in votes.items())
        raise Refused(f"too few sites take part ({said}); nothing was charged. {wrong}") from None
    return OpenRound(proposal=proposal, server=server, votes=votes)


def _vote(answer: bytes | None, key: str, proposal: str) -> SiteVote | None:
    try:
        return None if answer is None else SiteVote.opened(answer, key=key, proposal=proposal)
    except (SfumatoError, UnicodeDecodeError):
        return None


def summed(begun: OpenRound, transport: Transport, keep: Callable[[SumServer], None]) -> SumServer:
    """Run a round from where it stands; give the server at its end. A site that does not answer a phase has left.

    The server is handed to ``keep`` at the end of each phase, before anybody is told what came of it.
    """
    server, terms = begun.server, begun.server.terms
    digest = terms.digest.hex().encode()
    for phase in list(SumPhase)[server.phase.order : -1]:
        request = packed([phase.value.encode(), digest, server.told])
        if phase is SumPhase.ADVERTISE:
            proposed = begun.proposal.to_json().encode()
            request = packed([phase.value.encode(), proposed, *map(str.encode, terms.roster)])
        asked = [terms.roster[place - 1] for place in server.awaited]
        for answer in ask_all(transport, dict.fromkeys(asked, request)).values():
            if answer is not None:
                server = _received(server, answer)
        server, _ = server.close()
        keep(server)
    return server


def _received(server: SumServer, answer: bytes) -> SumServer:
    """The server with one more message; a foul one is as none."""
    try:
        return server.receive(answer)
    except SfumatoError:
        return server
