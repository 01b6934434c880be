"""Amounts of privacy loss, in words: ε, and δ where there is one."""

from functools import reduce

from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_up, fraction_text
from sfumato.reports.catalogue import message

__all__ = ["amount", "written"]


def amount(spent: Budget, language: str) -> str:
    """Write an amount with its δ, which is left out where it is 0.

    >>> amount(Budget(epsilon="1/2", delta=1e-6), "en")
    'ε = 1/2, δ = 1e-6'
    """
    facts = {"epsilon": fraction_text(spent.epsilon), "delta": decimal_up(spent.delta)}
    return message(language, "plot.amount_delta" if spent.delta else "plot.amount", **facts)


def written(spent: Budget, language: str) -> str:
    """An amount as it writes itself, ε and δ joined by the sign that the language has for that.

    >>> written(Budget(epsilon="1/2", delta=1e-6), "en"), written(Budget(epsilon="1/2", delta=1e-6), "zh")
    ('ε = 1/2, δ = 1/1000000', 'ε = 1/2、δ = 1/1000000')
    """
    return reduce(lambda left, right: message(language, "list.between", left=left, right=right), str(spent).split(", "))
