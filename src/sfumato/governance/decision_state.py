"""What the institution has decided and declared: its board, terms, windows and plans, worked out from the record."""

import hashlib
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode
from sfumato.core.signature import signature_holds
from sfumato.errors import NotDeclared, Refused
from sfumato.governance.agreements import recovery_text
from sfumato.governance.ballots import Bound, bytes_digest, text_of
from sfumato.governance.board import (
    Action,
    Board,
    BoardEntry,
    Choice,
    Outcome,
    Proposal,
    Veto,
    VetoLifted,
    Vote,
    Withdrawal,
    actor,
    moment,
)
from sfumato.governance.consent import Terms, Use
from sfumato.governance.digest import digest_of
from sfumato.governance.entries import (
    KEYS,
    Acted,
    Administered,
    BoardSeated,
    ClockConfirmed,
    DataClosed,
    Entry,
    KeyCertified,
    KeyRevoked,
    LedgerOpened,
    PlanAdopted,
    PolicyDeclared,
    ProgramSubmitted,
    ProjectOpened,
    Recovered,
    RootRotated,
    RunLogged,
    TermsDeclared,
    WindowsDeclared,
    WitnessNamed,
)
from sfumato.governance.keyring import KeyRing
from sfumato.governance.minutes import Minutes
from sfumato.governance.permission import permit
from sfumato.governance.policies import BaseAndReserve
from sfumato.governance.research_state import Approvals, ResearchState
from sfumato.governance.time_windows import TimeWindows

if TYPE_CHECKING:
    from sfumato.governance.plans.schedule import Schedule

__all__ = ["GOVERNING", "Adopted", "DecisionState"]

