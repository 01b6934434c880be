"""A private mean gradient from one clipped sum, with the noise of training; for updates that are made by hand."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from sfumato.core.deprecation import renamed
from sfumato.core.events import Gaussian
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.interrupts import FAILED, attempt
from sfumato.errors import EngineFailed, InvalidInput
from sfumato.learning.draws import Draws
from sfumato.learning.engine import SLACK, Engine
from sfumato.learning.given import Thing
from sfumato.learning.lattice import NoisyLattice
from sfumato.learning.paradigms.logit_clipped_step import LANES, InBatchContrast
from sfumato.learning.refusals import invented
from sfumato.learning.rounding_error import WIDTH, rounded_l2
from sfumato.learning.sampling import shuffled_sample
from sfumato.learning.shielded import shielded
from sfumato.learning.silence import silence
from sfumato.noise import SystemWords, Words

__all__ = ["contrasted", "private_mean", "private_mean_event"]

TOUCHED = 2  # parts that one unit can change in a random order
_OWN: WeakKeyDictionary[object, "_Own"] = WeakKeyDictionary()


@renamed(physical="max_physical_batch_size")
def private_mean(
    engine: Engine | InBatchContrast,
    inputs: Tensor | tuple[Tensor, ...],
    targets: Tensor,
    present: Tensor | None = None,
    *,
    moved: Exact,
    multiplier: Exact,
    over: int,
    max_physical_batch_size: int = 64,
    words: Words | None = None,
) -> dict[str, Tensor]:
    """The clipped sum of all units with Gaussian noise of ``multiplier`` times as far as one moves it, over a number.

    Units are put into a secret random order and summed in parts of one fixed shape, ``max_physical_batch_size`` units
    each (rounded up to a multiple of 16), of which the last one is filled with absent units. No unit at all is a batch
    too.

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
    own = _own(engine)
    engine = own.engine  # what the model or the loss does to the one that was given changes no bound
    if reach < positive(engine.clip, "clip") or (isinstance(engine, Engine) and engine.batches < TOUCHED):
        raise InvalidInput(
            "a unit moves the sum by the clip at least, and may change two parts of it; nothing was summed. Say "
            "moved=… of at least engine.clip, and make an Engine with batches=2."
        )
    reach = max(reach, Fraction(engine.clip))  # a float that was said in decimals may lie a little below itself
    size = sum(one.numel() for one in engine.model.parameters() if one.requires_grad)
    reach = rounded_l2(reach * (1 + SLACK), dimension=size, multiplier=times)
    number, source = natural(over, "over"), SystemWords() if words is None else words
    part = -(-natural(max_physical_batch_size, "max_physical_batch_size") // LANES) * LANES
    sides = inputs if isinstance(inputs, tuple) else (inputs,)
    if isinstance(engine, InBatchContrast):
        engine.check_size(len(targets))
        if len(sides) != 1:
            raise InvalidInput("the anchors of pairs are one tensor; nothing was summed.")
    with NoisyLattice(pitch=times * reach / WIDTH, size=size, words=words) as lattice:
        draws = Draws(targets.device, source)
        with draws.used():
            _rehearse(own, sides, targets, part)

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


@dataclass(frozen=True, slots=True)
class _Own:
    """An engine that nobody else holds, the settings it was made with, and the shapes that it was tried on."""

    engine: Engine | InBatchContrast
    settings: tuple[object, ...]
    tried: set[tuple[object, ...]] = field(default_factory=set)


def _own(given: Engine | InBatchContrast) -> _Own:
    """An engine with the settings that the given one has now; it is kept with its plans while these stay."""
    settings: tuple[object, ...]
    if isinstance(given, InBatchContrast):
        said = given.declared()
        settings = (given.model, said.clip, said.temperature, given.both, given.chunk)
    else:
        settings = (given.model, given.loss, given.clip, given.unit, given.grad_mode, given.batches)
    kept = _OWN.get(given)
    if kept is None or not all(map(_same, kept.settings, settings)):
        kept = _OWN[given] = _Own(_made(given, settings), settings)
    return kept


def _same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, int | float | str | Fraction) and type(one) is type(other) and one == other)


