"""A private mean gradient from one clipped sum, with the noise of training; for updates that are made by hand."""

from collections.abc import Iterator
from fractions import Fraction
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from sfumato.core.events import Gaussian
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.interrupts import FAILED, attempt
from sfumato.errors import EngineFailed, InvalidInput
from sfumato.learning.draws import Draws
from sfumato.learning.engine import SLACK, Engine
from sfumato.learning.lattice import NoisyLattice
from sfumato.learning.paradigms.logit_clipped_step import LANES, InBatchContrast
from sfumato.learning.refusals import invented
from sfumato.learning.rounding_slack import WIDTH, rounded_l2
from sfumato.learning.sampling import shuffled_sample
from sfumato.learning.silence import silence
from sfumato.noise import SystemWords, Words

__all__ = ["private_mean", "private_mean_event"]

TOUCHED = 2  # parts that one unit can change in a random order
_REHEARSED: WeakKeyDictionary[object, set[tuple[object, ...]]] = WeakKeyDictionary()


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

    ``engine`` is an :class:`~sfumato.learning.Engine` or an :class:`~sfumato.learning.InBatchContrast`: what they bound
    is known. ``moved`` is at least their ``clip``; more is for units that share a person. Made-up units are summed
    first, and what fails there is refused; a unit that the model cannot compute adds nothing.

    Guarantee: the event :func:`private_mean_event`; rounding and the slack of the engine are covered. Assumes: one unit
    moves the exact sum by at most ``moved``; ``over`` is no count of the data; what the engine assumes. Nothing is
    charged here: charge the event before the data is read. Sensitive: the units; public: the result.
    Proof: docs/proofs/paradigms.md
    """
    reach, times = positive(moved, "moved"), positive(multiplier, "multiplier")
    if type(engine) not in (Engine, InBatchContrast):
        raise InvalidInput(
            "how far one unit moves a sum is known of learning.Engine and learning.InBatchContrast, and of nothing "
            "else; nothing was summed. Give one of these, not a class that is made from it."
        )
    if reach < positive(engine.clip, "clip") or (isinstance(engine, Engine) and engine.batches < TOUCHED):
        raise InvalidInput(
            "a unit moves the sum by the clip at least, and may change two parts of it; nothing was summed. Say "
            "moved=… of at least engine.clip, and make an Engine with batches=2."
        )
    reach = max(reach, Fraction(engine.clip))  # a float that was said in decimals may lie a little below itself
    size = sum(one.numel() for one in engine.model.parameters() if one.requires_grad)
    reach = rounded_l2(reach * (1 + SLACK), dimension=size, multiplier=times)
    number, source = natural(over, "over"), SystemWords() if words is None else words
    part = -(-natural(physical, "physical") // LANES) * LANES
    sides = inputs if isinstance(inputs, tuple) else (inputs,)
    if isinstance(engine, InBatchContrast):
        engine.check_size(len(targets))
        if len(sides) != 1:
            raise InvalidInput("the anchors of pairs are one tensor; nothing was summed.")
    with NoisyLattice(pitch=times * reach / WIDTH, size=size, words=words) as lattice:
        draws = Draws(targets.device, source)
        with draws.used():
            _rehearse(engine, sides, targets, part)

        def summed() -> Tensor:
            with silence(), draws.used():
                return _summed(engine, sides, targets, present, part, source)

        total = attempt(summed)
        if total is FAILED:
            raise EngineFailed(
                "the engine stopped while it summed units. They were read, so what was charged for them is spent; "
                "nothing was released. Check the shapes of inputs, targets and present, and the memory that is left."
            )
        noisy = lattice.release(total) / number
    trained = {name: one for name, one in engine.model.named_parameters() if one.requires_grad}
    parts = torch.split(noisy, [one.numel() for one in trained.values()])
    return {name: part.view(one.shape) for (name, one), part in zip(trained.items(), parts, strict=True)}


def _rehearse(engine: Engine | InBatchContrast, inputs: tuple[Tensor, ...], targets: Tensor, part: int) -> None:
    """Sum made-up units of the same shapes: what cannot be summed at all says so before a unit is read."""
    tried = _REHEARSED.setdefault(engine, set())
    shapes = (part, *((each.shape[1:], each.dtype, each.device) for each in (*inputs, targets)))
    if shapes in tried:
        return
    sides, wanted = invented((inputs, targets), part)
    if isinstance(engine, InBatchContrast):
        engine.sum(sides[0], wanted)
    else:
        engine.sum(sides if len(sides) > 1 else sides[0], wanted)
    tried.add(shapes)


def _summed(
    engine: Engine | InBatchContrast,
    inputs: tuple[Tensor, ...],
    targets: Tensor,
    present: Tensor | None,
    part: int,
    words: Words,
) -> Tensor:
    """The sum over parts of one shape; pairs that are each other's negatives are one part, which lays itself out."""
    if isinstance(engine, InBatchContrast):
        return _contrasted(engine, inputs[0], targets, present)
    if present is None:
        present = targets.new_ones(inputs[0].shape[: 2 if engine.unit == "user" else 1], dtype=torch.bool)
    order = torch.from_numpy(shuffled_sample(len(targets), Fraction(1), words)).to(targets.device)
    missing = max(part - len(order), -len(order) % part)
    laid = [
        torch.cat([each[order], each.new_zeros((missing, *each.shape[1:]))]) for each in (*inputs, targets, present)
    ]
    size = sum(one.numel() for one in engine.model.parameters() if one.requires_grad)
    total = torch.zeros(size, dtype=torch.float64, device=targets.device)
    for at in range(0, len(laid[0]), part):
        some = [each[at : at + part] for each in laid]
        whole = attempt(lambda some=some: _part(engine, some))  # type: ignore[misc]
        for found in _one_by_one(engine, some) if whole is FAILED else (whole,):
            total += found
    return total


