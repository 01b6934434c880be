"""How each query is answered: the mechanism for a spend, and the draw from exact numbers."""

import dataclasses
from fractions import Fraction
from types import NoneType
from typing import TYPE_CHECKING, Any

from sfumato.core.area import Answer
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset, Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Unit
from sfumato.engines.expressions import EXPRESSIONS, Operator, Part, Sign, Type
from sfumato.errors import NotDeclared, Refused, Unsupported
from sfumato.mechanisms import NoisyThreshold, OptimalSelection, QuantileChoice, TopChoice
from sfumato.mechanisms.advisor import least_noise
from sfumato.tables.clamped import Clamped
from sfumato.tables.joins import Join
from sfumato.tables.keys import Keys
from sfumato.tables.measures import MEASURES
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.found_keys import FoundKeys
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.queries.top import TopGroups

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["TABLE_QUERIES", "TableQuery", "check_parts", "drawn", "mechanism_for"]

TableQuery = Count | Aggregate | Quantiles | FoundKeys | TopGroups | Marginals
TABLE_QUERIES = (Count, Aggregate, Quantiles, FoundKeys, TopGroups, Marginals)
PARTS = frozenset((*TABLE_QUERIES, Dataset, Join, Keys, Clamped, *MEASURES, *EXPRESSIONS))
PLAIN = frozenset((str, int, bool, Fraction, NoneType, Operator, Part, Sign, Type))


def check_parts(part: object) -> None:
    """Refuse a query with a part that is not of exactly the class it seems to be.

    A subclass of a key list could say that it has one value and have many, or a text that it equals any other.
    """
    if type(part) is tuple:
        if not set(map(type, part)) <= PLAIN:
            for inner in part:
                check_parts(inner)
    elif type(part) in PARTS:
        for field in dataclasses.fields(part):  # type: ignore[arg-type]
            check_parts(getattr(part, field.name))
    elif type(part) not in PLAIN:
        raise Unsupported(
            f"this vault cannot answer a question with a {type(part).__name__} in it; nothing was read and nothing was "
            "spent. Make questions with the methods of a table."
        )


def mechanism_for(query: TableQuery, moved: Sensitivity, unit: Unit, spend: Budget) -> Mechanism:
    """The mechanism with the least error that a spend allows; it may cost less than the spend, never more."""
    match query:
        case Quantiles():
            return QuantileChoice.calibrated(
                quantiles=query.levels, steps=query.lattice.steps, sensitivity=moved, epsilon=spend.epsilon
            )
        case FoundKeys():
            if spend.delta == 0:
                raise NotDeclared(
                    "keys that nobody declared cannot be found without a δ: with some small probability a key of one "
                    "person alone is shown. Nothing was done. Say release(epsilon=…, delta=1e-9)."
                )
            keys = moved.l0.count if moved.l0 is not None else 0
            if query.counted:
                most = int(moved.linf.value) if moved.linf is not None else 0
                return NoisyThreshold.calibrated(keys=keys, most=most, epsilon=spend.epsilon, delta=spend.delta)
            if moved.linf is not None and moved.linf.value > 1:
                raise Refused(
                    "keys without their counts are found where a unit adds one person to each: a family adds more. "
                    "Nothing was done. Say find_keys(..., counted=True)."
                )
            return OptimalSelection.calibrated(keys=keys, epsilon=spend.epsilon, delta=spend.delta)
        case TopGroups():
            largest = int(moved.linf.value) if moved.linf is not None else 0
            return TopChoice.calibrated(
                choices=query.choices,
                sensitivity=largest,
                epsilon=spend.epsilon,
                monotone=query.monotone(unit),
            )
    return least_noise(moved, epsilon=spend.epsilon, delta=spend.delta)


def drawn(mechanism: Any, exact: Any, words: "Words") -> Answer:
    """Draw the answer from what the engine found. Sensitive: ``exact``."""
    match mechanism:
        case QuantileChoice():
            return tuple(place for values, rows in exact for place in mechanism.choose(values, rows, words)), ()
        case NoisyThreshold():
            shown = mechanism.show(exact, words)
            return tuple(shown.values()), tuple(shown)
        case OptimalSelection():
            return (), mechanism.show(exact, words)
        case TopChoice():
            return mechanism.choose(exact, words), ()
    return mechanism.add_noise(exact, words), ()
