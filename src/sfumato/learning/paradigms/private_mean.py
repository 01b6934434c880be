"""A private mean gradient from one clipped sum, with the noise of training; for updates that are made by hand."""

from fractions import Fraction

import torch
from torch import Tensor

from sfumato.core.events import Gaussian
from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput
from sfumato.learning.draws import Draws
from sfumato.learning.engine import SLACK, ClippedSum, Engine
from sfumato.learning.lattice import NoisyLattice
from sfumato.learning.paradigms.logit_clipped_step import LANES, InBatchContrast
from sfumato.learning.rounding_slack import WIDTH, rounded_l2
from sfumato.learning.sampling import shuffled_sample
from sfumato.noise import SystemWords, Words

__all__ = ["private_mean", "private_mean_event"]

TOUCHED = 2  # parts that one unit can change in a random order


def private_mean(
    engine: Engine | InBatchContrast,
    inputs: Tensor | tuple[Tensor, ...],
    targets: Tensor,
    present: Tensor | None = None,
    *,
    moved: Exact,
    multiplier: Exact,
    over: int,
    physical: int = 64,
    words: Words | None = None,
) -> dict[str, Tensor]:
    """The clipped sum of all units with Gaussian noise of ``multiplier`` times as far as one moves it, over a number.

    Units are put into a secret random order and summed in parts of one fixed shape, ``physical`` units each (rounded up
    to a multiple of 16), of which the last one is filled with absent units. No unit at all is a batch too.

    Guarantee: the event :func:`private_mean_event`; rounding and the slack of the engine are covered. Assumes: one unit
    moves the exact sum by at most ``moved``; ``over`` is no count of the data; what the engine assumes. Nothing is
    charged here: charge the event before the data is read. Sensitive: the units; public: the result.
    Proof: docs/proofs/paradigms.md
    """
    reach, times = positive(moved, "moved"), positive(multiplier, "multiplier")
    if isinstance(engine, Engine) and (reach < Fraction(engine.clip) or engine.batches < TOUCHED):
        raise InvalidInput(
            "a unit moves the sum by the clip at least, and may change two parts of it; nothing was summed. Say "
            "moved=… from the engine's clip, and make the engine with batches=2."
        )
    size = sum(one.numel() for one in engine.model.parameters() if one.requires_grad)
    reach = rounded_l2(reach * (1 + SLACK), dimension=size, multiplier=times)
    number, source = natural(over, "over"), SystemWords() if words is None else words
    part = -(-natural(physical, "physical") // LANES) * LANES
    with NoisyLattice(pitch=times * reach / WIDTH, size=size, words=words) as lattice:
        with Draws(targets.device, source).used():
            made = _summed(engine, inputs if isinstance(inputs, tuple) else (inputs,), targets, present, part, source)
        noisy = lattice.release(made.flat) / number
    parts = torch.split(noisy, [one.numel() for one in made.sums.values()])
    return {name: one.view(shaped.shape) for (name, shaped), one in zip(made.sums.items(), parts, strict=True)}


def _summed(
    engine: Engine | InBatchContrast,
    inputs: tuple[Tensor, ...],
    targets: Tensor,
    present: Tensor | None,
    part: int,
    words: Words,
) -> ClippedSum:
    """The sum over parts of one shape; pairs that are each other's negatives are one part, which lays itself out."""
    if isinstance(engine, InBatchContrast):
        if len(inputs) != 1:
            raise InvalidInput("the anchors of pairs are one tensor; nothing was summed.")
        return engine.sum(inputs[0], targets, present)
    if present is None:
        present = targets.new_ones(inputs[0].shape[: 2 if engine.unit == "user" else 1], dtype=torch.bool)
    order = torch.from_numpy(shuffled_sample(len(targets), Fraction(1), words)).to(targets.device)
    missing = max(part - len(order), -len(order) % part)
    laid = [
        torch.cat([each[order], each.new_zeros((missing, *each.shape[1:]))]) for each in (*inputs, targets, present)
    ]
    *sides, wanted, here = ([each[at : at + part] for at in range(0, len(each), part)] for each in laid)
    made = [
        engine.sum(tuple(some) if len(some) > 1 else some[0], *rest)
        for *some, rest in zip(*sides, zip(wanted, here, strict=True), strict=True)
    ]
    for one in made[1:]:
        made[0].flat.add_(one.flat)
    return made[0]


def private_mean_event(multiplier: Exact) -> Gaussian:
    """What one private mean costs, for an accountant.

    >>> private_mean_event(2).sigma_squared
    Fraction(4, 1)
    """
    return Gaussian(l2_squared=Fraction(1), sigma_squared=positive(multiplier, "multiplier") ** 2)
