"""What an institution decides and declares in its ledger: board, terms, shares, windows, plans."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.core.units import Event, Unit
from sfumato.errors import NotDeclared, Refused
from sfumato.governance.board import (
    Action,
    Board,
    BoardEntry,
    Choice,
    Decision,
    Proposal,
    Reasons,
    Veto,
    VetoLifted,
    Vote,
    Withdrawal,
)
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
from sfumato.governance.ledger_state import account_line, asked_for, dataset_line, lifetime_line, touched, window_line
from sfumato.governance.policies import BaseAndReserve, Proportional
from sfumato.governance.spelling import check_new, check_spelling
from sfumato.governance.terms import after, check_cap, levels_of, people
from sfumato.governance.time_windows import TimeWindows, WindowStanding

if TYPE_CHECKING:
    from sfumato.governance.balances import Balance
    from sfumato.governance.consent import Terms
    from sfumato.governance.minutes import Minutes
    from sfumato.governance.plans import Schedule
    from sfumato.governance.transaction import Transaction

__all__ = ["Governed"]

LASTS = timedelta(days=14)
"""How long a proposal waits for its decision."""


@dataclass(frozen=True, slots=True)
class _Now:
    """What an entry is made from: the time that it will bear, and what was decided before it."""

    transaction: "Transaction"
    at: str
    decisions: DecisionState


class Governed(ABC):
    """The part of a ledger in which people decide; every method enters one decision or declaration, or nothing."""

    identifier: str

    @abstractmethod
    def _enter(self, make: "Callable[[Transaction, str], Sequence[Entry]]") -> None:
        """Enter what ``make`` returns, in one transaction, and anchor it."""

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
        number = 0

        def act(now: _Now) -> BoardEntry:
            nonlocal number
            number = len(now.decisions.sitting().proposals) + 1
            if account is not None:
                asked_for(now.transaction, account)
            for dataset in datasets if action is Action.DATASET else ():
                asked_for(now.transaction, dataset_line(dataset))  # people and cap are fixed before anybody votes
            named = (*datasets, *sorted(touched(now.transaction, account) - set(datasets)))
            where = {site for dataset in named for site in now.decisions.sites_of(dataset)}
            return Proposal(
                number=number,
                at=now.at,
                expires=after(now.at, lasts),
                proposer=by,
                action=action,
                account=account,
                datasets=named,
                sites=(*sites, *sorted(where - set(sites))),
                amount=amount,
                subject=subject,
                reasons=reasons,
            )

        self._act(act, key)
        return number

    def vote(
        self, number: int, *, by: str, choice: Choice, reason: str = "", key: SigningKey | None = None
    ) -> Decision | None:
        """Vote on a proposal; the decision, where this vote decides."""
        self._act(lambda now: Vote(proposal=number, at=now.at, voter=by, choice=choice, reason=reason), key)
        return self.minutes().decision(number)

    def withdraw(self, number: int, *, by: str, key: SigningKey | None = None) -> None:
        """Take a proposal of one's own back."""
        self._act(lambda now: Withdrawal(proposal=number, at=now.at, by=by), key)

    def veto(self, *, by: str, community: str, dataset: str, reason: str, key: SigningKey | None = None) -> None:
        """Say no for a community: ends all open requests about the dataset and blocks releases while it stands."""
        self._act(lambda now: Veto(at=now.at, community=community, voter=by, dataset=dataset, reason=reason), key)

    def lift_veto(self, *, by: str, community: str, dataset: str, reason: str, key: SigningKey | None = None) -> None:
        """Lift the veto of one's own community; what was approved before must be approved anew."""
        self._act(lambda now: VetoLifted(at=now.at, community=community, voter=by, dataset=dataset, reason=reason), key)

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
        """Give an account a budget for each window of time, beside its own cap; its unit must lie in one window.

        The loss of a whole life is kept beside the windows and needs a cap too.
        """
        if windows.lifetime is None:
            raise NotDeclared(
                "windows do not give anything back to a person, so a lifetime cap is needed; no window was opened. "
                "Declare lifetime=…"
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
        """What each window of an account has lost, and a person who was there all along."""
        if path not in self.decision_state().windows:
            raise NotDeclared(f"the account {path!r} has no windows; nothing was done.")
        life = lifetime_line(path)
        found = self.balances()
        labels = [(one, one.name.rpartition(" ")[2]) for one in found]
        lost = [(label, one.spent) for one, label in labels if one.name == window_line(path, label)]
        whole = next(one.spent for one in found if one.name == life)
        return WindowStanding(windows=tuple(sorted(lost)), lifetime=whole)

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

    def _act(self, act: Callable[[_Now], BoardEntry], key: SigningKey | None) -> None:
        def make(transaction: "Transaction", at: str) -> list[Entry]:
            decisions = transaction.decision_state()
            decisions.sitting()
            done = act(_Now(transaction, at, decisions))
            return [Acted(at=at, act=done, signature=decisions.signed(done, key))]

        self._enter(make)


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
