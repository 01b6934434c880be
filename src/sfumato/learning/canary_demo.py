"""An invented model on invented people, trained with canaries: what an audit of one's own model looks like."""

from collections.abc import Callable
from fractions import Fraction

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfumato.learning.sealed_canaries import Canaries, CanaryScore
from sfumato.learning.trainer import Trained, Trainer
from sfumato.learning.units import Units

__all__ = ["demonstration"]

PEOPLE = 200


def _entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(outputs[:, 0], targets)


def demonstration(
    trainer: Callable[..., Trainer],
    *,
    canaries: int,
    weights: int,
    score: CanaryScore,
    epsilon: Fraction,
    delta: Fraction,
    confidence: Fraction,
) -> Trained:
    """Train a logistic model of this many weights in one step on invented people and canaries."""
    model = nn.Linear(weights, 1, bias=False)
    nn.init.zeros_(model.weight)
    people = torch.zeros(PEOPLE, weights)
    people[:, 0] = 1
    answers = torch.arange(PEOPLE) % 2.0  # gradients of people cancel, so that scores hold coins and noise alone
    data = Units(people, answers, n_units=PEOPLE, name="invented people", version="1")
    made = Canaries.random(canaries, like=data, targets=[0, 1], score=score, confidence=confidence)
    run = trainer(model, _entropy, data=data, clip=1, canaries=made)
    return run.fit(
        steps=1, batch=PEOPLE, epsilon=epsilon, delta=delta, optimizer=torch.optim.SGD, lr=0.01, progress=False
    )
