"""What SQL is refused, by the name it was written with, and why; all such texts stand here."""

from collections.abc import Iterable

from sqlglot import exp

from sfumato.core.suggestion import did_you_mean
from sfumato.errors import Unsupported
from sfumato.tables.measures import MEASURES

__all__ = ["AGGREGATES", "name_of", "only", "refused", "unknown"]

OTHER_ROWS = "it looks at other rows, and so at other people"
REASONS = {
    "JOIN": "tables are joined by name and equal columns, and only with FROM a table",
    "RIGHT JOIN": "rows of the table that is asked are counted. Instead: write LEFT JOIN, from that table",
    "FULL JOIN": "rows of the table that is asked are counted. Instead: write LEFT JOIN, from that table",
    "CROSS JOIN": "a row would become several. Instead: write JOIN … ON, with a table that has each value once",
    "NATURAL JOIN": "which columns are equal is said. Instead: write JOIN … USING (column)",
    "LEFT JOIN of a private table": (
        "rows without a partner stay beside public tables only. Instead: write JOIN, or ask of the table by itself"
    ),
    "LATERAL": OTHER_ROWS,
    "UNION": "a question is about one table. Instead: ask two, and add their releases",
    "INTERSECT": OTHER_ROWS,
    "EXCEPT": OTHER_ROWS,
    "DISTINCT": f"{OTHER_ROWS}. Instead: count the units, with COUNT(DISTINCT the unit's column)",
    "OVER": f"a window function uses more than one row: {OTHER_ROWS}",
    "WINDOW": OTHER_ROWS,
    "QUALIFY": OTHER_ROWS,
    "EXISTS": OTHER_ROWS,
    "IN (SELECT …)": OTHER_ROWS,
    "a subquery inside an expression": OTHER_ROWS,
    "ANY": OTHER_ROWS,
    "ALL": OTHER_ROWS,
    "WITH RECURSIVE": OTHER_ROWS,
    "TABLESAMPLE": "sampling changes the guarantee. Instead: ask about all rows",
    "INTO": "a question writes nothing",
    "FOR UPDATE": "a question writes nothing",
    "GROUP BY in a subquery": f"{OTHER_ROWS}, unless it is by the person alone",
    "HAVING in a subquery without GROUP BY": OTHER_ROWS,
    "ORDER BY in a subquery": "the order in which rows are stored says nothing",
    "a JOIN with a subquery": "only one row a person is joined, on the person",
    "an aggregate in GROUP BY": OTHER_ROWS,
    "an aggregate inside a row-wise value": f"{OTHER_ROWS}. Instead: ask for it in SELECT by itself",
    "GROUPING SETS": "instead, group by each set in a separate question",
    "ROLLUP": "instead, group by each level in a separate question",
    "CUBE": "instead, group by each set in a separate question",
    "GROUP BY ALL": "instead, name what to group by",
    "VAR_SAMP": "the variance divides by n here, and not by n - 1. Instead: write VAR_POP",
    "STDDEV_SAMP": "the deviation divides by n here, and not by n - 1. Instead: write STDDEV_POP",
    "COVAR_SAMP": "the covariance divides by n here, and not by n - 1. Instead: write COVAR_POP",
    "MEAN": "instead, write AVG",
    "MIN": "the least value is that of one person. Instead: ask for a quantile",
    "MAX": "the greatest value is that of one person. Instead: ask for a quantile",
    "NULL": "a value that is always missing says nothing. Instead: write IS NULL, or leave ELSE out",
    "LIKE": "a pattern must be a prefix and a last %, such as 'J1%', without other signs of patterns",
    "SIMILAR TO": "instead, write LIKE 'prefix%'",
    "a regular expression": "instead, write LIKE 'prefix%', or take a part of the text with SUBSTRING, LEFT or RIGHT",
    "TRIM of other signs than spaces": "instead, write REPLACE(x, 'sign', '')",
    "IS DISTINCT FROM": "instead, write a <> b, and IS NULL where missing values count",
    "IS NOT DISTINCT FROM": "instead, write a = b, and IS NULL where missing values count",
    "%": "there is no remainder",
    "^": "instead, multiply the value by itself",
    "INTERVAL": "a length of time is added to a time or compared with a difference of times: left + INTERVAL '30 days'",
    "INTERVAL in months by itself": "months differ in length. Instead: say it in days, or add it to a time",
    "INTERVAL of a computed length": "instead, add whole days to a date: day + number",
    "AT TIME ZONE": "a column's zone is declared with its table. Instead: declare zones={'admitted': 'Europe/Berlin'}",
    "CAST to TIMESTAMPTZ": "a column's zone is declared with its table. Instead: write TIMESTAMP",
    "CURRENTDATE": "a question means the same tomorrow. Instead: write DATE '2026-01-31'",
    "CURRENTTIMESTAMP": "a question means the same tomorrow. Instead: write TIMESTAMP '2026-01-31 13:00:00'",
    "NOW": "a question means the same tomorrow. Instead: write TIMESTAMP '2026-01-31 13:00:00'",
    "AGE": "instead, write DATE_DIFF('year', start, end), or the difference of both",
    "INITCAP": "instead, write LOWER or UPPER",
    "CONCAT": "instead, write a || b, with COALESCE(a, '') where one may be missing",
    "EXTRACT(SECOND …)": "instead, write EXTRACT(EPOCH FROM a difference of times)",
    "SELECT *": "rows themselves are never released. Instead: ask for aggregates",
}
AGGREGATES = frozenset(
    {
        *(function for measure in MEASURES for function in measure.SQL),
        *("COUNT", "VAR_SAMP", "STDDEV_SAMP", "COVAR_SAMP"),
        *("MIN", "MAX", "MEDIAN", "QUANTILE", "PERCENTILE_CONT", "PERCENTILE_DISC"),
        *("MODE", "STRING_AGG", "ARRAY_AGG", "JSON_AGG", "JSONB_AGG", "BOOL_AND", "BOOL_OR", "EVERY", "ANY_VALUE"),
        *("APPROX_COUNT_DISTINCT", "GROUPING", "FIRST", "LAST", "BIT_AND", "BIT_OR", "REGR_SLOPE", "REGR_COUNT"),
    }
)
FUNCTIONS = ("COUNT", "MEDIAN", "QUANTILE", *(function for measure in MEASURES for function in measure.SQL))
KINDS: dict[type[exp.Expression], str] = {
    exp.Union: "UNION",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
    exp.Window: "OVER",
    exp.Exists: "EXISTS",
    exp.Any: "ANY",
    exp.All: "ALL",
    exp.Subquery: "a subquery inside an expression",
    exp.Select: "a subquery inside an expression",
    exp.Distinct: "DISTINCT",
    exp.Null: "NULL",
    exp.ILike: "ILIKE",
    exp.SimilarTo: "SIMILAR TO",
    exp.RegexpLike: "a regular expression",
    exp.RegexpILike: "a regular expression",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Mod: "%",
    exp.Pow: "^",
    exp.DPipe: "||",
    exp.Interval: "INTERVAL",
    exp.CurrentDate: "CURRENTDATE",
    exp.CurrentTimestamp: "CURRENTTIMESTAMP",
    exp.Star: "SELECT *",
    exp.Tuple: "a row of several values",
    exp.RawString: "a text between dollar signs",
    exp.ByteString: "a text with escapes",
    exp.UnicodeString: "a text with escapes",
    exp.HexString: "a number in another notation",
    exp.BitString: "a number in another notation",
    exp.Placeholder: "a placeholder",
    exp.Parameter: "a placeholder",
    exp.Filter: "FILTER",
    exp.WithinGroup: "WITHIN GROUP",
    exp.Escape: "ESCAPE",
    exp.Lateral: "LATERAL",
    exp.Values: "VALUES",
    exp.Bracket: "an element of a list",
    exp.Dot: "a name with dots",
    exp.Collate: "COLLATE",
    exp.AtTimeZone: "AT TIME ZONE",
    exp.TableSample: "TABLESAMPLE",
}
PARTS = {
    "joins": "JOIN",
    "laterals": "LATERAL",
    "distinct": "DISTINCT",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "order": "ORDER BY",
    "ordinality": "WITH ORDINALITY",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "with_": "WITH inside a subquery",
    "recursive": "WITH RECURSIVE",
    "into": "INTO",
    "locks": "FOR UPDATE",
    "sample": "TABLESAMPLE",
    "query": "IN (SELECT …)",
    "grouping_sets": "GROUPING SETS",
    "rollup": "ROLLUP",
    "cube": "CUBE",
    "all": "GROUP BY ALL",
    "group": "GROUP BY in a subquery",
    "having": "HAVING in a subquery",
    "db": "a name with dots",
    "catalog": "a name with dots",
    "columns": "a list of columns after an alias",
}


