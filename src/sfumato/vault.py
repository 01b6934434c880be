"""The vault: what users hold. It opens an account, takes declarations, and hands questions to the gate.

Order of a release: check the declaration, look for a stored answer, check the columns, charge, read, draw, sign, store,
deliver (:mod:`sfumato.gate.release`). No row is read and no noise is drawn before the charge counts.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar, cast  # stores of any kind
from weakref import ref

from sfumato.boxes.store import BoxStore
from sfumato.core.budget import Budget
from sfumato.core.data_kind import DataStore, kinds
from sfumato.core.exact import Exact
from sfumato.core.interrupts import check_outside
from sfumato.core.ledger import AccountLedger
from sfumato.core.limits import Limit
from sfumato.core.notebook_card import card
from sfumato.core.query import Query, check_name
from sfumato.core.question import Gate, Intended, Preview
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.core.suggestion import no_attribute
from sfumato.core.units import Unit, describe
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError, Unsupported
from sfumato.federated.consortium import Consortium, ConsortiumStore
from sfumato.federated.transports import Transport
from sfumato.gate.notary import Notary
from sfumato.gate.release import ReleaseGate
from sfumato.gate.setting import Setting
from sfumato.governance.charged_to import charged_to
from sfumato.governance.memory import MemoryLedger
from sfumato.graphs.store import GraphStore
from sfumato.learning.paradigms.store import ExampleStore
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.presenter import Reports
from sfumato.reports.stored import stored_release
from sfumato.reports.waiting import waiting
from sfumato.streams.store import StreamStore
from sfumato.tables.store import TableStore

if TYPE_CHECKING:
    from sfumato.governance.durable import DurableLedger
    from sfumato.governance.ledger import Ledger
    from sfumato.governance.owner.client import RemoteLedger

__all__ = ["Vault", "consortium"]

_UNREAD = "its ledger cannot be read now"

Given = ParamSpec("Given")
Declared = TypeVar("Declared")


def _declares(
    kind: str, declare: Callable[Concatenate[Any, Given], Declared]
) -> Callable[Concatenate["Vault", Given], Declared]:
    """The way in of a store, as a method of the vault that holds it: same arguments, same documentation."""

    @wraps(declare)
    def declared(vault: "Vault", *given: Given.args, **said: Given.kwargs) -> Declared:
        check_outside()
        return declare(vault._stores[kind], *given, **said)

    return cast("Callable[Concatenate[Vault, Given], Declared]", declared)


class Vault:
    """Protects one kind of unit under one budget.

    Guarantee: all releases together are (ε, δ)-DP for ``unit`` at the budget's ε and δ, however adaptively they are
    chosen; with a budget in ρ, ``Budget(rho=…)``, they are ρ-zCDP. Assumes: each declared table holds the rows that it
    says, and public facts (keys, limits, versions) were not read off the data. ``population``, a public bound on the
    number of units, is what δ is judged by. With the ledger in memory the budget is forgotten when the process ends.

    With ``ledger=…, account="institution/department/project"`` the budget is that account's, and every dataset must be
    declared in the ledger; ``ledger`` is an open one, its settings file (``sfumato ledger init``), its
    address with the ``key`` and ``anchor`` to open it, or ``unix:/path/to/socket``, an owner process that keeps it
    (``sfumato ledger serve``). ``key`` signs the certificates: where the ledger's keys have roles, it is one that the
    root certified for releases; behind an owner process it is the vault's own.
    ``purpose`` and ``recipient`` say what releases are for and who gets them: data with terms are used within them.
    ``reads=("2026-01-01", "2026-01-31")`` are the first and the last day of the data that is read, by questions,
    streams and training runs alike: an account with windows of time is charged for the windows of these days.

    >>> import pyarrow as pa, sfumato as sf
    >>> vault = Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
    >>> visits = vault.table(pa.table({"id": [1, 1, 2]}), name="visits", version="1",
    ...                      limit=sf.Limit(groups=1, rows_per_group=2))
    >>> visits.count().release(epsilon=0.5).charged.epsilon, vault.left.epsilon
    (Fraction(1, 2), Fraction(1, 2))
    """

    def __init__(
        self,
        *,
        unit: Unit | None = None,
        budget: Budget | None = None,
        name: str | None = None,
        population: int | None = None,
        key: SigningKey | str | Path | None = None,
        ledger: "Ledger | str | Path | None" = None,
        account: str | None = None,
        anchor: str | Path | None = None,
        purpose: str | None = None,
        recipient: str | None = None,
        reads: tuple[str, str] | None = None,
    ) -> None:
        if unit is None:
            raise NotDeclared("a vault needs its unit: who is protected. Say unit=sf.user('patient_id', relation=…).")
        if not isinstance(unit, Unit):
            raise InvalidInput("unit must be one such as sf.user('patient_id', relation='add/remove').")
        durable: DurableLedger | RemoteLedger | None = None
        if ledger is not None:
            durable = charged_to(
                ledger,
                account,
                unit,
                reader=stored_release,
                key=key,
                anchor=anchor,
                purpose=purpose,
                recipient=recipient,
                reads=reads,
            )
            if budget is not None or name is not None:
                raise InvalidInput(
                    "budget and name are those of the ledger's account; nothing was done. Leave them out."
                )
            budget, name = durable.budget, durable.path
            key = durable.key if key is None else key
        elif any(said is not None for said in (account, anchor, purpose, recipient, reads)):
            raise NotDeclared(
                "an account, an anchor, a purpose, a recipient and days belong to a ledger. Nothing was done. "
                "Say ledger='ledger.db'."
            )
        budget, name = _checked(budget, name, population)
        signing = key if isinstance(key, SigningKey) else SigningKey.new() if key is None else SigningKey.load(key)
        if durable is not None:
            durable = durable.signed_by(signing.public_text)
        self._name = name
        self._ledger: AccountLedger = durable or MemoryLedger(account=name, budget=budget, unit=unit)
        self._notary = Notary(unit=unit, ledger=self._ledger, key=signing, presenter=Reports())
        setting = Setting(
            name=name, vault=ref(self), notary=self._notary, declarations=DECLARATIONS, population=population
        )
        self._stores = {kind.name: kind.opened(setting) for kind in kinds() if kind.store is not None}
        answering = tuple(store for store in self._stores.values() if isinstance(store, DataStore))
        self._gate = ReleaseGate(notary=self._notary, stores=answering, watched=waiting)

    table = _declares("tables", TableStore.declare)
    public = _declares("tables", TableStore.public)
    graph = _declares("graphs", GraphStore.declare)
    stream = _declares("streams", StreamStore.declare)
    examples = _declares("learning", ExampleStore.declare)
    trainer = _declares("learning", ExampleStore.trainer)
    evaluator = _declares("learning", ExampleStore.evaluator)
    tuning = _declares("learning", ExampleStore.tuning)
    generator = _declares("learning", ExampleStore.generator)
    graph_network = _declares("learning", ExampleStore.graph_network)
    consortium = _declares("federated", ConsortiumStore.declare)
    training_site = _declares("federated", ConsortiumStore.training_site)
    generator_site = _declares("federated", ConsortiumStore.generator_site)
    declared_training_site = _declares("federated", ConsortiumStore.declared_training_site)
    block_mean = _declares("boxes", BoxStore.block_mean)
    block_trimmed_mean = _declares("boxes", BoxStore.block_trimmed_mean)
    block_quantiles = _declares("boxes", BoxStore.block_quantiles)
    require_boxes = _declares("boxes", BoxStore.require_boxes)

    def declare(self, kind: str, *given: Any, **said: Any) -> Any:
        """Declare data of any kind that is registered, by its name: what :meth:`table` is for tables."""
        check_outside()
        if kind not in self._stores:
            raise Unsupported(f"a vault keeps no {kind!r}; nothing was done. Kinds: {', '.join(self._stores)}.")
        return self._stores[kind].declare(*given, **said)

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self._notary.unit

    @property
    def name(self) -> str:
        """The account that releases are charged to."""
        return self._name

    @property
    def budget(self) -> Budget:
        """What was allowed in all."""
        return self._ledger.budget

    @property
    def spent(self) -> Budget:
        """What counts as spent so far."""
        return self._ledger.spent

    @property
    def left(self) -> Budget:
        """What may still be asked for."""
        return self._ledger.left

    @property
    def public_key(self) -> str:
        """The public half of the key that signs certificates, as text to be handed around."""
        return self._notary.key.public_text

    def limited(self, limit: Limit) -> Gate:
        """The same data under another limit than the declared one, which a table's ``with_limit`` asks for."""
        return self._gate.limited(limit)

    def check_columns(self, query: Query) -> None:
        """Refuse a question that does not fit the declared columns, also one whose answer is stored; reads no row."""
        self._gate.check_columns(query)

    def preview(
        self, query: Query, spend: Budget, *, confidence: Exact = Fraction(19, 20), rows: int | None = None
    ) -> Preview:
        """Say what error to expect; opens no data and spends nothing."""
        return self._gate.preview(query, spend, confidence=confidence, rows=rows)

    def epsilon_for(
        self,
        query: Query,
        *,
        margin: Exact | None = None,
        mse: Exact | None = None,
        confidence: Exact = Fraction(19, 20),
        joint: bool = False,
        delta: Exact = 0,
        rows: int | None = None,
        column: str | None = None,
    ) -> Fraction:
        """Find the least ε that keeps a margin, or a mean squared error, at a δ that may be spent; opens no data."""
        return self._gate.epsilon_for(
            query, margin=margin, mse=mse, confidence=confidence, joint=joint, delta=delta, rows=rows, column=column
        )

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
        """Charge, then read; store, then deliver.

        With a durable ledger a retry under the same ``idempotency`` key is charged once: it gets the answer that was
        stored, or finishes a release that was cut off before it had one. ``reads`` are the first and the last day of
        the data, which an account with windows of time asks for, where they are not those of the vault.
        ``even_if_useless`` pays for an answer whose margin is wider than all that it can be.
        """
        return self._gate.release(
            query, spend, fresh=fresh, idempotency=idempotency, reads=reads, even_if_useless=even_if_useless
        )

    def check_fits(self, questions: Sequence[Intended], *, reads: tuple[str, str] | None = None) -> Budget:
        """What several questions would cost; refused where that does not fit together. Spends and reads nothing.

        What is stored costs nothing. Nothing is held back: another may charge the account meanwhile.
        """
        return self._gate.check_fits(questions, reads=reads)

    def _amounts(self) -> list[tuple[str, str]]:
        """Budget, spent and left, or nothing where the ledger is closed or cannot be reached."""
        try:
            return [("budget", str(self.budget)), ("spent", str(self.spent)), ("left", str(self.left))]
        except SfumatoError:
            return []

    def __repr__(self) -> str:
        amounts = ", ".join(f"{name} {said}" for name, said in self._amounts()) or _UNREAD
        return f"Vault {self.name!r}: protects {describe(self.unit)}; {amounts}"

    def _repr_html_(self) -> str:
        amounts = self._amounts()
        protects = ("protects", describe(self.unit))
        return card(f"Vault {self.name!r}", [protects, *amounts], "" if amounts else f"{_UNREAD.capitalize()}.")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name)