def _made(given: Engine | InBatchContrast, settings: tuple[Thing, ...]) -> Engine | InBatchContrast:
    if isinstance(given, InBatchContrast):
        model, each, temperature, both, chunk = settings
        return InBatchContrast(model, each=each, temperature=temperature, both=both, chunk=chunk)
    model, loss, clip, unit, grad_mode, batches = settings
    return Engine(model, loss, clip=clip, unit=unit, grad_mode=grad_mode, batches=batches)


def _rehearse(own: _Own, inputs: tuple[Tensor, ...], targets: Tensor, part: int) -> None:
    """Sum made-up units of the same shapes: what cannot be summed at all says so before a unit is read."""
    engine = own.engine
    shapes = (part, *((each.shape[1:], each.dtype, each.device) for each in (*inputs, targets)))
    if shapes in own.tried:
        return
    sides, wanted = invented((inputs, targets), part)
    if isinstance(engine, InBatchContrast):
        engine.sum(sides[0], wanted)
    else:
        engine.sum(sides if len(sides) > 1 else sides[0], wanted)
    own.tried.add(shapes)


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
        return contrasted(engine, inputs[0], targets, present)
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
        whole = _part(engine, [each[at : at + part].clone() for each in laid])
        if whole is not None:
            total += whole
            continue
        for found in _one_by_one(engine, [each[at : at + part] for each in laid]):
            total += found
    return total


def _part(engine: Engine, some: list[Tensor]) -> Tensor | None:
    """The sum of a part, or None where it cannot be computed; what dies then dies before everything is put back."""
    *sides, wanted, here = some
    given = tuple(sides) if len(sides) > 1 else sides[0]
    found = shielded(lambda: engine.sum(given, wanted, here).flat, engine.unchanged)
    return None if found is FAILED else found


def _one_by_one(engine: Engine, some: list[Tensor]) -> Iterator[Tensor]:
    """Units of a part, each in its place of the same shape; one that cannot be computed adds nothing."""
    *given, here = some
    for place in range(len(here)):
        alone = torch.zeros_like(here)
        alone[place] = here[place]
        if alone.any():
            repeated = [each[place].expand_as(each).clone() for each in given]
            found = _part(engine, [*repeated, alone])
            if found is not None:
                yield found


def contrasted(engine: InBatchContrast, anchors: Tensor, positives: Tensor, present: Tensor | None) -> Tensor:
    """The sum over all pairs; where it fails, over those that can be computed by themselves: others are absent.

    Where these cannot be computed together either, there is nothing to sum, and no error says so.
    """
    whole = _pairs(engine, anchors, positives, present)
    if whole is not None:
        return whole
    here = torch.ones(len(anchors), dtype=torch.bool, device=anchors.device) if present is None else present.clone()
    for place in range(len(here)):
        alone = slice(place, place + 1)
        if _pairs(engine, anchors[alone], positives[alone], None) is None:
            here[place] = False
    anchors, positives = (torch.where(_wide(here, side), side, 0) for side in (anchors, positives))
    whole = _pairs(engine, anchors, positives, here)
    if whole is not None:
        return whole
    size = sum(one.numel() for one in engine.model.parameters() if one.requires_grad)
    return torch.zeros(size, dtype=torch.float64, device=anchors.device)


def _pairs(engine: InBatchContrast, anchors: Tensor, positives: Tensor, present: Tensor | None) -> Tensor | None:
    """The sum over some pairs, or None where it fails; what dies then dies before everything is put back."""
    found = shielded(lambda: engine.sum(anchors.clone(), positives.clone(), present).flat, engine.unchanged)
    return None if found is FAILED else found


def _wide(here: Tensor, side: Tensor) -> Tensor:
    return here.reshape(-1, *(1,) * (side.ndim - 1))


def private_mean_event(multiplier: Exact) -> Gaussian:
    """What one private mean costs, for an accountant.

    >>> private_mean_event(2).sigma_squared
    Fraction(4, 1)
    """
    return Gaussian(l2_squared=Fraction(1), sigma_squared=positive(multiplier, "multiplier") ** 2)
