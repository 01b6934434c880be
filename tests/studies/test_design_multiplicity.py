"""Several tests: adjusted p-values by hand and by another library, and simulated ones that cannot become small."""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.errors import InvalidInput, Refused
from sfumato.studies.multiplicity import METHODS, adjusted
from tests.parts import package


class Simulated:
    """A result whose p-value comes from a parametric bootstrap."""

    def __init__(self, p_value: float, replicates: int) -> None:
        self.p_value, self.replicates = p_value, replicates


@pytest.mark.parametrize("method", METHODS)
def test_adjusted_values_are_those_of_statsmodels(method: str) -> None:
    package("statsmodels")
    from statsmodels.stats.multitest import multipletests

    random = np.random.default_rng(2)
    p = random.uniform(size=15) ** 2
    name = {"holm": "holm", "bonferroni": "bonferroni", "benjamini-hochberg": "fdr_bh"}[method]
    np.testing.assert_allclose(adjusted(p, method), multipletests(p, method=name)[1], atol=1e-12)  # type: ignore[arg-type]


def test_by_hand_and_by_name() -> None:
    found = sf.adjust({"age": 0.01, "sex": 0.04, "ward": 0.03})
    assert found.adjusted == pytest.approx((0.03, 0.06, 0.06))
    assert found.rejected == ("age",)
    assert sf.adjust([0.01, 0.04, 0.03], method="benjamini-hochberg").rejected == ("test 1", "test 2", "test 3")
    assert sf.adjust([0.01, 0.04], method="bonferroni").adjusted == pytest.approx((0.02, 0.08))
    assert "Holm" in str(found)
    assert "校正" in found.summary("zh")


def test_a_false_rejection_among_true_hypotheses_is_as_rare_as_stated() -> None:
    """20 true hypotheses, seeded: some p-value is below 5% in most runs, an adjusted one in 5%."""
    random, runs = np.random.default_rng(8), 4000
    p = random.uniform(size=(runs, 20))
    alone = np.mean([bool((row <= 0.05).any()) for row in p])
    held = np.mean([bool((adjusted(row) <= 0.05).any()) for row in p])
    assert alone > 0.5
    assert held < 0.05 + 4.75 * math.sqrt(0.05 * 0.95 / runs)


def test_too_few_simulated_copies_are_refused_with_the_number_that_is_needed() -> None:
    """Holm over 20 tests with 199 copies never rejects: the least p-value is 1/200, and 20/200 is above 5%."""
    assert adjusted([1 / 200] + [1.0] * 19)[0] == pytest.approx(0.1)
    with pytest.raises(Refused, match=r"199 simulated copies .* at least 3,999 copies"):
        sf.adjust([Simulated(1 / 200, 199)] * 20)
    assert sf.adjust([Simulated(1 / 4000, 3999)] * 20).rejected == tuple(f"test {k}" for k in range(1, 21))


def test_a_test_without_a_verdict_counts_as_one_that_found_nothing() -> None:
    found = sf.adjust({"open": math.nan, "one": 0.02})
    assert found.adjusted == pytest.approx((1.0, 0.04))
    assert "Tests without a verdict: 1" in str(found)


@pytest.mark.parametrize(
    ("tests", "asked", "words"),
    [
        ([], {}, "no tests"),
        ([1.2], {}, "no p-value between 0 and 1"),
        ([True], {}, "no p-value"),
        (["0.1"], {}, "no p-value"),
        ([0.1], {"method": "sidak"}, "one of holm"),
        ([0.1], {"alpha": 1}, "between 0 and 1"),
    ],
)
def test_what_cannot_be_adjusted_is_refused(tests: list[object], asked: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sf.adjust(tests, **asked)  # type: ignore[arg-type]
