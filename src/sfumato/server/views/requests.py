"""Requests to the board: what is asked and why, how each stands, who is still needed, and what a veto did."""

from dataclasses import dataclass

from sfumato.core.budget import Budget
from sfumato.governance.board import Action, Board, Choice, Outcome, Proposal, Veto, VetoLifted, fingerprint
from sfumato.governance.minutes import Minutes

__all__ = ["Needed", "Request", "StandingVeto", "VoteShown", "requests_of", "vetoes_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteShown:
    """A vote: whose, what, why, when, and the first digits of the key that it is signed with."""

    voter: str
    choice: Choice
    reason: str
    at: str
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What a body still lacks for an approval: how many more, and of whom; ``site`` is empty for the board."""

    site: str
    more: int
    of: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to the board with its votes; ``outcome`` is None while it is open."""

    number: int
    action: Action
    subject: str
    proposer: str
    key: str | None
    at: str
    expires: str
    account: str | None
    datasets: tuple[str, ...]
    sites: tuple[str, ...]
    amount: Budget | None
    benefit: str
    risk: str
    choice: str
    votes: tuple[VoteShown, ...]
    needed: tuple[Needed, ...]
    outcome: Outcome | None
    decided: str | None
    why: str | None

    @property
    def open(self) -> bool:
        """Whether it waits for a decision."""
        return self.outcome is None


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingVeto:
    """A veto over a dataset: whose, why, since when, the requests that it ended, and when it was lifted, if it was."""

    community: str
    voter: str
    dataset: str
    reason: str
    at: str
    lifted: str | None
    ended: tuple[int, ...]


def requests_of(minutes: Minutes) -> tuple[Request, ...]:
    """All requests, the newest first."""
    return tuple(_request(asked, minutes) for asked in reversed(minutes.proposals))


def vetoes_of(minutes: Minutes) -> tuple[StandingVeto, ...]:
    """All vetoes, the newest first; each with what it ended."""
    found: list[StandingVeto] = []
    for place, entry in enumerate(minutes.entries):
        if not isinstance(entry, Veto):
            continue
        later = (
            each
            for each in minutes.entries[place + 1 :]
            if isinstance(each, VetoLifted) and (each.community, each.dataset) == (entry.community, entry.dataset)
        )
        lifted = next(later, None)
        ended = tuple(
            decision.proposal
            for decision in minutes.decisions
            if decision.outcome is Outcome.VETOED
            and decision.at == entry.at
            and entry.dataset in minutes.proposal(decision.proposal).datasets
        )
        found.append(
            StandingVeto(
                community=entry.community,
                voter=entry.voter,
                dataset=entry.dataset,
                reason=entry.reason,
                at=entry.at,
                lifted=None if lifted is None else lifted.at,
                ended=ended,
            )
        )
    return tuple(reversed(found))


def _request(asked: Proposal, minutes: Minutes) -> Request:
    decision = minutes.decision(asked.number)
    return Request(
        number=asked.number,
        action=asked.action,
        subject=asked.subject,
        proposer=asked.proposer,
        key=_key(minutes.signer(asked)),
        at=asked.at,
        expires=asked.expires,
        account=asked.account,
        datasets=asked.datasets,
        sites=asked.sites,
        amount=asked.amount,
        benefit=asked.reasons.benefit,
        risk=asked.reasons.risk,
        choice=asked.reasons.choice,
        votes=tuple(
            VoteShown(
                voter=vote.voter,
                choice=vote.choice,
                reason=vote.reason,
                at=vote.at,
                key=_key(minutes.signer(vote)),
            )
            for vote in minutes.votes(asked.number)
        ),
        needed=_needed(asked, minutes) if decision is None else (),
        outcome=None if decision is None else decision.outcome,
        decided=None if decision is None else decision.at,
        why=None if decision is None else decision.why,
    )


def _key(key: str | None) -> str | None:
    return None if key is None else fingerprint(key)


def _needed(asked: Proposal, minutes: Minutes) -> tuple[Needed, ...]:
    """What is missing for an approval, body by body."""
    cast = {vote.voter: vote.choice for vote in minutes.votes(asked.number)}
    found = []
    for site, members, quorum, representatives in _bodies(asked, minutes.board):
        able = [who for who in members if who != asked.proposer]
        yes = {who for who in able if cast.get(who) is Choice.YES}
        no = {who for who in able if cast.get(who) is Choice.NO}
        silent = tuple(who for who in able if who not in cast)
        more = max(quorum, len(no) + 1) - len(yes)
        if more > 0:
            found.append(Needed(site=site, more=more, of=silent))
        elif representatives and not yes & set(representatives):
            found.append(Needed(site=site, more=1, of=tuple(who for who in representatives if who in silent)))
    return tuple(found)


def _bodies(asked: Proposal, board: Board) -> list[tuple[str, tuple[str, ...], int, tuple[str, ...]]]:
    bodies: list[tuple[str, tuple[str, ...], int, tuple[str, ...]]] = [("", board.members, board.quorum, ())]
    for site in asked.sites:
        local = board.committee(site)
        bodies.append((site, local.members, local.quorum, local.representatives))
    return bodies
