"""Sources: where rows come from. Names and types of columns are public; everything else stays behind the gate.

A source is whatever a steward hands over as data: the path of files, a data frame, a table in DuckDB,
PostgreSQL or Spark, an Ibis table. Each gives the same thing: a table on its own engine, for one release at a time, in
one state, with text that compares bytewise. No error of a source holds a data value or a password.
"""

from sfumato.engines.logged_folders import check_no_log
from sfumato.engines.row_wise import check_derived
from sfumato.engines.sources.cells import CellFormat, unreadable_name
from sfumato.engines.sources.databases import DatabaseTable, duckdb, postgres, spark, stored_tables
from sfumato.engines.sources.origin import EngineTable
from sfumato.engines.sources.source import Source, check_one_place, opened_together

__all__ = [
    "CellFormat",
    "DatabaseTable",
    "EngineTable",
    "Source",
    "check_derived",
    "check_no_log",
    "check_one_place",
    "duckdb",
    "opened_together",
    "postgres",
    "spark",
    "stored_tables",
    "unreadable_name",
]
