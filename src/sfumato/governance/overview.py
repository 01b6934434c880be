"""How everything stands at one moment: accounts, populations and their datasets, windows, what waits for the board.

Read in one view of the database, so that the figures belong together.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.governance.balances import Balance
from sfumato.governance.board import moment
from sfumato.governance.ledger_state import (
    Charge,
    account_line,
    dataset_line,
    lifetime_line,
    population_line,
)
from sfumato.governance.terms import written
from sfumato.governance.time_windows import WindowStanding, grouped
from sfumato.governance.window_standing import is_window_of, standing_of

if TYPE_CHECKING:
    from sfumato.governance.decision_state import DecisionState
    from sfumato.governance.ledger import Ledger
    from sfumato.governance.minutes import Minutes

__all__ = ["Held", "Level", "Overview", "Windows", "lifetimes", "minutes_now", "overview"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A balance by its own name, and how much of what counts as spent is reserved and not answered yet."""

    name: str
    balance: Balance
    open_epsilon: Fraction
    open_delta: Fraction
    open_loss: Fraction
    """In the terms of the balance's filter, where it has one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A dataset: its balance, the people it is about, its versions (open and closed), and who vetoes it."""

    level: Level
    population: str
    versions: tuple[str, ...]
    closed: tuple[str, ...]
    vetoed_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows:
    """The windows of an account that were charged, the budget of each, and the loss over a whole life.

    ``standing`` says whose life it is: one who was there all along, or with data in at most a stated number of windows.
    """

    account: str
    every: str
    cap: Budget
    charged: tuple[Level, ...]
    life: Level
    standing: WindowStanding


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """All of it. ``reserves`` are what the board can still unlock below an account; ``waiting`` are open proposals."""

    ledger: str
    entries: int
    at: str
    accounts: tuple[Level, ...]
    populations: tuple[Level, ...]
    datasets: tuple[Held, ...]
    windows: tuple[Windows, ...]
    reserves: tuple[tuple[str, Budget], ...]
    waiting: tuple[int, ...]
    board: bool


def overview(ledger: "Ledger") -> Overview:
    """How a ledger stands now."""
    with ledger.record.reading() as transaction:
        end, decisions = transaction.end(), transaction.decision_state()
        now = written(max(ledger.record.clock(), moment(end.at)))
        balances = {balance.name: balance for balance in transaction.balances()}
        held = _open(transaction.unsettled())
        editions = transaction.editions()
    minutes = None if decisions.minutes is None else decisions.minutes.at(now)
    levels = {name: _level(name, balance, held) for name, balance in balances.items()}

    def of(kind: str) -> tuple[Level, ...]:
        return tuple(level for name, level in sorted(levels.items()) if name.startswith(kind))

    datasets = []
    for level in of(dataset_line("")):
        versions = [edition for edition in editions if edition.dataset.name == level.name]
        datasets.append(
            Held(
                level=level,
                population=versions[0].population,
                versions=tuple(sorted(edition.dataset.edition for edition in versions)),
                closed=tuple(sorted(edition.dataset.edition for edition in versions if edition.closed)),
                vetoed_by=() if minutes is None else tuple(veto.community for veto in minutes.vetoes(level.name)),
            )
        )
    windows = [_windows(path, decisions, levels) for path in sorted(decisions.windows)]
    return Overview(
        ledger=ledger.identifier,
        entries=end.number,
        at=end.at,
        accounts=of(account_line("")),
        populations=of(population_line("")),
        datasets=tuple(datasets),
        windows=tuple(windows),
        reserves=tuple(_locked(decisions.reserves, minutes)),
        waiting=() if minutes is None else tuple(proposal.number for proposal in minutes.open),
        board=minutes is not None,
    )


def lifetimes(ledger: "Ledger") -> tuple[Balance, ...]:
    """The lifetimes that no balance of the ledger keeps: those that the caps of an account's windows bound."""
    return tuple(each.life.balance for each in overview(ledger).windows if each.standing.most_windows is not None)


def minutes_now(ledger: "Ledger") -> "Minutes":
    """The minutes of the board at this moment: what has expired by now is decided as expired."""
    with ledger.record.reading() as transaction:
        end, minutes = transaction.end(), transaction.decision_state().sitting()
    return minutes.at(written(max(ledger.record.clock(), moment(end.at))))


def _open(charges: Iterable[Charge]) -> dict[str, tuple[Fraction, Fraction, Fraction]]:
    """What open charges take of each balance: ε, δ, and the loss in the terms of its filter."""
    held: dict[str, tuple[Fraction, Fraction, Fraction]] = {}
    for charge in charges:
        losses = dict(charge.losses)
        for line in charge.lines:
            life, times, entries = line.rpartition(" × ")
            several = bool(times) and line.startswith(lifetime_line(""))
            name, cost = (life, grouped(charge.cost, int(entries))) if several else (line, charge.cost)
            epsilon, delta, loss = held.get(name, (Fraction(0), Fraction(0), Fraction(0)))
            held[name] = (epsilon + cost.epsilon, delta + cost.delta, loss + losses.get(line, 0))
    return held


def _windows(path: str, decisions: "DecisionState", levels: Mapping[str, Level]) -> Windows:
    """How the windows of an account stand; a life that no balance keeps is read off theirs."""
    declared = decisions.windows[path]
    charged = tuple(level for name, level in sorted(levels.items()) if is_window_of(path, name))
    standing = standing_of(path, decisions, [level.balance for level in levels.values()])
    life = levels.get(lifetime_line(path))
    if life is None:
        lost, cap = standing.lifetime, declared.lifetime_cap or Budget.none()
        balance = Balance(
            name=lifetime_line(path),
            unit=declared.unit,
            cap=cap,
            epsilon_spent=lost.epsilon,
            delta_spent=lost.delta,
            charges=levels[account_line(path)].balance.charges,
        )
        most = declared.most_windows
        held = [sorted(parts, reverse=True)[:most] for parts in zip(*(_open_of(one) for one in charged), strict=True)]
        epsilon, delta = (sum(parts, start=Fraction(0)) for parts in held) if held else (Fraction(0), Fraction(0))
        life = Level(
            name=path,
            balance=balance,
            open_epsilon=min(epsilon, lost.epsilon),
            open_delta=min(delta, lost.delta),
            open_loss=Fraction(0),
        )
    return Windows(
        account=path, every=declared.every.value, cap=declared.cap, charged=charged, life=life, standing=standing
    )


def _open_of(level: Level) -> tuple[Fraction, Fraction]:
    return level.open_epsilon, level.open_delta


def _level(line: str, balance: Balance, held: Mapping[str, tuple[Fraction, Fraction, Fraction]]) -> Level:
    epsilon, delta, loss = held.get(line, (Fraction(0), Fraction(0), Fraction(0)))
    kind, _, name = line.partition(" ")
    shown = name.rpartition(" ")[2] if kind == "window" else name
    return Level(name=shown, balance=balance, open_epsilon=epsilon, open_delta=delta, open_loss=loss)


def _locked(reserves: Iterable[tuple[str, Budget]], minutes: "Minutes | None") -> "Iterable[tuple[str, Budget]]":
    for path, reserve in reserves:
        given = () if minutes is None else minutes.unlocks()
        taken = [unlock.budget for unlock in given if unlock.account.rpartition("/")[0] == path]
        yield path, reserve - sum(taken, start=Budget.none())
