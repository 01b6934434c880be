"""Reference-model attacks on two models of invented people: one that learns them by heart, one that a vault trains.

The first has no protection and is trained far too long. The second goes through ``vault.trainer`` as users' models do:
charged, clipped, sampled and noised, each run in a vault of its own. Both are linear and learn the same task from the
same people, and both meet LiRA with 64 reference models and RMIA with 4.

The adversary leaves the noise out of its own models of the second kind: what it wants of them is how far a row moves a
model, which noise would blur.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato import accounting
from sfumato.audit.reference_models import (
    ModelMembership,
    PrivacyCurve,
    lira_scores,
    model_membership,
    rmia_scores,
)
from sfumato.audit.small_models import Lessons, confidences, halves, trained_models
from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, positive
from sfumato.core.units import record
from sfumato.errors import InvalidInput
from sfumato.vault import Vault

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sfumato.core.release import Release

    Floats = npt.NDArray[np.float32]
    Integers = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

__all__ = ["InventedPeople", "MembershipStudy", "StudySize", "invented_people", "membership_study", "private_models"]

LARGEST_DELTA = Fraction(1, 10**6)
OVERFITTED_RATE = 20.0
PRIVATE_RATE = 4.0
SAMPLED = Fraction(1, 4)
APART = 0.3
FACTORS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.25, 1.5, 2.0)
"""Other ε, as multiples of the stated one, at which the privacy curve is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySize:
    """How many of everything. The defaults take less than a minute of one processor."""

    people: int = 800
    columns: int = 60
    classes: int = 10
    public: int = 800
    runs: int = 10
    lira_references: int = 64
    rmia_references: int = 4
    overfitted_steps: int = 200
    private_steps: int = 40

    def __post_init__(self) -> None:
        pairs = self.lira_references % 2 == 0 and self.rmia_references % 2 == 0
        if not pairs or not 2 <= self.rmia_references <= self.lira_references:
            raise InvalidInput("reference models come in pairs, and RMIA takes some of LiRA's; nothing was done.")
        if self.runs < 3 or self.people < 40 or self.public < 2 or self.classes < 2 or self.columns < 1:
            raise InvalidInput("a study has 3 runs or more, of 40 invented people or more; nothing was done.")


@dataclass(frozen=True, slots=True, kw_only=True)
class InventedPeople:
    """Rows of a pool and public rows of the same invented population, all of length 1, with their labels."""

    rows: "Floats"
    labels: "Integers"
    public_rows: "Floats"
    public_labels: "Integers"


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipStudy:
    """What both attacks found on both models. Public: everybody in it is invented.

    ``epsilon`` and ``delta`` are those of each private run, as its certificate states them.
    """

    overfitted: tuple[ModelMembership, ...]
    private: tuple[ModelMembership, ...]
    epsilon: Fraction
    delta: Fraction
    curve: PrivacyCurve
    seed: int

    @property
    def refuted(self) -> bool:
        """Whether an attack on the private model found more than its guarantee, or its privacy curve, allows."""
        return any(each.exceeds or each.exceeds_curve for each in self.private)

    @property
    def blunt(self) -> bool:
        """Whether an attack told nothing of the unprotected model: then its silence about the other says nothing."""
        return not all(each.finds for each in self.overfitted)


def invented_people(size: StudySize, random: "np.random.Generator") -> InventedPeople:
    """Draw people in classes whose middles are a little apart: enough to learn, and little enough to learn by heart."""
    import numpy as np

    number = size.people + size.public
    middles = random.normal(size=(size.classes, size.columns))
    labels = random.integers(0, size.classes, number)
    labels[: size.classes] = np.arange(size.classes)
    rows = APART * middles[labels] + random.normal(size=(number, size.columns))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return InventedPeople(
        rows=rows[: size.people],
        labels=labels[: size.people],
        public_rows=rows[size.people :],
        public_labels=labels[size.people :],
    )