GOVERNING = (
    *(BoardSeated, Acted, TermsDeclared, PolicyDeclared, WindowsDeclared, PlanAdopted, Recovered, DataClosed),
    *(ClockConfirmed, WitnessNamed, Administered, *KEYS, ProjectOpened, ProgramSubmitted, RunLogged),
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
    ended: int = 0
    """The last proposal before the last recovery: what was approved up to it gives no leave any more."""
    unsure: int = 0
    """The last recovery after which nobody knows which of the data that were declared before it are open."""
    recovered: int = 0
    """The entry of the last recovery: how far older charges had been counted, nobody knows any more."""
    keys: KeyRing | None = None
    """Who may do what by which key; None where one key does everything."""
    bare: bool = False
    """Whether rows are not signed yet, as in the first ledgers: there, names acted without keys."""
    board_entry: int = 0
    """The entry that seated the board."""
    inherited: bool = False
    """Whether the board was seated while rows were not signed, and perhaps without keys."""
    cast: frozenset[str] = frozenset()
    """The digests of all ballots that were entered."""
    vetoed: dict[tuple[str, str], int] = field(default_factory=dict)
    """The entry of each standing veto, by community and dataset."""
    witness: WitnessNamed | None = None
    """Who countersigns the record, and how much may be charged beyond what it has seen."""
    research: ResearchState = field(default_factory=ResearchState)
    """Projects of a research environment, the programs that were handed in, and all runs."""

    @classmethod
    def opened(cls, entry: LedgerOpened, *, bare: bool) -> "DecisionState":
        """The state after the first entry; ``bare`` says that its row is not signed."""
        return cls(ledger=entry.identifier, keys=KeyRing.opened(entry), bare=bare)

    def after(self, number: int, entry: Entry) -> "DecisionState":
        """The state with one entry more, or a refusal that says why it may not be entered."""
        match entry:
            case BoardSeated():
                return replace(self._seated(entry), board_entry=number, inherited=self.bare)
            case Acted():
                return self._acted(number, entry)
            case TermsDeclared():
                made = 0 if self.minutes is None else len(self.minutes.entries)
                return replace(self, terms={**self.terms, entry.terms.dataset: (entry.terms, made)})
            case PolicyDeclared():
                return self._shared_out(entry)
            case Recovered():
                unsure = number if entry.closes else self.unsure
                return replace(self._recovered(entry), recovered=number, unsure=unsure)
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
            case Administered():
                return self.after(number, entry.entry)
            case ProjectOpened() | ProgramSubmitted() | RunLogged():
                return replace(self, research=self.research.after(number, entry, self.approvals()))
            case KeyCertified() | KeyRevoked() | RootRotated():
                if self.keys is None:
                    raise Refused("this ledger has no root, and its one key does everything; nothing was changed.")
                return replace(self, keys=self.keys.after(number, entry))
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
        known, text = dict(board.keys), recovery_text(self.ledger, entry)
        for name, signature in entry.approvals:
            if self.bare and name not in known:
                continue  # as it was then
            if name not in known or not signature_holds(known[name], signature, text):
                raise Refused(f"the agreement of {name!r} is not signed with the key that the board knows. {_LOST}")
        if entry.expires is not None and moment(entry.expires) <= moment(entry.at):
            raise Refused(f"the members agreed until {entry.expires}, and it is {entry.at}. {_LOST}")
        if len({name for name, _ in entry.approvals} & set(board.members)) < board.quorum:
            raise Refused(f"recovery needs {board.quorum} members of the board to agree, by name and key. {_LOST}")

    def check_opening(self, line: str, cap: Budget) -> None:
        """Refuse new people, or a new tree of accounts, that no board decided on where there is one."""
        kind, _, name = line.partition(" ")
        if self.minutes is None or (kind == "account" and "/" in name):
            return
        asked = self._approved(Action.EXCEPTION)
        if not any(proposal.subject == line and proposal.amount == cap for proposal in asked):
            raise Refused(
                f"{line!r} with {cap} was not decided by the board; nothing was changed. Request an exception with the "
                f"subject {line!r} and this amount: sfumato budget request --action exception"
            )

    def _check_witness(self, entry: WitnessNamed) -> None:
        """Refuse a witness that no board decided on where there is one."""
        subject = f"witness {entry.key}"
        asked = self._approved(Action.EXCEPTION)
        if self.minutes is not None and not any(
            proposal.subject == subject and proposal.amount == entry.lease for proposal in asked
        ):
            raise Refused(
                f"this witness with a lease of {entry.lease} was not decided by the board; nothing was changed. "
                f"Request an exception with the subject {subject!r} and this amount: sfumato budget request "
                "--action exception"
            )

    def _approved(self, action: Action) -> tuple[Proposal, ...]:
        """The approvals of a kind that still give leave: of proposals that were made after the last recovery."""
        found = () if self.minutes is None else self.minutes.approved(action)
        return tuple(proposal for proposal in found if proposal.number > self.ended)

    def approvals(self) -> Approvals:
        """What the board has approved as exceptions: projects of research and their programs are among them."""
        return Approvals(ledger=self.ledger, minutes=self.minutes, approved=self._approved(Action.EXCEPTION))

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
        asked = 0 if self.minutes is None else len(self.minutes.proposals)
        last = asked if entry.after else self.ended  # the first recoveries ended the approvals of datasets alone
        return replace(self, terms=ended, ended=last, lost=lost, lost_whole=self.lost_whole or entry.whole)

    def _seated(self, entry: BoardSeated) -> "DecisionState":
        able = [name for name in entry.board.members if name not in entry.board.silent]
        if not self.bare and len(able) < entry.board.quorum:
            raise Refused(
                f"{len(able)} members of this board have a key and {entry.board.quorum} have to agree: it could never "
                "decide. Nothing was changed. Each member makes a key (sfumato key new NAME.key) and sends its public "
                "half, which the board names under [keys]."
            )
        if self.minutes is None:
            return replace(self, minutes=Minutes(board=entry.board, reserves=self.reserves))
        if self.inherited and not self.bare and entry.proposal is None and _keys_given(self.minutes.board, entry.board):
            return replace(self, minutes=replace(self.minutes, board=entry.board))
        wanted = digest_of(entry.board)
        for proposal in self._approved(Action.BOARD):
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
        lost = set() if self.bare else {name for name, key in minutes.board.keys if dict(board.keys).get(name) != key}
        for community in minutes.board.communities:
            new = then.get(community.name)
            kept = new is not None and set(community.datasets) <= set(new.datasets)
            kept = kept and not lost & set(community.representatives)  # another key is another speaker
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
            proposal.subject == wanted and proposal.account == entry.account for proposal in self._approved(Action.PLAN)
        ):
            raise Refused(
                f"no approved request names this plan ({wanted}) for {entry.account!r}; nothing was changed. "
                "Request it: sfumato budget request --action plan"
            )

    def _check_subject(self, act: BoardEntry) -> None:
        """A dataset is put to the board with its terms, so that everybody votes on the same thing."""
        if isinstance(act, Proposal) and act.action in (Action.RAISE, Action.UNLOCK):
            self._check_raise(act)
        if not isinstance(act, Proposal) or act.action is not Action.DATASET:
            return
        for dataset in act.datasets:
            if dataset not in self.terms:
                raise NotDeclared(
                    f"no terms are declared for {dataset!r}; the proposal was not entered. Declare them first: "
                    "sfumato ledger terms"
                )

    def _check_raise(self, proposal: Proposal) -> None:
        """Refuse to raise one window where the caps of all bound a life: that bound was stated to people."""
        kind, _, rest = str(proposal.account).partition(" ")
        path = rest.rpartition(" ")[0]
        windows = self.windows.get(path) if kind == "window" else None
        if windows is not None and windows.most_windows is not None:
            raise Refused(
                f"a person with data in at most {windows.most_windows} windows of {path!r} loses at most "
                f"{windows.lifetime_cap}, since each has a cap of {windows.cap}; a raise of one would break that, and "
                "was not entered. Open another account with windows of a higher cap."
            )

    def _acted(self, number: int, entry: Acted) -> "DecisionState":
        minutes, act = self.sitting(), entry.act
        cast = self.cast
        if self.bare:
            key = self._check_old_signature(entry, minutes.board)
        else:
            key, text = self._check_ballot(number, entry, minutes)
            cast = self.cast | {text}
        self._check_subject(act)
        vetoed = dict(self.vetoed)
        if isinstance(act, Veto):
            vetoed[act.community, act.dataset] = number
        elif isinstance(act, VetoLifted):
            vetoed.pop((act.community, act.dataset), None)
        after = minutes.after(act, key)
        if entry.bound is not None:
            _check_time(entry, entry.bound)
        later = replace(self, minutes=after, cast=cast, vetoed=vetoed)
        for proposal in self.raises(later):
            self._check_raise(proposal)
        return later

    def _check_ballot(self, number: int, entry: Acted, minutes: Minutes) -> tuple[str, str]:
        """Refuse an act that is not signed, for this ledger, board and matter, now and for the first time.

        The key that it is signed with, and the digest by which it is known from now on.
        """
        act, bound = entry.act, entry.bound
        key = minutes.board.key_of(actor(act))
        if bound is None or entry.signature is None:
            raise Refused(f"{actor(act)!r} acts by signature, and this act is not signed. {_OWN}")
        if bound.ledger != self.ledger:
            raise Refused(f"this ballot is for the ledger {bound.ledger}, and this is {self.ledger}. {_OUT}")
        if bound.board != self.board_entry:
            raise Refused(
                f"this ballot is for the board that entry {bound.board} seated, and entry {self.board_entry} seated "
                f"the present one. {_OUT}"
            )
        if not bound.board <= bound.head < number:
            raise Refused(f"this ballot was not written between its board and its entry. {_OUT}")
        if bound.key != key or not signature_holds(key, entry.signature, text_of(act, bound)):
            raise Refused(
                f"{actor(act)!r} acts by signature, and this act is not signed with the key that the board knows. "
                f"{_OWN}"
            )
        self._check_matter(entry, bound, minutes)
        return key, self.check_new(act, bound)

    def check_new(self, act: BoardEntry, bound: Bound) -> str:
        """Refuse a ballot that was entered before; the digest by which it is known."""
        mark = hashlib.sha256(text_of(act, bound)).hexdigest()
        if mark in self.cast:
            raise Refused("this ballot was handed in before, and counts once; it was not entered again.")
        return mark

    def _check_matter(self, entry: Acted, bound: Bound, minutes: Minutes) -> None:
        """Refuse a ballot about another proposal or veto than the one that it was written for."""
        act = entry.act
        if act.at != entry.at:
            raise Refused("an act has the time of its entry, and this one states another; it was not entered.")
        if isinstance(act, Vote | Withdrawal) and bound.about != bytes_digest(minutes.proposal(act.proposal)):
            raise Refused(f"this ballot is about another text of request {act.proposal}. {_OUT}")
        if isinstance(act, VetoLifted) and act.veto != self.vetoed.get((act.community, act.dataset)):
            raise Refused(f"this ballot does not lift the veto of {act.community!r} that stands now. {_OUT}")

    def _check_old_signature(self, entry: Acted, board: Board) -> str | None:
        """The key of an act from before rows were signed; names that had none acted without one, and are left so."""
        name = actor(entry.act)
        key = dict(board.keys).get(name)
        if key is None and entry.signature is None:
            return None
        about = (
            encode(self.sitting().proposal(entry.act.proposal)) if isinstance(entry.act, Vote | Withdrawal) else None
        )
        text = canonical(["an act of the board", self.ledger, encode(entry.act), about]).encode()
        if key is None or entry.signature is None or not signature_holds(key, entry.signature, text):
            raise Refused(f"{name!r} acts by signature, and this act is not signed with the key that the board knew.")
        return key


def _check_time(entry: Acted, bound: Bound) -> None:
    """Refuse a ballot that is handed in too late; a veto never is."""
    if bound.expires is None and not isinstance(entry.act, Veto):
        raise Refused(f"a ballot that is no veto must expire. {_OUT}")
    if bound.expires is not None and moment(bound.expires) <= moment(entry.at):
        raise Refused(f"this ballot could be handed in until {bound.expires}, and it is {entry.at}. {_OUT}")


def _keys_given(before: Board, after: Board) -> bool:
    """Whether a board differs from another in nothing but keys, for people who had none."""
    return replace(after, keys=before.keys) == before and set(before.keys) < set(after.keys)


_OUT = "It was not entered. Ask for a new paper: sfumato ballot write"
_OWN = "It was not entered. Give your own key."
_LOST = "Nothing was changed, and the ledger stays shut."
