"""The minutes of the board: one reducer from entries to what was decided, the same on every replay.

Rules. A proposal is approved as soon as the board, and the committee of every site that it touches, has its quorum of
"yes" and more "yes" than "no"; a committee's approval needs a community representative among those. The proposer never
votes, nobody votes twice (neither by name nor by key), and nothing is voted on after it is decided or has expired. A
representative of a community that holds a veto over a dataset ends a request about it with a "no", whatever the quorum.
A standing veto blocks every request and release about the dataset until the same community lifts it, and approvals from
before do not revive.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sfumato.core.budget import Budget
from sfumato.errors import InvalidInput, LedgerError, Refused
from sfumato.governance.board import (
    Action,
    Board,
    BoardEntry,
    Choice,
    Decision,
    Outcome,
    Proposal,
    Veto,
    VetoLifted,
    Vote,
    Withdrawal,
    actor,
    moment,
)
from sfumato.governance.policies import Unlock

__all__ = ["Minutes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Minutes:
    """All entries so far and what follows from them; a value, so that a refused entry changes nothing.

    >>> from sfumato.governance.board import Reasons
    >>> board = Board(members=("ada", "ben", "cho"), quorum=2)
    >>> why = Reasons(benefit="beds are planned by it", risk="a rare case could be guessed", choice="±6 is enough")
    >>> asked = Proposal(number=1, at="2026-01-05T09:00:00+00:00", expires="2026-01-19T09:00:00+00:00", proposer="ada",
    ...                  action=Action.RAISE, account="oncology", datasets=(), sites=(), amount=Budget(epsilon=1),
    ...                  subject="weekly figures", reasons=why)
    >>> votes = [Vote(proposal=1, at="2026-01-06T09:00:00+00:00", voter=name, choice=Choice.YES, reason="")
    ...          for name in ("ben", "cho")]
    >>> minutes = Minutes.replay(board, [asked, *votes])
    >>> minutes.decision(1).outcome.value, str(minutes.raised("oncology"))
    ('approved', 'ε = 1')
    """

    board: Board
    reserves: tuple[tuple[str, Budget], ...] = ()
    entries: tuple[BoardEntry, ...] = ()
    decisions: tuple[Decision, ...] = ()
    keys: tuple[str | None, ...] = ()
    """The public key that each entry is signed with; None where nobody asked for it, as in the first ledgers."""

    @classmethod
    def replay(
        cls, board: Board, entries: Iterable[BoardEntry], *, reserves: tuple[tuple[str, Budget], ...] = ()
    ) -> "Minutes":
        """The minutes after all these entries; ``reserves`` are what it may unlock for accounts below each path."""
        minutes = cls(board=board, reserves=reserves)
        for entry in entries:
            minutes = minutes.after(entry)
        return minutes

    def after(self, entry: BoardEntry, key: str | None = None) -> "Minutes":
        """The minutes with one entry more, or a refusal that says why it may not be entered.

        ``key`` is the public key that it is signed with, which whoever calls has checked.
        """
        self._check_time(entry)
        past = self.at(entry.at)
        match entry:
            case Proposal():
                past._check_proposal(entry)
                return past._with(entry, key)
            case Vote():
                past._check_vote(entry, key)
                return past._with(entry, key)._counted(entry)
            case Withdrawal():
                past._check_withdrawal(entry)
                ended = past._decided(entry.proposal, entry.at, Outcome.WITHDRAWN, f"{entry.by} took it back")
            case Veto():
                past._check_veto(entry, standing=False)
                ended = past
                for proposal in past.open:
                    if entry.dataset in proposal.datasets:
                        why = f"{entry.community} vetoed {entry.dataset}: {entry.reason}"
                        ended = ended._decided(proposal.number, entry.at, Outcome.VETOED, why)
            case VetoLifted():
                past._check_veto(entry, standing=True)
                ended = past
        return ended._with(entry, key)

    def signer(self, entry: BoardEntry) -> str | None:
        """The public key that an entry is signed with; None where it is not signed."""
        signed = tuple(zip(self.entries, self.keys, strict=True))
        for each, key in signed:
            if each is entry:  # at once, for the entries that these minutes hold
                return key
        return next((key for each, key in signed if each == entry), None)

    def _with(self, entry: BoardEntry, key: str | None) -> "Minutes":
        return replace(self, entries=(*self.entries, entry), keys=(*self.keys, key))

    def at(self, when: str) -> "Minutes":
        """The minutes at a moment: what had expired by then is decided as expired."""
        now, minutes = moment(when), self
        for proposal in self.open:
            if moment(proposal.expires) <= now:
                minutes = minutes._decided(proposal.number, proposal.expires, Outcome.EXPIRED, "no decision in time")
        return minutes

    @property
    def proposals(self) -> tuple[Proposal, ...]:
        """All proposals, in order."""
        return tuple(entry for entry in self.entries if isinstance(entry, Proposal))

    @property
    def open(self) -> tuple[Proposal, ...]:
        """The proposals that nothing was decided about."""
        decided = {decision.proposal for decision in self.decisions}
        return tuple(proposal for proposal in self.proposals if proposal.number not in decided)

    def proposal(self, number: int) -> Proposal:
        """The proposal of a number."""
        for proposal in self.proposals:
            if proposal.number == number:
                return proposal
        raise InvalidInput(f"there is no proposal {number}; nothing was done.")

    def decision(self, number: int) -> Decision | None:
        """How a proposal ended, or None while it is open."""
        self.proposal(number)
        return next((decision for decision in self.decisions if decision.proposal == number), None)

    def votes(self, number: int) -> tuple[Vote, ...]:
        """The votes on a proposal, in order."""
        return tuple(entry for entry in self.entries if isinstance(entry, Vote) and entry.proposal == number)

    def approved(self, action: Action) -> tuple[Proposal, ...]:
        """The proposals of a kind that were approved, in order of decision."""
        passed = [decision.proposal for decision in self.decisions if decision.outcome is Outcome.APPROVED]
        return tuple(self.proposal(number) for number in passed if self.proposal(number).action is action)

    def raised(self, account: str) -> Budget:
        """By how much the board has raised an account's cap in all."""
        amounts = [asked.amount for asked in self.approved(Action.RAISE) if asked.account == account]
        return sum((amount for amount in amounts if amount is not None), start=Budget.none())

    def unlocks(self) -> tuple[Unlock, ...]:
        """The parts of the reserve that the board has unlocked."""
        return tuple(
            Unlock(account=asked.account, budget=asked.amount, decision=asked.number)
            for asked in self.approved(Action.UNLOCK)
            if asked.account is not None and asked.amount is not None
        )

    def vetoes(self, dataset: str) -> tuple[Veto, ...]:
        """The vetoes that stand over a dataset."""
        standing: dict[str, Veto] = {}
        for entry in self.entries:
            if isinstance(entry, Veto) and entry.dataset == dataset:
                standing[entry.community] = entry
            elif isinstance(entry, VetoLifted) and entry.dataset == dataset:
                standing.pop(entry.community, None)
        return tuple(standing.values())

    def opened(self, dataset: str, since: int = 0) -> tuple[Proposal, ...]:
        """The approvals of a dataset that hold: none while a veto stands, and none from before the last veto.

        ``since`` leaves out what was proposed among the first ``since`` entries.
        """
        if self.vetoes(dataset):
            return ()
        past = [
            place for place, entry in enumerate(self.entries) if isinstance(entry, Veto) and entry.dataset == dataset
        ]
        first = max([since, *(place + 1 for place in past)])  # by order: two entries may share a second
        asked_since = {entry.number for entry in self.entries[first:] if isinstance(entry, Proposal)}
        found = self.approved(Action.DATASET)
        return tuple(asked for asked in found if dataset in asked.datasets and asked.number in asked_since)

    def _check_time(self, entry: BoardEntry) -> None:
        if self.entries and moment(entry.at) < moment(self.entries[-1].at):
            raise LedgerError(
                f"the clock says {entry.at}, and the last entry of the board is of {self.entries[-1].at}; nothing was "
                "entered. Set the clock right: expiry and order depend on it."
            )

    def _check_proposal(self, proposal: Proposal) -> None:
        if proposal.number != len(self.proposals) + 1:
            raise Refused(
                f"the next proposal has the number {len(self.proposals) + 1}, and {proposal.number} was given; "
                "it was not entered."
            )
        if proposal.proposer not in self.board.people:
            raise Refused(
                f"{proposal.proposer!r} is not known to the board; the proposal was not entered. Members, committees, "
                "representatives and those named as proposers may ask, under one name each."
            )
        if proposal.action is Action.UNLOCK and not self._unlockable(proposal):
            raise Refused(
                f"{_left(self._locked(proposal))}; proposal {proposal.number} would unlock {proposal.amount}. "
                "The proposal was not entered. Ask for less, or propose to raise a cap."
            )
        for dataset in proposal.datasets:
            if self.vetoes(dataset):
                raise Refused(_blocked(dataset, self.vetoes(dataset), "The proposal was not entered."))
        for name, members, quorum, representatives in self._bodies(proposal):
            able = members - {proposal.proposer}
            if len(able) < quorum or (representatives and not representatives & able):
                raise Refused(
                    f"{name} could never approve this: without its proposer {proposal.proposer!r} too few may vote. "
                    "The proposal was not entered. Let somebody else propose it."
                )

    def _check_vote(self, vote: Vote, key: str | None) -> None:
        proposal = self.undecided(vote.proposal, "The vote was not counted.")
        if vote.voter == proposal.proposer:
            raise Refused(
                f"{vote.voter!r} made proposal {vote.proposal}, and whoever proposes does not vote. "
                "The vote was not counted. Ask the other members."
            )
        if vote.voter in {cast.voter for cast in self.votes(vote.proposal)}:
            raise Refused(
                f"{vote.voter!r} has voted on proposal {vote.proposal}; a vote is cast once and stands. "
                "The second one was not counted."
            )
        acts: tuple[BoardEntry, ...] = (proposal, *self.votes(vote.proposal))
        for before in acts:
            if key is not None and key == self.signer(before):
                raise Refused(
                    f"the key of {vote.voter!r} is the one with which {actor(before)!r} acted on proposal "
                    f"{vote.proposal}; whoever holds a key has one voice. The vote was not counted."
                )
        seats = {name for _, members, _, _ in self._bodies(proposal) for name in members}
        if vote.voter not in seats | self._speakers(proposal):
            raise Refused(
                f"{vote.voter!r} sits neither on the board nor on a committee that proposal {vote.proposal} concerns, "
                "and speaks for no community of its datasets. The vote was not counted."
            )

    def _check_withdrawal(self, entry: Withdrawal) -> None:
        proposal = self.undecided(entry.proposal, "It was not withdrawn.")
        if entry.by != proposal.proposer:
            raise Refused(f"only {proposal.proposer!r} can withdraw proposal {entry.proposal}; it was not withdrawn.")

    def _check_veto(self, entry: Veto | VetoLifted, *, standing: bool) -> None:
        community = self.board.community(entry.community)
        if entry.voter not in community.representatives:
            raise Refused(f"{entry.voter!r} does not speak for {entry.community!r}; nothing was entered.")
        if entry.dataset not in community.datasets:
            raise Refused(f"{entry.community!r} holds no veto over {entry.dataset!r}; nothing was entered.")
        there = any(veto.community == entry.community for veto in self.vetoes(entry.dataset))
        if there is not standing:
            state = "stands already" if there else "does not stand"
            raise Refused(f"the veto of {entry.community!r} over {entry.dataset!r} {state}; nothing was entered.")

    def undecided(self, number: int, consequence: str) -> Proposal:
        """The proposal of a number, if it is open; else a refusal with what was not done."""
        proposal, decision = self.proposal(number), self.decision(number)
        if decision is not None:
            raise Refused(
                f"proposal {number} was {decision.outcome.value} on {decision.at} ({decision.why}). {consequence} "
                "Make a new proposal if it is to be decided again."
            )
        return proposal

    def _speakers(self, proposal: Proposal) -> set[str]:
        """Who speaks for a community that holds a veto over a dataset of the proposal.

        A change of the board could take a community's veto away: there each community is asked.
        """
        return {
            name
            for community in self.board.communities
            if proposal.action is Action.BOARD or set(community.datasets) & set(proposal.datasets)
            for name in community.representatives
        }

    def _bodies(self, proposal: Proposal) -> list[tuple[str, set[str], int, set[str]]]:
        """Every body that has to approve: its name, members, quorum, and the representatives it needs one of."""
        bodies: list[tuple[str, set[str], int, set[str]]] = [
            ("the board", set(self.board.members), self.board.quorum, set())
        ]
        for site in proposal.sites:
            local = self.board.committee(site)
            bodies.append((f"the committee of {site}", set(local.members), local.quorum, set(local.representatives)))
        return bodies

    def _counted(self, vote: Vote) -> "Minutes":
        """The minutes after a vote, decided if the vote decides."""
        proposal = self.proposal(vote.proposal)
        if vote.choice is Choice.NO and vote.voter in self._speakers(proposal):
            why = f"{vote.voter} speaks for a community of its datasets and said no: {vote.reason}"
            return self._decided(vote.proposal, vote.at, Outcome.VETOED, why)
        cast = {entry.voter: entry.choice for entry in self.votes(vote.proposal)}
        passed = 0
        bodies = self._bodies(proposal)
        for name, members, quorum, representatives in bodies:
            able = members - {proposal.proposer}
            yes = {who for who in able if cast.get(who) is Choice.YES}
            no = {who for who in able if cast.get(who) is Choice.NO}
            most = yes | (able - set(cast))
            if len(most) < quorum or len(most) <= len(no) or (representatives and not most & representatives):
                return self._decided(vote.proposal, vote.at, Outcome.REJECTED, f"{name} cannot approve any more")
            passed += len(yes) >= quorum and len(yes) > len(no) and (not representatives or bool(yes & representatives))
        if passed < len(bodies):
            return self
        if proposal.action is Action.UNLOCK and not self._unlockable(proposal):
            return self._decided(vote.proposal, vote.at, Outcome.REJECTED, _left(self._locked(proposal)))
        return self._decided(vote.proposal, vote.at, Outcome.APPROVED, "every body has its quorum")

    def _locked(self, proposal: Proposal) -> Budget | None:
        """What of the reserve above its account is not unlocked yet; None where there is no reserve."""
        above = str(proposal.account).rpartition("/")[0]
        reserve = dict(self.reserves).get(above)
        if reserve is None:
            return None
        given = [unlock.budget for unlock in self.unlocks() if unlock.account.rpartition("/")[0] == above]
        return reserve - sum(given, start=Budget.none())

    def _unlockable(self, proposal: Proposal) -> bool:
        locked = self._locked(proposal)
        return locked is not None and proposal.amount is not None and locked.covers(proposal.amount)

    def _decided(self, number: int, at: str, outcome: Outcome, why: str) -> "Minutes":
        cast = self.votes(number)
        decision = Decision(
            proposal=number,
            at=at,
            outcome=outcome,
            yes=tuple(vote.voter for vote in cast if vote.choice is Choice.YES),
            no=tuple(vote.voter for vote in cast if vote.choice is Choice.NO),
            why=why,
        )
        return replace(self, decisions=(*self.decisions, decision))


def _left(locked: Budget | None) -> str:
    return "there is no reserve" if locked is None else f"the reserve has {locked} left"


def _blocked(dataset: str, vetoes: tuple[Veto, ...], consequence: str) -> str:
    who = "; ".join(f"{veto.community} since {veto.at} ({veto.reason})" for veto in vetoes)
    return f"{dataset!r} is under a community's veto: {who}. {consequence} Only that community can lift it."
