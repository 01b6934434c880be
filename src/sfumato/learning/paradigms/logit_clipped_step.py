"""A step of contrastive learning with in-batch negatives: the sum whose sensitivity ``logit_clipping`` states."""

import math
from collections.abc import Iterator
from fractions import Fraction

import torch
from torch import Tensor, nn

from sfumato.core.exact import Exact, natural, positive
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput
from sfumato.learning.engine import ClippedSum
from sfumato.learning.kept_tensors import NoAssignedData
from sfumato.learning.paradigms.embedding_slopes import EmbeddingSlopes
from sfumato.learning.paradigms.logit_clipping import ClippedLogits
from sfumato.learning.refusals import check_layers
from sfumato.learning.unchanged import Unchanged

__all__ = ["InBatchContrast"]

ROUNDED = 2.0**-46  # what a sum of products loses for each of them: 64 times the rounding of 64-bit floats
LEAST, MOST = Fraction(1, 10**6), Fraction(10**6)
LARGEST = 2**12  # units of a batch, and numbers of an embedding, up to which the proof bounds all that is rounded
BEYOND = 2**1000  # near the end of floats
LANES = 16  # the model computes a multiple of this many inputs at a time


class InBatchContrast:
    """Sums, over all pairs (i, j) of a batch, softmax weights times the gradients of similarities, each clipped.

    The model maps one input to one vector. A unit is a pair of inputs, an anchor and its positive (two views of one
    person); the positives of the others are its negatives. Used in place of an :class:`~sfumato.learning.Engine`:
    ``clip`` is how far one unit moves the sum under add/remove, for a batch of any size, so that a step sampled at a
    rate is what the accountant assumes. ``declared`` states the same for a given batch and relation.

    Each gradient of a similarity has two halves, through the anchor and through the positive, and each is clipped to
    half of ``each``. Norms come from the Gram matrix of a unit's own Jacobian, in 64 bits, with all that can cancel in
    it added: they are never below the true ones. ``both`` takes the mean of the loss over anchors and over positives.

    The model computes ``chunk`` inputs at a time (rounded up to a multiple of 16) and never fewer: what is left of the
    last chunk is filled with absent units, since kernels round otherwise for another number. No unit is a batch too.

    Guarantee: that of :class:`ClippedLogits`; the sum lies within half of the engine's slack of the exact one. Assumes:
    what the model computes in 64 bits for an input of a chunk depends on that input alone, whatever its place and the
    other inputs are. Public: the model's weights, ``each``, ``temperature``. Sensitive: what :meth:`sum` returns.
    A batch has at most 2^12 units. So where units are sampled, expect at most 3,000: one too large for a sum is then
    drawn with a chance below 2^-250, and that it was refused reveals nothing. Proof: docs/proofs/paradigms.md

    >>> contrast = InBatchContrast(nn.Linear(3, 2), each=1, temperature=1)
    >>> made = contrast.sum(torch.eye(3), torch.eye(3))
    >>> made.sums["weight"].shape, round(contrast.clip, 2)
    (torch.Size([2, 3]), 16.78)
    """

    unit = "group"

    def __init__(
        self, model: nn.Module, *, each: Exact = 1, temperature: Exact = 1, both: bool = False, chunk: int = 16
    ) -> None:
        check_layers(model)
        self.model, self.both, self.unchanged = model, both, Unchanged(model)
        self.chunk = -(-natural(chunk, "chunk", most=LARGEST) // LANES) * LANES
        self._declared = ClippedLogits(
            clip=positive(each, "each"), temperature=positive(temperature, "temperature"), batch=None
        )
        if not LEAST <= self._declared.clip <= MOST:
            raise InvalidInput(
                f"each lies between {LEAST} and {MOST}, within the precision of floats; nothing was done."
            )
        self.each, self.temperature = float(self._declared.clip), float(self._declared.temperature)

    @property
    def clip(self) -> float:
        """How far a unit that is added or removed moves the sum, whatever the size of the batch."""
        bound = self._declared.moved(Relation.ADD_REMOVE)
        if bound > BEYOND:
            raise InvalidInput(
                f"at a temperature of {self._declared.temperature} floats cannot bound how far a unit moves a batch of "
                "any size; nothing was done. Use a temperature near 1, or a fixed batch: declared(batch).moved(…)."
            )
        near = float(bound)
        return near if Fraction(near) >= bound else math.nextafter(near, math.inf)

    def check_size(self, units: int) -> None:
        """Refuse a batch that is larger than the proof goes."""
        if units > LARGEST:
            raise InvalidInput(
                f"a batch of pairs has at most {LARGEST} units; nothing was summed. Use smaller ones, and where they "
                "are sampled expect no more than 3,000."
            )

    def declared(self, batch: int | None = None) -> ClippedLogits:
        """The declaration for batches with a limited number of pairs."""
        return ClippedLogits(clip=self._declared.clip, temperature=self._declared.temperature, batch=batch)

    def sum(self, inputs: Tensor, targets: Tensor, present: Tensor | None = None) -> ClippedSum:
        """Sum for a batch of anchors (``inputs``) and their positives (``targets``), of the units that are present.

        ``norms`` are the largest norms of a similarity's gradient for each unit before clipping, ``losses`` the losses
        of the anchors. What the model writes to is put back after each chunk.
        """
        with self.unchanged as kept, NoAssignedData():
            return self._sum(inputs, targets, present, kept)

    def _sum(self, inputs: Tensor, targets: Tensor, present: Tensor | None, kept: Unchanged) -> ClippedSum:
        units = len(inputs)
        if units != len(targets):
            raise InvalidInput("there are as many anchors as positives; nothing was done.")
        self.check_size(units)
        here = torch.ones(units, dtype=torch.bool, device=inputs.device) if present is None else present
        inputs, targets, here = (self._filled_up(part) for part in (inputs, targets, here))
        inputs, targets = (side.double() if side.is_floating_point() else side for side in (inputs, targets))
        model = EmbeddingSlopes(self.model)
        parameters = model.parameters
        made = [self._embedded(model, side, kept) for side in (inputs, targets)]
        if made[0].shape[1] > LARGEST:
            raise InvalidInput(f"an embedding has at most {LARGEST} numbers; nothing was summed.")
        first, second = (_directions(vectors) for vectors in made)
        weights, losses = self._weights(first, second, here)
        flat = torch.zeros(sum(one.numel() for one in parameters.values()), dtype=torch.float64, device=inputs.device)
        parts = torch.split(flat, [one.numel() for one in parameters.values()])
        sums = {name: part.view(one.shape) for (name, one), part in zip(parameters.items(), parts, strict=True)}
        norms = torch.zeros(len(inputs), dtype=torch.float64, device=inputs.device)
        sides = ((inputs, made[0], first, second, weights), (targets, made[1], second, first, weights.T))
        for side, vectors, own, others, weight in sides:
            for part in self._chunks(len(side)):
                jacobians = model.of(side[part].clone())
                kept.restore()
                slopes, reach = self._slopes(vectors[part], own[part], others)  # chunk × units × dimensions
                longest = _upper_norms(jacobians.gram(), slopes, reach, products=flat.numel())
                scale = (self.each / 2) / longest.clamp(min=self.each / 2)
                used = torch.where(weight[part] != 0, weight[part] * scale, 0.0)
                turned = torch.einsum("ij,ijd->id", used, slopes.nan_to_num(0.0, 0.0, 0.0))
                jacobians.add(turned, sums)
                norms[part] = torch.maximum(norms[part], torch.where(weight[part] != 0, longest, 0.0).amax(1))
        return ClippedSum(sums=sums, flat=flat, norms=norms[:units], losses=losses[:units])

    def _filled_up(self, part: Tensor) -> Tensor:
        """With zeros behind it, which are absent, up to whole chunks of units; at least one."""
        missing = max(self.chunk - len(part), -len(part) % self.chunk)
        return torch.cat([part, part.new_zeros((missing, *part.shape[1:]))])

    def _chunks(self, units: int) -> Iterator[slice]:
        for start in range(0, units, self.chunk):
            yield slice(start, start + self.chunk)

    def _embedded(self, model: EmbeddingSlopes, side: Tensor, kept: Unchanged) -> Tensor:
        found = []
        for part in self._chunks(len(side)):
            found.append(model.embedded(side[part].clone()))  # what it writes to its rows, nothing else sees
            kept.restore()
        return torch.cat(found)

    def _slopes(self, vectors: Tensor, own: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
        """∂z_ij/∂(embedding of i), and how long that could be.

        It is what of the other direction is across one's own, over the length of the embedding and the temperature.
        """
        across = others[None] - (own @ others.T)[:, :, None] * own[:, None]
        reach = 1 / (vectors.norm(dim=1).clamp(min=torch.finfo(torch.float64).tiny) * self.temperature)
        return across * reach[:, None, None], reach

    def _weights(self, first: Tensor, second: Tensor, here: Tensor) -> tuple[Tensor, Tensor]:
        """Softmax minus identity among those present, and the losses of the anchors; 0 for the others."""
        logits = (first @ second.T).clamp(-1, 1) / self.temperature
        pairs = here[:, None] & here[None, :]
        weights, losses = _softmax_weights(logits, pairs)
        if self.both:
            turned, _ = _softmax_weights(logits.T, pairs.T)
            weights = (weights + turned.T) / 2
        return weights, losses


def _directions(vectors: Tensor) -> Tensor:
    """Vectors of length 1, or 0 where there is no direction."""
    largest = vectors.abs().amax(1, keepdim=True)  # so that no square overflows
    scaled = (vectors / largest).nan_to_num(0.0, 0.0, 0.0)
    made: Tensor = (scaled / scaled.norm(dim=1, keepdim=True)).nan_to_num(0.0, 0.0, 0.0)
    return made


def _softmax_weights(logits: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
    shares = torch.where(pairs, logits, -torch.inf).softmax(1).nan_to_num(0.0)
    own = torch.diag(pairs.diagonal().double())
    losses = torch.where(pairs.diagonal(), -torch.log(shares.diagonal().clamp(min=1e-300)), 0.0)
    return shares - own, losses


def _upper_norms(gram: Tensor, slopes: Tensor, reach: Tensor, *, products: int) -> Tensor:
    """At least ‖Jᵀt‖ for each slope t, whatever cancels in t and in tᵀJJᵀt; endless where that is no number."""
    size = gram.diagonal(dim1=1, dim2=2).sum(1)
    lost = ROUNDED * (products + 4 * gram.shape[1] + 64)
    squared = ((slopes @ gram) * slopes).sum(2).clamp(min=0) + (lost * size * reach**2)[:, None]
    upper: Tensor = squared.sqrt().nan_to_num(torch.inf, torch.inf, torch.inf)
    return upper
