"""Random questions in SQL, composed of all that the SQL of this product has.

Joins with public and private tables, one row a person, who is in a subquery, conditions with three truth values, keys,
several aggregates, and what is done with the answer: each can stand in any of the others where the SQL has that.
"""

import random
from dataclasses import dataclass, field, replace
from typing import Any

from tests.laws.sql_plans import Aggregate, Key, Plan
from tests.laws.sql_scenes import BOUNDS, MONTHS, PUBLIC, REGIONS, WARDS

# ruff: noqa: S608 - the texts are put together on purpose, and nothing here protects anyone


@dataclass(frozen=True, slots=True)
class Scope:
    """What can be named: columns by kind; `one` says that no two rows of a person have the same `place`."""

    columns: dict[str, tuple[str, ...]]
    person: str
    one: bool = False

    @classmethod
    def of(cls, called: str, kinds: dict[str, tuple[str, ...]]) -> "Scope":
        """The columns of a table."""
        return cls(
            {kind: tuple(f"{called}.{name}" for name in some) for kind, some in kinds.items()}, f"{called}.id", True
        )

    def beside(self, other: "Scope", *, one: bool) -> "Scope":
        """With those of another table."""
        kinds = dict.fromkeys([*self.columns, *other.columns])
        return Scope({kind: self.named(kind) + other.named(kind) for kind in kinds}, self.person, one)

    def named(self, *kinds: str) -> tuple[str, ...]:
        return tuple(name for kind in kinds for name in self.columns.get(kind, ()))