def membership_study(
    *,
    epsilon: Exact = 2,
    delta: Exact = LARGEST_DELTA,
    size: StudySize | None = None,
    seed: int = 1,
    confidence: float = 0.95,
    told: Callable[[int, int], None] = lambda _done, _of: None,
) -> MembershipStudy:
    """Train the models of invented people, attack them, and put what was found beside what the guarantee allows.

    ``seed`` is that of the invented people and of the adversary; the noise of the private runs comes from the operating
    system as ever. ``told`` is called with how many parts of the work are done, of how many.
    """
    import numpy as np

    size = StudySize() if size is None else size
    random = np.random.default_rng(seed)
    people = invented_people(size, random)
    parts = size.runs + 2
    told(0, parts)
    inside = halves(size.lira_references, size.people, random)
    members = random.random((size.runs, size.people)) < 0.5
    lessons = Lessons(steps=size.overfitted_steps, rate=OVERFITTED_RATE)
    models = trained_models(people.rows, people.labels, np.concatenate([inside, members]), lessons, random)
    learned, references = models[len(inside) :], models[: len(inside)]
    overfitted = _attacked(people, references, inside, learned, members, size, confidence=confidence)
    told(1, parts)
    references = trained_models(people.rows, people.labels, inside, _imitated(size), random)
    told(2, parts)
    weights, release = private_models(
        people,
        members,
        steps=size.private_steps,
        epsilon=epsilon,
        delta=delta,
        told=lambda done: told(2 + done, parts),
    )
    curve = _curve(release)
    return MembershipStudy(
        overfitted=overfitted,
        private=_attacked(people, references, inside, weights, members, size, confidence=confidence, curve=curve),
        epsilon=release.statement.spend.epsilon,
        delta=release.statement.spend.delta,
        curve=curve,
        seed=seed,
    )


def private_models(
    people: InventedPeople,
    members: "Flags",
    *,
    steps: int,
    epsilon: Exact,
    delta: Exact,
    told: Callable[[int], None] = lambda _done: None,
) -> "tuple[Floats, Release]":
    """A model for each line of ``members``, by ``vault.trainer`` in a vault of its own, and the release of the last."""
    import numpy as np

    from sfumato.learning.small_classifier import classified

    number = members.shape[1] // 2
    weights, release = [], None
    for place, own in enumerate(members):
        vault = Vault(
            unit=record(relation="add/remove"),
            budget=Budget(epsilon=positive(epsilon, "epsilon"), delta=positive(delta, "delta")),
            name="audit",
        )
        found, release = classified(
            vault.trainer,
            people.rows[own],
            people.labels[own],
            classes=int(people.labels.max()) + 1,
            n_units=number,
            steps=steps,
            batch=int(SAMPLED * number),
            rate=PRIVATE_RATE,
            epsilon=epsilon,
            delta=delta,
        )
        weights.append(found)
        told(place + 1)
    if release is None:
        raise InvalidInput("there is no run; nothing was trained.")
    return np.stack(weights), release


def _imitated(size: StudySize) -> Lessons:
    """The private run as the adversary trains it, without noise."""
    batch = int(SAMPLED * (size.people // 2))
    return Lessons(
        steps=size.private_steps, rate=PRIVATE_RATE, sampled=batch / (size.people // 2), expected=batch, clip=1.0
    )


def _attacked(
    people: InventedPeople,
    references: "Floats",
    inside: "Flags",
    targets: "Floats",
    members: "Flags",
    size: StudySize,
    *,
    confidence: float,
    curve: PrivacyCurve | None = None,
) -> tuple[ModelMembership, ...]:
    """Both attacks on the same models."""
    few = size.rmia_references
    own, others = (confidences(some, people.rows, people.labels) for some in (targets, references))
    public, public_others = (
        confidences(some, people.public_rows, people.public_labels) for some in (targets, references[:few])
    )
    found = (
        ("LiRA", size.lira_references, lira_scores(own, others, inside)),
        ("RMIA", few, rmia_scores(own, others[:few], public, public_others)),
    )
    return tuple(
        model_membership(
            scores,
            members,
            attack=attack,
            references=number,
            curve=curve,
            confidence=confidence,
            comparisons=len(found),
        )
        for attack, number, scores in found
    )


def _curve(release: "Release") -> PrivacyCurve:
    """The stated (ε, δ) of a run, and its δ at other ε, each rounded upward."""
    said = release.statement
    stated = float(said.spend.epsilon)
    others = [stated * factor for factor in FACTORS]
    found = [(each, min(1.0, float(accounting.delta(said.event, epsilon=Fraction(each))))) for each in others]
    return PrivacyCurve(pairs=((stated, float(said.spend.delta)), *found))
