"""The form of a question: what is asked, of whom and by which groups; it is written as SQL, which everybody can read.

Only public facts are used: names, types, declared keys, bounds and periods of columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from sfumato.core.exact import decimal_up, rational
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import Type
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.schema import Schema

__all__ = [
    "MEASURES",
    "MOST_CONDITIONS",
    "OPERATORS",
    "Condition",
    "GroupChoice",
    "QuestionForm",
    "condition_of",
    "condition_sql",
    "conditions_of",
    "group_choices",
    "value_columns",
]

MEASURES = ("count", "persons", "sum", "mean", "median", "share")
"""What can be asked by the form; SQL has more."""
OF_VALUES = ("sum", "mean", "median")
OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
ORDERED = (Type.WHOLE, Type.NUMBER, Type.DATE, Type.TIME)
NUMBERS = (Type.WHOLE, Type.NUMBER)
DAYS = (Type.DATE, Type.TIME)
CALENDAR = ("month", "year")
MOST_CONDITIONS = 3
MOST_GROUPS = 2
MOST_BANDS, FEWEST_BANDS = 60, 2
WIDTHS = (1, 5, 10, 20, 50, 100, 1_000, 10_000)
LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A comparison of a column with a constant, as it is typed."""

    column: str
    operator: str = "="
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChoice:
    """Something that answers can be grouped by: a column with keys, a column in bands, or the calendar of one."""

    column: str
    step: str = ""
    """The width of a band, or ``month`` or ``year``; empty where each key is a group."""

    @property
    def code(self) -> str:
        """How it is named in a form.

        >>> GroupChoice(column="age", step="10").code
        'age/10'
        """
        return f"{self.column}/{self.step}" if self.step else self.column


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionForm:
    """A question as a form states it.

    Guarantee: what becomes of it is SQL over declared columns; every name is checked against the schema, and every
    constant is written as its column's type. Public: all of it.

    >>> from sfumato.core.limits import Limit
    >>> region = ColumnFacts(name="region", type=Type.TEXT, keys=("north", "south"))
    >>> visits = Schema(name="visits", edition="1", unit="id", limit=Limit(groups=1, rows_per_group=1),
    ...                 columns=(ColumnFacts(name="id", type=Type.TEXT), region))
    >>> QuestionForm(dataset="visits", groups=("region",)).to_sql(visits)
    'SELECT "region", COUNT(*) AS "count" FROM "visits" GROUP BY "region"'
    """

    dataset: str
    measure: str = "count"
    value: str = ""
    groups: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    share: Condition | None = None
    """Of which rows the share is asked, where ``measure`` is ``share``."""

    @classmethod
    def read(cls, dataset: str, fields: Mapping[str, str]) -> "QuestionForm":
        """The form that fields of a page say; empty ones say nothing."""
        said = {name: text.strip() for name, text in fields.items()}
        for name, text in said.items():
            if len(text) > LONGEST and name != "sql":
                raise InvalidInput(
                    f"the field {name[:40]} has more than {LONGEST} characters; nothing was done. Ask in SQL."
                )

        measure = said.get("measure") or "count"
        groups = (said.get(f"group{place}", "") for place in range(1, MOST_GROUPS + 1))
        return cls(
            dataset=dataset,
            measure=measure,
            value=said.get("value", "") if measure in OF_VALUES else "",
            groups=tuple(dict.fromkeys(group for group in groups if group)),
            conditions=conditions_of(said),
            share=condition_of(said, "share_") if measure == "share" else None,
        )

    def to_sql(self, schema: Schema) -> str:
        """The same question in SQL; refused where the schema does not allow it, in words that say what would do."""
        choices = {choice.code: choice for choice in group_choices(schema)}
        groups = [_group(code, choices) for code in self.groups]
        shown = [f"{text} AS {_name(alias)}" if alias != column else text for text, alias, column in groups]
        selected = ", ".join([*shown, f"{self._aggregate(schema)} AS {_name(self.measure)}"])
        where = " AND ".join(condition_sql(each, schema) for each in self.conditions)
        by = ", ".join(_name(alias) for _, alias, _ in groups)
        clauses = (
            ("SELECT", selected),
            ("FROM", _name(str(schema.name))),
            ("WHERE", where),
            ("GROUP BY", by),
        )
        return " ".join(f"{word} {said}" for word, said in clauses if said)

    def _aggregate(self, schema: Schema) -> str:
        match self.measure:
            case "count":
                return "COUNT(*)"
            case "persons":
                if schema.unit is None:
                    raise NotDeclared(
                        f"{schema.name!r} declares no column that tells persons apart, so persons cannot be counted; "
                        "nothing was done. Count rows."
                    )
                return f"COUNT(DISTINCT {_name(schema.unit)})"
            case "sum" | "mean" | "median":
                column = _column(self.value, schema, [each.name for each in value_columns(schema)], "with a range")
                function = {"sum": "SUM", "mean": "AVG", "median": "MEDIAN"}[self.measure]
                return f"{function}({_name(column.name)})"
            case "share":
                if self.share is None:
                    raise InvalidInput("a share needs the rows that it is the share of; nothing was done. Choose them.")
                return f"AVG({condition_sql(self.share, schema)})"
        raise InvalidInput(
            f"the form asks for {', '.join(MEASURES)}, and not for {self.measure[:40]!r}; nothing was done. SQL has "
            "more."
        )


