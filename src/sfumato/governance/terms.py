"""The terms of accounts: paths, caps and units that add up."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import TypedDict

from sfumato.accounting.filters import RDPFilter, ZCDPFilter, open_filter
from sfumato.core.budget import Budget
from sfumato.core.exact import Exact
from sfumato.core.query import check_name
from sfumato.core.units import Family, Unit, User, covers, describe
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.governance.balances import Balance

__all__ = ["FilterCap", "check_cap", "check_unit", "filter_of", "levels_of", "people", "written"]


METHODS = ("basic", "zcdp", "rdp")


class FilterCap(TypedDict):
    """The cap of a zCDP filter, or the order and the cap of a Rényi filter."""

    rho: Fraction | None
    order: Fraction | None
    loss: Fraction | None


@lru_cache(maxsize=1024)
def levels_of(path: str) -> tuple[str, ...]:
    """All levels of a path, from the root down.

    >>> levels_of("hospital/oncology")
    ('hospital', 'hospital/oncology')
    """
    check_name(path, "the path of an account")
    parts = path.split("/")
    if parts[0].partition(" ")[0] in ("account", "dataset", "population", "window", "lifetime") and " " in parts[0]:
        raise InvalidInput(f"{path!r} reads like the name of a balance; nothing was done. Choose another name.")
    if any(not part or part != part.strip() for part in parts):
        raise InvalidInput(
            f"{path!r} is not the path of an account; nothing was done. Write institution/department/project."
        )
    return tuple("/".join(parts[: depth + 1]) for depth in range(len(parts)))


def check_cap(cap: Budget, reason: str) -> None:
    """Refuse a cap that guarantees nothing, or that has no reason."""
    if not isinstance(cap, Budget) or cap.epsilon == 0 or cap.delta == 1:
        raise InvalidInput("cap must be a Budget with epsilon above 0 and delta below 1; nothing was changed.")
    if not reason.strip():
        raise NotDeclared("a cap is a decision: say in reason='…' why it is this high. Nothing was changed.")


def filter_of(cap: Budget, method: str, order: Exact | None = None) -> FilterCap:
    """The cap of the filter that keeps within a budget, as entries state it; nothing where sums of ε and δ decide.

    A cap in ρ is that of a zCDP filter, exactly.

    >>> filter_of(Budget(epsilon=1), "basic")
    {'rho': None, 'order': None, 'loss': None}
    """
    if cap.rho is not None:
        if method == "rdp" or order is not None:
            raise InvalidInput("a cap in ρ is kept by a zCDP filter; nothing was changed. Leave method and order out.")
        return {"rho": cap.rho, "order": None, "loss": None}
    if method not in METHODS:
        raise InvalidInput(
            f'method = {method!r} is not a filter of an account; nothing was changed. Use "basic", "zcdp" or "rdp".'
        )
    if order is not None and method != "rdp":
        raise InvalidInput(f"method = {method!r} keeps to no order; nothing was changed. Leave order out.")
    if method != "basic" and cap.delta == 0:
        raise InvalidInput(
            f"method = {method!r} reads its loss at the cap's δ, and this cap has none; nothing was changed. Give the "
            "cap a δ, or keep the account by sums."
        )
    match open_filter(cap, method=method, order=order):
        case ZCDPFilter(rho=most) | RDPFilter(loss=most) if most == 0:
            raise InvalidInput(
                f"a {method} filter within {cap} would admit nothing at all: at this δ the least loss reads as more. "
                "Nothing was changed. Give a higher cap, or a Rényi filter a higher order."
            )
        case ZCDPFilter(rho=rho):
            return {"rho": rho, "order": None, "loss": None}
        case RDPFilter(order=chosen, loss=loss):
            return {"rho": None, "order": chosen, "loss": loss}
    return {"rho": None, "order": None, "loss": None}


def people(unit: Unit) -> Unit:
    """A unit without the column that identifies it: tables name it differently, and the people are the same."""
    return replace(unit, column="") if isinstance(unit, User | Family) else unit


@lru_cache(maxsize=256)
def _covered(unit: Unit, by: Unit) -> bool:
    return covers(people(by), people(unit))


def check_unit(balance: Balance, unit: Unit) -> None:
    """Refuse a charge whose guarantee is not one for the unit of the balance."""
    if balance.unit is not unit and not _covered(balance.unit, unit):
        raise Refused(
            f"{balance.name!r} protects {describe(balance.unit)} and this would be charged for {describe(unit)}, which "
            "does not cover it. Nothing was read and nothing was spent. Ask for the unit of the account."
        )


def after(at: str, lasts: timedelta) -> str:
    """When something ends that begins at a time and lasts so long.

    >>> after("2026-01-01T00:00:00+00:00", timedelta(days=14))
    '2026-01-15T00:00:00+00:00'
    """
    try:
        return written(datetime.fromisoformat(at) + lasts)
    except OverflowError:
        raise InvalidInput(f"{lasts.days} days from {at} is not a calendar day; nothing was done.") from None


def written(time: datetime) -> str:
    """A time as entries state it: UTC, to the second."""
    return time.astimezone(UTC).isoformat(timespec="seconds")