@dataclass
class Composer:
    """Draws plans about a scene; `deep` bounds how far subqueries go into each other."""

    chance: random.Random
    own: dict[str, tuple[str, ...]]
    narrow: float = 0.6
    """How often a question has WHERE."""
    traits: set[str] = field(default_factory=set)

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def one_of(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    # -------------------------------------------------------------------------------------------------- conditions

    def condition(self, scope: Scope, deep: int = 2, members: int = 0) -> str:
        """A condition with three truth values."""
        form = self.chance.randrange(9) if deep else 0
        if form in (1, 2, 3):
            parts = [self.condition(scope, deep - 1, members) for _ in range(2)]
            return f"({self.one_of(' AND ', ' OR ').join(parts)})"
        if form == 4:
            return f"NOT ({self.condition(scope, deep - 1, members)})"
        if form == 5:
            said = self.one_of("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE")
            return f"({self.condition(scope, deep - 1)}) {said}"
        if form == 6 and members:
            return self.member(scope, members - 1)
        return self.leaf(scope)

    def leaf(self, scope: Scope) -> str:
        """One comparison or the like."""
        self.traits.add("null logic")
        kinds = [kind for kind, some in scope.columns.items() if some]
        kind = self.chance.choice(kinds)
        x = self.chance.choice(scope.columns[kind])
        no = self.one_of("", "NOT ")
        if self.often(0.12):
            return f"{x} IS {no}NULL"
        match kind:
            case "ward" | "region" | "code":
                some = ", ".join(f"'{each}'" for each in self.chance.sample(["x", "y", "", "é", "7", "north"], 2))
                return self.one_of(
                    f"{x} {no}IN ({some})",
                    f"{x} {no}LIKE '{self.one_of('x', 'é', 'n', '1', 'q')}%'",
                    f"{x} {no}ILIKE '{self.one_of('X', 'Q', 'q', 'N')}%'",
                    f"{x} {self.comparison()} '{self.one_of('x', 'é', '')}'",
                    f"COALESCE({x}, 'x') {self.comparison()} 'x'",
                    f"LENGTH({x}) {self.comparison()} 1",
                    f"UPPER({x}) = '{self.one_of('X', 'É', 'Q1')}'",
                    f"NULLIF({x}, 'x') {self.one_of('=', '<>')} 'y'",
                    *([f"CAST({x} AS BIGINT) {self.comparison()} 7"] if kind == "code" and "." in x else []),
                )
            case "truth":
                return self.one_of(x, f"NOT {x}", f"{x} IS {no}TRUE", f"COALESCE({x}, {self.one_of('TRUE', 'FALSE')})")
            case "day":
                days = sorted(self.chance.sample(["2025-12-31", "2026-01-01", "2026-01-18", "2026-03-01"], 2))
                return self.one_of(
                    f"{x} {self.comparison()} DATE '{days[0]}'",
                    f"{x} {no}BETWEEN DATE '{days[0]}' AND DATE '{days[1]}'",
                    f"EXTRACT({self.one_of('MONTH', 'DAY', 'ISODOW', 'DOW', 'WEEK', 'QUARTER')} FROM {x}) > 2",
                    f"DATE_TRUNC('month', {x}) {self.comparison()} DATE '2026-02-01'",
                    f"DATE_DIFF('{self.one_of('day', 'month')}', {x}, DATE '2026-02-14') {self.comparison()} 1",
                    f"{x} + INTERVAL '1 month' {self.comparison()} DATE '2026-03-01'",
                )
            case "moment":
                return self.one_of(
                    f"{x} {self.comparison()} TIMESTAMP '2026-02-01 00:30:00'",
                    f"EXTRACT({self.one_of('HOUR', 'DAY', 'MINUTE')} FROM {x}) {self.comparison()} 12",
                    f"CAST({x} AS DATE) {self.comparison()} DATE '2026-02-01'",
                    f"{x} + INTERVAL '36 hours' {self.comparison()} TIMESTAMP '2026-02-01 00:30:00'",
                )
            case "tenth" | "money":
                return f"{x} {self.one_of('>', '<', '<>', '=', '<=')} {self.one_of('0.1', '0.3', '0.7', '9.99')}"
            case "mean":
                return f"{x} {self.one_of('>', '<')} {self.one_of('0.1371', '0.6371', '1.0371')}"
        value, low = self.value(scope), self.chance.randint(-3, 4)
        return self.one_of(
            f"{value} {self.comparison()} {low}",
            f"{value} {self.comparison()} {self.value(scope)}",
            f"{value} {no}BETWEEN {low} AND {low + self.chance.randrange(-1, 5)}",
            f"{x} {no}IN ({low}, {low + 2}, 0)",
            f"CASE WHEN {value} > {low} THEN 'h' WHEN {self.simple(scope)} THEN 'l' END {self.one_of('=', '<>')} 'h'",
        )

    def simple(self, scope: Scope) -> str:
        """A condition without others in it."""
        choices = [f"{x} IS {self.one_of('', 'NOT ')}NULL" for x in scope.named("ward", "truth", "day", "half")]
        choices += [f"{x} {self.comparison()} {self.chance.randint(-2, 3)}" for x in scope.named("whole", "half")]
        choices += [f"{x} NOT IN ('x', 'é')" for x in scope.named("ward")] + [*scope.named("truth")]
        return str(self.chance.choice(choices or [f"{scope.person} IS NULL"]))

    def comparison(self) -> str:
        return self.one_of("=", "<>", "<", "<=", ">", ">=")

    def value(self, scope: Scope, *, bounded: bool = False) -> str:
        """A number that is a multiple of a quarter, or missing.

        With ``bounded`` its range is known and a power of two, so that sums of it are exact.
        """
        names = scope.named("whole", "half")
        a, b = self.chance.choice(names), self.chance.choice(names)
        made = self.one_of(
            *[a] * 6,
            f"({a} + {b})",
            f"({a} - {self.chance.randint(0, 3)})",
            f"({a} * {self.one_of(2, 4, b)})",
            f"ABS({a})",
            f"(-{a})",
            f"LEAST({a}, {b})",
            f"GREATEST({a}, {self.chance.randint(-2, 2)})",
            f"COALESCE({a}, {self.one_of(0, 2, b)})",
            f"NULLIF({a}, 0)",
            f"CASE WHEN {self.simple(scope)} THEN {a} ELSE {self.one_of(1, b)} END",
        )
        exact = made in (a, f"ABS({a})", f"(-{a})", f"NULLIF({a}, 0)") and a.split(".")[1] in BOUNDS
        return f"GREATEST(LEAST({made}, 8), -8)" if bounded and not exact else made

    # -------------------------------------------------------------------------------------------------- subqueries

    def table(self, deep: int, called: str = "t") -> tuple[str, Scope]:
        """Rows of a subquery: a table, perhaps with a public one or a private one beside it."""
        name = self.one_of("stays", "labs")
        scope = Scope.of(called, self.own)
        form = self.chance.randrange(6)
        if form == 0:
            self.traits.add("public join in a subquery")
            return self.with_wards(f"{name} AS {called}", scope, called)
        if form == 1 and deep:
            self.traits.add("private join in a subquery")
            return self.with_labs(f"stays AS {called}", scope, called)
        return f"{name} AS {called}", scope

    def with_wards(self, origin: str, scope: Scope, called: str, column: str = "ward") -> tuple[str, Scope]:
        kind = self.one_of("LEFT JOIN", "JOIN", "LEFT JOIN")
        g = f"g{called}"
        beside = Scope.of(g, PUBLIC)
        return f"{origin} {kind} wards AS {g} ON {called}.{column} = {g}.ward", scope.beside(beside, one=scope.one)

    def with_labs(self, origin: str, scope: Scope, called: str) -> tuple[str, Scope]:
        u = f"u{called}"
        more = self.one_of("", f" AND {called}.ward = {u}.ward", f" AND {called}.day = {u}.day", "")
        origin = f"{origin} JOIN labs AS {u} ON {called}.id = {u}.id{more}"
        return origin, scope.beside(Scope.of(u, self.own), one=False)

    def folded(self, scope: Scope) -> tuple[str, str]:
        """One value of all rows of a person, and its kind."""
        whole, half = scope.named("whole"), scope.named("half")
        kind = self.one_of(*(kind for kind, some in scope.columns.items() if some and kind not in ("mean", "money")))
        any_, n = self.chance.choice(scope.columns[kind]), self.chance.choice(whole)
        kept = f" FILTER (WHERE {self.condition(scope, 1)})" if self.often(0.25) else ""
        choices = [
            *[(f"COUNT(*){kept}", "count")] * 2,
            (f"COUNT({any_}){kept}", "count"),
            (f"SUM({n}){kept}", "whole"),
            (f"MIN({n})", "whole"),
            (f"MAX({n}) - MIN({n})", "whole"),
            (f"COALESCE(SUM({n}){kept}, 0)", "whole"),
            (f"BOOL_OR({self.condition(scope, 1)})", "truth"),
            (f"BOOL_AND({self.condition(scope, 1)}){kept}", "truth"),
            (f"NTH_VALUE({n}, 2)", "whole"),
            (f"COUNT(*) * 2 - COUNT({any_})", "whole"),
        ]
        if kind not in ("half", "tenth"):
            choices += [(f"COUNT(DISTINCT {any_})", "count")] * 2
        if half:
            x = self.chance.choice(half)
            choices += [(f"SUM({x}){kept}", "half"), (f"MAX({x})", "half"), (f"AVG({x})", "mean")]
        choices += [(f"AVG({x})", "mean") for x in scope.named("tenth")[:1]]
        choices += [(f"{self.one_of('MIN', 'MAX')}({x})", "day") for x in scope.named("day")[:1]]
        choices += [(f"{self.one_of('MIN', 'MAX')}({x})", "moment") for x in scope.named("moment")[:1]]
        if scope.one:
            by = scope.named("whole")[1]  # the place
            made = self.one_of(
                f"MIN_BY({any_}, {by})",
                f"MAX_BY({any_}, {by})",
                f"FIRST({any_} ORDER BY {by}){kept}",
                f"LAST({any_} ORDER BY {by})",
                f"FIRST({any_} ORDER BY {by} DESC)",
            )
            choices += [(made, kind)] * 5
        return self.chance.choice(choices)

    def grouped(self, deep: int) -> tuple[str, Scope]:
        """A subquery with one row a person, and what it names, without a name before it."""
        origin, scope = self.table(deep)
        where = f" WHERE {self.condition(scope, 1, members=deep)}" if self.often(0.5) else ""
        if self.often(0.1) and scope.one and " JOIN " not in origin:
            self.traits.add("distinct on")
            names = {
                kind: self.chance.choice(some)
                for kind, some in scope.columns.items()
                if kind == "whole" or self.often(0.4)
            }
            listed = ", ".join(["t.id", *(f"{name} AS v{place}" for place, name in enumerate(names.values()))])
            kinds = {kind: (f"v{place}",) for place, kind in enumerate(names)}
            text = f"SELECT DISTINCT ON (t.id) {listed} FROM {origin}{where} ORDER BY t.id, t.place"
            return text, Scope(kinds, "id")
        values = [self.folded(scope) for _ in range(self.one_of(1, 1, 2, 3))]
        kinds = {}
        for place, (_, kind) in enumerate(values):
            kinds[kind] = (*kinds.get(kind, ()), f"v{place}")
        kinds["whole"] = (*kinds.get("whole", ()), *kinds.get("count", ()))
        columns = ", ".join(f"{text} AS v{place}" for place, (text, _) in enumerate(values))
        return f"SELECT t.id, {columns} FROM {origin}{where} GROUP BY t.id{self.last(scope)}", Scope(kinds, "id")

    def last(self, scope: Scope) -> str:
        """HAVING on the rows of one person."""
        if self.often(0.6):
            return ""
        self.traits.add("having of a person")
        n = self.chance.choice(scope.named("whole"))
        parts = [
            self.one_of(
                f"COUNT(*) > {self.chance.randint(0, 3)}",
                f"SUM({n}) {self.comparison()} {self.chance.randint(-3, 8)}",
                f"MIN({n}) IS {self.one_of('', 'NOT ')}NULL",
                f"COUNT(DISTINCT {n}) {self.comparison()} 2",
                f"NOT (MAX({n}) > {self.chance.randint(-1, 6)})",
                f"BOOL_OR({self.leaf(scope)})",
            )
            for _ in range(self.one_of(1, 1, 2))
        ]
        return f" HAVING {self.one_of(' AND ', ' OR ').join(parts)}"

    def persons(self, deep: int) -> str:
        """A subquery that selects persons."""
        origin, scope = self.table(deep)
        where = f" WHERE {self.condition(scope, 1, members=deep)}" if self.often(0.8) else ""
        if self.often(0.3):
            last = self.last(scope) or " HAVING COUNT(*) > 1"
            return f"SELECT t.id FROM {origin}{where} GROUP BY t.id{last}"
        if " JOIN " in origin:
            return f"SELECT t.id FROM {origin}{where} GROUP BY t.id"
        return f"SELECT {self.one_of('', 'DISTINCT ')}t.id FROM {origin}{where}"

    def member(self, scope: Scope, deep: int) -> str:
        """Who is in a subquery, or is not."""
        self.traits.add("membership")
        if self.often(0.3) and scope.person.count("."):
            self.traits.add("exists")
            inner = Scope.of("e", self.own)
            rest = f" AND ({self.condition(inner, 1)})" if self.often(0.7) else ""
            table = self.one_of("stays", "labs")
            no = self.one_of("", "NOT ")
            return f"{no}EXISTS (SELECT 1 FROM {table} AS e WHERE e.id = {scope.person}{rest})"
        return f"{scope.person} {self.one_of('IN', 'NOT IN')} ({self.persons(deep)})"

    # ---------------------------------------------------------------------------------------------------- the plan

    def origin(self) -> tuple[str, str, Scope]:
        """What stands before SELECT, what rows are from, and what can be named in them."""
        own = Scope.of("s", self.own)
        form = self.chance.randrange(8)
        if form in (0, 1):
            return "", "stays AS s", own
        if form == 2:
            self.traits.add("public join")
            return "", *self.with_wards("stays AS s", own, "s")
        if form == 3:
            self.traits.add("private join")
            origin, scope = self.with_labs("stays AS s", own, "s")
            return "", *(self.with_wards(origin, scope, "s") if self.often(0.3) else (origin, scope))
        if form == 4:
            self.traits.add("row-wise subquery")
            where = f" WHERE {self.condition(Scope.of('t', self.own), 1)}" if self.often(0.6) else ""
            value = self.value(Scope.of("t", self.own))
            inner = f"SELECT t.id, t.ward AS v0, {value} AS v1, t.day AS v2, t.urgent AS v3 FROM stays AS t{where}"
            scope = Scope({"ward": ("p.v0",), "half": ("p.v1",), "day": ("p.v2",), "truth": ("p.v3",)}, "p.id")
            return "", f"({inner}) AS p", scope
        inner, names = self.grouped(1)
        scope = Scope({kind: tuple(f"p.{name}" for name in some) for kind, some in names.columns.items()}, "p.id")
        if form in (5, 6):
            self.traits.add("one row a person")
            named = self.often(0.5)
            origin, before = ("p", f"WITH p AS ({inner}) ") if named else (f"({inner}) AS p", "")
            if scope.named("ward") and self.often(0.5):
                self.traits.add("public join of persons")
                return before, *self.with_wards(origin, scope, "p", scope.named("ward")[0].removeprefix("p."))
            return before, origin, scope
        self.traits.add("beside a person")
        kind = self.one_of("JOIN", "LEFT JOIN")
        joined = own.beside(scope, one=True)
        return f"WITH p AS ({inner}) ", f"stays AS s {kind} p ON s.id = p.id", joined

    def keys(self, scope: Scope) -> tuple[Key, ...]:
        """Up to two keys, of 40 groups at the most."""
        found = []
        for _ in range(self.one_of(0, 1, 1, 2)):
            choices = [Key(x, WARDS) for x in scope.named("ward") for _ in range(2)]
            choices += [Key(f"UPPER({x})", tuple(dict.fromkeys(w.upper() for w in WARDS))) for x in scope.named("ward")]
            choices += [Key(x, REGIONS) for x in scope.named("region") for _ in range(3)]
            choices += [Key(f"DATE_TRUNC('month', {x})", MONTHS) for x in scope.named("day") if ".since" not in x]
            choices += [Key(f"EXTRACT(ISODOW FROM {x})", tuple(range(1, 8))) for x in scope.named("day", "moment")]
            choices += [Key(f"EXTRACT(MONTH FROM {x})", tuple(range(1, 13))) for x in scope.named("moment")]
            choices += [Key(x, (True, False)) for x in scope.named("truth") if x.endswith(".urgent")]
            choices += [Key(f"LEAST({x}, 3)", None) for x in scope.named("count")]
            cases = f"CASE WHEN {self.condition(scope, 1)} THEN 'one' WHEN {self.leaf(scope)} THEN 'two'"
            choices += [Key(f"{cases} ELSE 'three' END", ("one", "two", "three")), Key(f"{cases} END", ("one", "two"))]
            found.append(self.chance.choice(choices))
        if len(found) == 2 and (found[0].text == found[1].text or _size(found[0]) * _size(found[1]) > 40):
            found.pop()
        return tuple(found)

    def aggregate(self, scope: Scope) -> Aggregate:
        """One aggregate of the rows."""
        kept = ""
        if self.often(0.3):
            kept = f" FILTER (WHERE {self.condition(scope, 1, members=1 if self.often(0.15) else 0)})"
        named = scope.named(*(kind for kind in scope.columns if kind not in ("mean", "money")))
        any_ = self.chance.choice(named) if named else scope.person
        form = self.chance.randrange(12)
        numbers = bool(scope.named("whole", "half"))
        if form < 3 or (not numbers and form > 5):
            return _same(f"COUNT(*){kept}", counts=True)
        if form == 3:
            return _same(f"COUNT({any_}){kept}", counts=True)
        if form == 4:
            return _same(f"COUNT(DISTINCT {scope.person})", counts=True)
        if form == 5:
            said = f"{any_} IS NULL" if not numbers else f"{self.value(scope)} > {self.chance.randint(-2, 3)}"
            whole = f"CASE WHEN {said} THEN 1 WHEN NOT ({said}) THEN 0 END"
            if self.often(0.5):
                return Aggregate(f"SUM({said}){kept}", f"SUM({whole}){kept}", "0", True)
            return Aggregate(f"AVG({said}){kept}", f"AVG({whole}){kept}", "NULL", True)
        x, y = (self.value(scope, bounded=True) for _ in range(2))
        if form == 6 and scope.named("tenth", "money"):
            z = self.chance.choice(scope.named("tenth", "money"))
            if z.split(".")[1] in BOUNDS:
                return self.one_of(
                    Aggregate(f"SUM({z}){kept}", f"SUM(CAST({z} AS DOUBLE)){kept}", "0", False),
                    Aggregate(f"AVG({z}){kept}", f"AVG(CAST({z} AS DOUBLE)){kept}", "NULL", False),
                )
        if form in (7, 8):
            return Aggregate(f"AVG({x}){kept}", f"AVG(CAST({x} AS DOUBLE)){kept}", "NULL", True)
        if form == 9:
            name = self.one_of("VAR_POP", "STDDEV_POP")
            return Aggregate(f"{name}({x}){kept}", f"{name}(CAST({x} AS DOUBLE)){kept}", "NULL", False)
        if form == 10:
            return Aggregate(f"COVAR_POP({x}, {y})", f"COVAR_POP({x}, {y})", "NULL", False)
        return Aggregate(f"SUM({x}){kept}", f"SUM(CAST({x} AS DOUBLE)){kept}", "0", True)

    def plans(self, several: int) -> list[Plan]:
        """Questions about the same rows and groups: they differ in what they ask, and in what is done with it."""
        self.traits = set()
        before, origin, scope = self.origin()
        where = (
            self.condition(scope, self.one_of(0, 1, 1, 2), members=self.one_of(1, 1, 2))
            if self.often(self.narrow)
            else ""
        )
        if self.often(0.1):
            where = f"{where}{' AND ' if where else ''}{self.member(scope, 1)}"
        keys = self.keys(scope)
        rows = Plan(
            before=before, origin=origin, where=where, keys=keys, aggregates=(), shown=(), having="", order="", cut="",
            traits=frozenset(self.traits | ({"keys"} if keys else set())), by_place=self.often(0.3),
        )  # fmt: skip
        return [self.about(rows, scope) for _ in range(several)]

    def about(self, rows: Plan, scope: Scope) -> Plan:
        """One question about these rows."""
        self.traits, keys = set(rows.traits), rows.keys
        found: dict[str, Aggregate] = {}
        for _ in range(self.one_of(1, 1, 2, 3)):
            made = self.aggregate(scope)
            found.setdefault(made.text, made)
        aggregates = tuple(found.values())
        shown = tuple(f"{{{place}}}" for place in range(len(aggregates)))
        sharp = [f"{{{place}}}" for place, each in enumerate(aggregates) if each.exact]
        having = order = cut = ""
        if self.often(0.5) and sharp:
            self.traits.add("post-processing")
            shown = (*shown, *(self.computed(sharp) for _ in range(self.one_of(1, 2))))
            if keys and self.often(0.4):
                having = self.kept(sharp, keys)
            if keys and self.often(0.6):
                first = f"{self.one_of(*sharp, 's0' if aggregates[0].exact else 'k0', '1')} {self.one_of('', 'DESC')}"
                order = ", ".join([first, *(f"k{place}" for place in range(len(keys)))])
                cut = self.one_of("", "LIMIT 3", "LIMIT 2 OFFSET 1", "FETCH FIRST 4 ROWS ONLY", "LIMIT 0")
        return replace(
            rows, aggregates=aggregates, shown=shown, having=having, order=order, cut=cut, traits=frozenset(self.traits)
        )

    def computed(self, sharp: list[str]) -> str:
        """Arithmetic on aggregates."""
        a, b = self.chance.choice(sharp), self.chance.choice(sharp)
        return self.one_of(
            f"ROUND(100.0 * {a} / {b}, 1)" if a == b else f"100.0 * {a} / {b}",
            f"{a} + {b} * 2",
            f"({a} - {b}) / 4",
            f"ROUND({a}, 1)",
            f"ROUND({a} / 4, {self.one_of(0, 1)})",
            f"COALESCE({a}, -1) + 1",
            f"ABS({a} - {self.chance.randint(0, 5)})",
            f"FLOOR({a} / 2)",
            f"CEIL({a} / 4)",
            f"GREATEST({a}, {b})",
            f"LEAST({a}, 2)",
            f"NULLIF({a}, 0)",
            f"{a} / {b}",
            f"-{a}",
        )

    def kept(self, sharp: list[str], keys: tuple[Key, ...]) -> str:
        """HAVING on what is aggregated, and on keys."""
        a, low = self.chance.choice(sharp), self.chance.randint(-1, 4)
        said = self.one_of(
            f"{a} {self.comparison()} {low}",
            f"{a} BETWEEN {low} AND {low + 2}",
            f"NOT ({a} > {low})",
            f"{a} IN ({low}, 0) OR {a} IS NULL",
            f"{a} * 2 >= {low} AND {a} < 5",
            f"s0 {self.comparison()} {low}" if sharp[0] == "{0}" else f"{a} > {low}",
        )
        if keys[0].values is WARDS and self.often(0.4):
            self.traits.add("having of keys")
            said = f"({said}) AND k0 {self.one_of('<>', '>', '>=')} 'x'" if self.often(0.5) else "k0 IN ('x', 'é')"
        return said


def _same(text: str, *, counts: bool) -> Aggregate:
    return Aggregate(text, text, "0", True, counts)


def _size(key: Key) -> int:
    return 5 if key.values is None else len(key.values)