def consortium(
    *,
    name: str,
    unit: Unit,
    budget: Budget,
    sites: Mapping[str, str],
    sites_per_person: int,
    missing: int = 0,
    colluding: int = 0,
    lying: bool = True,
    transport: Transport | None = None,
    population: int | None = None,
    key: SigningKey | str | Path | None = None,
) -> Consortium:
    """Ask several hospitals at once, by one secure sum for each question; a coordinator holds no rows.

    ``sites`` are the public keys of the sites by name, ``unit`` who is protected at each of them, and ``budget`` what
    all questions together may cost. The rest is that of :meth:`Vault.consortium`.

    >>> import sfumato as sf
    >>> from sfumato.core.signature import SigningKey
    >>> keys = {name: SigningKey.new().public_text for name in ("north", "south", "west")}
    >>> network = sf.consortium(
    ...     name="stroke network", unit=sf.user("patient", relation="add/remove"), sites=keys, missing=1,
    ...     sites_per_person=1,
    ...     budget=sf.Budget(epsilon=2, delta=1e-6),
    ... )
    >>> stays = network.table(
    ...     name="stays", keys={"sex": ["F", "M"]}, limit=sf.Limit(groups=1, rows_per_group=1)
    ... )
    >>> stays.group_by("sex").count().preview(epsilon=1, delta=1e-7).margin
    10
    """
    home = Vault(unit=unit, budget=budget, name=name, population=population, key=key)
    return home.consortium(
        sites=sites,
        missing=missing,
        colluding=colluding,
        lying=lying,
        sites_per_person=sites_per_person,
        transport=transport,
    )


def _checked(budget: Budget | None, name: str | None, population: int | None) -> tuple[Budget, str]:
    """The budget and the name of an account; refused where one is missing, or bounds nothing."""
    if budget is None:
        raise NotDeclared(
            "a vault needs its privacy budget. Say budget=sf.Budget(epsilon=…), or budget=sf.Budget(rho=…)."
        )
    if not isinstance(budget, Budget) or budget.epsilon == 0 or budget.delta == 1:
        raise InvalidInput("budget must be an sf.Budget with epsilon above 0, or rho above 0, and delta below 1.")
    Budget.asked(epsilon=budget.epsilon, delta=budget.delta).judged(population)
    if name is None:
        raise NotDeclared("a vault needs a name, which its releases state as the account they were charged to.")
    check_name(name, "the name of a vault")
    return budget, name
