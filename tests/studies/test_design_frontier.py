"""The best ε: the closed form is the least of the sum, and exponents come back from points."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.studies.frontier import FittedFrontier


@pytest.mark.claim("S3-13")
def test_the_figure_of_the_claim() -> None:
    found = sf.best_epsilon(noise=50, n=1000, price=0.02, floor=2, rate=0.5)
    assert found.epsilon == pytest.approx(1.70998, abs=5e-6)
    assert found.epsilon == pytest.approx((2 * 50 / (0.02 * 1000)) ** (1 / 3))
    assert found.total == pytest.approx(2 * 1000**-0.5 + 1.5 * 0.02 * found.epsilon)
    mean = sf.best_epsilon(noise=50, n=1000, price=0.02, n_power=2)
    assert mean.epsilon == pytest.approx((2 * 50 / (0.02 * 1000**2)) ** (1 / 3))


@pytest.mark.claim("S3-13")
@pytest.mark.parametrize("n_power", [1, 2])
@pytest.mark.parametrize("epsilon_power", [1, 2, 3])
def test_the_closed_form_is_the_least(n_power: int, epsilon_power: int) -> None:
    found = sf.best_epsilon(
        noise=7, n=300, price="0.05", floor=1, rate="0.4", n_power=n_power, epsilon_power=epsilon_power
    )
    least = minimize_scalar(
        lambda at: found.frontier.loss(300, float(np.exp(at))) + 0.05 * np.exp(at), bounds=(-12, 5), method="bounded"
    )
    assert found.epsilon == pytest.approx(np.exp(least.x), rel=1e-3)
    assert found.total == pytest.approx(least.fun, rel=1e-9)
    assert found.total == pytest.approx(300**-0.4 + (1 + 1 / epsilon_power) * 0.05 * found.epsilon)


@pytest.mark.claim("S3-13")
@pytest.mark.parametrize("n_power", [1.0, 2.0])
def test_exponents_are_fitted_and_not_assumed(n_power: float) -> None:
    """Points with 2% error: mean-type noise is told from the other, and so is the best ε."""
    true = FittedFrontier(floor=2.0, rate=0.5, noise=30.0, n_power=n_power)
    random = np.random.default_rng(5)
    points = [
        (n, e, true.loss(n, e) * float(np.exp(0.02 * random.standard_normal())))
        for n in (50, 200, 800, 3200)
        for e in (0.03, 0.1, 0.3, 1.0, 3.0)
    ]
    fitted = sf.fit_frontier(points)
    assert fitted.n_power == pytest.approx(n_power, abs=0.1)
    assert fitted.epsilon_power == pytest.approx(2, abs=0.1)
    assert fitted.rate == pytest.approx(0.5, abs=0.05)
    assert 0.01 < fitted.residual < 0.04
    found, wanted = sf.best_epsilon(n=500, price=0.1, points=points), true.best(500, 0.1)
    assert found.epsilon == pytest.approx(wanted, rel=0.1)
    assert "fitted" in str(found)
    assert sf.fit_frontier(points, epsilon_power=2).epsilon_power == 2


def test_it_is_shown_and_drawn() -> None:
    pytest.importorskip("altair")
    found = sf.best_epsilon(noise=50, n=1000, price=0.02)
    least = found.table().columns["loss and price"]
    assert min(least) == least[2]
    assert found.plot().to_dict()["title"]["text"] == "The ε at which loss and price together are least"
    assert "由人决定" in found.summary("zh")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"n": 10, "price": 1}, "one of them"),
        ({"n": 10, "price": 1, "noise": 1, "points": []}, "one of them"),
        ({"n": 10, "price": 0, "noise": 1}, "price"),
        ({"n": 10, "price": 1, "points": [(10, 1, 1)] * 9}, "cannot tell the noise"),
        ({"n": 10, "price": 1, "points": [(10, 1, -1)]}, "all above 0"),
    ],
)
def test_what_cannot_be_worked_out_is_refused(asked: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sf.best_epsilon(**asked)  # type: ignore[arg-type]
