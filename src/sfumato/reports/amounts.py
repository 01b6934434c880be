"""Amounts of privacy loss, in words: ε, and δ where there is one."""

from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_up, fraction_text
from sfumato.reports.catalogue import message

__all__ = ["amount"]


def amount(spent: Budget, language: str) -> str:
    """Write an amount with its δ, which is left out where it is 0.

    >>> amount(Budget(epsilon="1/2", delta=1e-6), "en")
    'ε = 1/2, δ = 1e-6'
    """
    facts = {"epsilon": fraction_text(spent.epsilon), "delta": decimal_up(spent.delta)}
    return message(language, "plot.amount_delta" if spent.delta else "plot.amount", **facts)
