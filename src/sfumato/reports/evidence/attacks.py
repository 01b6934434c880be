"""What the strongest attacker can gain from an amount of privacy loss: the figures behind the three questions."""

from fractions import Fraction
from functools import lru_cache

from sfumato.core.adversary import accuracy, auc, tradeoff
from sfumato.core.budget import Budget
from sfumato.core.documents import Json
from sfumato.core.exact import decimal_down, decimal_up
from sfumato.core.guarantees import Approximate, Guarantee, Pure
from sfumato.core.units import Relation
from sfumato.reports.words.figures import exact, risk

__all__ = ["FALSE_ALARMS", "HOUSEHOLD", "gains"]

FALSE_ALARMS = Fraction(1, 100)
HOUSEHOLD = 4
MOST = 64
"""The ε from which on every figure is as good as certainty, and is stated as such."""


@lru_cache(maxsize=4096)
def gains(spent: Budget, relation: Relation) -> dict[str, Json]:
    """Bounds on every attack on one unit, from the guarantee alone, rounded against us.

    Guarantee: those of :mod:`sfumato.core.adversary`, for one unit with all others fixed, whatever the attacker knows.
    Beliefs are out of 1,000 and start at 100; with a δ there is none, and how often a guess is right is given instead.

    >>> from sfumato.core.units import Relation
    >>> found = gains(Budget(epsilon=1), Relation.ADD_REMOVE)
    >>> found["accuracy"], found["belief"], found["trait"]
    ('0.7311', '39 to 232 (from 100)', '14 to 451 (from 100)')
    """
    guarantee = _guarantee(spent)
    shown: dict[str, Json] = {"epsilon": exact(spent.epsilon), "delta": exact(spent.delta)}
    if guarantee is None:
        certain = {"accuracy": "1", "auc": "1", "missed": "0", "household": "1", "belief": _CERTAIN, "trait": _CERTAIN}
        return shown | certain
    told = risk(guarantee, relation)
    shown |= {
        "accuracy": decimal_up(accuracy(guarantee)),
        "auc": decimal_up(auc(guarantee)),
        "missed": decimal_down(tradeoff(guarantee, FALSE_ALARMS)),
        "household": _household(guarantee),
    }
    if "guess" in told:
        trait = told.get("trait_guess", told["guess"])
        blind = f"(blindly {told['blind']})"
        return shown | {
            "belief": f"no bound with a δ; a guess is right {told['guess']} times at most {blind}",
            "trait": f"no bound with a δ; a guess is right {trait} times at most {blind}",
        }
    low, high = told.get("trait_low", told["low"]), told.get("trait_high", told["high"])
    return shown | {
        "belief": f"{told['low']} to {told['high']} (from {told['prior']})"
        if relation is Relation.ADD_REMOVE
        else "does not apply: how many there are is public",
        "trait": f"{low} to {high} (from {told['prior']})",
    }


_CERTAIN = "0 to 1,000: nothing is bounded"


def _guarantee(spent: Budget) -> Pure | Approximate | None:
    if spent.delta >= 1 or spent.epsilon > MOST:
        return None
    if spent.delta == 0:
        return Pure(epsilon=spent.epsilon)
    return Approximate(epsilon=spent.epsilon, delta=spent.delta)


def _household(guarantee: Pure | Approximate) -> str:
    whole: Guarantee = guarantee.group(HOUSEHOLD)
    return decimal_up(accuracy(whole))
