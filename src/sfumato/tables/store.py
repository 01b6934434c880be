"""The tables that a vault holds, and how their questions are answered."""

import secrets
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TypeGuard

from sfumato.core.deprecation import renamed
from sfumato.core.exact import Exact, natural
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Query, ReleasedQuery
from sfumato.core.stored import Stored
from sfumato.core.units import Family, Relation, Unit, User
from sfumato.engines.sources import Source, check_derived
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.gate.setting import Setting
from sfumato.tables.clamped import range_of
from sfumato.tables.contribution import contribution
from sfumato.tables.execution import Beside, check_columns, exact_numbers
from sfumato.tables.held_rows import HeldRows, hold_rows
from sfumato.tables.keys import KeyValue, keys_of
from sfumato.tables.measures.batch_mean import BatchMean
from sfumato.tables.persons import ONE_ROW_A_PERSON, is_per_person, joins_of, private_datasets
from sfumato.tables.provenance import ProvenanceColumns, provenance_of
from sfumato.tables.public import PublicTable
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.question_parts import TABLE_QUERIES, TableQuery, check_parts
from sfumato.tables.schema import Schema
from sfumato.tables.table import Table
from sfumato.tables.usefulness import says_nothing

__all__ = ["TableStore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Holding:
    """What is kept of a declared table."""

    source: Source
    limit: Limit | None
    n_units: int | None
    population: int | None = None
    provenance: ProvenanceColumns = ()


class TableStore:
    """Declared tables: private ones with their limits, and public ones to join them with."""

    def __init__(self, setting: Setting) -> None:
        self._setting, self._unit, self._name, self._budget = setting, setting.unit, setting.name, setting.budget
        self._holdings: dict[Dataset, _Holding] = {}
        self._public: dict[Dataset, PublicTable] = {}
        self._secret = secrets.token_hex(16)
        self._given: Limit | None = None

    @renamed(number="n_units")
    def declare(
        self,
        data: object,
        *,
        schema: Schema | str | Path | None = None,
        name: str | None = None,
        version: str | None = None,
        limit: Limit | None = None,
        bounds: Mapping[str, tuple[Exact, Exact] | tuple[date, date]] | None = None,
        keys: Mapping[str, Iterable[KeyValue | date]] | None = None,
        n_units: int | None = None,
        derived: bool = False,
        zones: Mapping[str, str] | None = None,
        provenance: Mapping[str, str] | None = None,
    ) -> Table:
        """Declare a table: where its rows are, and the public facts about them.

        A file is not opened; a data frame is taken over as it is now. Nothing is counted and nothing is spent.

        ``version`` is a label of yours for this state of the data (a random one if you give none). ``limit`` says how
        much of each person counts and is enforced; questions that add up rows of persons need one, here or from
        :meth:`Table.with_limit`. ``keys`` lists, for each column to group by, all its values; ``bounds`` gives, for
        each column to sum, the public range that its values are held to, and for each column of dates or times its
        period, from a first to a last day. ``zones`` names, for columns of times with a zone, the zone whose clock they
        are read by, such as ``"Europe/Berlin"``. ``n_units`` is how many units there are, where that is public: under
        *replace*, and used where every unit counts as one row and no value can be missing. ``provenance`` names the
        columns that say where a row comes from, ``{"batch": "batch_no", "instrument": "device", "site": …, "step":
        …}``, for :meth:`Table.compare_batches`. A ``schema`` says all this at once; what is given beside it takes its
        place.

        Rows must be stored ones, with row-wise steps on them at most. A view, a query or a lazy frame that cannot be
        shown to be row-wise is refused. With ``derived=True`` it is taken: then you, the steward, vouch that each row
        of it depends on the rows of one protected unit only, and every certificate says that you do.

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
        >>> table = vault.table(pa.table({"sex": ["F", "M"]}), name="people", version="1", keys={"sex": ["F", "M"]})
        >>> table.dataset
        Dataset(name='people', edition='1')
        """
        types, population, cells = None, None, None
        if schema is not None:
            schema = schema if isinstance(schema, Schema) else Schema.load(schema)
            said, types, population = schema.declaration(self._unit), schema.types, schema.population
            cells = schema.cell_formats
            if schema.population is not None:
                self._budget.judged(schema.population)
            name, version = name or said["name"], version or said["version"]
            limit = limit.in_words_of(said["limit"]) if isinstance(limit, Limit) else limit or said["limit"]
            bounds, keys = {**said["bounds"], **(bounds or {})}, {**said["keys"], **(keys or {})}
            zones = {**said["zones"], **(zones or {})}
            provenance = {**said["provenance"], **(provenance or {})}
            derived = derived or schema.derived
            n_units = schema.n_units if n_units is None and self._unit.relation is Relation.REPLACE else n_units
        check_derived(derived)
        if name is None:
            raise NotDeclared("a table needs a public name, which its releases state. Say name='visits'.")
        dataset = Dataset(name=name, edition=secrets.token_hex(8) if version is None else version)
        if any(known.name == name for known in self._public):
            raise Refused(f"a public table is called {name!r} already; nothing was done. Give the table another name.")
        if dataset in self._holdings:
            raise Refused(
                f"{name!r} version {version!r} is declared already, and stored answers would be mixed with those of "
                "other rows. Nothing was done. Give the new state of the data a new version."
            )
        origins = provenance_of(provenance or {})
        ranges = {column: range_of(column, pair) for column, pair in (bounds or {}).items()}
        declared = {column: keys_of(column, values) for column, values in (keys or {}).items()}
        if limit is not None or not isinstance(self._unit, User | Family):  # else questions that need one ask for it
            contribution(self._unit, limit)  # refuses a unit or a limit that does not fit rows
        if n_units is not None and self._unit.relation is not Relation.REPLACE:
            raise Refused(
                "the number of units is secret under add/remove, and saying it would undo that. Nothing was done. "
                "Leave it out, or protect units under replace."
            )
        if n_units is not None:
            natural(n_units, "n_units")
        single = not isinstance(self._unit, User | Family) or limit == Limit(groups=1, rows_per_group=1)
        source = Source(data, types, derived=derived, unit=_told_by(self._unit), zones=zones, cells=cells)
        self._holdings[dataset] = _Holding(
            source=source, limit=limit, n_units=n_units, population=population, provenance=origins
        )
        notary = self._setting.notary
        held = HeldRows(source=source, n_units=n_units, unit=self._unit, notary=notary, store=self)
        hold_rows(self._setting.gate, dataset, held)
        return Table(
            gate=self._setting.gate,
            dataset=dataset,
            keys=declared,
            bounds=ranges,
            n_units=n_units if single else None,
            limit=limit,
            most_rows=None if limit is None else limit.rows,
            integers=source.integers,
            provenance=dict(origins),
        )

    def public(self, data: object, *, name: str | None = None, version: str = "1") -> PublicTable:
        """Declare a public table, to be joined with private ones: a Parquet or CSV file, or a data frame.

        Everyone may see its rows: nothing of it is protected. Its values are public keys and bounds.

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
        >>> places = vault.public(pa.table({"hospital": ["A", "B"], "region": ["north", "south"]}), name="places")
        >>> list(places.columns)
        ['hospital', 'region']
        """
        if name is None:
            raise NotDeclared("a public table needs a name, which its columns are called by. Say name='hospitals'.")
        table = PublicTable.of(data, Dataset(name=name, edition=version))
        if table.dataset in self._public or any(known.name == name for known in self._holdings):
            raise Refused(f"a table {name!r} is declared already; nothing was done. Give it another name or version.")
        self._public[table.dataset] = table
        return table

    def answers(self, query: Query) -> TypeGuard[ReleasedQuery]:
        """Whether this is a question about tables; a subclass could state a sensitivity of its own."""
        return type(query) in TABLE_QUERIES

    def check(self, query: TableQuery) -> None:
        """Refuse a query with foreign parts, or about data that is not declared."""
        check_parts(query)
        for dataset in self.private(query):
            self._check_known(dataset, dataset in self._holdings)
        for join in joins_of(query.joins):
            if join.public:
                self._check_known(join.dataset, join.dataset in self._public)
                self._public[join.dataset].check_unique([there for _, there in join.on])
                if join.content != self._public[join.dataset].content:
                    raise Refused(
                        f"the public table {join.dataset.name!r} that this asks with is not the one declared here: "
                        "its content is another. Nothing was read and nothing was spent. Make questions with the "
                        "methods of the table."
                    )
        self._check_provenance(query)
        n_units = self._holdings[query.dataset].n_units
        if isinstance(query, Aggregate) and query.number not in (None, n_units):
            raise Refused(
                f"the number of units that this asks with was not declared for {query.dataset.name!r}; nothing was "
                "read and nothing was spent. Declare n_units=… with the table."
            )

    def _check_provenance(self, query: TableQuery) -> None:
        """Refuse a comparison of batches by a column that was not declared as such."""
        if not isinstance(query, Aggregate):
            return
        for measure in (each for each in query.measures if isinstance(each, BatchMean)):
            declared = self._holdings[query.dataset].provenance
            if measure.declared != declared or measure.misplaced(query.by, query.joins) is not None:
                raise Refused(
                    f"the {measure.field} of rows of {query.dataset.name!r} was not declared as this comparison says; "
                    "nothing was read and nothing was spent. Declare provenance={…} with the table and ask "
                    "compare_batches(…)."
                )

    def limited(self, limit: Limit) -> "TableStore":
        """The same tables, of which another limit than the declared one holds for the table that is asked."""
        contribution(self._unit, limit)  # refuses a unit that has no limit
        other = copy(self)
        other._given = limit
        return other

    def limit(self, query: TableQuery) -> Limit | None:
        """How much of each person counts; None where all of it does, each person once.

        It is one row where the question makes one row a person, whatever was declared.
        """
        if getattr(query, "UNLIMITED", False):
            return None
        if is_per_person(query.joins):
            return ONE_ROW_A_PERSON
        found = self._holdings[query.dataset].limit if self._given is None else self._given
        if found is not None and any(not join.public for join in joins_of(query.joins)):
            return replace(found, row=None)  # what is counted then are pairs of rows
        return found

    def private(self, query: TableQuery) -> list[Dataset]:
        """The private datasets that a query reads."""
        return list(dict.fromkeys([query.dataset, *private_datasets(query.joins)]))

    def derived(self, query: TableQuery) -> list[Dataset]:
        """Those of them that were declared as derived."""
        return [dataset for dataset in self.private(query) if self._holdings[dataset].source.derived]

    def says_nothing(self, query: TableQuery, law: Law) -> str | None:
        """Why an answer with this error would say nothing, from what was declared."""
        return says_nothing(query, law, most_rows=self._most_rows(query))

    def _most_rows(self, query: TableQuery) -> int | None:
        """How many rows can count in one group, where a public number of units bounds that."""
        held = self._holdings[query.dataset]
        units = held.n_units or held.population or self._setting.population
        if units is None:
            return None
        members = self._unit.size if isinstance(self._unit, Family) else 1
        return units * members * (1 if held.limit is None else held.limit.rows_per_group)

    def check_fit(self, query: TableQuery) -> None:
        """Refuse a query that does not fit the names and types of the columns; no row is read."""
        check_columns(query, self._beside(query), self._unit)

    def stored(self, query: TableQuery) -> dict[Dataset, Stored]:
        """What the rows are known by, once the columns were looked at."""
        return {dataset: self._holdings[dataset].source.stored for dataset in self.private(query)}

    def read(self, query: TableQuery) -> object:
        """Add up in the engine. Sensitive: the result is exact."""
        limit = self.limit(query)
        return exact_numbers(query, self._beside(query), unit=self._unit, limit=limit, secret=self._secret)

    def _check_known(self, dataset: Dataset, known: bool) -> None:  # noqa: FBT001 - reads as one sentence
        if not known:
            raise InvalidInput(
                f"vault {self._name!r} holds no dataset {dataset.name!r} version {dataset.edition!r}; "
                "nothing was read and nothing was spent. Declare it with vault.table(...) or vault.public(...)."
            )

    def _beside(self, query: TableQuery) -> Beside:
        """The sources of all tables that a query names."""
        private = {dataset: self._holdings[dataset].source for dataset in private_datasets(query.joins)}
        public = {join.dataset: self._public[join.dataset] for join in joins_of(query.joins) if join.public}
        limits = {dataset: limit for dataset in private if (limit := self._holdings[dataset].limit) is not None}
        own = self._holdings[query.dataset]
        return Beside(own=own.source, private=private, public=public, limits=limits, limit=self._given or own.limit)


def _told_by(unit: Unit) -> tuple[str, ...]:
    """The column that identifies units, where there is one."""
    return (unit.column,) if isinstance(unit, User | Family) else ()
