"""The page about training across hospitals shows what was measured."""

from tests.docs.federated_training import PAGE, WAYS, measured, table, written


def test_the_table_is_that_of_the_result_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page
    assert table(measured()) in page


def test_the_hospitals_are_within_a_hundredth_of_one_place() -> None:
    found = measured()
    assert {len(found["auc"][which]["runs"]) for which in WAYS} == {found["pairs"]}
    assert found["pairs"] >= 3
    across = found["auc"]["across"]["mean"]
    assert all(abs(across - found["auc"][which]["mean"]) <= 0.01 for which in WAYS)
