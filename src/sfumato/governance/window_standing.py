"""How the windows of an account stand in a ledger: each one, and a person behind them."""

from collections.abc import Iterable
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.governance.balances import Balance
from sfumato.governance.decision_state import DecisionState
from sfumato.governance.ledger_state import account_line, lifetime_line, window_line
from sfumato.governance.time_windows import WindowStanding

__all__ = ["is_window_of", "standing_of"]


def is_window_of(path: str, line: str) -> bool:
    """Whether the name of a balance is that of a window of this account; the names of accounts may hold blanks.

    >>> is_window_of("clinic", "window clinic 2026-01"), is_window_of("clinic", "window clinic east 2026-01")
    (True, False)
    """
    return line == window_line(path, line.rpartition(" ")[2])


def standing_of(path: str, decisions: DecisionState, balances: Iterable[Balance]) -> WindowStanding:
    """What each window of an account has lost, and a person over a lifetime; the account must have windows.

    Guarantee: the figure of a person is at least what all charges that count have cost that person, those that a
    recovery took for lost included.
    """
    declared, found = decisions.windows[path], {balance.name: balance for balance in balances}
    labels = [(name.rpartition(" ")[2], one) for name, one in found.items() if is_window_of(path, name)]
    lost = [(label, one.spent) for label, one in labels]
    if declared.most_windows is None:
        return declared.stood(lost, all_along=found[lifetime_line(path)].spent)
    account = found[account_line(path)]
    whole = Budget(epsilon=account.epsilon_spent, delta=min(Fraction(1), account.delta_spent))
    unopened = None if decisions.lost is None else declared.cap if decisions.lost_whole else decisions.lost
    return declared.stood(lost, all_along=whole, unopened=unopened)
