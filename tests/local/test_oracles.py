"""Each oracle by enumeration: its law, its worst ratio, its variance; and twins that must fail."""

from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from sfumato.core import enclosures
from sfumato.errors import InvalidInput
from sfumato.local import (
    HadamardResponse,
    KaryResponse,
    LocalHash,
    OptimisedUnary,
    ProjectiveResponse,
    SubsetSelection,
    SymmetricUnary,
)
from sfumato.local.odds import odds
from sfumato.noise import SystemBits
from tests.local.enumerated import law

pytestmark = pytest.mark.kills

SMALL = [
    KaryResponse(epsilon=1, values=2),
    KaryResponse(epsilon="1/3", values=5),
    SymmetricUnary(epsilon=1, values=4),
    OptimisedUnary(epsilon=2, values=4),
    LocalHash.calibrated(epsilon=1, values=6),
    LocalHash(epsilon=2, values=5, buckets=3),
    SubsetSelection.calibrated(epsilon=1, values=7),
    SubsetSelection(epsilon=2, values=5, size=2),
    HadamardResponse(epsilon=1, values=6),
    ProjectiveResponse(epsilon=1, values=7, order=2),
    ProjectiveResponse(epsilon=1, values=9, order=3),
    ProjectiveResponse(epsilon=2, values=11, order=4),
]


def named(oracle: object) -> str:
    return repr(oracle).replace("Fraction", "")


def worst(oracle) -> Fraction:
    """The largest ratio of the probabilities of one report under two values, over all of them."""
    ratio = Fraction(0)
    for report in oracle.outputs():
        chances = [oracle.probability(report, truth) for truth in range(oracle.values)]
        ratio = max(ratio, max(chances) / min(chances))
    return ratio


@pytest.mark.parametrize("oracle", SMALL, ids=named)
def test_the_worst_ratio_is_the_one_stated_and_at_most_e_to_the_epsilon(oracle) -> None:
    assert worst(oracle) == oracle.ratio
    assert oracle.ratio <= enclosures.exp(oracle.epsilon).low
    assert oracle.ratio > enclosures.exp(oracle.epsilon * Fraction(999_999, 1_000_000)).high  # nothing given away
    assert oracle.loss().guarantee.epsilon == oracle.epsilon


@pytest.mark.parametrize("oracle", SMALL, ids=named)
def test_probabilities_add_up_and_support_is_as_stated(oracle) -> None:
    for truth in range(oracle.values):
        total, support = Fraction(0), [Fraction(0)] * oracle.values
        for report in oracle.outputs():
            chance = oracle.probability(report, truth)
            total += chance
            for value in range(oracle.values):
                support[value] += chance * oracle.supports(report, value)
        assert total == 1
        assert support == [oracle.hit if value == truth else oracle.stray for value in range(oracle.values)]


def test_odds_rounded_up_would_break_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the next rational above e^ε."""
    for epsilon in (Fraction(1, 7), Fraction(1), Fraction(5)):
        step = Fraction(1, odds(epsilon).denominator)
        assert odds(epsilon) <= enclosures.exp(epsilon).low < odds(epsilon) + 2 * step
    monkeypatch.setattr("sfumato.local.oracle.odds", lambda epsilon: odds(epsilon) + Fraction(1, 2**32))
    oracle = SMALL[0]
    assert worst(oracle) > enclosures.exp(oracle.epsilon).high


def test_small_epsilon_keeps_its_information() -> None:
    small = odds(Fraction(1, 2**20))
    assert small > 1 + Fraction(1, 2**20) * (1 - Fraction(1, 2**30))
    assert small <= enclosures.exp(Fraction(1, 2**20), bits=256).low


@pytest.fixture(params=[Fraction(3), Fraction(3, 2)], ids=str)
def few_odds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odds whose draws can be enumerated: a whole number, and one with a denominator."""
    for module in ("oracle", "unary"):
        monkeypatch.setattr(f"sfumato.local.{module}.odds", lambda epsilon: request.param)


