"""Chance failures: what the cases state adds up to less than 1e-6, and no statistical test leaves it out."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.alpha import LIMIT, together

TESTS = Path(__file__).parents[1]
STATISTICS = {"binom", "binomtest", "chi2", "chisquare", "kstest", "ncx2"}  # of scipy.stats, by which limits are set
HELPERS = {"likely", "surprise", "often_enough"}  # of the tests
SAID = re.compile(r"α (= |below |< |about )[\d.]+e|standard errors|\bby chance\b")

WITHOUT = {
    "audit/test_gradient_attack.py::test_simulated_attacks_on_released_weights_are_right_as_often": "seeded",
    "audit/test_one_run_bounds.py::test_randomized_response_attains_the_bound_and_pairs_with_one_inside_break_it": (
        "no draws: sums over a law"
    ),
    "demo/attacks/test_federations.py::test_plain_federated_averaging_gives_every_member_and_every_record_away": "seed",
    "demo/attacks/test_federations.py::test_without_noise_sums_of_clipped_updates_give_everybody_away": (
        "no noise: rounding moves no guess"
    ),
    "accounting/test_pld_decisions.py::test_beyond_the_reach_of_the_grid_only_the_plain_sum_is_left": "its own name",
    "governance/test_backup.py::test_a_damaged_file_is_verified_and_restored_in_words": "whatever is drawn, it holds",
    "governance/test_hostile_database.py::test_a_damaged_file_gives_nothing_and_is_refused_in_words": "any draw holds",
    "governance/test_hostile_database.py::test_changes_by_chance_get_nothing": "whatever is drawn, it holds",
    "federated/training/test_protection.py::test_the_bound_for_samples_is_above_the_divergence_of_the_mixture_itself": (
        "no draws: sums over a law"
    ),
    "graphs/test_ergm_inference.py::test_draws_are_from_the_posterior_and_those_that_ignore_the_noise_are_not": "seed",
    "learning/paradigms/test_policy_gradient.py::test_returns_go_backwards_through_the_visits": "seeded",
    "local/test_aggregate.py::test_exact_intervals_cover_every_small_population": "no draws: sums over a law",
    "local/test_aggregate.py::test_intervals_that_take_the_noise_for_none_do_not_cover": "no draws: sums over a law",
    "local/test_aggregate.py::test_normal_intervals_are_given_only_where_they_nearly_cover": "no draws: sums of a law",
    "local/test_aggregate.py::test_normal_intervals_of_many_rare_values_are_refused": "no draws: sums over a law",
    "local/test_unfit_reports.py::test_honest_reports_are_seldom_called_unfit": "no draws: sums over a law",
    "local/test_unfit_reports.py::test_normal_intervals_of_means_miss_no_more_than_stated": "no draws: sums over a law",
    "local/test_unfit_reports.py::test_normal_intervals_of_shares_miss_no_more_than_stated": "no draws: sums of a law",
    "statistical/test_discrete_laplace_draws.py::test_the_stated_power_is_real": "no draws: two laws are compared",
    "studies/test_compare_intervals.py::test_other_intervals": "seeded",
    "studies/test_compare_intervals.py::test_shares": "seeded",
    "studies/test_survival_errors.py::test_a_band_holds_the_whole_curve_and_points_do_not": "seeded",
    "studies/test_survival_errors.py::test_hazard_ratios_are_covered": "seeded",
    "studies/test_survival_errors.py::test_intervals_at_99_percent_have_the_tails_of_laplace_noise": "seeded",
}
"""Tests that look statistical and cannot fail by chance, with the reason."""


@cache
def defined(path: Path) -> dict[str, ast.stmt]:
    """What a file defines at its top, by name."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
            case ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = node
    return found


@cache
def looks(path: Path, name: str) -> tuple[bool, frozenset[str]]:
    """Whether a part of a file looks statistical by itself, and the names of the file that stand in it."""
    node = defined(path)[name]
    names = set()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=word) | ast.arg(arg=word) | ast.Attribute(attr=word):
                names.add(word)
    said = isinstance(node, ast.FunctionDef) and SAID.search(ast.get_docstring(node) or "") is not None
    limit = isinstance(node, ast.Assign) and "ALPHA" in name and re.search(r"\de-\d", ast.unparse(node)) is not None
    return said or limit or not names.isdisjoint(STATISTICS | HELPERS), frozenset(names & defined(path).keys())


def statistical(path: Path, name: str) -> bool:
    """Whether a test, or anything of its file that it is made of, looks statistical."""
    seen: set[str] = set()
    left = [name]
    while left:
        if (part := left.pop()) in seen:
            continue
        seen.add(part)
        found, names = looks(path, part)
        if found:
            return True
        left += names
    return False


def unstated(folder: Path) -> list[str]:
    """The statistical tests of a folder that do not state the chance of failing."""
    found = []
    signs = re.compile("|".join([*STATISTICS, *HELPERS, "ALPHA", SAID.pattern]))
    for path in sorted(folder.rglob("test_*.py")):
        if not signs.search(path.read_text("utf-8")):
            continue  # most files: reading them whole takes seconds
        for name, node in defined(path).items():
            if isinstance(node, ast.FunctionDef) and name.startswith("test_"):
                marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
                if "mark.alpha(" not in marks and statistical(path, name):
                    found.append(f"{path.relative_to(folder)}::{name}")
    return found


def test_all_cases_together_fail_by_chance_in_less_than_one_run_of_a_million(request: pytest.FixtureRequest) -> None:
    """Of the cases that were collected with this one and are not long: with ``make test``, all of them."""
    assert together(request.session.items, long=False) < LIMIT


@pytest.mark.long
def test_every_statistical_test_states_the_chance_that_it_fails_although_all_is_well() -> None:
    assert set(unstated(TESTS)) - set(WITHOUT) == set()


def test_a_test_that_states_nothing_is_found(tmp_path: Path) -> None:
    """The broken copy: one that names a law, one that reads a constant, one that says so, and one that states it."""
    (tmp_path / "test_made.py").write_text(
        "import pytest\nfrom scipy.stats import binom\nALPHA = 1e-9\n"
        "def limit(): return binom.isf(ALPHA, 9, 0.5)\n"
        "def test_by_a_law(): assert limit()\n"
        "def test_by_a_constant(): assert ALPHA\n"
        'def test_by_its_words():\n    """Within 6 standard errors."""\n'
        "@pytest.mark.alpha(1e-9)\ndef test_that_states_it(): assert limit()\n"
        "def test_of_something_else(): assert True\n",
        "utf-8",
    )
    assert unstated(tmp_path) == [f"test_made.py::test_by_{what}" for what in ("a_law", "a_constant", "its_words")]
