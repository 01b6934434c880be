"""The form of synthetic rows: which columns, how many rows, into how many bins numbers are cut."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from sfumato.errors import InvalidInput
from sfumato.server.works.forms import ChosenTable, column_of, whole_number
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    from sfumato.tables.synthesized import Synthesis
    from sfumato.tables.table import Table

__all__ = ["SyntheticForm"]

MOST_COLUMNS = 30
MOST_ROWS = 200_000
"""More are made by a program, from the same release, for nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticForm:
    """A file of rows that look like the data, made of noisy tables of their columns.

    >>> said = {"use": "sex\\nage", "rows_made": "500", "rows": "10000", "bins:age": "8", "bins:stay": "8"}
    >>> form = SyntheticForm.read("stays", said)
    >>> SyntheticForm.read("stays", form.fields) == form, form.bins
    (True, (('age', '8'),))
    """

    kind: ClassVar[str] = "synthetic"
    chosen: ChosenTable
    columns: tuple[str, ...]
    rows: str = ""
    """How many are written; empty for the noisy number of rows."""
    expected: str = ""
    """How many rows the data have, as far as the public knows: what is measured follows from it."""
    bins: tuple[tuple[str, str], ...] = field(default=())

    @property
    def dataset(self) -> str:
        """Whom it is asked of."""
        return self.chosen.dataset

    @classmethod
    def read(cls, dataset: str, said: Mapping[str, str]) -> "SyntheticForm":
        """The form that fields say; ``use`` has a column in each line."""
        columns = tuple(dict.fromkeys(said.get("use", "").splitlines()))
        if len(columns) < 2:
            raise InvalidInput("synthetic rows need at least two columns; nothing was done. Choose them.")
        if len(columns) > MOST_COLUMNS:
            raise InvalidInput(f"a form takes {MOST_COLUMNS} columns at most; nothing was done. Choose fewer.")
        rows = said.get("rows_made", "")
        if (whole_number(rows, "the number of rows") or 0) > MOST_ROWS:
            raise InvalidInput(
                f"{MOST_ROWS:,} rows at most are made here; nothing was done. The notebook makes more of the same "
                "answer, for nothing more."
            )
        bins = [(name.removeprefix("bins:"), text) for name, text in said.items() if name.startswith("bins:") and text]
        return cls(
            chosen=ChosenTable.read(dataset, said, columns),
            columns=columns,
            rows=rows,
            expected=said.get("rows", ""),
            bins=tuple((name, text) for name, text in bins if name in columns),
        )

    @property
    def fields(self) -> dict[str, str]:
        """The fields that say the same form again."""
        own = {"use": "\n".join(self.columns), "rows_made": self.rows, "rows": self.expected}
        return {**own, **{f"bins:{name}": text for name, text in self.bins}, **self.chosen.fields}

    def synthesis(self, table: "Table", schema: Schema) -> "Synthesis":
        """What it asks for, before its price is said."""
        return self.chosen.applied(table, schema, self.columns).synthesis(
            self.columns, rows=self._rows, expected_rows=self._expected, bins=self._bins(schema)
        )

    def code(self, schema: Schema, spend: str) -> tuple[str, ...]:
        """The same in Python."""
        given = [repr(list(self.columns))]
        given += [f"rows={self._rows}"] if self.rows else []
        given += [f"expected_rows={self._expected}"] if self.expected else []
        bins = self._bins(schema)
        given += [f"bins={bins!r}"] if bins else []
        made = f"made = table.synthesis({', '.join(given)}).release({spend})"
        return (*self.chosen.code(schema, self.columns), made, "print(made.explain())", 'made.to_csv("rows.csv")')

    @property
    def _rows(self) -> int | None:
        return whole_number(self.rows, "the number of rows")

    @property
    def _expected(self) -> int | None:
        return whole_number(self.expected, "the number of rows that are expected")

    def _bins(self, schema: Schema) -> dict[str, int]:
        """Into how many bins each column with a range and without a list of values is cut."""
        found = {}
        for name, text in self.bins:
            column = column_of(schema, name)
            number = whole_number(text, f"the number of bins of {name}")
            if number is not None and not column.keys and column.bounds is not None:
                found[name] = number
        return found