@pytest.mark.usefixtures("few_odds")
@pytest.mark.parametrize(
    "oracle",
    [
        KaryResponse(epsilon=2, values=4),
        SymmetricUnary(epsilon=2, values=3),
        OptimisedUnary(epsilon=2, values=3),
        LocalHash(epsilon=2, values=5, buckets=3),
        LocalHash(epsilon=2, values=6, buckets=4),
        SubsetSelection(epsilon=2, values=5, size=2),
        SubsetSelection(epsilon=2, values=4, size=3),
        HadamardResponse(epsilon=2, values=6),
        ProjectiveResponse(epsilon=2, values=7, order=2),
        ProjectiveResponse(epsilon=2, values=13, order=3),
        ProjectiveResponse(epsilon=2, values=5, order=4),
    ],
    ids=named,
)
def test_what_the_client_draws_has_exactly_the_stated_law(oracle) -> None:
    for truth in range(oracle.values):
        drawn = law(lambda bits, truth=truth: oracle.report(truth, bits))
        assert drawn == {report: oracle.probability(report, truth) for report in oracle.outputs()}


@pytest.mark.parametrize("values", [8, 9, 16, 17])
def test_a_bitmap_has_as_many_bytes_as_its_values_need(values: int) -> None:
    for oracle in (OptimisedUnary(epsilon=1, values=values), SubsetSelection.calibrated(epsilon=1, values=values)):
        report = oracle.report(values - 1, SystemBits())
        assert len(report) == (values + 7) // 8
        assert oracle.possible(report)


CASES = ((1, 128), (2, 128), (4, 1024))
PEERS = {
    1: (43.60, 3.918, 3.683, 3.692, 3.610),
    2: (3.268, 0.921, 0.724, 0.725, 0.697),
}


@pytest.mark.parametrize("epsilon", PEERS)
def test_variances_are_those_of_the_literature(epsilon: int) -> None:
    asked = (
        KaryResponse(epsilon=epsilon, values=128),
        SymmetricUnary(epsilon=epsilon, values=128),
        OptimisedUnary(epsilon=epsilon, values=128),
        LocalHash.calibrated(epsilon=epsilon, values=128),
        SubsetSelection.calibrated(epsilon=epsilon, values=128),
    )
    for oracle, peer in zip(asked, PEERS[epsilon], strict=True):
        assert float(oracle.variance()) == pytest.approx(peer, rel=2e-3 if peer < 1 else 2e-4)
    best = SubsetSelection.calibrated(epsilon=epsilon, values=128).variance()
    assert best < ProjectiveResponse.calibrated(epsilon=epsilon, values=128).variance() < asked[2].variance()


def test_the_table_of_the_guide_is_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "local-model.md").read_text("utf-8")
    asked = {
        kind.__name__: getattr(kind, "calibrated", kind)
        for kind in (KaryResponse, SymmetricUnary, OptimisedUnary, LocalHash, SubsetSelection, ProjectiveResponse)
    } | {"HadamardResponse": HadamardResponse}
    for name, make in asked.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        shown = [float(cell.strip(" *")) for cell in row.split("|")[2:5]]
        exact = [float(make(epsilon=epsilon, values=values).variance()) for epsilon, values in CASES]
        assert shown == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_closed_forms_of_the_variance(epsilon: int) -> None:
    top = enclosures.exp(epsilon).high
    half = enclosures.exp(Fraction(epsilon, 2)).high
    for oracle, formula in (
        (KaryResponse(epsilon=epsilon, values=128), (top + 126) / (top - 1) ** 2),
        (SymmetricUnary(epsilon=epsilon, values=128), half / (half - 1) ** 2),
        (OptimisedUnary(epsilon=epsilon, values=128), 4 * top / (top - 1) ** 2),
        (HadamardResponse(epsilon=epsilon, values=128), ((top + 1) / (top - 1)) ** 2),
    ):
        assert abs(oracle.variance() / formula - 1) < Fraction(1, 10**8)


