"""What a charge counts against and rests on: worked out when it is made, and again by whoever verifies the record."""

from collections.abc import Sequence

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, LedgerError, NotDeclared, Refused
from sfumato.governance.balances import Balance
from sfumato.governance.entries import Reserved
from sfumato.governance.ledger_state import (
    LedgerState,
    account_line,
    dataset_line,
    drawn_on,
    lifetime_line,
    population_line,
    window_line,
)
from sfumato.governance.terms import check_unit, levels_of
from sfumato.governance.time_windows import WindowCharge

__all__ = ["Lines", "approvals_of", "check_charge", "lines_of", "standing_lines", "window_balances"]


def lines_of(
    state: LedgerState,
    path: str,
    *,
    unit: Unit,
    datasets: Sequence[Dataset],
    cost: Budget,
    reads: tuple[str, str] | None,
) -> tuple[str, ...]:
    """The names of all balances that a charge counts against: levels, datasets, populations, windows, lifetimes."""
    return (*standing_lines(state, path, unit=unit, datasets=datasets), *_windows(state, path, cost, reads))


def standing_lines(state: LedgerState, path: str, *, unit: Unit, datasets: Sequence[Dataset]) -> tuple[str, ...]:
    """Those of them that do not depend on which days are read."""
    lines = [account_line(level) for level in levels_of(path)]
    editions = [(dataset, state.edition(dataset)) for dataset in datasets]
    people = (population_line(edition.population) for _, edition in editions if edition is not None)
    state.gather([*lines, *(dataset_line(dataset.name) for dataset in datasets), *people])
    for level, line in zip(levels_of(path), lines, strict=True):
        if state.balance(line) is None:
            raise NotDeclared(
                f"the account {level!r} is not open; nothing was read and nothing was spent. Have it opened: "
                f"sfumato account open {level}"
            )
    for dataset, edition in editions:
        if edition is None:
            raise NotDeclared(
                f"{dataset.name!r} version {dataset.edition!r} is not declared in the ledger, so nobody knows "
                "whose budget it draws on. Nothing was read and nothing was spent. Declare it with its population."
            )
        if edition.closed:
            raise Refused(
                f"{dataset.name!r} version {dataset.edition!r} was closed after its engine failed. Nothing was "
                "read and nothing was spent. Repair the data and declare a new version."
            )
        if edition.declared < state.decision_state().unsure:
            raise Refused(
                f"{dataset.name!r} version {dataset.edition!r} was declared before entries of this ledger were lost, "
                "and one of those may have closed it after its engine failed. Nothing was read and nothing was spent. "
                "Look whether the data can be read, and declare them as a new version; stored answers stay."
            )
        lines += [dataset_line(dataset.name), population_line(edition.population)]
    for line in lines:
        balance = state.balance(line)
        if balance is not None:
            check_unit(balance, unit)
    return tuple(dict.fromkeys(lines))


def approvals_of(
    state: LedgerState,
    datasets: Sequence[Dataset],
    *,
    purpose: str | None,
    recipient: str | None,
    at: str,
    cost: Budget,
) -> tuple[int, ...]:
    """The approvals that a release of these datasets rests on; refused where it may not be made."""
    decisions = state.decision_state()
    names = sorted({dataset.name for dataset in datasets})
    found = [decisions.permit(name, purpose, recipient, at=at, cost=cost) for name in names]
    return tuple(number for number in found if number is not None)


Lines = dict[tuple[str, Unit, tuple[Dataset, ...]], tuple[str, ...]]
"""The names of all balances that a charge counts against, by its account, its unit and its datasets."""


def check_charge(state: LedgerState, entry: Reserved, known: Lines | None = None) -> None:
    """Refuse a charge that leaves out a balance, or that terms and board did not allow when it was entered.

    ``known`` are the lines of charges that were checked before. Whoever keeps it empties it at every other kind of
    entry, since all else that lines depend on changes with those alone.
    """
    asked = entry.account.name, entry.unit, entry.datasets
    lines = None if known is None or entry.reads is not None else known.get(asked)
    if lines is None:
        lines = lines_of(
            state, entry.account.name, unit=entry.unit, datasets=entry.datasets, cost=entry.cost, reads=entry.reads
        )
        if known is not None and entry.reads is None:  # then there are no windows, whose lines depend on the cost
            known[asked] = lines
    if entry.lines != lines:
        raise LedgerError("a charge does not count against all that it draws on; it was not entered.")
    approvals = approvals_of(
        state, entry.datasets, purpose=entry.purpose, recipient=entry.recipient, at=entry.at, cost=entry.cost
    )
    if entry.approvals != approvals:
        raise LedgerError("a charge rests on other approvals than those in force; it was not entered.")


def window_balances(state: LedgerState, path: str, reads: tuple[str, str] | None) -> list[Balance]:
    """The balances of the windows that a charge for these days counts in; none where no days are said.

    Lifetimes are left out whose loss is a multiple of the charge.
    """
    if reads is None:
        return []
    lines = _windows(state, path, Budget.none(), reads)
    whole = [line for line in lines if line.startswith("window ") or line.endswith(" × 1")]
    return [drawn_on(state, line, Budget.none())[0] for line in whole]


def _windows(state: LedgerState, path: str, cost: Budget, reads: tuple[str, str] | None) -> list[str]:
    """The windows that a charge counts in, and the lifetimes, for every level that has windows."""
    if reads is not None and (type(reads) is not tuple or [type(day) for day in reads] != [str, str]):
        raise InvalidInput("reads must be the first and the last day of the data, as text; nothing was read or spent.")
    found: list[str] = []
    declared = state.decision_state().windows
    for level in levels_of(path) if declared else ():
        windows = declared.get(level)
        if windows is None:
            continue
        if reads is None:
            raise NotDeclared(
                f"{level!r} has a budget for each window of time, and this release does not say which days it "
                "reads. Nothing was read and nothing was spent. Say reads=('2026-01-01', '2026-01-31'), or on the "
                "command line --reads 2026-01-01/2026-01-31."
            )
        charge = WindowCharge(first=reads[0], last=reads[1], cost=cost)
        found += [window_line(level, window.label) for window in windows.windows(charge)]
        if windows.most_windows is None:  # else the caps of the windows bound a life, and no sum does
            found.append(lifetime_line(level, windows.entries(charge)))
    return found
