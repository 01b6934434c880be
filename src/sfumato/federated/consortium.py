"""A consortium: questions about the people of several sites together, answered by one secure sum each."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from sfumato.core.budget import Budget
from sfumato.core.data_kind import DataStore
from sfumato.core.exact import Exact, natural
from sfumato.core.extras import need
from sfumato.core.interrupts import check_outside
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Query, ReleasedQuery
from sfumato.core.question import Gate, Intended, Preview
from sfumato.core.release import Release, delivered_again
from sfumato.core.signature import read_public_key
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, NotDeclared, Refused, Unsupported
from sfumato.federated.coordinator import agreed, summed
from sfumato.federated.coordinator_rounds import CoordinatorRounds, OpenRound
from sfumato.federated.file_transport import AnswersAwaited
from sfumato.federated.parties import Parties, ServerTrust
from sfumato.federated.proposal import SiteProposal
from sfumato.federated.server import SumResult, SumServer
from sfumato.federated.shared_skellam import SharedSkellam
from sfumato.federated.signed_requests import SignedRequests
from sfumato.federated.summed import AcrossSites, check_summable
from sfumato.federated.training.declared_network import MOST_PARAMETERS, DeclaredNetwork
from sfumato.federated.transports import Transport
from sfumato.gate.notary import Priced, now
from sfumato.gate.release import ReleaseGate
from sfumato.gate.setting import Setting
from sfumato.tables.clamped import range_of
from sfumato.tables.keys import KeyValue, keys_of
from sfumato.tables.persons import ONE_ROW_A_PERSON, is_per_person
from sfumato.tables.schema import Schema
from sfumato.tables.table import Table

if TYPE_CHECKING:
    from sfumato.federated.agreement import SiteAgreement
    from sfumato.federated.training.federated_generator import FederatedGenerator
    from sfumato.federated.training.federated_trainer import FederatedTrainer
    from sfumato.federated.training.training_site import RunCommittee, TrainingSite
    from sfumato.learning.generative.course import GeneratorSettings
    from sfumato.learning.person_updates import Loss, Model
    from sfumato.learning.trainer import Trainer
    from sfumato.learning.units import Units

__all__ = ["Consortium", "ConsortiumStore"]


class SumStore(DataStore[AcrossSites]):
    """What the coordinator declared: limits by dataset; there are no rows here."""

    def __init__(self) -> None:
        self.limits: dict[Dataset, Limit | None] = {}

    def answers(self, query: Query) -> TypeGuard[ReleasedQuery]:
        """Whether this is a sum across sites."""
        return type(query) is AcrossSites

    def check(self, query: AcrossSites) -> None:
        """Refuse a question about what was not declared."""
        check_summable(query.of)
        if query.dataset not in self.limits:
            raise InvalidInput("this consortium declared no such table; nothing was asked and nothing was spent.")

    def limit(self, query: AcrossSites) -> Limit | None:
        """How much of each person counts, at every site."""
        return ONE_ROW_A_PERSON if is_per_person(query.joins) else self.limits[query.dataset]

    def read(self, query: AcrossSites) -> object:
        """There are no rows here."""
        raise Unsupported("a consortium has no rows; its sites answer.")


class Consortium:
    """Asks several sites at once. It holds declarations and public keys, and no rows.

    ``table(…)`` gives a table to build questions with; ``release(epsilon=…, delta=…)`` of a question runs one round:
    sites vote, those that join exchange keys, each charges its own ledger and sends masked numbers, and the sum is the
    answer, with the error of the noise that the survivors left in it.

    Guarantee: the coordinator, with up to ``colluding`` sites, learns the noisy sum and nothing else; a person in up to
    ``sites_per_person`` sites is protected by (ε, δ) in each round. Assumes: X25519, HKDF and ChaCha20 hide what they
    should; up to ``missing`` sites leave; with ``lying=False`` that the server keeps to the protocol.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        sites: Mapping[str, str],
        missing: int,
        colluding: int,
        lying: bool,
        sites_per_person: int,
        transport: Transport | None,
        folder: str | Path | None = None,
    ) -> None:
        self._notary, self._name, self._home = setting.notary, setting.name, setting.gate
        self._setting = setting
        self._sites = {name: read_public_key(key) for name, key in sites.items()}
        trust = ServerTrust.LYING if lying else ServerTrust.CURIOUS
        self._parties = Parties(sites=len(self._sites), missing=missing, colluding=colluding, server=trust)
        self._per_person = natural(sites_per_person, "sites_per_person", most=len(self._sites))
        self._transport = transport
        self._store = SumStore()
        self._gate = ReleaseGate(notary=setting.notary, stores=(self._store,))
        self._rounds = CoordinatorRounds(setting.notary.key, None if folder is None else Path(folder))
        self._votes: dict[str, str] = {}

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self._notary.unit

    @property
    def votes(self) -> Mapping[str, str]:
        """How the sites voted on the last question: ``joins``, ``declined`` or ``silent``."""
        return dict(self._votes)

    def connect(self, transport: Transport) -> None:
        """Say how the sites are reached."""
        self._transport = transport

    def table(
        self,
        *,
        schema: Schema | str | Path | None = None,
        name: str | None = None,
        version: str = "1",
        limit: Limit | None = None,
        bounds: Mapping[str, tuple[Exact, Exact] | tuple[date, date]] | None = None,
        keys: Mapping[str, Iterable[KeyValue | date]] | None = None,
        whole: Iterable[str] = (),
    ) -> Table:
        """Declare what the tables of all sites have in common: keys, bounds and the limit, as each site declares them.

        ``whole`` names columns of whole numbers. Nothing is asked and nothing is spent.
        """
        if schema is not None:
            said = (schema if isinstance(schema, Schema) else Schema.load(schema)).declaration(self.unit)
            name, version, limit = name or said["name"], said["version"] or version, limit or said["limit"]
            bounds, keys = {**said["bounds"], **(bounds or {})}, {**said["keys"], **(keys or {})}
        if name is None:
            raise NotDeclared("a table needs a public name, which its releases state. Say name='patients'.")
        dataset = Dataset(name=name, edition=version)
        if dataset in self._store.limits:
            raise Refused(f"{name!r} version {version!r} is declared already; nothing was done. Give another version.")
        self._store.limits[dataset] = limit
        return Table(
            gate=self,
            dataset=dataset,
            keys={column: keys_of(column, values) for column, values in (keys or {}).items()},
            bounds={column: range_of(column, pair) for column, pair in (bounds or {}).items()},
            limit=limit,
            most_rows=None if limit is None else limit.rows,
            integers=frozenset(whole),
        )

    def trainer(
        self,
        model: "Model | DeclaredNetwork",
        *,
        n_units: int,
        name: str,
        version: str = "1",
        clip: Exact = 1,
        max_records_per_unit: int = 1,
        clients: str = "persons",
        local_steps: int = 0,
        local_lr: float = 0.1,
    ) -> "FederatedTrainer":
        """Declare a training run across the sites: a torch model, as each site has it, and ``n_units`` people in all.

        A :class:`~sfumato.federated.DeclaredNetwork` in its place needs no code at the sites.

        ``clip`` is the l2 norm that the update of one person is held to. An update is a gradient (FedSGD), or with
        ``local_steps`` what as many steps at ``local_lr`` on that person's rows do (FedAvg). Where ``clients`` are
        ``"sites"``, each site has one update from all its rows. Denominators are declared: nobody counts people.
        Nothing is asked and nothing is spent; :meth:`~sfumato.federated.FederatedTrainer.fit` asks the sites.
        """
        from sfumato.federated.training.federated_trainer import FederatedTrainer
        from sfumato.federated.training.federated_training import FederatedTraining

        return FederatedTrainer(
            self._setting.sessions((FederatedTraining,), what="training run across sites"),
            model,
            consortium=self._name,
            dataset=Dataset(name=name, edition=version),
            sites=self._sites,
            parties=self._parties,
            sites_per_person=self._per_person,
            transport=lambda: self._signed,
            n_units=n_units,
            records=max_records_per_unit,
            clip=clip,
            clients=clients,
            local_steps=local_steps,
            local_lr=local_lr,
        )

    def generator(
        self,
        table: Table,
        columns: Sequence[str] | None = None,
        *,
        n_units: int,
        bins: "Mapping[str, int | Sequence[Exact | date]] | None" = None,
        missing: Sequence[str] = (),
        settings: "GeneratorSettings | None" = None,
        clip: Exact | None = None,
        seed: int = 0,
    ) -> "FederatedGenerator":
        """Declare a generator of synthetic rows, whose private critic learns from the people of all sites.

        ``table`` is one of this consortium; columns, ``bins`` and ``missing`` are as for ``table.synthesize``, the same
        as each site says them (``vault.generator_site``). ``n_units`` is the declared number of people in all, and
        ``seed`` a public number that the generator begins with. Nothing is asked and nothing is spent;
        :meth:`~sfumato.federated.FederatedGenerator.fit` asks the sites.
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.federated.training.federated_generator import FederatedGenerator

        records = 1 if table.limit is None else table.limit.rows
        return FederatedGenerator(
            lambda model, cut: self.trainer(
                model,
                n_units=n_units,
                name=table.dataset.name,
                version=table.dataset.edition,
                clip=cut,
                max_records_per_unit=records,
            ),
            table.synthesis(columns, bins=bins, missing=missing),
            settings=settings,
            clip=clip,
            seed=seed,
        )

    def preview(self, query: Query, spend: Budget, *, confidence: Exact, rows: int | None) -> Preview:
        """Say what error to expect where every site takes part; asks nobody and spends nothing."""
        return self._gate.preview(self._across(query, spend), spend, confidence=confidence, rows=rows)

    def epsilon_for(
        self,
        query: Query,
        *,
        margin: Exact | None,
        mse: Exact | None,
        confidence: Exact,
        joint: bool,
        delta: Exact,
        rows: int | None,
        column: str | None,
    ) -> Fraction:
        """Find the least ε that keeps a margin of counts; asks nobody and spends nothing."""
        across = self._wrapped(query)
        if getattr(across.of, "row_height", 1) != 1:
            raise Unsupported("of means and sums across sites, preview(epsilon=…) tells the error; nothing was done.")
        return self._gate.epsilon_for(
            across, margin=margin, mse=mse, confidence=confidence, joint=joint, delta=delta, rows=rows, column=column
        )

    def check_fits(self, questions: Sequence[Intended], *, reads: tuple[str, str] | None) -> Budget:
        """What several questions would cost; refused where that does not fit together. Asks nobody."""
        across = [replace(each, query=self._across(each.query, each.spend)) for each in questions]
        return self._gate.check_fits(across, reads=reads)

    def limited(self, limit: Limit) -> Gate:
        """Refused: a limit is declared at every site."""
        raise Unsupported("what counts of a person is declared at every site; nothing was done. Declare another table.")

    def release(
        self,
        query: Query,
        spend: Budget,
        *,
        fresh: bool = False,
        idempotency: str | None = None,
        reads: tuple[str, str] | None = None,
        even_if_useless: bool = False,
    ) -> Release:
        """Ask the sites: votes, keys, masked numbers, one sum. The same question is answered from storage, at no cost.

        Each site charges its own ledger; the consortium's own account is charged too, once enough sites have joined.
        """
        del even_if_useless
        check_outside()
        priced = self._priced(self._across(query, Budget.asked(epsilon=spend.epsilon, delta=spend.delta)), spend)
        ledger, private = self._notary.ledger, [priced.query.dataset]
        with ledger.asking(priced.question):
            stored = None if fresh else ledger.stored(priced.question, private, reads=reads)
            if stored is not None:
                self._rounds.drop(priced.question)
                return delivered_again(stored)
            if fresh:
                self._rounds.drop(priced.question)
            begun = self._rounds.find(priced.question) or self._voted(priced, spend)
            self._votes = dict(begun.votes)
            reservation = ledger.reserve(
                priced.charge,
                datasets=private,
                event=priced.event,
                idempotency=idempotency or self._round_key(begun),
                reads=reads,
                question=priced.question,
            )
            given = ledger.given(reservation) if idempotency or self._rounds.lasts else None
            if given is not None:
                self._rounds.drop(priced.question)
                return given
            issued = now()
            across, answer = self._answered(priced, begun)
            mechanism = across.mechanism(priced.sensitivity, self.unit, spend)
            release = self._notary.stored(
                replace(priced, mechanism=mechanism), reservation, across, (answer, ()), issued=issued
            )
            self._rounds.drop(priced.question)
            return release

    def _round_key(self, begun: OpenRound) -> str | None:
        """Under which key a round is charged once, where it can outlive the process."""
        return f"sum across sites {begun.proposal.digest}" if self._rounds.lasts else None

    def transcript(self, release: Release) -> bytes:
        """The messages of the round that gave a release; whoever has them opens the same sum again."""
        return self._round_of(release)

    def verify(self, release: Release) -> SumResult:
        """Open the round of a release again: every signature, the one list of survivors, and the sum.

        Guarantee: refused unless the numbers of the release are those of the transcript.
        """
        transcript = self._round_of(release)
        query = release.statement.query
        assert isinstance(query, AcrossSites)  # noqa: S101 - _round_of says so
        result = SumServer.from_bytes(transcript).result()
        if tuple(int(one) * query.step for one in result.total) != release.values or (
            result.survivors != query.survivors or result.terms.roster != query.sites
        ):
            raise Refused("the release does not say what its round gave; it was not verified.")
        return result

    def _round_of(self, release: Release) -> bytes:
        query = release.statement.query
        return self._rounds.transcript(query.transcript if isinstance(query, AcrossSites) else "")

    def close(self) -> None:
        """Leave the folder to another process."""
        self._rounds.close()

    @property
    def _reached(self) -> Transport:
        if self._transport is None:
            raise NotDeclared("no way to the sites is known; nothing was asked. Say connect(federated.InProcess([…])).")
        return self._transport

    @property
    def _signed(self) -> Transport:
        return SignedRequests(self._reached, self._notary.key)

    def _voted(self, priced: Priced[SharedSkellam], spend: Budget) -> OpenRound:
        """Propose the question; what follows has the sites that join."""
        across = priced.query
        assert isinstance(across, AcrossSites)  # noqa: S101 - it was priced as one
        proposal = SiteProposal(
            consortium=self._name,
            number=secrets.randbits(62),  # a round of its own, also after a restart
            of=across.of,
            unit=self.unit,
            limit=priced.limit,
            spend=spend,
            variance=priced.mechanism.variance,
            sites=across.sites,
            missing=across.missing,
            colluding=across.colluding,
            lying=self._parties.server is ServerTrust.LYING,
            step=across.step,
            sites_per_person=across.sites_per_person,
        )
        try:
            begun = agreed(self._rounds.proposed(priced.question, proposal), self._sites, self._signed)
        except AnswersAwaited:
            raise
        except Refused:
            self._rounds.drop(priced.question)
            raise
        self._rounds.keep(priced.question, begun)
        return begun

    def _answered(self, priced: Priced[SharedSkellam], begun: OpenRound) -> tuple[AcrossSites, tuple[int, ...]]:
        """The question with what the round adds to it, and the sum in the steps of the question.

        A round that too few sites answer is kept where it lasts: they may come back. One whose sum is foul is not.
        """
        asked = priced.query
        assert isinstance(asked, AcrossSites)  # noqa: S101 - it was priced as one

        def keep(server: SumServer) -> None:
            self._rounds.keep(priced.question, replace(begun, server=server))

        try:
            server = summed(begun, self._signed, keep)
        except AnswersAwaited:
            raise
        except Refused as few:
            if not self._rounds.lasts:
                raise
            raise Refused(
                f"{str(few).partition(';')[0]}; the round is kept and its charge counts once. Ask again when the sites "
                "are back; fresh=True (--fresh) begins another round, at another charge."
            ) from None
        try:
            result = server.result()
        except Refused:
            self._rounds.drop(priced.question)
            raise
        seal = self._rounds.store(server.to_bytes())
        across = replace(asked, sites=server.terms.roster, survivors=result.survivors, transcript=seal)
        return across, tuple(int(one) * across.step for one in result.total)

    def _wrapped(self, query: Query) -> AcrossSites:
        return AcrossSites(
            of=check_summable(query),
            sites=tuple(self._sites.values()),
            missing=self._parties.missing,
            colluding=self._parties.colluding,
            sites_per_person=self._per_person,
        )

    def _across(self, query: Query, spend: Budget) -> AcrossSites:
        """The question across sites, in the unit that its noise can be drawn in."""
        across = self._wrapped(query)
        self._store.check(across)
        return across.in_unit(self.unit, self._store.limit(across), spend)

    def _priced(self, across: AcrossSites, spend: Budget) -> Priced[SharedSkellam]:
        limit = self._store.limit(across)
        sensitivity = across.sensitivity(self.unit, limit)
        return self._notary.priced(across, across.mechanism(sensitivity, self.unit, spend), limit, sensitivity, spend)


class ConsortiumStore:
    """The consortia of one vault, which is the coordinator's: its ledger counts what all sums together cost."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting

    def declare(
        self,
        *,
        sites: Mapping[str, str],
        missing: int = 0,
        colluding: int = 0,
        sites_per_person: int,
        lying: bool = True,
        transport: "Transport | None" = None,
        folder: str | Path | None = None,
    ) -> Consortium:
        """Declare the sites that are asked together, by name and public key; nothing is sent and nothing is spent.

        Up to ``missing`` sites may leave in the middle of a round, up to ``colluding`` may tell the coordinator what
        they see; ``lying`` says that the coordinator may not keep to the protocol, and needs more sites that stay. One
        person may be in ``sites_per_person`` sites: 1 says that no person is in two, which whoever declares it
        vouches for. In ``folder``, with a ledger that is a file or a service, rounds and transcripts outlive the
        process: the same question asked again goes on where it stopped, and is charged once.
        """
        return Consortium(
            self._setting,
            sites=sites,
            missing=missing,
            colluding=colluding,
            lying=lying,
            sites_per_person=sites_per_person,
            transport=transport,
            folder=folder,
        )

    def training_site(
        self,
        model: "Model",
        loss: "Loss",
        *,
        data: "Units",
        agreement: "SiteAgreement",
        committee: "RunCommittee | None" = None,
        folder: str | Path | None = None,
    ) -> "TrainingSite":
        """Declare that this vault takes part in training across sites; nothing is read, sent or spent.

        ``model`` and ``loss`` are this site's own code: no code comes from a coordinator, and a run about a model of
        another form is declined. ``agreement`` is what the sites agreed on, ``committee`` says yes or no to each run
        before any key is made, and in ``folder``, with a ledger that lasts, runs outlive the process.
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.federated.training.federated_training import FederatedTraining
        from sfumato.federated.training.training_site import TrainingSite
        from sfumato.learning import TRAINING_QUERIES
        from sfumato.learning.person_updates import PersonUpdates
        from sfumato.learning.personal_heads import head_trainer

        data.check(self._setting.unit)
        data.check_home(self._setting.notary)
        alone = self._setting.sessions(TRAINING_QUERIES, what="training run")

        def heads(trained: "Model", head: str, clip: Exact) -> "Trainer":
            return head_trainer(alone, trained, loss, data, head=head, clip=clip)

        updates = PersonUpdates(model, loss, data)
        return TrainingSite(
            self._setting.sessions((FederatedTraining,), what="training run across sites"),
            lambda _: updates,
            data.dataset,
            agreement=agreement,
            folder=folder,
            heads=heads,
            committee=committee,
        )

    def declared_training_site(
        self,
        table: Table,
        *,
        agreement: "SiteAgreement",
        committee: "RunCommittee | None" = None,
        folder: str | Path | None = None,
        most_parameters: int = MOST_PARAMETERS,
    ) -> "TrainingSite":
        """Declare that a table of this vault takes part in training; nothing is read, sent or spent.

        Models reach the site as :class:`~sfumato.federated.DeclaredNetwork`: names of columns, the public facts of each
        and the widths of layers. A network over columns that are not declared here in the same way, or of more than
        ``most_parameters``, is declined. The rest is as for :meth:`training_site`.
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.federated.training.declared_models import DeclaredModels
        from sfumato.federated.training.federated_training import FederatedTraining
        from sfumato.federated.training.training_site import TrainingSite

        models = DeclaredModels(table, most_parameters=natural(most_parameters, "most_parameters"))
        models.check_home(self._setting.notary)
        return TrainingSite(
            self._setting.sessions((FederatedTraining,), what="training run across sites"),
            models,
            table.dataset,
            agreement=agreement,
            folder=folder,
            committee=committee,
        )

    def generator_site(
        self,
        table: Table,
        columns: Sequence[str] | None = None,
        *,
        n_units: int,
        agreement: "SiteAgreement",
        bins: "Mapping[str, int | Sequence[Exact | date]] | None" = None,
        missing: Sequence[str] = (),
        settings: "GeneratorSettings | None" = None,
        committee: "RunCommittee | None" = None,
        folder: str | Path | None = None,
    ) -> "TrainingSite":
        """Declare that a table of this vault takes part in a generator across sites; nothing is read, sent or spent.

        Columns, ``bins``, ``missing`` and ``settings`` are what the sites agreed on; a run about other columns is
        declined. The critic is this site's own. Everything else is as for :meth:`training_site`.
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.learning import TRAINING_QUERIES
        from sfumato.learning.generative.trainer import GeneratorTrainer

        made = GeneratorTrainer(
            self._setting.sessions(TRAINING_QUERIES, what="training run"),
            table,
            columns,
            bins=bins,
            missing=missing,
            marginals=0,
            n_units=n_units,
            clip=None,
            settings=settings,
        )
        critic, loss, data = made.across_sites()
        return self.training_site(critic, loss, data=data, agreement=agreement, committee=committee, folder=folder)
