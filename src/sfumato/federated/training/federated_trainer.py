"""The coordinator of a training run across sites: one proposal, one charge, rounds of sums, and a model."""

import contextlib
import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, natural, positive
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.units import User
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.federated.parties import Parties, ServerTrust
from sfumato.federated.shared_noise import SharedNoise
from sfumato.federated.training.declared_network import DeclaredNetwork
from sfumato.federated.training.federated_training import FederatedTraining
from sfumato.federated.training.run_rounds import RunRounds
from sfumato.federated.training.run_state import RunState
from sfumato.federated.training.server_optimizers import FedSGD, ServerOptimizer, Vector
from sfumato.federated.training.shared_rounds import SharedRounds
from sfumato.federated.training.training_proposal import TrainingProposal
from sfumato.federated.training.written import written
from sfumato.federated.transports import Transport
from sfumato.gate.sealed import locked
from sfumato.gate.session import Opened, SessionGate
from sfumato.learning.hints import suggested_rate
from sfumato.learning.person_updates import Model, flat_weights, model_form, put_weights
from sfumato.learning.weights import weights_digest
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.noise.poisson_noise import MOST_VARIANCE

__all__ = ["FederatedTrainer", "TrainedAcrossSites"]

LEVELS = 1024  # steps of the lattice in a clip, where noise leaves room for that
MIX_BITS = 4  # of the coefficients of a mix
Watch = Callable[[int, Mapping[str, str]], object]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedAcrossSites:
    """A model with the weights of a run, the release that says so, and how the sites voted."""

    model: Model
    release: Release
    epsilon: Fraction
    delta: Fraction
    rounds: int
    """How many rounds gave a sum."""
    run: str
    """The digest of the proposal, by which sites know the run."""
    votes: Mapping[str, str]
    kept: tuple[Vector, ...] = ()
    """What the optimizer remembers after the last round."""


