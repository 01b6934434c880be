"""Contributions: how many cells of an answer one unit reaches, and how far it moves what is added up there.

One place for every total: a unit reaches some cells; in each, one row moves each block of numbers by so much; where
somebody is replaced, old and new may meet in a cell or not, and the worse of the two counts. Proof:
docs/proofs/bounded_totals.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.limits import Limit
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Family, Record, Relation, Unit, User, describe
from sfumato.errors import NotDeclared, Refused
from sfumato.tables.persons import Step, check_steps, joins_of

__all__ = ["Contribution", "Move", "Reach", "contribution", "joint_reach", "one_cell_each", "tails_of_one"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """A unit is ``members`` persons, each in at most ``groups`` cells with at most ``rows`` rows' worth in each."""

    groups: int
    rows: int
    members: int
    relation: Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """How far a block of numbers moves in one cell, in each norm."""

    l1: Fraction | int
    l2_squared: Fraction | int
    linf: Fraction | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What one row does to one block in one cell: ``alone`` where it comes or goes, ``met`` where another replaces it.

    ``numbers`` is how many numbers the block has in a cell. With ``once`` a person counts once, whatever its rows.
    """

    numbers: int
    alone: Move
    met: Move
    once: bool = False
    loose: str = ""
    """Why no row moves the numbers quite as far as stated, where none does; empty where some row does."""


def contribution(unit: Unit, limit: Limit | None, joins: Sequence[Step] = ()) -> Contribution:
    """How much of one unit can count in one answer; a unit, a limit or a join that does not fit rows is refused.

    >>> from sfumato.core.units import user
    >>> contribution(user("id", relation="replace"), Limit(groups=2, rows_per_group=3)).rows
    3
    """
    check_steps(joins, unit)
    match unit, limit:
        case Record(), None:
            return Contribution(groups=1, rows=1, members=1, relation=unit.relation)
        case User(), Limit():
            return Contribution(groups=limit.groups, rows=limit.rows_per_group, members=1, relation=unit.relation)
        case Family(), Limit():
            return Contribution(
                groups=limit.groups, rows=limit.rows_per_group, members=unit.size, relation=unit.relation
            )
        case Record(), Limit():
            raise Refused("a limit means nothing for single rows: under the record unit each row counts once.")
        case User() | Family(), None:
            raise NotDeclared(
                f"{describe(unit)} needs a limit: how much of each person counts. Nothing was read and nothing was "
                "spent. Declare limit=sf.Limit(groups=…, rows_per_group=…), or ask for one: table.suggest_limit(…)."
            )
    raise Refused(f"rows of a table are not protected under {describe(unit)}; nothing was done.")


def joint_reach(blocks: Sequence[Reach], given: Contribution, *, cells: int) -> Sensitivity:
    """How far one unit can move all blocks together, each of which has its numbers in every one of ``cells`` cells."""
    groups = min(given.groups, cells)
    sums = [_in_cells(blocks, given, alone=groups, met=0)]
    touched = min(given.groups * given.members, cells)
    if given.relation is Relation.REPLACE:
        touched = min(2 * given.groups * given.members, cells)
        fewest = max(0, 2 * groups - cells)
        sums = [_in_cells(blocks, given, alone=2 * (groups - met), met=met) for met in (fewest, groups)]
    return Sensitivity.of(
        l0=touched * sum(block.numbers for block in blocks),
        l1=max(move.l1 for move in sums) * given.members,
        l2_squared=max(move.l2_squared for move in sums) * given.members**2,
        linf=max(move.linf for move in sums) * given.members,
    )


def one_cell_each(unit: Unit, joins: Sequence[Step], *, cells: int) -> Sensitivity:
    """How far one person moves counts of persons, where each person is in one of ``cells`` cells.

    >>> from sfumato.core.units import user
    >>> one_cell_each(user("id", relation="replace"), (), cells=5).l2
    L2(squared=Fraction(2, 1))
    """
    given = Contribution(groups=1, rows=1, members=1, relation=_persons_alone(unit, joins).relation)
    one = Move(l1=1, l2_squared=1, linf=1)
    return joint_reach([Reach(numbers=1, alone=one, met=one, once=True)], given, cells=cells)


def tails_of_one(unit: Unit, joins: Sequence[Step]) -> Sensitivity:
    """How far one person moves each of several counts of persons who have more than so much.

    Where somebody is replaced, old and new differ at the limits between what they have, and there in one direction.
    """
    _persons_alone(unit, joins)
    return Sensitivity.of(linf=1)


def _persons_alone(unit: Unit, joins: Sequence[Step]) -> User:
    """Refuse every unit but one person: what is counted here are persons, each of them once."""
    check_steps(joins, unit)
    if not isinstance(unit, User):
        raise Refused(
            f"persons are counted here by what they have, each once, and {describe(unit)} is not one person: one row "
            "more would move a person from one count to another, and several persons would move several. Nothing was "
            "read and nothing was spent. Protect persons: unit=sf.user(column, relation=…)."
        )
    if any(not join.public for join in joins_of(joins)):
        raise Refused(
            "persons are counted here by all their rows, and in a join with a private table these multiply: how long "
            "that takes would tell who is there. Nothing was read and nothing was spent. Ask it of each table alone."
        )
    return unit


def _in_cells(blocks: Sequence[Reach], given: Contribution, *, alone: int, met: int) -> Move:
    """The move of all blocks by one person that is alone in some cells and met by another in others."""
    l1, l2_squared, linf = Fraction(0), Fraction(0), Fraction(0)
    for block in blocks:
        rows = 1 if block.once else given.rows
        for cells, move in ((alone, block.alone), (met, block.met)):
            l1 += cells * rows * move.l1
            l2_squared += cells * rows**2 * move.l2_squared
            linf = max(linf, Fraction(rows * move.linf) if cells else Fraction(0))
    return Move(l1=l1, l2_squared=l2_squared, linf=linf)
