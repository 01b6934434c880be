"""Canaries: invented units in a training run, each by a fair coin, so that the run can be audited afterwards.

Coins are drawn from the operating system and sealed before the charge: the certificate has a hash of them. They are
shown with the trained model and not before. Proof: docs/proofs/one_run.md
"""

import copy
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from sfumato.core.exact import Exact, natural, probability
from sfumato.errors import InvalidInput
from sfumato.learning.canary_commitment import commitment
from sfumato.learning.given import GivenRows
from sfumato.learning.given_rows import typed, whole_tensor
from sfumato.noise.words import SystemWords

if TYPE_CHECKING:
    from sfumato.learning.units import Units

__all__ = ["Canaries", "CanaryScore", "RevealedCanaries", "SealedCanaries"]

Floats = npt.NDArray[np.float64]
Coins = npt.NDArray[np.bool_]
CanaryScore = Literal["gradient", "loss"]
SCORES: tuple[CanaryScore, ...] = get_args(CanaryScore)
FEWEST, MOST = 20, 10**6
ROOM = 1 << 24  # numbers of gradients that are held at once


class Canaries:
    """Invented units for an audit of one training run: ``vault.trainer(…, canaries=…)``, then ``audit.trained(…)``.

    ``inputs`` and ``targets`` are rows as :class:`~sfumato.learning.Units` takes them, 20 or more, each one a unit.
    ``score`` says by what coins are guessed: ``gradient``, how far the weights moved along a canary's own gradient
    (whoever has the weights), or ``loss``, how much lower its loss became (whoever can ask the model). Score and
    ``confidence`` are fixed here; how many coins are guessed is fixed for all: 10% of them.

    Each run draws a fair coin of its own for each canary, independently and from the operating system. There is no way
    to choose coins, or how many canaries are in.

    Guarantee: a run with canaries costs what it costs without them and protects every real unit as before. Assumes:
    the rows were invented, without looking at the data. Public: the rows. Coins are secret until the run has ended.

    >>> import numpy as np
    >>> Canaries(np.eye(40), np.zeros(40))
    <40 canaries, scored by gradient>
    """

    def __init__(
        self,
        inputs: GivenRows,
        targets: GivenRows,
        *,
        score: CanaryScore = "gradient",
        confidence: Exact = Fraction(19, 20),
    ) -> None:
        parts = [
            whole_tensor(typed(part)).detach().cpu().clone()
            for part in (*(inputs if isinstance(inputs, tuple) else (inputs,)), targets)
        ]
        if any(part.ndim == 0 or len(part) != len(parts[0]) for part in parts):
            raise InvalidInput("inputs and targets of canaries must have as many rows; nothing was done.")
        self.number = natural(len(parts[0]), "the number of canaries", least=FEWEST, most=MOST)
        if score not in SCORES:
            raise InvalidInput(f"the score of canaries is one of {', '.join(SCORES)}; nothing was done.")
        self.score: CanaryScore = score
        self.confidence = probability(confidence, "confidence")
        if not Fraction(1, 2) <= self.confidence < 1:
            raise InvalidInput("the confidence of an audit is from 0.5 to below 1; nothing was done.")
        if not all(bool(torch.isfinite(part).all()) for part in parts):
            raise InvalidInput(
                "rows of canaries must be finite numbers: others would count as no row; nothing was done."
            )
        self._inputs, self._targets = tuple(parts[:-1]), parts[-1]

    @classmethod
    def random(
        cls,
        number: int,
        *,
        like: "Units",
        targets: Sequence[float],
        length: float = 8.0,
        score: CanaryScore = "gradient",
        confidence: Exact = Fraction(19, 20),
    ) -> "Canaries":
        """Canaries with random directions of one ``length`` as inputs, of the shape of ``like``; no row of it is read.

        ``targets`` are values that take turns. A length at which gradients are longer than the clip shows most.

        >>> import torch
        >>> from sfumato.learning import Units
        >>> data = Units(torch.zeros(5, 30), torch.zeros(5), n_units=5, name="visits", version="1")
        >>> Canaries.random(100, like=data, targets=[0, 1])
        <100 canaries, scored by gradient>
        """
        number = natural(number, "the number of canaries", least=FEWEST, most=MOST)
        inputs, target, _ = like.example(1)
        trim = 2 if like.kind == "user" else 1
        part = inputs[0]
        if len(inputs) != 1 or not part.is_floating_point() or target.ndim != trim:
            raise InvalidInput(
                "random canaries are for one input of floats and one target a row; nothing was done. Give rows: "
                "learning.Canaries(inputs, targets)."
            )
        source = torch.Generator().manual_seed(secrets.randbits(63))
        drawn = torch.randn((number, *part.shape[trim:]), generator=source)
        flat = drawn.reshape(number, -1)
        flat.mul_(length / flat.norm(dim=1, keepdim=True))
        values = torch.tensor(targets).repeat(-(-number // len(targets)))[:number]
        return cls(drawn.to(part.dtype), values.to(target.dtype), score=score, confidence=confidence)

    def __repr__(self) -> str:
        return f"<{self.number:,} canaries, scored by {self.score}>"

    def fitted(self, units: "Units") -> "Canaries":
        """The same canaries with the types of this data; refused where they cannot be units of it. Reads nothing."""
        if units.kind == "group":
            raise InvalidInput("canaries are records or persons of one row, not groups; nothing was read or spent.")
        inputs, targets, _ = units.example(1)
        trim = 2 if units.kind == "user" else 1
        wanted = [tuple(part.shape[trim:]) for part in (*inputs, targets)]
        if wanted != [tuple(part.shape[1:]) for part in (*self._inputs, self._targets)]:
            raise InvalidInput("canaries need rows of the shape that the data has; nothing was read or spent.")
        held = (*self._inputs, self._targets)
        cast = [own.to(part.dtype) for own, part in zip(held, (*inputs, targets), strict=True)]
        for own, part in zip(held, cast, strict=True):
            if not part.is_floating_point() and not torch.equal(own.double(), part.double()):
                raise InvalidInput(
                    "the data has whole numbers where canaries have others; nothing was read or spent. Give whole ones."
                )
        made = copy.copy(self)
        made._inputs, made._targets = tuple(cast[:-1]), cast[-1]
        return made

    def try_out(self, model: nn.Module, loss: Callable[..., Tensor]) -> None:
        """Refuse canaries without scores before anything is charged: all of their losses, and one gradient."""
        before = {name: one.detach().cpu().clone() for name, one in model.named_parameters()}
        trials: tuple[tuple[CanaryScore, slice], ...] = ("loss", slice(None)), (self.score, slice(1))
        for score, some in trials:
            part = copy.copy(self)
            part.score = score
            part._inputs, part._targets = tuple(own[some] for own in self._inputs), self._targets[some]
            part.number = len(part._targets)
            try:
                RevealedCanaries(sealed=part.sealed(), before=before, loss=loss).scores(model)
            except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
                raise InvalidInput(
                    "no scores can be computed for these canaries with this model and loss; nothing was read and "
                    "nothing was spent. Targets must be such as the data has, and the model must run under "
                    "torch.func.vmap one row at a time (recurrent layers of torch do not)."
                ) from None

    def sealed(self) -> "SealedCanaries":
        """Draw the coins of one run; they are secret from then on."""
        coins = _fair_coins(self.number)
        salt = secrets.token_hex(32)
        rows = _digest((*self._inputs, self._targets))
        told = "".join("1" if one else "0" for one in coins.tolist())
        said = commitment(told, salt=salt, rows=rows, score=self.score, confidence=self.confidence)
        return SealedCanaries(
            inputs=self._inputs,
            targets=self._targets,
            coins=coins,
            salt=salt,
            rows=rows,
            score=self.score,
            confidence=self.confidence,
            commitment=said,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SealedCanaries:
    """The canaries of one run and their coins. Sensitive until the run has ended: the coins and the salt."""

    inputs: tuple[Tensor, ...]
    targets: Tensor
    coins: Coins
    salt: str
    rows: str
    score: CanaryScore
    confidence: Fraction
    commitment: str

    def __repr__(self) -> str:
        return f"<sealed canaries {self.commitment[:16]}>"

    @property
    def inside(self) -> tuple[tuple[Tensor, ...], Tensor]:
        """Inputs and targets of those whose coin says that they are in. Sensitive."""
        at = torch.from_numpy(self.coins.nonzero()[0])
        return tuple(part[at] for part in self.inputs), self.targets[at]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RevealedCanaries:
    """The canaries of a run that has ended, and what their scores are made of. Public: all of it."""

    sealed: SealedCanaries
    before: Mapping[str, Tensor]
    """The weights before training."""
    loss: Callable[..., Tensor]

    def __repr__(self) -> str:
        return f"<{len(self.sealed.coins):,} canaries of a run that has ended>"

    def scores(self, model: nn.Module) -> Floats:
        """A number for each canary, by the score that was declared: the larger, the more it looks as if it was in.

        A function of weights before and after, and of the canaries' own rows; nothing else is read.
        """
        own = copy.deepcopy(model).cpu().eval()
        after = {name: one.detach() for name, one in own.named_parameters() if one.requires_grad}
        first = {name: self.before[name].to(one) for name, one in after.items()}
        told = _gradient_scores if self.sealed.score == "gradient" else _loss_scores
        found = told(own, self.loss, first, after, self.sealed)
        plain: Floats = np.nan_to_num(found.double().numpy(), nan=0.0, posinf=0.0, neginf=0.0)
        return plain


def _fair_coins(number: int) -> Coins:
    """Independent fair coins from the operating system."""
    words = np.empty(-(-number // 64), dtype=np.uint64)
    SystemWords().fill(words)
    return np.unpackbits(words.view(np.uint8))[:number].astype(bool)


def _digest(parts: tuple[Tensor, ...]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(f"{part.dtype}\0{tuple(part.shape)}\0".encode())
        found.update(part.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


Weights = Mapping[str, Tensor]


def _one_loss(model: nn.Module, loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def one(weights: dict[str, Tensor], target: Tensor, *inputs: Tensor) -> Tensor:
        outputs = torch.func.functional_call(model, weights, tuple(part[None] for part in inputs))
        return loss(outputs, target[None]).sum()

    return one


def _gradient_scores(
    model: nn.Module, loss: Callable[..., Tensor], before: Weights, after: Weights, sealed: SealedCanaries
) -> Tensor:
    """How far the weights went down each canary's own gradient at the first weights, by its length."""
    moved = {name: before[name] - after[name] for name in before}
    lanes = tuple(0 for _ in sealed.inputs)
    slopes = torch.func.vmap(torch.func.grad(_one_loss(model, loss)), in_dims=(None, 0, *lanes), randomness="different")
    at_once = max(1, ROOM // max(1, sum(one.numel() for one in before.values())))
    found = []
    for first in range(0, len(sealed.targets), at_once):
        some = slice(first, first + at_once)
        each = slopes(dict(before), sealed.targets[some], *(part[some] for part in sealed.inputs))
        along = sum((each[name].flatten(1) @ moved[name].flatten()).double() for name in moved)
        length = sum(each[name].flatten(1).double().square().sum(1) for name in moved)
        found.append(along / torch.as_tensor(length).sqrt().clamp(min=1e-300))
    return torch.cat(found)


def _loss_scores(
    model: nn.Module, loss: Callable[..., Tensor], before: Weights, after: Weights, sealed: SealedCanaries
) -> Tensor:
    """How much lower the loss of each canary is after training."""
    lanes = tuple(0 for _ in sealed.inputs)
    losses = torch.func.vmap(_one_loss(model, loss), in_dims=(None, 0, *lanes), randomness="different")
    with torch.no_grad():
        told = [losses(dict(weights), sealed.targets, *sealed.inputs).double() for weights in (before, after)]
    return told[0] - told[1]
