"""A study: clipping and noise as a regulariser, on generated data. Nothing private is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sfumato.core.exact import Exact, natural, positive
from sfumato.core.extras import need

__all__ = ["Arm", "Study", "regulariser_study"]

ARMS = ("plain", "clipped", "clipped and noisy")
FINE = 2**20  # noise is drawn in whole steps of 1/FINE of its spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way of training and what came of it: mean losses and accuracies over the runs."""

    name: str
    train_loss: float
    test_loss: float
    train_accuracy: float
    test_accuracy: float
    test_error: float
    """The standard error of the mean test loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """What a study found; both losses stand side by side, since only one of them can get better."""

    arms: tuple[Arm, ...]
    runs: int
    records: int
    features: int

    def __str__(self) -> str:
        lines = [
            f"{self.records} records, {self.features} features, mean of {self.runs} runs on generated data",
            f"{'':18} {'train loss':>10} {'test loss':>10} {'train acc.':>10} {'test acc.':>10}",
        ]
        lines += [
            f"{arm.name:18} {arm.train_loss:10.3f} {arm.test_loss:10.3f} {arm.train_accuracy:10.3f} "
            f"{arm.test_accuracy:10.3f}"
            for arm in self.arms
        ]
        return "\n".join([*lines, "An observation, not a guarantee: other data may answer otherwise."])

    def rows(self) -> list[Mapping[str, Any]]:
        """Both losses of every arm, one row for each."""
        return [
            {"training": arm.name, "of": of, "loss": loss}
            for arm in self.arms
            for of, loss in (("train", arm.train_loss), ("test", arm.test_loss))
        ]

    def plot(self) -> Any:
        """Both losses of every arm as an Altair chart; needs the ``plots`` extra."""
        alt = need("altair", "pip install 'sfumato[plots]'")
        return (
            alt.Chart(alt.Data(values=self.rows()), title="Losses with and without clipping and noise")
            .mark_point(filled=True, size=90)
            .encode(
                x=alt.X("loss:Q", title="mean logistic loss"),
                y=alt.Y("training:N", sort=list(ARMS), title=None),
                color=alt.Color("of:N", title="records of", scale=alt.Scale(range=["#0072b2", "#d55e00"])),
                shape=alt.Shape("of:N", title="records of"),
            )
            .properties(width=420, height=120)
        )


def regulariser_study(
    *,
    seed: int,
    runs: int = 5,
    records: int = 200,
    features: int = 400,
    steps: int = 100,
    clip: Exact = Fraction(1, 5),
    noise: Exact = Fraction(2),
    wrong: Exact = Fraction(1, 10),
) -> Study:
    """Train a logistic model with more features than records in three ways, and report train and test losses.

    The data are generated from ``seed``: Gaussian features, of which a few matter, and a share ``wrong`` of the labels
    is turned round. Each step goes along the mean of the gradients, plain; of gradients clipped to ``clip``; or of
    these with N(0, (noise·clip)²) on their sum. The noise is drawn by the exact samplers and cannot be repeated.

    Guarantee: none is claimed: this is an empirical study of generated data.

    >>> study = regulariser_study(seed=1, runs=2, records=50, features=100)
    >>> [arm.name for arm in study.arms]
    ['plain', 'clipped', 'clipped and noisy']
    """
    for name, value in (("runs", runs), ("records", records), ("features", features), ("steps", steps)):
        natural(value, name, least=2)
    bound, spread, turned = positive(clip, "clip"), positive(noise, "noise"), float(positive(wrong, "wrong"))
    found: list[list[tuple[float, float, float, float]]] = [[] for _ in ARMS]
    for run in range(runs):
        data = _generated(seed + run, records, features, turned)
        for place, (clipped, noisy) in enumerate(((None, None), (bound, None), (bound, spread))):
            found[place].append(_trained(data, steps, clipped, noisy))
    return Study(
        arms=tuple(_arm(name, each) for name, each in zip(ARMS, found, strict=True)),
        runs=runs,
        records=records,
        features=features,
    )


def _arm(name: str, found: Sequence[tuple[float, float, float, float]]) -> Arm:
    import numpy as np

    table = np.array(found)
    train_loss, test_loss, train_accuracy, test_accuracy = table.mean(axis=0).tolist()
    return Arm(
        name=name,
        train_loss=train_loss,
        test_loss=test_loss,
        train_accuracy=train_accuracy,
        test_accuracy=test_accuracy,
        test_error=float(table[:, 1].std(ddof=1) / len(table) ** 0.5),
    )


def _generated(seed: int, records: int, features: int, turned: float) -> tuple[Any, Any, Any, Any]:
    """Invented train and test records; the test set is ten times as large."""
    import numpy as np

    draw = np.random.default_rng(seed)
    truth = np.zeros(features)
    truth[:5] = 1.0
    inputs = draw.normal(size=(11 * records, features))
    signs = np.where(inputs @ truth > 0, 1.0, -1.0) * np.where(draw.random(11 * records) < turned, -1.0, 1.0)
    return inputs[:records], signs[:records], inputs[records:], signs[records:]


def _trained(
    data: tuple[Any, Any, Any, Any], steps: int, clip: Fraction | None, noise: Fraction | None
) -> tuple[float, float, float, float]:
    import numpy as np
    from scipy.special import expit

    from sfumato.noise import rounded_gaussian

    inputs, signs, others, truth = data
    weights = np.zeros(inputs.shape[1])
    drawn: Any = np.zeros((steps, len(weights)))
    if clip is not None and noise is not None:
        whole = rounded_gaussian(sigma=FINE, size=drawn.size)
        drawn = float(noise * clip) / FINE * whole.reshape(drawn.shape)
    for step in range(steps):
        gradients = -(signs * expit(-signs * (inputs @ weights)))[:, None] * inputs
        if clip is not None:
            norms = np.sqrt((gradients * gradients).sum(axis=1, keepdims=True))
            gradients = gradients * np.minimum(1.0, float(clip) / np.maximum(norms, 1e-300))
        weights = weights - 0.5 * (gradients.sum(axis=0) + drawn[step]) / len(inputs)
    (train_loss, train_accuracy), (test_loss, test_accuracy) = (
        _losses(inputs, signs, weights),
        _losses(others, truth, weights),
    )
    return train_loss, test_loss, train_accuracy, test_accuracy


def _losses(inputs: Any, signs: Any, weights: Any) -> tuple[float, float]:
    """The mean logistic loss and the accuracy."""
    import numpy as np

    margins = signs * (inputs @ weights)
    return float(np.logaddexp(0, -margins).mean()), float((margins > 0).mean())
