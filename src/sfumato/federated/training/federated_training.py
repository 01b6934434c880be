"""A training run across sites: the declaration of what is learned, and how far one person moves a round of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import enclosures
from sfumato.core.description import Description, phrase
from sfumato.core.exact import decimal_up, natural, positive, probability
from sfumato.core.finding import check_fit
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Mechanism
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Record, Relation, Unit, User, describe
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.federated.training.shared_rounds import MOST_ROUNDS, SharedRounds
from sfumato.inference.figure import Figure
from sfumato.learning.describe import trained

if TYPE_CHECKING:
    from sfumato.core.release import Release

__all__ = ["CLIENTS", "REASON", "FederatedTraining"]

CLIENTS = ("persons", "sites")
KINDS = ("record", "user")
MOST = 2**40
DIGEST = 64
LARGEST = 2**26  # steps of the lattice in a clip: what PersonRounding has room for
ROOM = 2**62  # for the squares of one client's whole numbers
REASON = Fraction(2) ** 300  # clips, steps and rates within this and its inverse are floats with all their digits


@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedTraining:
    """A model of ``parameters`` numbers, trained in ``rounds`` rounds on clipped updates of people in several sites.

    Where ``clients`` are *persons*, a round has a Poisson sample at ``rate`` of the people of each site, or those whose
    turn it is; each person's update is a gradient, or what ``local_steps`` of gradient descent on that person's rows
    alone do. It is cut to ``clip`` in l2 norm and rounded to whole numbers of ``step``, whose norm is at most
    slack·clip/step, exactly. Where they are *sites*, each site has one update, of whatever it computed from all its
    rows, cut and rounded alike. All are added up over the sites; what is learned from is that sum over rate ·
    ``number``, the declared number of clients. A person is in at most ``sites_per_person`` sites.
    ``model`` is the digest of the model's form, ``run`` that of the proposal that the sites voted on, ``weights`` the
    SHA-256 of what was trained, empty until that is known, and ``done`` how many rounds gave a sum.

    Guarantee: :meth:`sensitivity` bounds the move of a round's sum for one protected unit. Assumes: model, loss and
    settings were chosen without the data. Public: every field. Proof: docs/proofs/federated_training.md
    """

    KIND: ClassVar[str] = "query.federated_training"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.shared_rounds",)
    dataset: Dataset
    units: str
    records: int
    clients: str
    clip: Fraction
    step: Fraction
    slack: Fraction
    number: int
    rate: Fraction
    rounds: int
    parameters: int
    sites_per_person: int
    model: str
    run: str
    local_steps: int = 0
    weights: str = ""
    done: int = 0

    def __post_init__(self) -> None:
        for name in ("clip", "step", "slack"):
            object.__setattr__(self, name, positive(getattr(self, name), name))
        object.__setattr__(self, "rate", positive(probability(self.rate, "rate"), "rate"))
        if self.units not in KINDS or self.clients not in CLIENTS:
            raise InvalidInput("units are record or user, and clients persons or sites; nothing was done.")
        for name in ("records", "number", "rounds", "parameters", "sites_per_person"):
            natural(getattr(self, name), name, most=MOST_ROUNDS if name == "rounds" else MOST)
        natural(self.local_steps, "local_steps", least=0, most=1000)
        natural(self.done, "done", least=0, most=self.rounds)
        if self.slack < 1 or not 1 <= self.l2_squared <= LARGEST**2:
            raise InvalidInput("slack is at least 1, and clip/step lies between 1 and 2^26; nothing was done.")
        if not 1 / REASON <= self.step <= self.slack * self.clip <= REASON:
            raise InvalidInput(
                "a clip or step beyond 2^300, or below its inverse, is not computed with; nothing was done."
            )
        if self.parameters * self.l2_squared >= ROOM:
            raise InvalidInput(
                "clip/step is too large for a model of this size; nothing was done. Choose a larger step."
            )
        if self.units == "record" and self.records != 1:
            raise InvalidInput("records is how many rows of a person count, and 1 where units are not users.")
        if any(text and not _is_digest(text) for text in (self.model, self.run, self.weights)):
            raise InvalidInput("models, runs and weights are named by 64 hexadecimal digits; nothing was done.")

    @property
    def l2_squared(self) -> int:
        """The most that the squares of one client's whole numbers add up to."""
        return math.floor((self.slack * self.clip / self.step) ** 2)

    @property
    def size(self) -> int:
        """0: a model is no list of numbers that have an error each."""
        return 0

    @property
    def measure(self) -> None:
        """None: there are no columns."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """No columns."""
        return ()

    def labels(self) -> Mapping[str, Sequence[str | int | bool]]:
        """No rows."""
        return {}

    def columns(self, release: "Release") -> Mapping[str, Figure]:
        """No columns: the certificate identifies the weights by their digest."""
        return {}

    check_answer = check_fit

    def limit(self, unit: Unit) -> Limit | None:
        """How much of each person counts in one site."""
        return Limit(groups=1, rows_per_group=self.records) if isinstance(unit, User) else None

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """How far one protected unit moves the sum of a round, in steps of the lattice, with all its sites.

        Whoever comes or goes adds one vector of whole numbers in each site, of a known norm. Where clients are sites,
        and where somebody is replaced, one such vector takes the place of another: twice as far.

        >>> from sfumato.core.units import record
        >>> run = FederatedTraining(dataset=Dataset(name="stays", edition="1"), units="record", records=1,
        ...     clients="persons", clip=Fraction(1), step=Fraction(1, 10), slack=Fraction(1), number=100,
        ...     rate=Fraction(1), rounds=5, parameters=4, sites_per_person=2, model="", run="")
        >>> run.sensitivity(record(relation="add/remove"), None).l2
        L2(squared=Fraction(400, 1))
        """
        self._check_protected(unit, limit)
        swap = 2 if self.clients == "sites" or unit.relation is Relation.REPLACE else 1
        k = swap * self.sites_per_person
        l1 = min(self.l2_squared, math.isqrt(self.parameters * self.l2_squared))
        return Sensitivity.of(l1=k * l1, l2_squared=k**2 * self.l2_squared)

    def mismatch(self, mechanism: Mechanism, unit: Unit) -> str | None:
        """What is wrong with a mechanism for this run, if anything."""
        if not isinstance(mechanism, SharedRounds):
            return f"must be one of {', '.join(self.ANSWERED_BY)}"
        for name in ("rounds", "rate", "sites_per_person"):
            if getattr(mechanism, name) != getattr(self, name):
                return f"must be for {name} = {getattr(self, name)}, as the run"
        if self.clients == "sites" and mechanism.mix:
            return "must be without a mix, where clients are sites"
        return None

    def misfit(self, mechanism: Mechanism, unit: Unit, values: tuple[int, ...]) -> str | None:
        """What is wrong with a finished run, if anything."""
        problem = self.mismatch(mechanism, unit)
        if problem is None and not self.weights:
            problem = "must have trained weights, identified by their digest"
        return problem

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        noise = said.mechanism
        if not isinstance(noise, SharedRounds):
            raise Unsupported(f"a {self.KIND} by a {noise.KIND} is not a training run across sites; no text was made.")
        way = "cycle" if noise.mix else "sampled" if self.rate < 1 else "all"
        found = trained(
            said,
            units=self.units,
            number=self.number,
            batch=self.rate * self.number,
            steps=self.rounds,
            done=self.done,
            parameters=self.parameters,
            clip=self.clip,
            multiplier=enclosures.sqrt(noise.variance).high * self.step / self.clip,
            weights=self.weights,
            way=way,
            follows=False,
            method="rounds_of_sites" if self.clients == "sites" else "rounds",
            own={"most_sites": f"{self.sites_per_person:,}"},
        )
        length = decimal_up(enclosures.sqrt(self.sensitivity(said.unit, said.limit).l2.squared).high * self.step)  # type: ignore[union-attr]  # it has one
        facts = {
            "noise": phrase("fact.noise_shared"),
            "sensitivity": phrase("fact.sensitivity_trained", clip=length),
        }
        return replace(found, facts=facts)

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """How good a model will be is not known beforehand."""
        return {}

    def _check_protected(self, unit: Unit, limit: Limit | None) -> None:
        """Refuse whom this run does not protect, and sampling that would be claimed for others than are sampled."""
        if not isinstance(unit, Record | User):
            raise Unsupported(f"training protects records or users, not {describe(unit)}; nothing was read or spent.")
        if isinstance(unit, User) is not (self.units == "user"):
            raise Refused("the units of this run are not those that the vault protects; nothing was read or spent.")
        if limit != self.limit(unit):
            raise Refused(f"the limit of this training must be {self.limit(unit)}; nothing was read and nothing spent.")
        if self.rate < 1 and unit.relation is Relation.REPLACE:
            raise Refused(
                "samples and turns are of a secret size and accounted for under add/remove alone, and this vault's "
                "relation is replace. Nothing was read and nothing was spent. Take everybody in each round: rate=1."
            )
        if self.rate < 1 and self.clients == "sites":
            raise Refused(
                "a coordinator that exchanges keys with sites knows which of them are in a round: sampling them hides "
                "nobody and lowers no ε. Nothing was read and nothing was spent. Take every site in each round: rate=1."
            )


def _is_digest(text: str) -> bool:
    return len(text) == DIGEST and not set(text) - set("0123456789abcdef")
