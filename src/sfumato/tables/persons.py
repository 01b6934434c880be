"""Steps that make the rows of a question: joins, one row a person, and what another table says of the same person.

A table is read row by row, joined, and turned into one row a person in the order of its steps. After the step
*per person* a person has one row whatever the table's limit is: all rows of a person were used to make it. What stands
beside rows because of the person depends on that person alone. Proof: docs/proofs/per_person.md
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, check_name
from sfumato.core.units import Family, Unit, User, describe
from sfumato.engines.expressions import Expression
from sfumato.engines.person_values import PersonValue
from sfumato.errors import InvalidInput, Refused
from sfumato.tables.joins import Join, check_joins

__all__ = [
    "ONE_ROW_A_PERSON",
    "PerPerson",
    "PersonJoin",
    "Step",
    "are_single",
    "check_steps",
    "is_per_person",
    "joins_of",
    "made_of_cut_rows",
    "no_persons",
    "private_datasets",
    "told_apart",
]

ONE_ROW_A_PERSON = Limit(groups=1, rows_per_group=1)
MOST_STEPS, DEEPEST = 50, 8
SEEN = 63  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PerPerson:
    """The rows so far that meet ``where`` become one row for each person: the person, and these values.

    Guarantee: a person has at most one row afterwards, which depends on that person's rows alone; a person without a
    row that counts has none.
    """

    KIND: ClassVar[str] = "per_person"
    VERSION: ClassVar[int] = 1
    person: str
    values: tuple[PersonValue, ...] = ()
    where: Expression | None = None

    def __post_init__(self) -> None:
        check_name(self.person, "the column that identifies persons")
        names = [self.person, *(each.name for each in self.values)]
        if len(set(map(told_apart, names))) != len(names):
            raise InvalidInput(
                "two columns of one row a person have one name, capital letters aside, or begin with the same "
                f"{SEEN} bytes; nothing was done. Give each its own."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonJoin:
    """What the rows of a person in some table say, beside each row of that person; missing where there are none.

    ``steps`` make one row a person of the dataset, and ``where`` says which of those rows count. Their columns are
    called by the ``name``, a dot and their own name. No row becomes two and none is left out.
    """

    KIND: ClassVar[str] = "person_join"
    VERSION: ClassVar[int] = 1
    dataset: Dataset
    name: str
    steps: tuple["Step", ...]
    where: Expression | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "the name of what stands beside rows")
        if not is_per_person(self.steps):
            raise InvalidInput(f"{self.name!r} must have one row a person; nothing was done. Use per_person(...).")
        last = max(place for place, step in enumerate(self.steps) if isinstance(step, PerPerson))
        if any(isinstance(step, Join) and not step.public for step in self.steps[last:]):
            raise InvalidInput(
                f"{self.name!r} was joined with a private table after it had one row a person, and may have several; "
                "nothing was done. Join before per_person(...)."
            )
        _depth(self.steps)

    @property
    def person(self) -> str:
        """The column that identifies persons."""
        return next(step.person for step in reversed(self.steps) if isinstance(step, PerPerson))


Step = Join | PerPerson | PersonJoin


def told_apart(name: str) -> bytes:
    """What every engine sees of the name of a column: capital letters aside, and PostgreSQL the first bytes alone.

    >>> told_apart("Ward") == told_apart("ward")
    True
    """
    return name.casefold().encode()[:SEEN]


def is_per_person(steps: Sequence[Step]) -> bool:
    """Whether rows are made one a person.

    >>> is_per_person([PerPerson(person="id")])
    True
    """
    return any(isinstance(step, PerPerson) for step in steps)


def are_single(steps: Sequence[Step]) -> bool:
    """Whether a person has one row at most by how the rows are made: no join came after they were made one a person.

    >>> are_single([PerPerson(person="id")]), are_single([])
    (True, False)
    """
    last = next((step for step in reversed(steps) if not isinstance(step, PersonJoin)), None)
    return isinstance(last, PerPerson)


def made_of_cut_rows(steps: Sequence[Step]) -> bool:
    """Whether a private join, whose sides are held to their limits, comes before rows are made one a person."""
    last = max((place for place, step in enumerate(steps) if isinstance(step, PerPerson)), default=0)
    return any(not join.public for join in joins_of(steps[:last])) or any(
        made_of_cut_rows(step.steps) for step in steps if isinstance(step, PersonJoin)
    )


def joins_of(steps: Sequence[Step]) -> Iterator[Join]:
    """All joins, also those of what stands beside rows."""
    for step in steps:
        if isinstance(step, Join):
            yield step
        elif isinstance(step, PersonJoin):
            yield from joins_of(step.steps)


def private_datasets(steps: Sequence[Step]) -> Iterator[Dataset]:
    """The private datasets that steps read, beside that of the question."""
    for step in steps:
        if isinstance(step, Join) and not step.public:
            yield step.dataset
        elif isinstance(step, PersonJoin):
            yield step.dataset
            yield from private_datasets(step.steps)


def check_steps(steps: Sequence[Step], unit: Unit) -> None:
    """Refuse steps that would let one unit move the rows of another."""
    _depth(steps)
    if sum(isinstance(step, PerPerson) for step in steps) > 1:
        raise InvalidInput("the rows are one a person already; nothing was done.")
    beside: list[str] = []
    for step in steps:
        match step:
            case Join():
                check_joins([step], unit)
                beside.append(step.dataset.name)
                continue
            case PerPerson():
                beside = []
            case PersonJoin():
                beside.append(step.name)
                check_steps(step.steps, unit)
        if not isinstance(unit, User | Family):
            raise no_persons(unit)
        if step.person != unit.column:
            raise Refused(
                f"one row for each {step.person!r} is asked for, and persons are identified by {unit.column!r}: one "
                "person could change the row of another. Nothing was read and nothing was spent."
            )
        _check_names(beside)
    _check_names(beside)


def no_persons(unit: Unit | None) -> Refused:
    """The refusal of a question about persons where nothing identifies them."""
    under = "" if unit is None else f" Under {describe(unit)} one more row could change all that is known of a person."
    return Refused(
        "one row a person can be made where persons are protected and a column identifies them; nothing was read and "
        f"nothing was spent.{under} Declare the table in a vault with unit=sf.user('patient_id', relation=…)."
    )


def _check_names(names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise InvalidInput("two joined tables have one name; nothing was done.")


def _depth(steps: Sequence[Step], deep: int = 0) -> int:
    """How many steps there are in all; too many, or too deep inside each other, are refused."""
    if deep > DEEPEST:
        raise InvalidInput(f"questions about persons are nested more than {DEEPEST} deep; nothing was done.")
    found = sum(1 + (_depth(step.steps, deep + 1) if isinstance(step, PersonJoin) else 0) for step in steps)
    if found > MOST_STEPS:
        raise InvalidInput(f"a question has more than {MOST_STEPS} steps; nothing was done. Ask a simpler one.")
    return found
