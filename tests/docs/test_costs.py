"""The page about what training costs says what was measured."""

from tests.docs.costs import PAGE, TABLES, written


def test_the_tables_are_those_of_the_result_files() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page
    assert all(table() in page for table in TABLES.values())
