"""The forms of works: what is chosen becomes a study or synthetic rows of a table, and the code that asks the same.

Only public facts are used; every name is checked against the schema, and every constant is read as its column's type.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sfumato.core.exact import rational
from sfumato.core.limits import Limit
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import Expression, Type
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.server.asking.form import Condition, condition_of, condition_sql, conditions_of
from sfumato.tables.column_facts import ColumnFacts, Key
from sfumato.tables.schema import Schema
from sfumato.tables.sql import condition as read_condition

if TYPE_CHECKING:
    from sfumato.tables.study import Study
    from sfumato.tables.table import Table

__all__ = [
    "ONE_ROW",
    "REGRESSIONS",
    "ChosenTable",
    "RegressionForm",
    "SurvivalForm",
    "WorkForm",
    "column_of",
    "key_of",
    "whole_number",
]

NUMBERS = (Type.WHOLE, Type.NUMBER)
REGRESSIONS = ("linear", "logistic")
ONE_ROW = Limit(groups=1, rows_per_group=1)
MOST_USED = 60
SIGNS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenTable:
    """Which rows and which ranges: the table that a work is asked of. One row of each person counts."""

    dataset: str
    conditions: tuple[Condition, ...] = ()
    ranges: tuple[tuple[str, str, str], ...] = ()
    """Columns with another range than the declared one; values are held to it."""

    @classmethod
    def read(cls, dataset: str, said: Mapping[str, str], used: tuple[str, ...]) -> "ChosenTable":
        """What fields say of it, and of the ranges of the columns in use."""
        names = [name.removeprefix("low:") for name, text in said.items() if name.startswith("low:")]
        return cls(
            dataset=dataset,
            conditions=conditions_of(said),
            ranges=tuple((name, said[f"low:{name}"], said.get(f"high:{name}", "")) for name in names if name in used),
        )

    @property
    def fields(self) -> dict[str, str]:
        """The fields that say the same."""
        found: dict[str, str] = {}
        for place, each in enumerate(self.conditions, 1):
            found |= _condition_fields(f"where{place}_", each)
        for name, low, high in self.ranges:
            found |= {f"low:{name}": low, f"high:{name}": high}
        return found

    def limit(self, schema: Schema) -> Limit | None:
        """The limit that holds: one row of each person, where the declared one lets more in."""
        return ONE_ROW if _several(schema) else None

    def narrowed(self, schema: Schema, used: tuple[str, ...]) -> dict[str, tuple[Fraction, Fraction]]:
        """The ranges of the columns in use that are not the declared ones."""
        found = {}
        for name, low, high in self.ranges:
            if name not in used or not (low or high):
                continue
            column = column_of(schema, name)
            if column.bounds is None or column.type not in NUMBERS:
                raise InvalidInput(f"{name!r} has no declared range of numbers to narrow; nothing was done.")
            first, last = (
                rational(text, f"the range of {name}") if text else Fraction(str(end))
                for text, end in zip((low, high), column.bounds, strict=True)
            )
            if first >= last:
                raise InvalidInput(f"the range of {name!r} goes from a smaller to a larger number; nothing was done.")
            if (first, last) != column.bounds:
                found[name] = (first, last)
        return found

    def applied(self, table: "Table", schema: Schema, used: tuple[str, ...]) -> "Table":
        """The table that this chooses: its rows, its ranges, the values of columns that are true or false."""
        for each in self.conditions:
            table = table.where(condition_sql(each, schema))
        narrowed = self.narrowed(schema, used)
        if narrowed:
            table = table.with_bounds(**narrowed)
        truths = _truths(schema, used)
        if truths:
            table = table.with_keys(**{name: [False, True] for name in truths})
        limit = self.limit(schema)
        return table if limit is None else table.with_limit(limit)

    def code(self, schema: Schema, used: tuple[str, ...]) -> Iterator[str]:
        """The same in Python."""
        yield f"table = service.table({self.dataset!r})"
        for each in self.conditions:
            yield f"table = table.where({condition_sql(each, schema)!r})"
        narrowed = {name: (str(low), str(high)) for name, (low, high) in self.narrowed(schema, used).items()}
        if narrowed:
            yield f"table = table.with_bounds(**{narrowed!r})"
        truths = _truths(schema, used)
        if truths:
            yield f"table = table.with_keys(**{ {name: [False, True] for name in truths}!r})"
        if _several(schema):
            yield "table = table.with_limit(sf.Limit(groups=1, rows_per_group=1))"


class WorkForm(Protocol):
    """What all forms of works have: fields that say them again, and code that asks the same."""

    @property
    def kind(self) -> str:
        """Which form it is."""
        ...

    @property
    def chosen(self) -> ChosenTable:
        """Which rows and ranges of which data."""
        ...

    @property
    def dataset(self) -> str:
        """Whom it is asked of."""
        ...

    @property
    def fields(self) -> dict[str, str]:
        """The fields that say the same form again."""
        ...

    def code(self, schema: Schema, spend: str) -> tuple[str, ...]:
        """The same in Python, as lines; ``spend`` are the arguments of what is charged."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalForm:
    """How long until an event, by group: Kaplan and Meier's curves, the log-rank test, hazard ratios.

    >>> said = {"time": "week", "event_column": "relapsed", "until": "52", "group": "arm"}
    >>> form = SurvivalForm.read("trial", said)
    >>> SurvivalForm.read("trial", form.fields) == form
    True
    """

    kind: ClassVar[str] = "survival"
    chosen: ChosenTable
    time: str
    event: Condition
    until: str = ""
    steps: str = ""
    by: str = ""

    @property
    def dataset(self) -> str:
        """Whom it is asked of."""
        return self.chosen.dataset

    @classmethod
    def read(cls, dataset: str, said: Mapping[str, str]) -> "SurvivalForm":
        """The form that fields say."""
        event = condition_of(said, "event_")
        if not said.get("time") or event is None:
            raise InvalidInput(
                "a survival study needs the column with the time, and how the event is known; nothing was done. "
                "Choose both."
            )
        return cls(
            chosen=ChosenTable.read(dataset, said, ()),
            time=said["time"],
            event=event,
            until=said.get("until", ""),
            steps=said.get("steps", ""),
            by=said.get("group", ""),
        )

    @property
    def fields(self) -> dict[str, str]:
        """The fields that say the same form again."""
        own = {"time": self.time, "until": self.until, "steps": self.steps, "group": self.by}
        return {**own, **_condition_fields("event_", self.event), **self.chosen.fields}

    def study(self, table: "Table", schema: Schema) -> "Study[Any]":
        """The study that it asks for."""
        chosen = self.chosen.applied(table, schema, self._used)
        return chosen.survival(
            self.time,
            self._event(schema),
            until=None if not self.until else rational(self.until, "until"),
            steps=whole_number(self.steps, "steps"),
            by=self.by or None,
        )

    def code(self, schema: Schema, spend: str) -> tuple[str, ...]:
        """The same in Python."""
        event = self._event(schema)
        text = repr(event) if isinstance(event, str) else _python(self.event, column_of(schema, self.event.column))
        given = [repr(self.time), text]
        given += [f"until={self.until!r}"] if self.until else []
        given += [f"steps={whole_number(self.steps, 'steps')}"] if self.steps else []
        given += [f"by={self.by!r}"] if self.by else []
        asked = f"study = table.survival({', '.join(given)})"
        return (*self.chosen.code(schema, self._used), asked, *_released(spend))

    @property
    def _used(self) -> tuple[str, ...]:
        return tuple(name for name in (self.time, self.by) if name)

    def _event(self, schema: Schema) -> str | Expression:
        """A column of truth values as it is, so that who has none does not count; else a condition."""
        column = column_of(schema, self.event.column)
        truth = column.type is Type.TRUTH and self.event.operator == "="
        if truth and self.event.value.lower() in ("", "true"):
            return column.name
        if column.keys and self.event.operator in ("=", "<>"):
            key_of(column, self.event.value)
        found: Expression = read_condition(condition_sql(self.event, schema), self.dataset)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionForm:
    """A linear or logistic regression of one column on others.

    >>> form = RegressionForm.read("linear", "patients", {"outcome": "sbp", "use": "age"})
    >>> RegressionForm.read("linear", "patients", form.fields) == form
    True
    """

    kind: str
    chosen: ChosenTable
    outcome: str
    covariates: tuple[str, ...] = field(default=())
    event: str = ""
    """Which value of the outcome is the event, where it is logistic; empty for the last one."""

    @property
    def dataset(self) -> str:
        """Whom it is asked of."""
        return self.chosen.dataset

    @classmethod
    def read(cls, kind: str, dataset: str, said: Mapping[str, str]) -> "RegressionForm":
        """The form that fields say; ``use`` has a covariate in each line."""
        covariates = tuple(dict.fromkeys(said.get("use", "").splitlines()))
        if not said.get("outcome") or not covariates:
            raise InvalidInput(
                "a regression needs an outcome and at least one column that may explain it; nothing was done. Choose "
                "them."
            )
        if len(covariates) > MOST_USED:
            raise InvalidInput(f"a form takes {MOST_USED} columns at most; nothing was done. Choose fewer.")
        if said["outcome"] in covariates:
            raise InvalidInput("the outcome does not explain itself; nothing was done. Take it out of the others.")
        event = said.get("event", "") if kind == "logistic" else ""
        chosen = ChosenTable.read(dataset, said, (said["outcome"], *covariates))
        return cls(kind=kind, chosen=chosen, outcome=said["outcome"], covariates=covariates, event=event)

    @property
    def fields(self) -> dict[str, str]:
        """The fields that say the same form again."""
        own = {"outcome": self.outcome, "use": "\n".join(self.covariates), "event": self.event}
        return {**own, **self.chosen.fields}

    def study(self, table: "Table", schema: Schema) -> "Study[Any]":
        """The study that it asks for."""
        chosen = self.chosen.applied(table, schema, self._used)
        if self.kind == "linear":
            return chosen.linear_regression(outcome=self.outcome, covariates=self.covariates)
        return chosen.logistic_regression(
            outcome=self.outcome, covariates=self.covariates, event=self._event_key(schema)
        )

    def code(self, schema: Schema, spend: str) -> tuple[str, ...]:
        """The same in Python."""
        given = f"outcome={self.outcome!r}, covariates={list(self.covariates)!r}"
        event = None if self.kind == "linear" else self._event_key(schema)
        if event is not None:
            given += f", event={event!r}"
        asked = f"study = table.{self.kind}_regression({given})"
        return (*self.chosen.code(schema, self._used), asked, *_released(spend))

    @property
    def _used(self) -> tuple[str, ...]:
        return (self.outcome, *self.covariates)

    def _event_key(self, schema: Schema) -> Key | None:
        return None if not self.event else key_of(column_of(schema, self.outcome), self.event)