class FederatedTrainer:
    """Trains a model on the people of several sites; made by ``consortium.trainer``. It holds no rows.

    Guarantee: the weights of every round are (ε, δ)-DP together, for a person in up to ``sites_per_person`` sites,
    against the coordinator with up to ``colluding`` of them. Each site charges the whole run before it reads a row.
    Assumes: what the secure sum assumes; that model and settings were chosen without the data.
    Proof: docs/proofs/federated_training.md
    """

    def __init__(
        self,
        gate: SessionGate,
        model: Model | DeclaredNetwork,
        *,
        consortium: str,
        dataset: Dataset,
        sites: Mapping[str, str],
        parties: Parties,
        sites_per_person: int,
        transport: Callable[[], Transport],
        n_units: int,
        records: int = 1,
        clip: Exact = 1,
        clients: str = "persons",
        local_steps: int = 0,
        local_lr: float = 0.1,
    ) -> None:
        self._network = model if isinstance(model, DeclaredNetwork) else None
        self._model: Model = model.model() if isinstance(model, DeclaredNetwork) else model
        self._form = model_form(self._model) if self._network is None else self._network.digest
        self._gate, self._consortium, self._dataset = gate, consortium, dataset
        self._sites, self._parties, self._per_person, self._transport = (
            dict(sites),
            parties,
            sites_per_person,
            transport,
        )
        self._number = natural(n_units, "n_units", most=2**40)
        self._records, self._clip = natural(records, "max_records_per_unit"), positive(clip, "clip")
        self._clients, self._local_steps = clients, natural(local_steps, "local_steps", least=0)
        self._local_rate = positive(local_lr, "local_lr")
        self._votes: dict[str, str] = {}
        self._weights = flat_weights(self._model)

    @property
    def votes(self) -> Mapping[str, str]:
        """How the sites voted on the last run: ``joins``, ``declined`` or ``silent``."""
        return dict(self._votes)

    def plan(
        self, *, epsilon: Exact, delta: Exact, rounds: int, batch: int | None = None, bands: int = 0
    ) -> TrainingProposal:
        """What a run with these settings will be, as the sites will see it; asks nobody and spends nothing.

        A round expects ``batch`` people of all sites together, each drawn in secret inside its site. With ``bands``
        the matrix mechanism takes the place of sampling: a person counts in every ``n_units / batch``-th round.
        """
        spend = Budget.asked(epsilon=epsilon, delta=delta)
        number = self._number if self._clients == "persons" else len(self._sites)
        rate = Fraction(number if batch is None else natural(batch, "batch", most=number), number)
        mix: tuple[int, ...] = ()
        cycle = 1
        if bands:
            if rate.numerator != 1:
                raise InvalidInput(
                    "with bands everybody counts in turn, and the batch must divide n_units; nothing was done."
                )
            mix = Toeplitz(form="square root", horizon=min(bands, rounds), bits=MIX_BITS).column
            cycle = rate.denominator
        levels = max(LEVELS, 1 << math.ceil(math.log2(4 * math.sqrt(len(self._weights)))))
        for _ in range(40):
            training = self._training(rounds=rounds, rate=rate, number=number, levels=levels)
            moved = training.sensitivity(self._gate.unit, training.limit(self._gate.unit))
            mechanism = SharedRounds.calibrated(
                moved,
                spend,
                rounds=rounds,
                rate=rate,
                sites_per_person=self._per_person,
                mix=mix,
                cycle=cycle,
            )
            excess = max(SharedNoise(variance=mechanism.variance, removable=True).pieces(self._parties)) / MOST_VARIANCE
            if excess <= 1:
                return self._proposal(training, mechanism, spend)
            levels >>= max(1, (math.ceil(excess) - 1).bit_length() // 2)
            if levels < 4:
                break
        raise Refused("noise for so small an ε cannot be drawn in whole numbers of the clip; nothing was asked.")

    def fit(
        self,
        *,
        epsilon: Exact,
        delta: Exact,
        rounds: int,
        batch: int | None = None,
        bands: int = 0,
        lr: float | None = None,
        optimizer: ServerOptimizer | None = None,
        folder: str | Path | None = None,
        watch: Watch | None = None,
    ) -> TrainedAcrossSites:
        """Propose the run, let the sites vote, charge, and train; the weights are put into the model in the end.

        ``optimizer`` learns from the mean update of a round: ``FedSGD`` (the default, with ``lr`` and momentum 0.9) or
        ``FedAdam``. With ``folder`` the run is written down after each phase of a round: the same call goes on after a
        crash, asks for the same bytes and charges nobody again. ``watch(round, votes)`` is called after each round.
        A round that too many sites leave gives no sum; it was paid for, and the run goes on with the next one. A site
        that leaves for good is missed, and the run goes on while those who stay are enough.
        """
        with contextlib.ExitStack() as held:
            path = None if folder is None else Path(folder)
            if path is not None:
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
                held.enter_context(locked(path / "run", what="training run across sites"))
            plan = self.plan(epsilon=epsilon, delta=delta, rounds=rounds, batch=batch, bands=bands)
            state = self._begun(plan, path)
            how = optimizer or FedSGD(lr=self._rate(plan) if lr is None else lr, momentum=0.9)
            told = self._told(state, path)
            if told is not None:
                return self._handed_over(state, told)
            opened = self._opened(state.proposal, path)
            state = self._trained(state, how, path, watch)
            return self._finished(state, opened)

    def _training(self, *, rounds: int, rate: Fraction, number: int, levels: int) -> FederatedTraining:
        slack = enclosures.sqrt(1 + Fraction(len(self._weights), 4 * levels**2) + Fraction(5, levels)).high
        return FederatedTraining(
            dataset=self._dataset,
            units="user" if isinstance(self._gate.unit, User) else "record",
            records=self._records,
            clients=self._clients,
            clip=self._clip,
            step=self._clip / levels,
            slack=Fraction(math.ceil(slack * 10_000), 10_000),
            number=number,
            rate=rate,
            rounds=rounds,
            parameters=len(self._weights),
            sites_per_person=self._per_person,
            model=self._form,
            run="",
            local_steps=self._local_steps,
        )

    def _proposal(self, training: FederatedTraining, mechanism: SharedRounds, spend: Budget) -> TrainingProposal:
        return TrainingProposal(
            consortium=self._consortium,
            number=secrets.randbits(62),  # a run of its own, also after a restart
            training=training,
            mechanism=mechanism,
            local_rate=self._local_rate,
            unit=self._gate.unit,
            spend=spend,
            sites=tuple(self._sites.values()),
            missing=self._parties.missing,
            colluding=self._parties.colluding,
            lying=self._parties.server is ServerTrust.LYING,
            network=self._network,
        )

    def _rate(self, plan: TrainingProposal) -> float:
        training = plan.training
        return suggested_rate(
            clip=training.clip,
            multiplier=enclosures.sqrt(plan.mechanism.variance).high * training.step / training.clip,
            expected=training.rate * training.number,
            steps=training.rounds,
        )

    def _begun(self, plan: TrainingProposal, path: Path | None) -> RunState:
        """A run that was written down, or a new one that enough sites joined."""
        stored = None if path is None else path / "state"
        if stored is not None and stored.exists():
            state = RunState.from_bytes(stored.read_bytes())
            if replace(state.proposal, number=plan.number) != plan:
                raise Refused("this folder holds a run with other settings; nothing was asked. Choose another folder.")
            return state
        plan = self._proposed(plan, path)
        asked = RunRounds(proposal=plan, transport=self._transport())
        self._votes = asked.votes(self._sites)
        joined = tuple(key for name, key in self._sites.items() if self._votes[name] == "joins")
        try:
            plan.terms(1, joined)
        except InvalidInput as wrong:
            if path is not None:
                (path / "proposal").unlink()
            said = ", ".join(f"{name}: {vote}" for name, vote in self._votes.items())
            raise Refused(f"too few sites take part ({said}); nothing was charged. {wrong}") from None
        state = RunState(proposal=plan, roster=joined, weights=self._weights.astype("float64"))
        if stored is not None:
            written(stored, state.to_bytes())
        return state

    def _proposed(self, plan: TrainingProposal, path: Path | None) -> TrainingProposal:
        """What sites vote on: what was written down before a crash, or while votes were carried, else this plan."""
        if path is None:
            return plan
        file = path / "proposal"
        if file.exists():
            found = TrainingProposal.from_json(file.read_text("utf-8"))
            if replace(found, number=plan.number) == plan:
                return found
        written(file, plan.to_json().encode())
        return plan

    def _told(self, state: RunState, path: Path | None) -> Release | None:
        """The release of a run that had ended before its weights were handed over; costs nothing."""
        if path is None or not (path / "charge").exists() or state.number < state.proposal.training.rounds:
            return None
        plan = state.proposal
        query, charge = plan.query(self._dataset), int((path / "charge").read_bytes())
        with contextlib.suppress(Refused, NotDeclared):
            return self._gate.told(
                query, plan.mechanism, query.limit(self._gate.unit), plan.spend, idempotency=None, charge=charge
            )
        return None

    def _opened(self, plan: TrainingProposal, path: Path | None) -> Opened:
        """Charge the coordinator's own account, once: its number is written down, and its key is the run's digest."""
        query = plan.query(self._dataset)
        asked = (query, plan.mechanism, query.limit(self._gate.unit), plan.spend)
        number = None if path is None else path / "charge"
        if number is not None and number.exists():
            with contextlib.suppress(Refused, NotDeclared):  # a ledger in memory forgets with its process
                return self._gate.find(*asked, idempotency=None, charge=int(number.read_bytes()))
        key = None if path is None else f"training run across sites {plan.digest}"
        try:
            opened = self._gate.open(*asked, idempotency=key)
        except NotDeclared:  # a ledger in memory knows no keys
            opened = self._gate.open(*asked, idempotency=None)
        if number is not None:
            written(number, str(opened.reservation.number).encode())
        return opened

    def _trained(self, state: RunState, optimizer: ServerOptimizer, path: Path | None, watch: Watch | None) -> RunState:
        plan = state.proposal
        asked = RunRounds(
            proposal=plan, transport=self._transport(), transcript=None if path is None else path / "round"
        )
        sites = {name: key for name, key in self._sites.items() if key in state.roster}
        while state.number < plan.training.rounds:
            try:
                terms = asked.terms(state.number + 1, sites)
            except InvalidInput:
                if path is not None:
                    raise Refused(
                        "too few sites are there for the next round; nothing more was charged. Go on with the same "
                        "call once they are back."
                    ) from None
                break
            result = asked.summed(terms, state.sent_weights)
            state = state.lost() if result is None else state.learned(result, optimizer)
            if path is not None:
                written(path / "state", state.to_bytes())
            self._votes = {name: "joins" if key in terms.roster else "left" for name, key in sites.items()}
            if watch is not None:
                watch(state.number, self.votes)
        return state

    def _finished(self, state: RunState, opened: Opened) -> TrainedAcrossSites:
        if not state.done:
            raise Refused("no round of this run gave a sum; the charge is kept and the model is as it was.")
        put_weights(self._model, state.weights.astype("float32"))
        query = replace(state.proposal.query(self._dataset), weights=weights_digest(self._model), done=state.done)
        return self._handed_over(state, self._gate.close(opened, query, ()))

    def _handed_over(self, state: RunState, release: Release) -> TrainedAcrossSites:
        put_weights(self._model, state.weights.astype("float32"))
        spend = state.proposal.spend
        return TrainedAcrossSites(
            model=self._model,
            release=release,
            epsilon=spend.epsilon,
            delta=spend.delta,
            rounds=state.done,
            run=state.proposal.digest,
            votes=self.votes,
            kept=state.kept,
        )
