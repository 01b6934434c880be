"""What an institution decides and declares in its ledger: board, terms, shares, windows, plans."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.core.units import Event, Unit
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.governance.ballots import Ballot
from sfumato.governance.board import Action, Board, BoardEntry, Choice, Decision, Proposal, Reasons
from sfumato.governance.decision_state import Adopted, DecisionState
from sfumato.governance.entries import (
    AccountOpened,
    Acted,
    BoardSeated,
    Entry,
    PlanAdopted,
    PolicyDeclared,
    TermsDeclared,
    WindowsDeclared,
)
from sfumato.governance.ledger_state import account_line, asked_for
from sfumato.governance.papers import LASTS, Desk
from sfumato.governance.policies import BaseAndReserve, Proportional
from sfumato.governance.spelling import check_new, check_spelling
from sfumato.governance.terms import check_cap, levels_of, people
from sfumato.governance.time_windows import TimeWindows, WindowStanding
from sfumato.governance.window_standing import standing_of

if TYPE_CHECKING:
    from sfumato.governance.balances import Balance
    from sfumato.governance.consent import Terms
    from sfumato.governance.minutes import Minutes
    from sfumato.governance.plans import Schedule
    from sfumato.governance.transaction import Transaction

__all__ = ["Found", "Governed"]

Found = TypeVar("Found")


class Governed(ABC):
    """The part of a ledger in which people decide; every method enters one decision or declaration, or nothing."""

    identifier: str

    @abstractmethod
    def _enter(self, make: "Callable[[Transaction, str], Sequence[Entry]]") -> None:
        """Enter what ``make`` returns, in one transaction, and anchor it."""

    @abstractmethod
    def _look(self, make: "Callable[[Transaction, str], Found]") -> Found:
        """What ``make`` finds in one transaction, at the time that an entry would bear; nothing is entered."""

    @abstractmethod
    def decision_state(self) -> DecisionState:
        """What was decided and declared so far."""

    @abstractmethod
    def balances(self) -> "list[Balance]":
        """How every account, dataset and population stands."""

    def board(self) -> Board | None:
        """Who decides; None where no board was seated."""
        minutes = self.decision_state().minutes
        return None if minutes is None else minutes.board

    def minutes(self) -> "Minutes":
        """All that the board was asked, and how it decided."""
        return self.decision_state().sitting()

    def seat(self, board: Board, *, by: str, reason: str, proposal: int | None = None) -> None:
        """Seat a board: from now on a release needs terms and an approval, and caps rise by decision alone.

        A later board rests on an approved ``proposal`` whose subject is its digest (:func:`digest_of`).
        """
        if not by.strip() or not reason.strip():
            raise NotDeclared("seating a board needs who does it and why: by='…', reason='…'. Nothing was changed.")
        check_spelling(board.names, "a name of the board")

        def make(_: "Transaction", at: str) -> list[Entry]:
            return [BoardSeated(at=at, board=board, by=by, reason=reason, proposal=proposal)]

        self._enter(make)

    def declare_terms(self, terms: "Terms") -> None:
        """Declare what a dataset may be used for; new terms end the approvals that older ones had."""
        check_spelling([*terms.purposes, *terms.recipients, *terms.sites], "a name in the terms of a dataset")

        def make(transaction: "Transaction", at: str) -> list[Entry]:
            known = transaction.decision_state().terms.get(terms.dataset)
            return [] if known is not None and known[0] == terms else [TermsDeclared(at=at, terms=terms)]

        self._enter(make)

    def terms(self, dataset: str) -> "Terms | None":
        """The terms of a dataset as they are now."""
        known = self.decision_state().terms.get(dataset)
        return None if known is None else known[0]

    def propose(
        self,
        *,
        by: str,
        action: Action,
        subject: str,
        reasons: Reasons,
        account: str | None = None,
        datasets: Sequence[str] = (),
        sites: Sequence[str] = (),
        amount: Budget | None = None,
        lasts: timedelta = LASTS,
        key: SigningKey | None = None,
    ) -> int:
        """Ask the board; the number of the proposal. ``account`` is a path, or a balance such as ``dataset visits``."""

        def paper(desk: Desk) -> Ballot:
            return desk.request(
                by=by,
                action=action,
                subject=subject,
                reasons=reasons,
                account=account,
                datasets=datasets,
                sites=sites,
                amount=amount,
                lasts=lasts,
            )

        asked = self._cast(paper, by, key)
        return asked.number if isinstance(asked, Proposal) else 0

    def request_ballot(
        self,
        *,
        by: str,
        action: Action,
        subject: str,
        reasons: Reasons,
        account: str | None = None,
        datasets: Sequence[str] = (),
        sites: Sequence[str] = (),
        amount: Budget | None = None,
        lasts: timedelta = LASTS,
    ) -> Ballot:
        """A paper with which ``by`` asks the board, to be signed elsewhere: as :meth:`propose`, and not entered."""
        return self._look(
            lambda transaction, at: Desk(transaction, at).request(
                by=by,
                action=action,
                subject=subject,
                reasons=reasons,
                account=account,
                datasets=datasets,
                sites=sites,
                amount=amount,
                lasts=lasts,
            )
        )

    def ballot(
        self,
        *,
        vote: int | None = None,
        withdraw: int | None = None,
        veto: str | None = None,
        lift: str | None = None,
        community: str | None = None,
    ) -> Ballot:
        """A paper to vote on a request, to withdraw one, or to veto a dataset or lift a veto for a community.

        It is signed where the key is (:meth:`Ballot.signed`), and handed in by anybody (:meth:`submit`).
        """
        wanted = [name for name in (vote, withdraw, veto, lift) if name is not None]
        if len(wanted) != 1 or (community is None) is (vote is None and withdraw is None):
            raise InvalidInput(
                "a paper is for one thing: vote=number, withdraw=number, or veto=dataset or lift=dataset with "
                "community=name. Nothing was written."
            )

        def paper(transaction: "Transaction", at: str) -> Ballot:
            desk, speaks = Desk(transaction, at), community or ""
            if vote is not None:
                return desk.vote(vote)
            if withdraw is not None:
                return desk.withdrawal(withdraw)
            return desk.lift(speaks, lift) if veto is None else desk.veto(speaks, veto)  # type: ignore[arg-type]  # one is given

        return self._look(paper)

    def submit(self, ballot: Ballot) -> BoardEntry:
        """Hand a signed ballot in, whoever carries it; what was entered by it.

        Guarantee: it counts once, here, for the board, the text, the veto and the key that it was signed for, and in
        its time; else it is refused and nothing is changed.
        """
        return self._act(lambda _: ballot)

    def vote(
        self, number: int, *, by: str, choice: Choice, reason: str = "", key: SigningKey | None = None
    ) -> Decision | None:
        """Vote on a proposal; the decision, where this vote decides."""
        self._cast(lambda desk: desk.vote(number), by, key, choice, reason)
        return self.minutes().decision(number)

    def withdraw(self, number: int, *, by: str, key: SigningKey | None = None) -> None:
        """Take a proposal of one's own back."""
        self._cast(lambda desk: desk.withdrawal(number), by, key)

    def veto(self, *, by: str, community: str, dataset: str, reason: str, key: SigningKey | None = None) -> None:
        """Say no for a community: ends all open requests about the dataset and blocks releases while it stands."""
        self._cast(lambda desk: desk.veto(community, dataset), by, key, reason=reason)

    def lift_veto(self, *, by: str, community: str, dataset: str, reason: str, key: SigningKey | None = None) -> None:
        """Lift the veto of one's own community; what was approved before must be approved anew."""
        self._cast(lambda desk: desk.lift(community, dataset), by, key, reason=reason)

    def allot(self, path: str, policy: Proportional | BaseAndReserve, *, reason: str) -> None:
        """Share the cap of an account out: open the accounts below it, each with its share, and record the rule.

        Names in the policy are those of the accounts below ``path``. What is not shared out is a reserve that only the
        board unlocks. A share of nothing is refused: an account without a cap cannot be opened.
        """

        def make(transaction: "Transaction", at: str) -> list[Entry]:
            above = asked_for(transaction, path)
            if above.name != account_line(path):
                raise NotDeclared(f"there is no account {path!r} to share out; nothing was changed.")
            if above.filter_cap is not None:
                raise Refused(f"{path!r} is kept by a filter, and its cap has no shares; nothing was changed.")
            shares = policy.allot(above.cap)
            reserve = policy.reserved(above.cap) if isinstance(policy, BaseAndReserve) else Budget.none()
            made: list[Entry] = [
                PolicyDeclared(at=at, path=path, policy=policy, reserve=reserve, reason=reason),
            ]
            for share in shares:
                below = f"{path}/{share.account}"
                levels_of(below)
                check_cap(share.budget, reason)
                if transaction.balance(account_line(below)) is not None:
                    raise Refused(f"the account {below!r} is open already; nothing was changed.")
                check_new(transaction, account_line(below), share.account, "the name of an account")
                made.append(
                    AccountOpened(at=at, path=below, unit=above.unit, cap=share.budget, rho=None, reason=reason)
                )
            return made

        self._enter(make)

    def set_windows(self, path: str, windows: TimeWindows) -> None:
        """Give an account a budget for each window of time, beside its own cap, which bounds all windows together.

        The loss of a whole life is kept beside the windows and needs a cap too; where ``most_windows`` is declared it
        is bounded by the caps of the windows.
        """
        if windows.lifetime_cap is None:
            raise NotDeclared(
                "windows do not give anything back to a person, so a lifetime cap is needed; no window was opened. "
                "Declare lifetime=…, or most_windows=…, in how many windows a person can have data."
            )

        def make(transaction: "Transaction", at: str) -> list[Entry]:
            above = asked_for(transaction, path)
            if above.name != account_line(path) or people(above.unit) != people(windows.unit):
                raise Refused(f"{path!r} is not an account with the unit of these windows; no window was opened.")
            if path in transaction.decision_state().windows:
                raise Refused(f"{path!r} has windows already; nothing was changed.")
            if above.charges:
                raise Refused(
                    f"{path!r} was charged before it had windows, for days that nobody wrote down; nothing was "
                    "changed. Open an account for the windows."
                )
            return [WindowsDeclared(at=at, path=path, windows=windows)]

        self._enter(make)

    def window_standing(self, path: str) -> WindowStanding:
        """What each window of an account has lost, and a person over a lifetime."""
        decisions = self.decision_state()
        if path not in decisions.windows:
            raise NotDeclared(f"the account {path!r} has no windows; nothing was done.")
        return standing_of(path, decisions, self.balances())

    def adopt_plan(self, account: str, schedule: "Schedule") -> int:
        """Record a plan for an account; a board must have approved this very plan for it. The entry's number."""

        def make(transaction: "Transaction", at: str) -> list[Entry]:
            balance = asked_for(transaction, account)
            unit = schedule.plan.unit
            if balance.name != account_line(account) or not _same_people(balance.unit, unit):
                raise Refused(f"{account!r} is not an account with the unit of this plan; nothing was changed.")
            if not _bears(balance, schedule):
                raise Refused(
                    f"the plan needs {schedule.guarantee}, and {account!r} has a cap of {balance.cap}; nothing was "
                    "changed. Plan for less, or request a raise."
                )
            return [PlanAdopted(at=at, account=account, schedule=schedule)]

        self._enter(make)
        return self.plans()[-1].number

    def plans(self) -> tuple[Adopted, ...]:
        """The plans that were adopted, in order."""
        return self.decision_state().plans

    def _cast(
        self,
        paper: Callable[[Desk], Ballot],
        by: str,
        key: SigningKey | None,
        choice: Choice | None = None,
        reason: str = "",
    ) -> BoardEntry:
        """Write a paper, sign it and hand it in, in one transaction."""
        return self._act(lambda desk: desk.signed(paper(desk), by, key, choice, reason))

    def _act(self, ballot: Callable[[Desk], Ballot]) -> BoardEntry:
        done: list[Acted] = []

        def make(transaction: "Transaction", at: str) -> list[Entry]:
            desk = Desk(transaction, at)
            done.append(desk.entered(ballot(desk)))
            return [done[-1]]

        self._enter(make)
        return done[-1].act


def _bears(balance: "Balance", schedule: "Schedule") -> bool:
    """Whether a whole plan fits the cap of an account that nothing else is charged to."""
    if balance.filter_cap is None:
        return balance.cap.covers(schedule.guarantee)
    losses = [balance.lost(event) or 0 for event in set(schedule.events())]
    counts = [schedule.events().count(event) for event in set(schedule.events())]
    return sum(loss * count for loss, count in zip(losses, counts, strict=True)) <= balance.filter_cap


def _same_people(one: Unit, other: Unit) -> bool:
    if isinstance(one, Event) is not isinstance(other, Event):
        return False
    return people(one) == people(other)