def column_of(schema: Schema, name: str) -> ColumnFacts:
    """A declared column; never that of persons."""
    found = {column.name: column for column in schema.columns if column.name != schema.unit}
    if name not in found:
        raise InvalidInput(
            f"{name[:60]!r} is not a column of {schema.name!r} that can be used here; nothing was done."
            f"{did_you_mean(name, found)}"
        )
    return found[name]


def key_of(column: ColumnFacts, text: str) -> Key:
    """A declared value of a column, as it was written in a form."""
    keys: tuple[Key, ...] = column.keys or ((False, True) if column.type is Type.TRUTH else ())
    for key in keys:
        if text in (str(key), str(key).lower()):
            return key
    raise NotDeclared(f"that is no declared value of {column.name!r}; nothing was done. Choose one of the list.")


def _truths(schema: Schema, used: tuple[str, ...]) -> list[str]:
    """Columns in use that are true or false and list no values: what they are is public."""
    return [
        column.name
        for column in schema.columns
        if column.name in used and column.type is Type.TRUTH and not column.keys
    ]


def _several(schema: Schema) -> bool:
    return schema.limit is not None and schema.limit.rows != 1


def _condition_fields(prefix: str, condition: Condition) -> dict[str, str]:
    return {
        f"{prefix}column": condition.column,
        f"{prefix}operator": condition.operator,
        f"{prefix}value": condition.value,
    }


def _python(condition: Condition, column: ColumnFacts) -> str:
    """A condition as Python writes it, after it was read as SQL."""
    value = condition.value
    match column.type:
        case Type.TEXT:
            constant = repr(value)
        case Type.TRUTH:
            constant = str(value.lower() == "true")
        case Type.DATE | Type.TIME:
            constant = f"date.fromisoformat({value!r})"
        case _:
            constant = value
    return f"sf.col({column.name!r}) {SIGNS[condition.operator]} {constant}"


def whole_number(text: str, what: str) -> int | None:
    """A whole number of a form; None where nothing was written."""
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"{what} is a whole number; nothing was done.")
    return int(text)


def _released(spend: str) -> tuple[str, ...]:
    return (f"result = study.release({spend})", "print(result)", "result.plot()")