def refused(name: str, reason: str | None = None, *, known: Iterable[str] = ()) -> Unsupported:
    """The refusal of something that has this name, for the reason that stands here or another one.

    ``known`` are names that may have been meant.
    """
    reason = reason or REASONS.get(name)
    meant = did_you_mean(name, known) if reason is None else ""
    return Unsupported(f"{name} is not supported{f': {reason}' if reason else ''}. Nothing was done.{meant}")


def unknown(node: exp.Expression, functions: Iterable[str] = ()) -> Unsupported:
    """The refusal of a part of a question, by its name; of a function, with those that sound like it."""
    known = (*FUNCTIONS, *functions) if isinstance(node, exp.Anonymous) else ()
    return refused(name_of(node), known=known)


def only(node: exp.Expression, *known: str) -> None:
    """Refuse a part of a question that says more than is understood."""
    for part, said in node.args.items():
        if said and part not in known:
            raise refused(PARTS.get(part, f"{part.strip('_').replace('_', ' ').upper()} after {name_of(node)}"))


def name_of(node: exp.Expression) -> str:
    """How something is called: functions by the name that was written, in capitals."""
    if isinstance(node, exp.Anonymous):
        written = node.this if isinstance(node.this, str) else "a quoted function"
        return written.upper() if written.isascii() and written.isidentifier() else "a function of that name"
    return KINDS.get(type(node), node.key.upper())