def condition_of(said: Mapping[str, str], prefix: str) -> Condition | None:
    """One condition of a form, whose fields begin with a prefix; None where no column is chosen."""
    column = said.get(f"{prefix}column", "")
    if not column:
        return None
    operator = said.get(f"{prefix}operator") or "="
    return Condition(column=column, operator=operator, value=said.get(f"{prefix}value", ""))


def conditions_of(said: Mapping[str, str]) -> tuple[Condition, ...]:
    """The conditions of a form on which rows count."""
    wanted = (condition_of(said, f"where{place}_") for place in range(1, MOST_CONDITIONS + 1))
    return tuple(each for each in wanted if each is not None)


def group_choices(schema: Schema) -> tuple[GroupChoice, ...]:
    """What answers can be grouped by, from declared keys, bounds and periods; never the column of persons.

    >>> age = ColumnFacts(name="age", type=Type.WHOLE, bounds=(0, 99))
    >>> [choice.code for choice in group_choices(Schema(name="v", columns=(age,)))][:3]
    ['age/5', 'age/10', 'age/20']
    """
    return tuple(choice for column in schema.columns if column.name != schema.unit for choice in _choices(column))


def value_columns(schema: Schema) -> tuple[ColumnFacts, ...]:
    """The columns whose sums, means and medians can be asked for: numbers with a declared range."""
    return tuple(
        column
        for column in schema.columns
        if column.type in NUMBERS and column.bounds is not None and column.name != schema.unit
    )


def _choices(column: ColumnFacts) -> Iterator[GroupChoice]:
    if column.keys:
        yield GroupChoice(column=column.name)
    elif column.bounds is not None and column.type in DAYS:
        yield from (GroupChoice(column=column.name, step=step) for step in CALENDAR)
    elif column.bounds is not None and column.type in NUMBERS:
        low, high = column.bounds
        for width in WIDTHS:
            if FEWEST_BANDS <= (high - low) / width <= MOST_BANDS:  # type: ignore[operator]  # of numbers, as asked
                yield GroupChoice(column=column.name, step=str(width))


def _group(code: str, choices: Mapping[str, GroupChoice]) -> tuple[str, str, str]:
    """A group as SQL, the name that it has in the answer, and the column that it is made of."""
    choice = choices.get(code)
    if choice is None:
        raise InvalidInput(
            f"answers cannot be grouped by {code[:60]!r} here; nothing was done.{did_you_mean(code, choices)} Group by "
            f"{', '.join(list(choices)[:8]) or 'nothing: no column declares its values'}."
        )
    column = _name(choice.column)
    if not choice.step:
        return column, choice.column, choice.column
    if choice.step in CALENDAR:
        return f"DATE_TRUNC('{choice.step}', {column})", f"{choice.column} by {choice.step}", choice.column
    if choice.step == "1":
        return f"FLOOR({column})", f"{choice.column} from", choice.column
    return f"FLOOR({column} / {choice.step}) * {choice.step}", f"{choice.column} from", choice.column


def condition_sql(condition: Condition, schema: Schema) -> str:
    """A condition as SQL: a declared column, a comparison that its type has, and a constant of its type."""
    names = [column.name for column in schema.columns if column.name != schema.unit]
    column = _column(condition.column, schema, names, "that can be compared")
    ordered = column.type in ORDERED
    if condition.operator not in OPERATORS or (not ordered and condition.operator not in OPERATORS[:2]):
        allowed = OPERATORS if ordered else OPERATORS[:2]
        raise InvalidInput(f"{column.name!r} is compared by {' '.join(allowed)}; nothing was done. Choose one of them.")
    return f"{_name(column.name)} {condition.operator} {_constant(condition.value, column)}"


def _column(name: str, schema: Schema, names: Sequence[str], which: str) -> ColumnFacts:
    if name not in names:
        raise InvalidInput(
            f"{name[:60]!r} is not a column of {schema.name!r} {which}; nothing was done."
            f"{did_you_mean(name, names)} Choose one of {', '.join(names[:8]) or 'none'}."
        )
    return next(column for column in schema.columns if column.name == name)


def _constant(text: str, column: ColumnFacts) -> str:
    """A constant as SQL writes one of this type."""
    match column.type:
        case Type.TEXT:
            return "'" + text.replace("'", "''") + "'"
        case Type.TRUTH:
            if text.lower() in ("true", "false"):
                return text.upper()
            raise InvalidInput(f"{column.name!r} is true or false; nothing was done. Say one of the two.")
        case Type.DATE | Type.TIME:
            try:
                return f"DATE '{date.fromisoformat(text).isoformat()}'"
            except ValueError:
                raise InvalidInput(
                    f"{column.name!r} is compared with a day such as 2026-01-31; nothing was done. Write one."
                ) from None
    try:
        number = rational(text, column.name)
    except InvalidInput:
        raise InvalidInput(f"{column.name!r} is compared with a number; nothing was done. Write one.") from None
    if column.type is Type.WHOLE and number.denominator != 1:
        raise InvalidInput(f"{column.name!r} holds whole numbers; nothing was done. Compare it with one.")
    if abs(number) >= 10**15:
        raise InvalidInput(f"{column.name!r} is compared with a number below 10^15; nothing was done. Write one.")
    return str(number) if number.denominator == 1 else decimal_up(number, 15)


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
