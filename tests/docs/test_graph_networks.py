"""The page about graph networks shows what was measured, and says where the graph does not help."""

from tests.docs.graph_networks import EPSILONS, NETWORKS, PAGE, PRIVATE, measured, table, written


def test_the_table_is_that_of_the_result_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page
    assert table(measured()) in page


def test_each_way_was_run_three_times_at_each_epsilon() -> None:
    found = measured()
    for network in NETWORKS:
        assert found[network]["pairs"] == 3
        for way in PRIVATE:
            assert {f"epsilon {epsilon}" for epsilon in EPSILONS} <= set(found[network][way])
