"""The page of benchmarks says what the result files say, and leaves nothing out that speaks against us."""

import dataclasses

from tests.docs.benchmarks import ELSEWHERE, PAGE, TITLES, Row, page, results, rows


def test_the_page_is_that_of_the_result_files() -> None:
    assert PAGE.read_text("utf-8") == page(), "run .venv/bin/python -m tests.docs.benchmarks"


def test_every_result_file_and_every_comparison_is_in_it() -> None:
    files, text = results(), PAGE.read_text("utf-8")
    assert set(files) == set(TITLES) | set(ELSEWHERE)
    compared = {
        (name, what, beside)
        for name, result in files.items()
        if isinstance(result["measured"], dict)
        for what, figures in result["measured"].items()
        for beside, peer in figures.get("peers", {}).items()
        if "ratio" in peer
    }
    assert compared == {(row.of, row.what, row.beside) for row in rows()}
    assert all(f"| {what} | {beside} | " in text for _, what, beside in compared)


def test_every_loss_to_another_package_stands_at_the_top() -> None:
    top = PAGE.read_text("utf-8").partition("## Where we lose")[2].partition("\n## ")[0]
    lost = [row for row in rows() if row.package and row.high < 1]
    assert lost
    assert all(f"| {row.what} | {row.beside} | " in top for row in lost)
    assert top.count("| slower |") == len(lost)


def test_packages_are_known_from_lower_bounds() -> None:
    by_name = {row.beside: row.package for row in rows()}
    for name in ("Flower SecAgg+ 1.41.0", "OpenDP 0.16", "Opacus, ghost", "SciPy, Welch's test", "GraphBLAS"):
        assert by_name[name], name
    for name in ("plain", "NumPy, unsafe", "noise alone", "bounded SQL by hand", "our own client"):
        assert not by_name[name], name


def test_an_interval_that_holds_1_says_nothing() -> None:
    row = Row(of="noise", what="a", beside="b", low=0.9, median=1.2, high=1.3)
    assert row.verdict == "not told apart"
    assert dataclasses.replace(row, low=1.1).verdict == "faster"
    assert dataclasses.replace(row, median=0.95, high=0.99).verdict == "slower"