def _part(engine: Engine, some: list[Tensor]) -> Tensor:
    *sides, wanted, here = some
    return engine.sum(tuple(sides) if len(sides) > 1 else sides[0], wanted, here).flat


def _one_by_one(engine: Engine, some: list[Tensor]) -> Iterator[Tensor]:
    """Units of a part, each in its place of the same shape; one that cannot be computed adds nothing."""
    *given, here = some
    for place in range(len(here)):
        alone = torch.zeros_like(here)
        alone[place] = here[place]
        if alone.any():
            repeated = [each[place].expand_as(each).clone() for each in given]
            found = attempt(lambda repeated=repeated, alone=alone: _part(engine, [*repeated, alone]))  # type: ignore[misc]
            if found is not FAILED:
                yield found


def _contrasted(engine: InBatchContrast, anchors: Tensor, positives: Tensor, present: Tensor | None) -> Tensor:
    """The sum over all pairs; where it fails, over those that can be computed by themselves: others are absent."""
    whole = attempt(lambda: engine.sum(anchors, positives, present).flat)
    if whole is not FAILED:
        return whole
    here = torch.ones(len(anchors), dtype=torch.bool, device=anchors.device) if present is None else present.clone()
    for place in range(len(here)):
        alone = slice(place, place + 1)
        if attempt(lambda alone=alone: engine.sum(anchors[alone], positives[alone])) is FAILED:  # type: ignore[misc]
            here[place] = False
    anchors, positives = (torch.where(_wide(here, side), side, 0) for side in (anchors, positives))
    return engine.sum(anchors, positives, here).flat


def _wide(here: Tensor, side: Tensor) -> Tensor:
    return here.reshape(-1, *(1,) * (side.ndim - 1))


def private_mean_event(multiplier: Exact) -> Gaussian:
    """What one private mean costs, for an accountant.

    >>> private_mean_event(2).sigma_squared
    Fraction(4, 1)
    """
    return Gaussian(l2_squared=Fraction(1), sigma_squared=positive(multiplier, "multiplier") ** 2)
