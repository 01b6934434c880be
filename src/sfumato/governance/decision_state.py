"""What the institution has decided and declared: its board, terms, windows and plans, worked out from the record."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.documents import Json, canonical, encode
from sfumato.core.signature import SigningKey, signature_holds
from sfumato.errors import LedgerError, NotDeclared, Refused
from sfumato.governance.board import Action, Board, BoardEntry, Choice, Outcome, Proposal, Vote, Withdrawal
from sfumato.governance.consent import Terms, Use
from sfumato.governance.digest import digest_of
from sfumato.governance.entries import (
    Acted,
    BoardSeated,
    ClockConfirmed,
    DataClosed,
    Entry,
    PlanAdopted,
    PolicyDeclared,
    Recovered,
    TermsDeclared,
    WindowsDeclared,
    WitnessNamed,
)
from sfumato.governance.minutes import Minutes
from sfumato.governance.permission import permit
from sfumato.governance.policies import BaseAndReserve
from sfumato.governance.time_windows import TimeWindows

if TYPE_CHECKING:
    from sfumato.governance.plans.schedule import Schedule

__all__ = ["GOVERNING", "Adopted", "DecisionState", "actor", "agreed"]

GOVERNING = (
    *(BoardSeated, Acted, TermsDeclared, PolicyDeclared, WindowsDeclared, PlanAdopted, Recovered, DataClosed),
    *(ClockConfirmed, WitnessNamed),
)
"""The entries that change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    """A plan that was adopted, for which account, and the number of its entry."""

    number: int
    account: str
    schedule: "Schedule"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionState:
    """All decisions and declarations so far; a value, so that a refused entry changes nothing.

    ``terms`` holds, for each dataset, its terms and how many entries the board had made before them: approvals from
    before do not speak of these terms.
    """

    ledger: str
    minutes: Minutes | None = None
    reserves: tuple[tuple[str, Budget], ...] = ()
    terms: dict[str, tuple[Terms, int]] = field(default_factory=dict)
    windows: dict[str, TimeWindows] = field(default_factory=dict)
    plans: tuple[Adopted, ...] = ()
    shared: tuple[str, ...] = ()
    seated: int = 0
    closed: dict[str, int] = field(default_factory=dict)
    """Stored rows that were closed, by their names, and the entry that closed each last."""
    lost: Budget | None = None
    """What recoveries have charged to every balance; None where nothing was ever lost."""
    lost_whole: bool = False
    """Whether a recovery had to take it that everything under every cap was lost."""
    silence: timedelta = timedelta(days=7)
    """How long the ledger may be left alone before somebody has to say that the clock is right."""
    recovered: int = 0
    """The entry of the last recovery: how far older charges had been counted, nobody knows any more."""
    witness: WitnessNamed | None = None
    """Who countersigns the record, and how much may be charged beyond what it has seen."""

    def after(self, number: int, entry: Entry) -> "DecisionState":
        """The state with one entry more, or a refusal that says why it may not be entered."""
        match entry:
            case BoardSeated():
                return self._seated(entry)
            case Acted():
                minutes = self.sitting()
                self._check_signature(entry, minutes.board)
                self._check_subject(entry.act)
                return replace(self, minutes=minutes.after(entry.act))
            case TermsDeclared():
                made = 0 if self.minutes is None else len(self.minutes.entries)
                return replace(self, terms={**self.terms, entry.terms.dataset: (entry.terms, made)})
            case PolicyDeclared():
                return self._shared_out(entry)
            case Recovered():
                return replace(self._recovered(entry), recovered=number)
            case DataClosed():
                return replace(self, closed={**self.closed, **dict.fromkeys(entry.names, number)})
            case ClockConfirmed():
                lasted = datetime.fromisoformat(entry.at) - datetime.fromisoformat(entry.since)
                return replace(self, silence=max(self.silence, lasted))
            case WindowsDeclared():
                return replace(self, windows={**self.windows, entry.path: entry.windows})
            case WitnessNamed():
                self._check_witness(entry)
                return replace(self, witness=entry)
            case PlanAdopted():
                self._check_plan(entry)
                adopted = Adopted(number=number, account=entry.account, schedule=entry.schedule)
                return replace(self, plans=(*self.plans, adopted))
        return self

    def sitting(self) -> Minutes:
        """The minutes of the board, which must have been seated."""
        if self.minutes is None:
            raise NotDeclared("this ledger has no board; nothing was done. Seat one: sfumato budget board")
        return self.minutes

    def raises(self, later: "DecisionState") -> tuple[Proposal, ...]:
        """The proposals for an amount that were approved from here to a later state."""
        known = () if self.minutes is None else self.minutes.decisions
        new = () if later.minutes is None else later.minutes.decisions[len(known) :]
        passed = [decision.proposal for decision in new if decision.outcome is Outcome.APPROVED]
        found = [] if later.minutes is None else [later.minutes.proposal(number) for number in passed]
        return tuple(proposal for proposal in found if proposal.action in (Action.RAISE, Action.UNLOCK))

    def permit(self, dataset: str, purpose: str | None, recipient: str | None, *, at: str, cost: Budget) -> int | None:
        """Refuse a release that terms or board do not allow; the approval it rests on, None where there is no board."""
        if dataset not in self.terms:
            if self.minutes is None:
                return None
            raise NotDeclared(
                f"no terms are declared for {dataset!r}, so nobody knows what its people agreed to. Nothing was read "
                "and nothing was spent. Declare them: sfumato ledger terms"
            )
        terms, made = self.terms[dataset]
        if purpose is None or recipient is None:
            raise NotDeclared(
                f"{dataset!r} has terms, and this release states no purpose and recipient. Nothing was read and "
                "nothing was spent. Say purpose='research/oncology', recipient='public'."
            )
        use = Use(dataset=dataset, purpose=purpose, recipient=recipient)
        return permit(use, terms, self.minutes, at=at, cost=cost, since=made)

    def check_recovery(self, entry: Recovered) -> None:
        """Refuse to go on after a loss without a quorum of the board, where there is one."""
        if self.minutes is None:
            return
        board = self.minutes.board
        known, text = dict(board.keys), _recovery(self.ledger, entry)
        for name, signature in entry.approvals:
            if name in known and not signature_holds(known[name], signature, text):
                raise Refused(f"the agreement of {name!r} is not signed with the key that the board knows. {_LOST}")
        if len({name for name, _ in entry.approvals} & set(board.members)) < board.quorum:
            raise Refused(f"recovery needs {board.quorum} members of the board to agree, by name and key. {_LOST}")

    def check_opening(self, line: str, cap: Budget) -> None:
        """Refuse new people, or a new tree of accounts, that no board decided on where there is one."""
        kind, _, name = line.partition(" ")
        if self.minutes is None or (kind == "account" and "/" in name):
            return
        asked = self.minutes.approved(Action.EXCEPTION)
        if not any(proposal.subject == line and proposal.amount == cap for proposal in asked):
            raise Refused(
                f"{line!r} with {cap} was not decided by the board; nothing was changed. Request an exception with the "
                f"subject {line!r} and this amount: sfumato budget request --action exception"
            )

    def _check_witness(self, entry: WitnessNamed) -> None:
        """Refuse a witness that no board decided on where there is one."""
        subject = f"witness {entry.key}"
        asked = () if self.minutes is None else self.minutes.approved(Action.EXCEPTION)
        if self.minutes is not None and not any(
            proposal.subject == subject and proposal.amount == entry.lease for proposal in asked
        ):
            raise Refused(
                f"this witness with a lease of {entry.lease} was not decided by the board; nothing was changed. "
                f"Request an exception with the subject {subject!r} and this amount: sfumato budget request "
                "--action exception"
            )

    def sites_of(self, dataset: str) -> set[str]:
        """The sites that the terms of a dataset name."""
        return set(self.terms[dataset][0].sites) if dataset in self.terms else set()

    def _shared_out(self, entry: PolicyDeclared) -> "DecisionState":
        if entry.path in self.shared:
            raise Refused(f"the cap of {entry.path!r} is shared out already; nothing was changed.")
        shared = (*self.shared, entry.path)
        if not isinstance(entry.policy, BaseAndReserve):
            return replace(self, shared=shared)
        reserves = (*self.reserves, (entry.path, entry.reserve))
        minutes = None if self.minutes is None else replace(self.minutes, reserves=reserves)
        return replace(self, reserves=reserves, minutes=minutes, shared=shared)

    def _recovered(self, entry: Recovered) -> "DecisionState":
        """After a loss nobody knows of vetoes and new terms among the lost entries: all approvals end."""
        self.check_recovery(entry)
        made = 0 if self.minutes is None else len(self.minutes.entries)
        ended = {name: (terms, made) for name, (terms, _) in self.terms.items()}
        lost = (self.lost or Budget.none()) + entry.gap
        return replace(self, terms=ended, lost=lost, lost_whole=self.lost_whole or entry.whole)

    def _seated(self, entry: BoardSeated) -> "DecisionState":
        if self.minutes is None:
            return replace(self, minutes=Minutes(board=entry.board, reserves=self.reserves))
        wanted = digest_of(entry.board)
        for proposal in self.minutes.approved(Action.BOARD):
            if proposal.subject == wanted and proposal.number == entry.proposal and proposal.number > self.seated:
                self._check_communities(entry.board, proposal.number)
                return replace(self, minutes=replace(self.minutes, board=entry.board), seated=proposal.number)
        raise Refused(
            f"the board changes by its own decision: no approved proposal names this board ({wanted}). Nothing was "
            "changed. Request it: sfumato budget request --action board"
        )

    def _check_communities(self, board: Board, proposal: int) -> None:
        """A community keeps its veto and its speakers unless one of them agreed to the change."""
        minutes = self.sitting()
        agreed = {vote.voter for vote in minutes.votes(proposal) if vote.choice is Choice.YES}
        then = {community.name: community for community in board.communities}
        for community in minutes.board.communities:
            new = then.get(community.name)
            kept = new is not None and set(community.datasets) <= set(new.datasets)
            if (not kept or new is None or set(new.representatives) != set(community.representatives)) and not (
                agreed & set(community.representatives)
            ):
                raise Refused(
                    f"this board would change what {community.name!r} can say, and none of its representatives voted "
                    f"for proposal {proposal}. Nothing was changed. Propose it again, and let them vote first."
                )

    def _check_plan(self, entry: PlanAdopted) -> None:
        wanted = digest_of(entry.schedule.plan)
        if not entry.schedule.plan.cap.covers(entry.schedule.guarantee):
            raise Refused(f"the amounts of this plan ({wanted}) go beyond the cap that it states; nothing was changed.")
        if any(digest_of(plan.schedule.plan) == wanted and plan.account == entry.account for plan in self.plans):
            raise Refused(f"this plan ({wanted}) is adopted already; nothing was changed.")
        if self.minutes is not None and not any(
            proposal.subject == wanted and proposal.account == entry.account
            for proposal in self.minutes.approved(Action.PLAN)
        ):
            raise Refused(
                f"no approved request names this plan ({wanted}) for {entry.account!r}; nothing was changed. "
                "Request it: sfumato budget request --action plan"
            )

    def _check_subject(self, act: BoardEntry) -> None:
        """A dataset is put to the board with its terms, so that everybody votes on the same thing."""
        if not isinstance(act, Proposal) or act.action is not Action.DATASET:
            return
        for dataset in act.datasets:
            if dataset not in self.terms:
                raise NotDeclared(
                    f"no terms are declared for {dataset!r}; the proposal was not entered. Declare them first: "
                    "sfumato ledger terms"
                )

    def signed(self, act: BoardEntry, key: SigningKey | None) -> str | None:
        """The signature of an act: for one ledger and no other, and a vote for the proposal as it stands."""
        return None if key is None else key.sign(self._text(act))

    def _text(self, act: BoardEntry) -> bytes:
        about = encode(self.sitting().proposal(act.proposal)) if isinstance(act, Vote | Withdrawal) else None
        try:
            return canonical(["an act of the board", self.ledger, encode(act), about]).encode()
        except UnicodeEncodeError:
            raise LedgerError("an act holds text that has no bytes; it was not entered.") from None

    def _check_signature(self, entry: Acted, board: Board) -> None:
        name = actor(entry.act)
        key = dict(board.keys).get(name)
        if key is None and entry.signature is None:
            return
        if key is None:
            raise Refused(f"the board knows no key of {name!r}; the act was not entered. Leave the signature out.")
        if entry.signature is None or not signature_holds(key, entry.signature, self._text(entry.act)):
            raise Refused(
                f"{name!r} acts by signature, and this act is not signed with the key that the board knows. "
                "It was not entered. Give your own key."
            )


def actor(act: BoardEntry) -> str:
    """Whose act it is."""
    match act:
        case Proposal():
            return act.proposer
        case Vote():
            return act.voter
    return act.by if hasattr(act, "by") else act.voter


def agreed(ledger: str, entry: Recovered, key: SigningKey | None) -> str:
    """A member's agreement to a recovery; empty where the board knows no key of that member."""
    return "" if key is None else key.sign(_recovery(ledger, entry))


_LOST = "Nothing was changed, and the ledger stays shut."


def _recovery(ledger: str, entry: Recovered) -> bytes:
    said: list[Json] = ["a recovery", ledger, entry.reason, entry.anchored, entry.lost, encode(entry.gap)]
    more: list[Json] = [entry.witnessed, entry.basis] if entry.witnessed or entry.basis else []
    return canonical([*said, "whole", *more] if entry.whole else [*said, *more]).encode()
