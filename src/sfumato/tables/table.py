"""Tables: the handle that an analyst builds questions with; it holds public facts and no rows.

The file is long because everything that can be asked of a table is a method of one class, with its guarantee and an
example; what they do is in the modules that they call.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from sfumato.core.deprecation import renamed, withdrawn
from sfumato.core.description import plain
from sfumato.core.exact import Exact, positive, probability
from sfumato.core.limits import Limit
from sfumato.core.notebook_card import card
from sfumato.core.query import Dataset, Query
from sfumato.core.question import Gate, Question
from sfumato.core.release import Release
from sfumato.core.suggestion import did_you_mean, no_attribute
from sfumato.core.units import Family, User
from sfumato.engines.expressions import (
    AllOf,
    Arithmetic,
    Bounds,
    Column,
    Date,
    Expression,
    Floor,
    Known,
    Named,
    Nearest,
    OneOf,
    Rounded,
    Term,
    Text,
    Truth,
    Type,
    Value,
    ValueOneOf,
    Whole,
    col,
    condition_of,
    possible_values,
    term,
    whole_values,
    written,
)
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.tables.clamped import Clamped, clamped, range_of
from sfumato.tables.joins import Join, prefixed
from sfumato.tables.keys import Keys, KeyValue, keys_of
from sfumato.tables.measure import Asked, Measure
from sfumato.tables.measures.association import correlation, covariance
from sfumato.tables.measures.average import mean
from sfumato.tables.measures.person_count import persons
from sfumato.tables.measures.proportion import proportion
from sfumato.tables.measures.quantile import median
from sfumato.tables.measures.quotient import ratio
from sfumato.tables.measures.total import sum_of
from sfumato.tables.measures.variation import standard_deviation, variance
from sfumato.tables.of_person import MOST_LISTED, AskedOfPerson, PublicFacts, person_value
from sfumato.tables.persons import PerPerson, PersonJoin, Step, is_per_person, made_of_cut_rows, no_persons
from sfumato.tables.public import PublicTable
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.contributions import Contributions
from sfumato.tables.queries.count import Count
from sfumato.tables.queries.layered_count import LayeredCount
from sfumato.tables.queries.limit_suggestion import LimitSuggestion
from sfumato.tables.queries.magnitudes import Magnitudes
from sfumato.tables.queries.marginals import Marginals
from sfumato.tables.queries.partition_selection import PartitionSelection
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.queries.top import TopGroups
from sfumato.tables.studied import StudiedTable

__all__ = ["Table"]

Some = TypeVar("Some", bound=str | Exact | tuple[str, str])


@withdrawn(gate="the vault that declared the table")
@renamed(number="n_units")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Table(StudiedTable):
    """Rows about people, behind a gate.

    Public: the name, the version, the declared keys and bounds. Each method returns a new table or a question;
    nothing is read and nothing is spent until a question is released.

    Guarantee: a table by itself says nothing about its rows; what a question costs and how exact it is follows from the
    declaration. Assumes: what was declared is public and was not read off the rows.

    >>> from sfumato.demo.clinic import visits
    >>> table = visits()
    >>> question = table.group_by("sex").count()
    >>> question.query.labels(), question.preview(epsilon=1).margin
    ({'sex': ['F', 'M']}, 6)
    """

    gate: InitVar[Gate]
    _gate: Gate = field(init=False, repr=False)
    dataset: Dataset
    keys: Mapping[str, Keys]
    bounds: Bounds
    n_units: int | None = None
    predicate: Expression | None = None
    by: tuple[Keys, ...] = ()
    joins: tuple[Step, ...] = ()
    limit: Limit | None = None
    """How much of each person counts."""
    relimited: bool = False
    """Whether that is another limit than the one that the table was declared with."""
    most_rows: int | None = None
    """Of one person, by the limit of the table; values of persons have their range from it."""
    wholes: frozenset[str] = frozenset()
    """Columns that are known to hold whole numbers, few enough to be groups by themselves."""
    integers: frozenset[str] = frozenset()
    """Columns whose type is known to be whole numbers before the data are opened; their quantiles are whole."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """The columns that say where a row comes from: batch, instrument, site and step of processing."""

    def __post_init__(self, gate: Gate) -> None:
        object.__setattr__(self, "_gate", gate)

    def where(self, predicate: Expression | Term | str) -> "Table":
        """Keep the rows that meet a predicate, such as ``sf.col("age") >= 65``; several calls must all be met.

        A column of truth values is one: ``where(sf.col("died"))``. A text is read as SQL:
        ``"age >= 65 AND diagnosis = 'ILI'"`` (docs/how-to/sql.md).

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> from sfumato.engines.expressions import written
        >>> table = visits().where(sf.col("age") >= 65).where("sex = 'F'")
        >>> written(table.predicate)
        '(age >= 65) and (sex = "F")'
        """
        if isinstance(predicate, str):
            from sfumato.tables import sql

            beside = [_name_of(join) for join in self._beside]
            predicate = sql.condition(predicate, self.dataset.name, beside)
        predicate = condition_of(predicate)
        if not isinstance(predicate, Expression):
            raise InvalidInput(
                f"where(...) takes a predicate such as sf.col('age') >= 65 and was given {type(predicate).__name__}; "
                "nothing was done."
            )
        return self._with(predicate=predicate if self.predicate is None else self.predicate & predicate)

    def join(
        self,
        other: "Table | PublicTable",
        on: str | Sequence[str | tuple[str, str]] | Mapping[str, str],
        *,
        how: str = "inner",
    ) -> "Table":
        """Put another table beside the rows: a public one (``vault.public``), or a private one on the same person.

        ``on`` names the columns that must be equal, or maps columns here to columns there, or lists such pairs. The
        other's columns are called by its name: ``sf.col("labs.result")``. Rows without a match do not count; with
        ``how="left"`` they stay beside a public table, whose columns are missing then. A private table must be joined
        on the person, and the limit then holds for the rows that the join made.

        Guarantee: no person changes what is counted of another; a join that would is refused when it is asked.

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
        >>> table = vault.table(pa.table({"hospital": ["A", "B", "A"]}), name="visits", version="1")
        >>> places = vault.public(pa.table({"hospital": ["A", "B"], "region": ["north", "south"]}), name="places")
        >>> table.join(places, on="hospital").group_by("places.region").count().query.labels()
        {'places.region': ['north', 'south']}
        """
        if how not in ("inner", "left"):
            raise InvalidInput("join(...) is 'inner' or 'left'; nothing was done.")
        listed = on.items() if isinstance(on, Mapping) else _listed(on, "on")
        pairs = tuple(each if isinstance(each, tuple) and len(each) == 2 else (each, each) for each in listed)
        if not all(isinstance(name, str) for pair in pairs for name in pair):
            raise InvalidInput("join(...) takes names of columns; nothing was done. Say on='hospital'.")
        keys, bounds, integers = dict(self.keys), dict(self.bounds), self.integers
        if isinstance(other, PublicTable):
            other.check_unique([there for _, there in pairs])
            integers |= {prefixed(other.dataset, name) for name, kind in other.types.items() if kind is Type.WHOLE}
            for column in other.columns:
                name = prefixed(other.dataset, column)
                found, limits = other.keys(column, name), other.bounds(column)
                keys |= {} if found is None else {name: found}
                bounds |= {} if limits is None else {name: limits}
        elif isinstance(other, Table) and other._gate is self._gate and other._as_declared:
            for column, found in other.keys.items():
                keys[prefixed(other.dataset, column)] = replace(found, column=prefixed(other.dataset, column))
            bounds |= {prefixed(other.dataset, column): limits for column, limits in other.bounds.items()}
            integers |= {prefixed(other.dataset, column) for column in other.integers}
        else:
            raise InvalidInput(
                "join(...) takes a public table, or a table of the same vault as it was declared; nothing was done. "
                "Filter and group after the join. One row a person stands beside rows by with_persons(...)."
            )
        join = Join(
            dataset=other.dataset,
            on=pairs,
            public=isinstance(other, PublicTable),
            content=other.content if isinstance(other, PublicTable) else None,
            unmatched=how == "left",
        )
        most = self.most_rows
        if isinstance(other, Table):
            most = None if most is None or other.most_rows is None else most * other.most_rows
        joins = (*self.joins, join)
        return self._with(keys=keys, bounds=bounds, integers=integers, n_units=None, joins=joins, most_rows=most)

    def per_person(self, /, **values: Asked | AskedOfPerson) -> "Table":
        """A table with one row a person, made of all rows of that person that meet the conditions so far.

        ``stays=sf.count(), total=sf.sum("cost"), ward=sf.first("ward", by="admitted"), ever=sf.any(…)`` name its
        columns; it is then asked as any other table. A person counts in it as one row in one group, whatever the limit
        of the table is: the limit does not cut rows here, and only gives counts and sums their range. A person without
        a row that counts is not in it.

        Guarantee: a person's row depends on that person's rows alone. Assumes: the vault protects persons, whom a
        column identifies; rows without one do not count. Proof: docs/proofs/per_person.md

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> often = visits().per_person(visits=sf.count()).where(sf.col("visits") >= 2)
        >>> often.count().preview(epsilon=1).margin
        3
        """
        unit = getattr(self._gate, "unit", None)
        if not isinstance(unit, User | Family):
            raise no_persons(unit)
        if self.by or is_per_person(self.joins):
            raise InvalidInput(
                "per_person(...) takes a table that is neither grouped nor one row a person already; nothing was done."
            )
        made = tuple(person_value(name, asked, self.bounds) for name, asked in values.items())
        step = PerPerson(person=unit.column, values=made, where=self.predicate)
        facts = self._facts.of_persons(made)
        return self._with(
            joins=(*self.joins, step),
            predicate=None,
            n_units=None,
            keys=facts.keys,
            bounds=facts.bounds,
            wholes=facts.wholes,
            integers=facts.integers,
            most_rows=facts.most_rows,
        )

    def with_persons(self, /, **tables: "Table") -> "Table":
        """Put beside each row what other rows of the same person say: tables with one row a person, each by a name.

        ``stays.with_persons(first=stays.per_person(left=sf.min("discharged")))`` has the column ``first.left``. All
        rows stay, and no row becomes two; where a person has no row there, its columns are missing.

        Guarantee: what stands beside a person's rows depends on that person alone.

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> table = visits()
        >>> beside = table.with_persons(all=table.per_person(visits=sf.count()))
        >>> written(beside.where(sf.col("all.visits") >= 2).predicate)
        'all.visits >= 2'
        """
        keys, bounds, steps = dict(self.keys), dict(self.bounds), list(self.joins)
        wholes, integers = set(self.wholes), set(self.integers)
        for name, other in tables.items():
            if not isinstance(other, Table) or other._gate is not self._gate or not is_per_person(other.joins):
                raise InvalidInput(
                    f"with_persons({name}=...) takes a table of the same vault with one row a person, such as "
                    "table.per_person(visits=sf.count()); nothing was done."
                )
            if other.by:
                raise InvalidInput(f"the table {name!r} is grouped; nothing was done. Group the table it is put to.")
            if other.relimited and made_of_cut_rows(other.joins):
                raise InvalidInput(
                    f"the table {name!r} was given another limit before a private join, which does not hold beside a "
                    "person; nothing was done. Declare that limit with its table."
                )
            steps.append(PersonJoin(dataset=other.dataset, name=name, steps=other.joins, where=other.predicate))
            for column, found in other.keys.items():
                keys[f"{name}.{column}"] = replace(found, column=f"{name}.{column}")
            bounds |= {f"{name}.{column}": limits for column, limits in other.bounds.items()}
            wholes |= {f"{name}.{column}" for column in other.wholes}
            integers |= {f"{name}.{column}" for column in other.integers}
        return self._with(
            keys=keys,
            bounds=bounds,
            wholes=frozenset(wholes),
            integers=frozenset(integers),
            joins=tuple(steps),
            n_units=None,
        )

    def group_by(self, *columns: str, other: str | None = None, **values: Term) -> "Table":
        """Ask for one answer for each value of these columns; their values must have been declared as keys.

        ``band=sf.col("age").cut([0, 40, 65])`` groups by a value that is computed, whose groups follow from the
        expression, from the declared keys of its columns (``sf.col("sex").lower()``) or from their declared periods
        (``sf.col("admitted").truncate("month")``). ``other="rest"`` puts rows with a value that is not declared, or
        with none, into a last group of each column; without it they do not count.

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> visits().group_by(band=sf.col("age").cut([0, 40, 65])).count().query.labels()
        {'band': ['[0, 40)', '[40, 65)']}
        >>> visits().group_by("hospital", other="elsewhere").count().query.labels()
        {'hospital': ['A', 'B', 'elsewhere']}
        """
        keys = [*(self._declared(column) for column in columns), *(self._computed(*named) for named in values.items())]
        if other is not None:
            keys = [replace(each, other=other) for each in keys]
        return self._with(by=self.by + tuple(keys))

    def sql(self, text: str, *others: "Table | PublicTable") -> Question:
        """Ask in SQL: ``SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex``; it becomes the same question.

        ``others`` are the tables that the text may JOIN.

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> table = visits()
        >>> asked = table.sql("SELECT sex, COUNT(*) AS n FROM visits GROUP BY sex")
        >>> asked.query == table.group_by("sex").agg(n=sf.count()).query
        True
        """
        from sfumato.tables import sql

        return sql.question(self, text, others)

    def count(self, *, uncut_to: int | None = None, uncut_share: Exact = Fraction(1, 2)) -> Question:
        """Ask how many rows there are, in each group.

        With ``uncut_to`` rows beyond the limit count too, up to this many of each person in each group: a second layer
        above the limit, in the same charge. The column ``count`` is then all of them, with an interval that covers what
        the limit cuts; ``within_limit`` is the count within the limit. ``uncut_share`` of ε goes to the second layer.

        >>> from sfumato.demo.clinic import visits
        >>> visits().count().preview(epsilon=1).margin
        6
        >>> visits().count(uncut_to=10).query.names
        ('count', 'within_limit')
        """
        if uncut_to is None:
            return self._question(Count(dataset=self.dataset, where=self.predicate, by=self.by, joins=self.joins))
        if self.limit is None:
            raise NotDeclared(
                "uncut_to counts rows beyond a limit, and there is none: nothing was read and nothing was spent. Say "
                "with_limit(…) first, or, where single rows are protected, leave uncut_to out."
            )
        query = LayeredCount(
            dataset=self.dataset,
            within=self.limit.rows_per_group,
            uncut_to=uncut_to,
            share=probability(uncut_share, "uncut_share"),
            where=self.predicate,
            by=self.by,
            joins=self.joins,
        )
        return self._question(query)

    def persons(self) -> Question:
        """Ask how many persons have a row, in each group.

        A person counts once in a group, so this is more exact than a count of rows.

        >>> from sfumato.demo.clinic import visits
        >>> visits().persons().preview(epsilon=1).margin
        3
        """
        return self.agg(persons=persons())

    def sum(self, value: str | Term | Expression) -> Question:
        """Ask for the sum of a column, or of a value computed from columns, in each group.

        The sum of a condition is the number of rows that meet it. Rows without a value add nothing. Assumes: bounds of
        the columns are declared; values outside are moved to them.

        >>> from sfumato.demo.clinic import visits
        >>> visits().sum("weight")
        Traceback (most recent call last):
        sfumato.errors.NotDeclared: the range of weight does not follow from declared bounds, ...
        """
        return self.agg(sum=sum_of(value))

    def mean(self, value: str | Term | Expression) -> Question:
        """Ask for the mean of a column, or of a value computed from columns, in each group.

        The mean of a condition is the share of the rows that meet it. Rows without a value do not count.
        ``preview(rows=…)`` gives the margin in a group of this many rows.

        >>> from sfumato.demo.clinic import visits
        >>> few, many = (visits().mean("sbp").preview(epsilon=1, rows=rows).margin for rows in (100, 1000))
        >>> few == 10 * many
        True
        """
        return self.agg(mean=mean(value))

    def variance(self, value: str | Term) -> Question:
        """Ask for the variance, in each group.

        It is the mean of squared distances from the mean, and divides by n.

        >>> from sfumato.demo.clinic import visits
        >>> visits().variance("sbp").query.names
        ('variance',)
        """
        return self.agg(variance=variance(value))

    def standard_deviation(self, value: str | Term) -> Question:
        """Ask for the standard deviation, in each group.

        >>> from sfumato.demo.clinic import visits
        >>> visits().standard_deviation("sbp").query.names
        ('standard_deviation',)
        """
        return self.agg(standard_deviation=standard_deviation(value))

    def proportion(self, condition: Expression | str) -> Question:
        """Ask which share of the rows meets a condition, or is true in a column of truth values, in each group.

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> visits().proportion(sf.col("age") >= 65).preview(epsilon=1, rows=1000).margin < 0.006
        True
        """
        return self.agg(proportion=proportion(condition))

    def ratio(self, over: str | Term, under: str | Term) -> Question:
        """Ask for the sum of one value over the sum of another, in each group.

        >>> from sfumato.demo.clinic import visits
        >>> visits().ratio("sbp", "age").preview(epsilon=1).untold
        ('ratio',)
        """
        return self.agg(ratio=ratio(over, under))

    def covariance(self, first: str | Term, second: str | Term) -> Question:
        """Ask for the covariance of two values, in each group.

        >>> from sfumato.demo.clinic import visits
        >>> visits().covariance("sbp", "age").query.names
        ('covariance',)
        """
        return self.agg(covariance=covariance(first, second))

    def correlation(self, first: str | Term, second: str | Term) -> Question:
        """Ask for the correlation of two values, in each group.

        >>> from sfumato.demo.clinic import visits
        >>> visits().correlation("sbp", "age").query.names
        ('correlation',)
        """
        return self.agg(correlation=correlation(first, second))

    def histogram(self, value: str | Term, edges: Sequence[object]) -> Question:
        """Ask how many rows lie between each two edges; the lower edge belongs to a bin, the upper one does not.

        >>> from sfumato.demo.clinic import visits
        >>> visits().histogram("age", [0, 18, 65, 120]).query.labels()
        {'age': ['[0, 18)', '[18, 65)', '[65, 120)']}
        """
        term = col(value) if isinstance(value, str) else value
        if not isinstance(term, Term):
            raise InvalidInput(
                f"histogram(...) takes a column or a value such as sf.col('age') and was given {type(value).__name__}; "
                "nothing was done."
            )
        name = value if isinstance(value, str) else "bin"
        return self._with(by=(*self.by, self._computed(name, term.cut(edges)))).count()

    def median(self, value: str | Term) -> Question:
        """Ask for the median, in each group, with an interval: it is read off a noisy histogram (:func:`sf.median`).

        :meth:`quantiles` chooses a finer point, which has no interval.

        >>> from sfumato.demo.clinic import visits
        >>> visits().median("sbp").query.names
        ('median',)
        """
        return self.agg(median=median(value))

    def quantiles(self, value: str | Term, levels: Sequence[Exact]) -> Question:
        """Ask for quantiles, such as ``[0.25, 0.5, 0.75]``, in each group; several cost little more than one.

        They are chosen from a fine lattice by their rank: there is no interval, and the rank is bounded.

        >>> from sfumato.demo.clinic import visits
        >>> visits().quantiles("sbp", [0.25, 0.5, 0.9]).query.names
        ('p25', 'median', 'p90')
        """
        exact = tuple(sorted(probability(level, "quantile") for level in _listed(levels, "levels")))
        query = Quantiles(
            dataset=self.dataset,
            of=clamped(value, self.bounds),
            levels=exact,
            where=self.predicate,
            by=self.by,
            joins=self.joins,
        )
        return self._question(query)

    def find_keys(self, *columns: str, counted: bool = True) -> Question:
        """Ask which values of some columns enough persons share; release it with a δ.

        With ``counted`` the answer says how many persons have each; without, it names more of them. What is found is
        public: declare it as keys with :meth:`with_keys`.

        Guarantee: a key that one person alone has is shown with probability δ at most.

        >>> from sfumato.demo.clinic import visits
        >>> visits().find_keys("hospital").query.names
        ('hospital', 'persons')
        >>> visits().find_keys("hospital").release(epsilon=1)
        Traceback (most recent call last):
        sfumato.errors.NotDeclared: private key discovery needs a δ: ...
        """
        if self.by:
            raise InvalidInput("keys are found in a table that is not grouped; nothing was done.")
        query = PartitionSelection(
            dataset=self.dataset, over=columns, counted=counted, where=self.predicate, joins=self.joins
        )
        return self._question(query)

    def with_keys(self, **keys: Iterable[KeyValue | date]) -> "Table":
        """The table with further declared keys, such as those that were found; each must be a public fact.

        >>> from sfumato.demo.clinic import visits
        >>> visits().with_keys(age=[19, 34, 58]).group_by("age").count().query.labels()
        {'age': [19, 34, 58]}
        """
        return self._with(keys={**self.keys, **{column: keys_of(column, values) for column, values in keys.items()}})

    def marginals(self, *tables: Sequence[str]) -> Question:
        """Ask for several tables of counts at once, such as ``["age"], ["age", "sex"]``, for one charge.

        >>> from sfumato.demo.clinic import visits
        >>> visits().marginals(["sex"], ["sex", "hospital"]).query.size
        6
        """
        if self.by:
            raise InvalidInput("marginals name their own columns; nothing was done. Leave group_by(...) out.")
        query = Marginals(
            dataset=self.dataset,
            tables=tuple(
                tuple(self._declared(column) for column in _listed(columns, "marginals")) for columns in tables
            ),
            where=self.predicate,
            joins=self.joins,
        )
        return self._question(query)

    def top(self, choices: int) -> Question:
        """Ask which groups have the most rows: their names, not their counts.

        >>> from sfumato.demo.clinic import visits
        >>> visits().group_by("hospital").top(1).release(epsilon=1).to_arrow().column_names
        ['place', 'hospital', 'limit']
        """
        query = TopGroups(dataset=self.dataset, by=self.by, choices=choices, where=self.predicate, joins=self.joins)
        return self._question(query)

    def agg(self, /, **measures: Asked) -> Question:
        """Ask for several measures at once, such as ``n=sf.count(), sbp=sf.mean("sbp")``: one scan, one charge.

        Measures of one value share what they can: its count, sum, mean and variance together cost no more than one.

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> by_sex = visits().group_by("sex")
        >>> one = by_sex.mean("sbp")
        >>> four = by_sex.agg(n=sf.count(), total=sf.sum("sbp"), sbp=sf.mean("sbp"), spread=sf.variance("sbp"))
        >>> one.preview(epsilon=1).sensitivity.l1 == four.preview(epsilon=1).sensitivity.l1
        True
        """
        for name, asked in measures.items():
            if not isinstance(asked, Asked):
                raise InvalidInput(_no_measure(name, asked))
        bound = (asked.bound(name, self.bounds) for name, asked in measures.items())
        named = tuple(measure.of_whole_columns(self._facts.whole_columns) for measure in bound)
        return self._question(
            Aggregate(
                dataset=self.dataset,
                measures=named,
                where=self.predicate,
                by=self.by,
                number=self._public_number(named),
                joins=self.joins,
            )
        )

    def contributions(self, *, most: int = 1024) -> Question:
        """Ask how contributions are spread: how many persons have how many rows, in powers of two up to ``most``.

        Of a grouped table also in how many groups they have any; rows are then those in the group with most. No limit
        is applied. It shows what a limit would cut: see :meth:`suggest_limit`, which spends less on choosing one.

        Guarantee: each person is in one cell; a person who is replaced moves two counts by 1. Assumes: persons are
        protected.

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
        >>> visits = vault.table(pa.table({"id": [1, 1, 2]}), name="visits", version="1")
        >>> visits.contributions(most=8).release(epsilon=1).to_arrow()["rows"].to_pylist()
        ['1', '2', '3-4', '5-8', '>8']
        """
        query = Contributions(dataset=self.dataset, most=most, where=self.predicate, by=self.by, joins=self.joins)
        return self._question(query)

    def suggest_limit(self, *, spend: Exact | Sequence[Exact], most: int = 1024) -> Question:
        """Ask for a limit that makes the error small: what it cuts and the noise that it needs, both together.

        ``spend`` is the ε that each question gets that you plan to ask under the limit, or a list of them; ``most`` is
        the largest limit that is considered. Of a grouped table groups and rows in each are chosen. Give it about as
        much ε as the question where one follows, and a sixth of everything where ten do; then ask under it:
        ``table.with_limit(release)``.

        Guarantee: a sparse vector over counts of persons above each limit, which one person moves by 1, all in one
        direction. Assumes: persons are protected. Proof: docs/proofs/choosing_limits.md

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
        >>> visits = vault.table(pa.table({"id": [1, 1, 2]}), name="visits", version="1")
        >>> suggested = visits.suggest_limit(spend=1, most=8).release(epsilon=1)
        >>> suggested.values[0] in (1, 2, 3, 4, 6, 8)
        True
        >>> visits.with_limit(suggested).count().release(epsilon=1).statement.limit.groups
        1
        """
        spends = tuple(positive(amount, "spend") for amount in _listed(spend, "spend"))
        query = LimitSuggestion(
            dataset=self.dataset, most=most, spends=spends, where=self.predicate, by=self.by, joins=self.joins
        )
        return self._question(query)

    def suggest_bounds(self, value: str | Term, *, most: Exact, octaves: int = 16) -> Question:
        """Ask for bounds of a column, or of a value computed from columns, which lies within ±``most``.

        The answer counts persons by their largest value, its sign aside, in bins that halve downward from ``most``
        ``octaves`` times; bounds follow from it: ``table.with_bounds(cost=release)``.

        Guarantee: each person is in one cell, whatever the number of rows. Assumes: persons are protected; ``most`` is
        a public fact.

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=99), name="trial")
        >>> stays = vault.table(pa.table({"id": list(range(200)), "cost": [900.0] * 200}), name="stays", version="1")
        >>> suggested = stays.suggest_bounds("cost", most=65536).release(epsilon=50)
        >>> tuple(map(int, stays.with_bounds(cost=suggested).bounds["cost"]))
        (0, 1024)
        """
        if self.by:
            raise InvalidInput("bounds are suggested for a table that is not grouped; nothing was done.")
        high = positive(most, "most")
        node = term(col(value) if isinstance(value, str) else value).node
        query = Magnitudes(
            dataset=self.dataset,
            of=Clamped(value=node, low=-high, high=high),
            octaves=octaves,
            where=self.predicate,
            joins=self.joins,
        )
        return self._question(query)

    def with_limit(self, limit: Limit | Release) -> "Table":
        """The table under another limit: an ``sf.Limit``, or the release of :meth:`suggest_limit`.

        How much of each person counts is a choice, made from public facts: noise follows from it.

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> visits().with_limit(sf.Limit(groups=1, rows_per_group=1)).limit.rows
        1
        """
        if isinstance(limit, Release) and isinstance(limit.statement.query, LimitSuggestion):
            limit = limit.statement.query.limit_of(limit.values)
        if not isinstance(limit, Limit):
            raise InvalidInput(
                f"with_limit(...) takes an sf.Limit or the release of suggest_limit(...) and was given "
                f"{type(limit).__name__}; nothing was done."
            )
        limit = limit.in_words_of(self.limit)
        single = limit == Limit(groups=1, rows_per_group=1)
        known = self.n_units if single else None
        return self._with(limit=limit, relimited=True, n_units=known, most_rows=limit.rows)

    def with_bounds(self, **bounds: tuple[Exact, Exact] | Release) -> "Table":
        """The table with further bounds: pairs (low, high), or releases of :meth:`suggest_bounds`.

        >>> from sfumato.demo.clinic import visits
        >>> visits().with_bounds(weight=(2, 200)).sum("weight").query.names
        ('sum',)
        """
        return self._with(bounds={**self.bounds, **{name: _bounds(name, given) for name, given in bounds.items()}})

    def _question(self, query: Query) -> Question:
        """A question at the gate of the vault, or at the one where another limit holds."""
        if self.relimited and made_of_cut_rows(self.joins):
            raise InvalidInput(
                "another limit cannot be given where a private join comes before per_person(...): it would cut what "
                "the row of a person is made of, and nobody would see it. Nothing was done. Declare that limit with "
                "the table."
            )
        gate = self._gate if self.limit is None or not self.relimited else self._gate.limited(self.limit)
        return Question(query=query, gate=gate)

    def _shown(self) -> list[tuple[str, str]]:
        """What was declared and asked so far, by its name: public all of it."""
        facts = [
            ("where", "" if self.predicate is None else str(self.predicate)),
            ("grouped by", _some(keys.column for keys in self.by)),
            ("joined with", _some(_name_of(join) for join in self._beside)),
            ("rows", "one row a person" if is_per_person(self.joins) else ""),
            ("keys", _some(f"{name} ({keys.size:,})" for name, keys in self.keys.items())),
            ("bounds", _some(f"{name} {_end(low)} to {_end(high)}" for name, (low, high) in self.bounds.items())),
        ]
        return [(name, said) for name, said in facts if said]

    def __repr__(self) -> str:
        signs = {"keys": ": ", "bounds": ": "}
        facts = [said if name == "rows" else f"{name}{signs.get(name, ' ')}{said}" for name, said in self._shown()]
        facts.append("no row was read for this")
        return f"Table {self.dataset.name!r}, version {self.dataset.edition!r}; {'; '.join(facts)}"

    def _repr_html_(self) -> str:
        title = f"Table {self.dataset.name!r}, version {self.dataset.edition!r}"
        return card(title, self._shown(), "No row was read for this.")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name)

    def _with(self, **changes: Any) -> "Table":  # fields, each of its own type
        return replace(self, gate=self._gate, **changes)

    @property
    def _as_declared(self) -> bool:
        return self.predicate is None and not self.joins and not self.by and not self.relimited

    @property
    def _facts(self) -> PublicFacts:
        return PublicFacts(
            keys=self.keys,
            bounds=self.bounds,
            wholes=self.wholes,
            integers=self.integers,
            most_rows=self.most_rows,
        )

    @property
    def _beside(self) -> tuple[Join | PersonJoin, ...]:
        """What stands beside the rows now: steps before one row a person are inside that."""
        steps: list[Join | PersonJoin] = []
        for step in self.joins:
            steps = [] if isinstance(step, PerPerson) else [*steps, step]
        return tuple(steps)

    def _public_number(self, measures: Sequence[Measure]) -> int | None:
        """The public number of units, where it says how many rows the answer is about: none can lack a value."""
        plain = (
            self.predicate is None
            and not self.by
            and all(each.of_public_number and all(value.complete for value in each.ranges) for each in measures)
        )
        return self.n_units if plain else None

    def _declared(self, column: str) -> Keys:
        if not isinstance(column, str):
            raise InvalidInput(
                f"group_by(...) takes names of columns and was given {type(column).__name__}; nothing was done. Name a "
                "computed value: group_by(band=sf.col('age').cut([0, 40, 65]))."
            )
        if column not in self.keys and column in self.wholes:
            raise NotDeclared(
                f"{column!r} can be any whole number{self._said_range(column)}, and groups are listed by themselves up "
                f"to {MOST_LISTED:,}. Nothing was done. Bound it: group_by(n=sf.least(sf.col({column!r}), 10)), in SQL "
                f"LEAST({column}, 10); or list the groups: with_keys({column}=range(1, 11))."
            )
        if column not in self.keys:
            asked = self._asked_for(Named(column=column))
            if asked is not None:
                return Keys(column=column, values=asked)
            declared = ", ".join(sorted(self.keys)) or "none"
            raise NotDeclared(
                f"values of {column!r} are not declared, and reading them off the data would reveal who is in it. "
                f"Nothing was done. Declare keys={{{column!r}: [...]}} for the table (declared: {declared}), or ask "
                f"which there are: find_keys({column!r}).{did_you_mean(column, self.keys)}"
            )
        return self.keys[column]

    def _said_range(self, column: str) -> str:
        if column not in self.bounds:
            return ""
        low, high = self.bounds[column]
        return f" from {int(low):,} to {int(high):,}"  # type: ignore[arg-type]  # numbers, since it holds whole ones

    def _asked_for(self, value: Value) -> tuple[KeyValue | Date, ...] | None:
        """The values that the question itself leaves of a column or value, where it lists them: rows have no others."""
        for part in self.predicate.parts if isinstance(self.predicate, AllOf) else (self.predicate,):
            match part:
                case OneOf() if value == Named(column=part.column):
                    constants = part.constants
                case ValueOneOf() if value == part.part:
                    constants = part.constants
                case _:
                    continue
            if all(isinstance(each, Text | Whole | Truth) for each in constants):
                return tuple(each.value for each in constants if isinstance(each, Text | Whole | Truth))
            if all(isinstance(each, Date) for each in constants):
                return tuple(each for each in constants if isinstance(each, Date))
        return None

    def _computed(self, name: str, value: Term) -> Keys:
        """Keys that follow from an expression, and from what is declared of its columns."""
        if not isinstance(value, Term) or isinstance(value, Column):
            raise InvalidInput(
                f"group_by({name}=...) takes a computed value such as sf.col('age').cut([0, 40, 65]); nothing was "
                "done. Columns are given by name."
            )
        keys = {column: each.values for column, each in self.keys.items() if each.value is None}
        listed = possible_values(value, Known(keys=keys, bounds=self.bounds)) or self._asked_for(value.node)
        plain = listed is None
        listed = listed or whole_values(value, self.bounds, self.wholes, most=MOST_LISTED)
        if listed is None:
            raise NotDeclared(
                f"which values {written(value.node)} can take does not follow from it; nothing was done. Declare the "
                "keys of its columns, or of times their period, bounds={'admitted': (first day, last day)}. Or cut it "
                "into bins, make it of constants with sf.when(...), bound whole numbers with sf.least(...), name the "
                "values that count with where(value.isin([...])), or ask which values a column has with find_keys(...)."
            )
        whole = not plain and isinstance(value.node, Arithmetic | Floor | Rounded)  # numbers that are whole
        return Keys(column=name, values=listed, value=Nearest(part=value.node) if whole else value.node)


def _name_of(join: Join | PersonJoin) -> str:
    """What a table beside the rows is called."""
    return join.name if isinstance(join, PersonJoin) else join.dataset.name


def _some(texts: Iterable[str]) -> str:
    """The first ten of a list."""
    listed = list(texts)
    return ", ".join(listed[:10]) + (f" and {len(listed) - 10:,} more" if len(listed) > 10 else "")


def _end(end: Fraction | date) -> str:
    """An end of a range or of a period."""
    return end.isoformat() if isinstance(end, date) else plain(end)


def _no_measure(name: str, asked: object) -> str:
    hint = ""
    if isinstance(asked, AskedOfPerson):
        hint = " It is made of one person's rows: use it in per_person(...)."
    elif isinstance(asked, Expression):
        hint = " Of a condition, where(condition).count() counts the rows, and sf.proportion(condition) is their share."
    return (
        f"agg({name}=...) takes a measure such as sf.mean('sbp') and was given {type(asked).__name__}; nothing was "
        f"done.{hint}"
    )


def _listed(given: Some | Sequence[Some], what: str) -> Sequence[Some]:
    """One thing or a list of them, as a list."""
    if isinstance(given, str | int | float | Fraction):
        return [given]
    if not isinstance(given, Sequence):
        raise InvalidInput(f"{what} must be a list and was given {type(given).__name__}; nothing was done.")
    return given


def _bounds(
    column: str, given: tuple[Exact, Exact] | tuple[date, date] | Release
) -> tuple[Fraction, Fraction] | tuple[date, date]:
    """A pair of bounds, or those that a release suggests."""
    if isinstance(given, Release) and isinstance(given.statement.query, Magnitudes):
        return given.statement.query.bounds_of(given.statement)
    return range_of(column, given)
