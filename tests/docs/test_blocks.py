"""The page about programs over blocks says what was measured and what was tried."""

from tests.docs.blocks import PAGE, TABLES, written


def test_the_tables_are_those_of_the_result_file_and_of_the_tests() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page
    assert all(table() in page for table in TABLES.values())