@pytest.mark.parametrize("oracle", [SMALL[1], SMALL[3], SMALL[4], SMALL[7], SMALL[8], SMALL[10]], ids=named)
def test_the_variance_is_that_of_the_estimate(oracle) -> None:
    """Two persons, both reports enumerated by whether they support a value: the estimate's exact mean and variance."""
    p, q = oracle.hit, oracle.stray
    for truths, share in (((1, 1), Fraction(1)), ((1, 0), Fraction(1, 2)), ((0, 2), Fraction(0))):
        chances = [p if truth == 1 else q for truth in truths]
        mean = square = Fraction(0)
        for hits in product((0, 1), repeat=2):
            chance = Fraction(1)
            for one, hit in zip(chances, hits, strict=True):
                chance *= one if hit else 1 - one
            estimate = (Fraction(sum(hits), 2) - q) / (p - q)
            mean += chance * estimate
            square += chance * estimate**2
        assert mean == share
        assert square - mean**2 == oracle.variance(share) / 2


@pytest.mark.claim("S4-13")
def test_randomised_response_has_the_variance_claimed() -> None:
    oracle = KaryResponse(epsilon=1, values=2)
    top = enclosures.exp(1).high
    assert float(oracle.hit) == pytest.approx(float(top / (1 + top)))
    assert float(oracle.variance(share=Fraction(3, 10))) / 1000 == pytest.approx(9.21e-4, rel=1e-3)
    assert abs(oracle.variance() / (top / (top - 1) ** 2) - 1) < Fraction(1, 10**8)
    extra = oracle.variance(Fraction(3, 10), population="iid") - oracle.variance(Fraction(3, 10))
    assert extra == Fraction(21, 100)
    assert 2 / 1000**2 == 2.0e-6  # central Laplace, ε = 1: 2/ε² over n²
    # The textbook estimator is ours.
    assert (Fraction(6, 10) - (1 - oracle.hit)) / (2 * oracle.hit - 1) == (
        (Fraction(6, 10) - oracle.stray) / (oracle.hit - oracle.stray)
    )


@pytest.mark.claim("S4-12")
def test_three_reports_cost_three_epsilon_at_user_level() -> None:
    """All sequences of three reports of two persons who differ at all three times."""
    oracle = KaryResponse(epsilon=1, values=2)

    def chance(reports: tuple[int, ...], truths: tuple[int, ...]) -> Fraction:
        total = Fraction(1)
        for report, truth in zip(reports, truths, strict=True):
            total *= oracle.probability(report, truth)
        return total

    ratios = [chance(each, (0, 1, 0)) / chance(each, (1, 0, 1)) for each in product((0, 1), repeat=3)]
    assert max(ratios) == oracle.ratio**3 == 1 / min(ratios)
    assert abs(float(max(ratios)) / float(enclosures.exp(3).high) - 1) < 1e-8
    assert max(ratios) <= enclosures.exp(3).low


@pytest.mark.parametrize(
    "make",
    [
        lambda: KaryResponse(epsilon=0, values=2),
        lambda: KaryResponse(epsilon=33, values=2),
        lambda: KaryResponse(epsilon=1, values=1),
        lambda: LocalHash(epsilon=1, values=9, buckets=6),
        lambda: ProjectiveResponse(epsilon=1, values=9, order=10),
        lambda: SubsetSelection(epsilon=1, values=4, size=4),
        lambda: KaryResponse(epsilon=1, values=2).variance(0, population="all"),
    ],
)
def test_wrong_parameters_are_refused(make) -> None:
    with pytest.raises(InvalidInput):
        make()


@pytest.mark.parametrize("truth", [-1, 7777, True, 1.0, "1"])
def test_a_wrong_value_is_refused_without_being_repeated(truth) -> None:
    for oracle in SMALL:
        with pytest.raises(InvalidInput) as refused:
            oracle.report(truth, None)
        assert "7777" not in str(refused.value)
