"""What a ballot says in plain words, worked out from its fields: nobody signs a sentence that the fields do not say."""

from enum import Enum

from sfumato.governance.board import Action, Proposal, Veto

__all__ = ["Matter", "said_of"]


class Matter(Enum):
    """What a ballot is for."""

    VOTE = "vote on a request"
    WITHDRAW = "withdraw a request"
    REQUEST = "ask the board"
    VETO = "veto a dataset"
    LIFT = "lift a veto"


def said_of(
    matter: Matter,
    *,
    proposal: Proposal | None,
    about: str | None,
    veto: Veto | None,
    said: tuple[str | None, str | None],
) -> tuple[str, ...]:
    """The lines about what is decided; ``said`` are the community and the dataset of a veto or of its end."""
    if proposal is not None:
        digest = () if about is None else (f"Digest of the request: {about}.",)
        return (_title(matter, proposal), *_asked(proposal), *digest)
    community, dataset = said
    if matter is Matter.VETO:
        return (
            f"A ballot of the board: {community} vetoes {dataset!r}.",
            "All open requests about it end, and nothing is released from it until the same community lifts the veto.",
        )
    since = "" if veto is None else f" of {veto.at}, by {veto.voter}: {veto.reason}"
    return (
        f"A ballot of the board: {community} lifts its veto over {dataset!r}{since}",
        "No other veto is lifted by it, and what was approved before must be approved anew.",
    )


def _title(matter: Matter, proposal: Proposal) -> str:
    match matter:
        case Matter.REQUEST:
            return f"A ballot of the board: {proposal.proposer} asks it for a decision."
        case Matter.WITHDRAW:
            return f"A ballot of the board: {proposal.proposer} takes request {proposal.number} back."
    return f"A ballot of the board: a vote on request {proposal.number}, which {proposal.proposer} made."


def _asked(proposal: Proposal) -> list[str]:
    lines = [f"The request is to {proposal.action.value}: {proposal.subject}"]
    if proposal.action in (Action.BOARD, Action.PLAN):
        lines.append("It is named by a digest: ask for the file, and compare the digest before you decide.")
    if proposal.account is not None:
        lines.append(f"Account: {proposal.account}")
    if proposal.amount is not None:
        lines.append(f"Amount: {proposal.amount}")
    if proposal.datasets:
        lines.append(f"Datasets: {', '.join(proposal.datasets)}")
    if proposal.sites:
        lines.append(f"Sites whose committees decide too: {', '.join(proposal.sites)}")
    lines += [
        f"What is gained: {proposal.reasons.benefit}",
        f"What those in the data risk: {proposal.reasons.risk}",
        f"Why this much: {proposal.reasons.choice}",
        f"It can be decided until {proposal.expires}.",
    ]
    return lines
