"""The budgets of an institution as a tree: what is spent, reserved and left, and how each was spent over time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.governance.board import moment
from sfumato.governance.overview import Level, Overview
from sfumato.governance.provenance import Provenance
from sfumato.server.views.snapshot import Snapshot

__all__ = ["BudgetBranch", "BudgetShare", "BurnDown", "budget_tree", "burn_down"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShare:
    """One kind of loss of a balance: the letter it is written with, and what of its cap is spent, reserved and left.

    ``spent`` is without what is reserved. Figures are exact.
    """

    letter: str
    spent: Fraction
    open: Fraction
    left: Fraction
    cap: Fraction

    @property
    def parts(self) -> tuple[float, float]:
        """Spent, and reserved, in parts of the cap from 0 to 1; for a bar alone, rounded against us."""
        if self.cap <= 0:
            return 1.0, 0.0
        spent = min(Fraction(1), self.spent / self.cap)
        return float(spent), float(min(1 - spent, self.open / self.cap))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetBranch:
    """A balance in the tree: its kind, its name, how deep it lies, what it has, and what concerns it.

    ``line`` is its name in the ledger. ``reserve`` is what the board can still unlock below it.
    """

    kind: str
    name: str
    line: str
    depth: int
    shares: tuple[BudgetShare, ...]
    charges: int
    reserve: Budget | None = None
    vetoed_by: tuple[str, ...] = ()
    versions: int = 0
    closed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnDown:
    """How a balance was spent: the moment, the label and the cost of each charge that counts, and its cap."""

    line: str
    steps: tuple[tuple[datetime, Budget], ...]
    cap: Budget


def budget_tree(found: Overview) -> tuple[BudgetBranch, ...]:
    """All balances in the order in which a reader meets them: accounts by their paths, then people and their data."""
    return tuple(_branches(found))


def _branches(found: Overview) -> Iterator[BudgetBranch]:
    reserves = dict(found.reserves)
    for level in found.accounts:
        yield BudgetBranch(
            kind="account",
            name=level.name.rpartition("/")[2],
            line=level.balance.name,
            depth=level.name.count("/"),
            shares=_shares(level),
            charges=level.balance.charges,
            reserve=reserves.get(level.name),
        )
    for people in found.populations:
        yield BudgetBranch(
            kind="population",
            name=people.name,
            line=people.balance.name,
            depth=0,
            shares=_shares(people),
            charges=people.balance.charges,
        )
        for held in found.datasets:
            if held.population == people.name:
                yield BudgetBranch(
                    kind="dataset",
                    name=held.level.name,
                    line=held.level.balance.name,
                    depth=1,
                    shares=_shares(held.level),
                    charges=held.level.balance.charges,
                    vetoed_by=held.vetoed_by,
                    versions=len(held.versions),
                    closed=len(held.closed),
                )
    for windows in found.windows:
        for level in (*windows.charged, windows.life):
            yield BudgetBranch(
                kind="window",
                name=f"{windows.account} {level.name}",
                line=level.balance.name,
                depth=0,
                shares=_shares(level),
                charges=level.balance.charges,
            )


def _shares(level: Level) -> tuple[BudgetShare, ...]:
    """The losses of a balance: that of its filter, where one decides; else ε, and δ where its cap has one."""
    balance = level.balance
    if balance.filter_cap is not None and balance.filter_spent is not None and balance.filter_left is not None:
        letter = "ρ" if balance.order is None else f"α = {balance.order}"
        spent = balance.filter_spent - level.open_loss
        return (
            BudgetShare(
                letter=letter, spent=spent, open=level.open_loss, left=balance.filter_left, cap=balance.filter_cap
            ),
        )
    left = balance.left
    shares = [
        BudgetShare(
            letter="ε",
            spent=balance.epsilon_spent - level.open_epsilon,
            open=level.open_epsilon,
            left=left.epsilon,
            cap=balance.cap.epsilon,
        )
    ]
    if balance.cap.delta:
        spent = balance.delta_spent - level.open_delta
        shares.append(
            BudgetShare(letter="δ", spent=spent, open=level.open_delta, left=left.delta, cap=balance.cap.delta)
        )
    return tuple(shares)


def burn_down(snapshot: Snapshot, line: str) -> BurnDown:
    """How a balance was spent, charge by charge; one that was given back does not count."""
    mine = _of_line(snapshot.trail.charges, line)
    balance = snapshot.balances[line]
    return BurnDown(
        line=line, steps=tuple((moment(charge.charged.at), charge.cost) for charge in mine), cap=balance.cap
    )


def _of_line(charges: Sequence[Provenance], line: str) -> list[Provenance]:
    return [charge for charge in charges if charge.counts and any(each.name == line for each in charge.lines)]
