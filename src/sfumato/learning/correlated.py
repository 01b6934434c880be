"""Training with correlated noise (DP-FTRL): every unit in a fixed public cycle, all of them or a sample in each turn.

The noise of a step cancels part of that of the steps before.

Step t measures y_t = Σ_k c_k·x_(t−k) of the clipped sums x with fresh noise; the sums are worked out from the
measurements, x̂ = C⁻¹·y, and their running totals, which are what a model is, carry less noise than independent draws
would leave in them. All of the private side is whole numbers, so that nothing is left to floats.
Proof: docs/proofs/training_noise.md
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, cast

from sfumato.accounting import banded_plan, calibrate_sigma
from sfumato.core import enclosures, events
from sfumato.core.exact import decimal_up, natural, positive, probability
from sfumato.core.noise_multiplier import exact_multiplier
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.laws.unstated import Unstated
from sfumato.learning.adaptive import units_moved
from sfumato.learning.given import RunState
from sfumato.learning.noisy_sums import WIDTH
from sfumato.learning.rounding_error import SLACK
from sfumato.mechanisms.matrix.steps.pattern import ADDED, Pattern
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz, moves

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    from sfumato.core.budget import Budget
    from sfumato.learning.training import Training
    from sfumato.noise import Words
    from sfumato.noise.words import WordArray

__all__ = ["BandedSums", "Correlated", "CorrelatedCourse", "CorrelatedNoise", "CorrelatedSums", "Cycle"]

MIX = 10  # binary digits of the coefficients
FINER = 4  # binary digits by which the sums are finer than the measurements
HAIR = Fraction(17, 16)  # a rounding, and the float division before it
ROOM = 2**46  # the largest coordinate of a sum, in its own steps: all mixes stay below 2^63
MOST_STEPS, MOST_BANDS = 2**16, 2**10
DIGITS = 7
KEY, UNKNOWN = 4, -1  # words of a key; the number of units before the first step


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """A fixed public cycle: every unit lies in one of ``buckets``, and step t takes bucket t mod ``buckets``.

    Guarantee: in ``steps`` steps a unit counts at most ⌈steps/buckets⌉ times, and two of these are ``buckets`` apart.
    Assumes: the bucket of a unit depends on nothing but the unit and a secret: :meth:`drawn` draws each by itself, so
    that one unit more moves no other. Public: both fields. Sensitive: who lies where, and how many.

    >>> Cycle(steps=10, buckets=4).pattern
    Pattern(times=3, separation=4, change='added')
    """

    KIND: ClassVar[str] = "learning.cycle"
    VERSION: ClassVar[int] = 1
    steps: int
    buckets: int

    def __post_init__(self) -> None:
        natural(self.steps, "steps", most=MOST_STEPS)
        natural(self.buckets, "buckets", most=MOST_STEPS)

    @property
    def pattern(self) -> Pattern:
        """At which steps one unit counts."""
        return Pattern(times=-(-self.steps // self.buckets), separation=self.buckets, change=ADDED)

    def drawn(self, units: int, words: "Words") -> "npt.NDArray[np.int64]":
        """A bucket for each of a number of units, independent and uniform; secret. An array of whole numbers."""
        import numpy as np

        found = np.empty(0, dtype=np.int64)
        edge = 2**words.width // self.buckets * self.buckets  # words from there on would favour the first buckets
        while len(found) < units:
            some = np.empty(units - len(found), dtype=np.uint64)
            words.fill(some)
            kept = some[some < np.uint64(edge)] if edge < 2**64 else some
            found = np.concatenate([found, (kept % np.uint64(self.buckets)).astype(np.int64)])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlated:
    """Ask for correlated noise with this many ``bands``: ``fit(noise=Correlated(bands=32))``.

    More bands leave less noise in the weights and take more memory, that of twice as many models. Without ``groups``
    there is no sampling: every unit counts in every ``number / batch``-th step, which must be a whole number. With
    ``groups``, at least as many as bands, units are in as many groups whose turn it is one after the other, and a step
    takes a Poisson sample of its group, at ``groups`` times the rate that ``batch`` has among all units; ε is amplified
    by that.
    """

    bands: int = 32
    groups: int | None = None

    def mechanism(self, run: "Training", spend: "Budget", moved: Sensitivity) -> "CorrelatedSums | BandedSums":
        """The mechanism of a run; fewer bands where it has fewer steps."""
        if self.groups is not None:
            return BandedSums.calibrated(run, spend, bands=min(self.bands, run.steps), groups=self.groups)
        if run.rate.numerator != 1:
            raise InvalidInput(
                f"a cycle takes every unit in turn, and {run.number:,} units do not make whole batches of "
                f"{decimal_up(run.rate * run.number)}; nothing was read and nothing was spent. Choose a batch that "
                "divides the number."
            )
        return CorrelatedSums.calibrated(run, spend, bands=min(self.bands, run.steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrelatedSums:
    """Release the sums of clipped gradients of all ``steps`` through ``bands`` of correlated noise, without sampling.

    ``rate`` is one over a whole number: that of the buckets of the :class:`Cycle`. ``multiplier`` is z for the whole
    run. The coefficients are those of the square root of the running totals, whole numbers of 2^−10, cut after
    ``bands``: they are never negative and never rise.

    Guarantee: all steps together are one Gaussian mechanism of multiplier z, gradients at weights that were released
    before included. Assumes: a unit counts at the steps of the cycle and no other. Public: every field. Sensitive: the
    sums.

    >>> one = CorrelatedSums(multiplier=Fraction(1), steps=4, rate=Fraction(1, 2), parameters=100, clip=Fraction(1),
    ...                      bands=2)
    >>> one.column, one.squared, one.loss(Sensitivity.of(l2_squared=1))
    ((1024, 512), Fraction(5, 2), Gaussian(l2_squared=Fraction(1, 1), sigma_squared=Fraction(1, 1)))
    """

    KIND: ClassVar[str] = "mechanism.correlated_sums"
    VERSION: ClassVar[int] = 1
    multiplier: Fraction
    steps: int
    rate: Fraction
    parameters: int
    clip: Fraction
    bands: int

    def __post_init__(self) -> None:
        for name in ("multiplier", "clip"):
            object.__setattr__(self, name, positive(getattr(self, name), name))
        object.__setattr__(self, "rate", positive(probability(self.rate, "rate"), "rate"))
        if self.rate.numerator != 1:
            raise InvalidInput("the rate of a cycle is one over a whole number of buckets; nothing was done.")
        natural(self.steps, "steps", most=MOST_STEPS)
        natural(self.parameters, "parameters", most=2**40)
        natural(self.bands, "bands", most=min(MOST_BANDS, self.steps))
        self._room(1)

    @classmethod
    def calibrated(cls, run: "Training", spend: "Budget", *, bands: int) -> "CorrelatedSums":
        """The least noise with which a whole run keeps a spend: that of one Gaussian mechanism, to seven digits."""
        if spend.delta == 0:
            raise InvalidInput("the noise of training is Gaussian and needs a delta above 0; nothing was done.")
        z = exact_multiplier(epsilon=spend.epsilon, delta=spend.delta)
        return cls(
            multiplier=Fraction(decimal_up(z, DIGITS)),
            steps=run.steps,
            rate=run.rate,
            parameters=run.parameters,
            clip=run.clip,
            bands=bands,
        )

    @property
    def cycle(self) -> Cycle:
        """Who counts when."""
        return Cycle(steps=self.steps, buckets=self.rate.denominator)

    @property
    def sampling(self) -> Fraction:
        """The chance with which a unit of the bucket counts: all of them do."""
        return Fraction(1)

    @property
    def column(self) -> tuple[int, ...]:
        """The coefficients c_k in units of 2^−10."""
        return _column(self.bands)

    @property
    def squared(self) -> Fraction:
        """The largest ‖C·Δ‖² for a unit that counts by at most 1 at each of its steps; exact."""
        return _squared(self.column, self.cycle)

    def after(self, steps: int) -> Fraction:
        """The same for the first steps alone, the only ones released so far.

        >>> CorrelatedSums(multiplier=Fraction(1), steps=4, rate=Fraction(1, 2), parameters=9, clip=Fraction(1),
        ...                bands=1).after(2)
        Fraction(1, 1)
        """
        part = Cycle(steps=natural(steps, "steps", most=self.steps), buckets=self.rate.denominator)
        return _squared(self.column[:steps], part)

    @property
    def law(self) -> Unstated:
        """The noise of sums is correlated over the steps; no distribution of it is stated."""
        return Unstated()

    def loss(self, moved: Sensitivity) -> events.Gaussian:
        """The event of the whole run, in units of what neighbours move the measurements."""
        units_moved(moved, self.clip)
        return events.Gaussian(l2_squared=Fraction(1), sigma_squared=self.multiplier**2)

    def pitch(self, moved: Sensitivity) -> Fraction:
        """The lattice g of the measurements; their noise is 2^20·g, z times what neighbours move them; rounded up.

        With m units moved that is m·(clip·(1 + slack)/g + √d·17/256)·√squared + √(active·d), in steps of g: the move
        of the clipped sums and their rounding, to 1/16 of a step and a hair for the division before it; and, at the
        steps where the mixes of neighbours can differ, the rounding of these.
        """
        units = units_moved(moved, self.clip)
        exact = units * self.clip * (1 + SLACK) * self._root / self._room(units)
        return Fraction(decimal_up(exact, DIGITS))

    def active(self, units: int) -> int:
        """At how many steps the measurements of neighbours can differ."""
        return min(self.steps, units * self.cycle.pattern.times * self.bands)

    def open(self, moved: Sensitivity, words: "Words") -> "CorrelatedNoise":
        """Start the noise of a run."""
        return CorrelatedNoise(mechanism=self, pitch=self.pitch(moved), words=words)

    def course(self, run: "Training", moved: Sensitivity, words: "Words") -> "CorrelatedCourse":
        """Start a run."""
        return CorrelatedCourse(mechanism=self, noise=self.open(moved, words), words=words)

    @property
    def _root(self) -> Fraction:
        return enclosures.sqrt(self.squared).high

    def _room(self, units: int) -> Fraction:
        """What rounding leaves of 2^20/z steps of the lattice; a quarter of them at most is given to it."""
        finer = units * enclosures.sqrt(Fraction(self.parameters)).high * HAIR / 2**FINER * self._root
        mixes = enclosures.sqrt(Fraction(self.active(units) * self.parameters)).high
        room: Fraction = WIDTH / self.multiplier - finer - mixes
        if room * 4 < 3 * WIDTH / self.multiplier:
            raise Refused(
                f"noise of {decimal_up(self.multiplier)} times the clip on {self.parameters:,} numbers and "
                f"{self.bands} bands leaves no room for rounding; nothing was read and nothing was spent. "
                "Take fewer bands, ask for more ε, or train fewer parameters."
            )
        return room


@dataclass(frozen=True, slots=True, kw_only=True)
class BandedSums:
    """Release sums of clipped gradients through ``bands`` of correlated noise, each over a sample of one of ``groups``.

    Step t takes the units of group t mod ``groups``, each with probability groups · ``rate``, by a coin of its own.
    ``sigma`` is the standard deviation of the noise of a measurement, in units of what one unit moves a sum. The
    coefficients are those of :class:`CorrelatedSums`.

    Guarantee: that of ⌈steps/groups⌉ sampled Gaussian mechanisms (:func:`sfumato.accounting.banded_plan`), gradients at
    weights that were released before included. Assumes: there are no more bands than groups; the group of a unit
    depends on nothing but a secret of its own. Public: every field. Sensitive: the sums, who is in which group, and who
    was drawn. Proof: docs/proofs/banded_sampling.md

    >>> one = BandedSums(sigma=Fraction(2), steps=10, rate=Fraction(1, 40), parameters=100, clip=Fraction(1), bands=2,
    ...                  groups=4)
    >>> one.sampling, one.loss(Sensitivity.of(l2_squared=1)).times
    (Fraction(1, 10), 3)
    """

    KIND: ClassVar[str] = "mechanism.banded_sums"
    VERSION: ClassVar[int] = 1
    sigma: Fraction
    steps: int
    rate: Fraction
    parameters: int
    clip: Fraction
    bands: int
    groups: int

    def __post_init__(self) -> None:
        for name in ("sigma", "clip"):
            object.__setattr__(self, name, positive(getattr(self, name), name))
        object.__setattr__(self, "rate", positive(probability(self.rate, "rate"), "rate"))
        natural(self.steps, "steps", most=MOST_STEPS)
        natural(self.parameters, "parameters", most=2**40)
        natural(self.groups, "groups", most=MOST_STEPS)
        natural(self.bands, "bands", most=min(MOST_BANDS, self.steps))
        if self.bands > self.groups:
            raise InvalidInput(
                f"{self.bands} bands overlap where a unit's turn comes every {self.groups} steps; nothing was read and "
                "nothing was spent. Take at least as many groups as bands."
            )
        if self.sampling > 1:
            raise InvalidInput(
                f"one of {self.groups} groups has fewer units than a batch is expected to have; nothing was read and "
                "nothing was spent. Take fewer groups, or a smaller batch."
            )
        self._room()

    @classmethod
    def calibrated(cls, run: "Training", spend: "Budget", *, bands: int, groups: int) -> "BandedSums":
        """The least noise, to about four digits and rounded up, with which a whole run keeps a spend."""
        if spend.delta == 0:
            raise InvalidInput("the noise of training is Gaussian and needs a delta above 0; nothing was done.")
        turns = -(-run.steps // natural(groups, "groups"))
        sampling = min(Fraction(1), run.rate * groups)  # more than all is refused below
        z = calibrate_sigma(epsilon=spend.epsilon, delta=spend.delta, steps=turns, sampling=sampling)
        sigma = z * enclosures.sqrt(_energy(natural(bands, "bands", most=MOST_BANDS))).high
        return cls(
            sigma=Fraction(decimal_up(sigma, DIGITS)),
            steps=run.steps,
            rate=run.rate,
            parameters=run.parameters,
            clip=run.clip,
            bands=bands,
            groups=groups,
        )

    @property
    def cycle(self) -> Cycle:
        """Whose turn it is when."""
        return Cycle(steps=self.steps, buckets=self.groups)

    @property
    def sampling(self) -> Fraction:
        """The chance with which a unit counts in a step of its group."""
        return self.rate * self.groups

    @property
    def column(self) -> tuple[int, ...]:
        """The coefficients c_k in units of 2^−10."""
        return _column(self.bands)

    @property
    def multiplier(self) -> Fraction:
        """The noise in units of what one unit moves all measurements by, at one of its turns; rounded down."""
        return self.sigma / enclosures.sqrt(_energy(self.bands)).high

    @property
    def law(self) -> Unstated:
        """The noise of sums is correlated over the steps; no distribution of it is stated."""
        return Unstated()

    def loss(self, moved: Sensitivity) -> events.PrivacyEvent:
        """The event of the whole run, in units of what neighbours move a sum: one unit under add/remove."""
        if units_moved(moved, self.clip) != 1:
            raise Refused("samples in turn are accounted for where one unit is added or removed; nothing was done.")
        column = [Fraction(one, 2**MIX) for one in self.column]
        return banded_plan(
            column=column, sigma=self.sigma, steps=self.steps, groups=self.groups, sampling=self.sampling
        )

    def pitch(self, moved: Sensitivity) -> Fraction:
        """The lattice g of the measurements; their noise is 2^20·g, and sigma times what a unit moves; rounded up.

        At one of its turns a unit moves the measurements of that block by (clip·(1 + slack)/g + √d·17/256)·√Σc² +
        √(bands·d), in steps of g: the clipped gradient and its rounding, and the rounding of the mixes.
        """
        units_moved(moved, self.clip)
        return Fraction(decimal_up(self.clip * (1 + SLACK) * self._root / self._room(), DIGITS))

    def open(self, moved: Sensitivity, words: "Words") -> "CorrelatedNoise":
        """Start the noise of a run."""
        return CorrelatedNoise(mechanism=self, pitch=self.pitch(moved), words=words)

    def course(self, run: "Training", moved: Sensitivity, words: "Words") -> "CorrelatedCourse":
        """Start a run."""
        return CorrelatedCourse(mechanism=self, noise=self.open(moved, words), words=words)

    @property
    def _root(self) -> Fraction:
        return enclosures.sqrt(_energy(self.bands)).high

    def _room(self) -> Fraction:
        """What rounding leaves of the 2^20/z steps that a block may move; a quarter of them at most is given to it."""
        low = enclosures.sqrt(_energy(self.bands)).low
        whole = WIDTH * low / self.sigma
        finer = enclosures.sqrt(Fraction(self.parameters)).high * HAIR / 2**FINER * self._root
        room: Fraction = whole - finer - enclosures.sqrt(Fraction(self.bands * self.parameters)).high
        if room * 4 < 3 * whole:
            raise Refused(
                f"noise of {decimal_up(self.sigma)} times the clip on {self.parameters:,} numbers and {self.bands} "
                "bands leaves no room for rounding; nothing was read and nothing was spent. Take fewer bands, ask for "
                "more ε, or train fewer parameters."
            )
        return room


def _column(bands: int) -> tuple[int, ...]:
    return Toeplitz(form="square root", horizon=bands, bits=MIX).column


@lru_cache(maxsize=64)
def _energy(bands: int) -> Fraction:
    """Σc²: how far one turn of a unit moves the measurements that hold it, squared."""
    return Fraction(sum(one * one for one in _column(bands)), 4**MIX)


@lru_cache(maxsize=64)
def _squared(column: tuple[int, ...], cycle: Cycle) -> Fraction:
    padded = (*column, *(0 for _ in range(cycle.steps - len(column))))
    return Fraction(sum(move * move for move in moves(padded, cycle.pattern)), 4**MIX)


@dataclass(slots=True, kw_only=True)
class CorrelatedNoise:
    """One run of :class:`CorrelatedSums` or :class:`BandedSums`, step by step.

    Sensitive: its state, which holds exact sums. ``words`` are the random bits. What :meth:`release` returns is public;
    nothing else is.
    """

    mechanism: "CorrelatedSums | BandedSums"
    pitch: Fraction
    words: "Words"
    step: int = 0
    _sums: "list[Tensor]" = field(default_factory=list)  # whole numbers, the newest first; sensitive
    _told: "list[Tensor]" = field(default_factory=list)  # floats, the newest first; public

    def release(self, flat: "Tensor") -> "Tensor":
        """Take the sum of clipped gradients of the next step, a flat float tensor; return it with its noise.

        What is beyond 2^22 standard deviations of the noise is held there, number by number.
        """
        import torch

        from sfumato.noise.fine import fine_gaussian

        said = self.mechanism
        if self.step >= said.steps:
            raise Refused(f"the run was declared for {said.steps:,} steps and has had them; nothing was drawn.")
        if flat.numel() != said.parameters:
            raise InvalidInput(f"the sum has {flat.numel():,} numbers and not {said.parameters:,}; nothing was drawn.")
        mixed = self.mixed(flat)
        noise = fine_gaussian(said.parameters, self.words)
        self.step += 1
        return self._worked_out(mixed + torch.from_numpy(noise).to(mixed.device))

    def mixed(self, flat: "Tensor") -> "Tensor":
        """Remember a sum and mix it with those before, in whole steps of the lattice. Sensitive."""
        finer = flat.double().flatten() / (float(self.pitch) / 2**FINER)
        whole = finer.nan_to_num(nan=0.0).clamp(-ROOM, ROOM).round().long()
        self._sums = [whole, *self._sums[: self.mechanism.bands - 1]]
        mixed = cast("Tensor", sum(each * one for one, each in zip(self.mechanism.column, self._sums, strict=False)))
        return mixed >> (MIX + FINER)

    def _worked_out(self, measured: "Tensor") -> "Tensor":
        """The sum of this step from the measurements so far: post-processing."""
        told = measured.double() * float(self.pitch)
        for one, before in zip(self.mechanism.column[1:], self._told, strict=False):
            told -= before * (one / 2**MIX)
        self._told = [told.clone(), *self._told][: self.mechanism.bands - 1]
        return told

    def state(self) -> RunState:
        """What a run needs to go on. Sensitive: it holds exact sums, and belongs in a sealed checkpoint."""
        return {"step": self.step, "sums": list(self._sums), "told": list(self._told)}

    def load(self, state: RunState) -> None:
        """Go on from a state."""
        self.step, self._sums, self._told = int(state["step"]), list(state["sums"]), list(state["told"])


class CorrelatedCourse:
    """A run through the cycle: who counts in a step, and the noise of its sum. Sensitive: its state.

    The buckets are words of AES-256 in counter mode under a key that is drawn once a run, as all words of a run are; so
    a state holds the key and not the bucket of each unit, and takes as much room however many units there are.
    """

    def __init__(self, *, mechanism: "CorrelatedSums | BandedSums", noise: CorrelatedNoise, words: "Words") -> None:
        import numpy as np

        self._mechanism, self._noise, self._words = mechanism, noise, words
        self._key = np.empty(KEY, dtype=np.uint64)
        words.fill(self._key)
        self._units = UNKNOWN
        self._buckets: npt.NDArray[np.int64] | None = None

    @property
    def clip(self) -> Fraction:
        """The declared clip. Public."""
        return self._mechanism.clip

    def places(self, number: int, step: int) -> "npt.NDArray[np.int64]":
        """The units of the bucket of a step, or a sample of them, in random order; buckets are drawn once a run.

        Sensitive.
        """
        from sfumato.learning.sampling import shuffled_sample

        if step != self._noise.step:
            raise Refused(f"step {step + 1:,} is not the next one of this run; nothing was read.")
        if self._units not in (UNKNOWN, number):
            raise Refused("these are not the units that the run began with; nothing was released.")
        if self._buckets is None:
            self._units, self._buckets = number, self._mechanism.cycle.drawn(number, _KeyedWords(self._key.tobytes()))
        drawn = (self._buckets == step % self._mechanism.cycle.buckets).nonzero()[0]
        places: npt.NDArray[np.int64] = drawn[shuffled_sample(len(drawn), self._mechanism.sampling, self._words)]
        return places

    def observe(self, norms: "Tensor", present: "Tensor") -> None:
        """Nothing depends on the norms."""

    def release(self, total: "Tensor") -> "Tensor":
        """The sum of a step with its noise."""
        return self._noise.release(total)

    def state(self) -> RunState:
        """The key of the buckets, how many units there are, exact sums and what was released.

        Sensitive: it belongs in a sealed checkpoint. Public: how much room it takes, which depends on the step alone.
        """
        import numpy as np
        import torch

        own = np.append(self._key.view(np.int64), self._units)
        return {**self._noise.state(), "cycle": torch.from_numpy(own)}

    def load(self, state: RunState) -> None:
        """Go on from a state."""
        import numpy as np

        if "cycle" not in state:
            raise Refused("this state was written by an earlier version, and its units are unknown; not resumed.")
        self._noise.load(state)
        own = state["cycle"].numpy()
        self._key, self._units, self._buckets = own[:KEY].view(np.uint64).copy(), int(own[KEY]), None


class _KeyedWords:
    """The keystream of AES-256 under a key: the same words each time, from the first on."""

    width = 64

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES256
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        self._stream = Cipher(AES256(key), CTR(bytes(16))).encryptor()

    def fill(self, out: "WordArray") -> None:
        """Overwrite ``out`` with the next words."""
        self._stream.update_into(bytes(out.nbytes), out.data.cast("B"))
