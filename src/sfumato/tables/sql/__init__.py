"""SQL: a text is read into the same questions that the methods of a table build; no engine ever sees it.

The dialect is that of PostgreSQL, as far as it goes: SELECT keys and aggregates FROM the table, WHERE, GROUP BY,
HAVING on keys, and subqueries that work row by row. What looks at other rows, or at other people, is refused by name.
What each word means is docs/how-to/sql.md.
"""

from sfumato.tables.sql.question import condition, question

__all__ = ["condition", "question"]
