"""The vault: the one place where a charge and a run meet.

Order of a release: check the declaration, look for a stored answer, check the columns, charge, read, draw, sign, store,
deliver. No row is read and no noise is drawn before the charge counts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.accounting.basic import cost, promised
from sfumato.core.area import Area
from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, check_types, encode
from sfumato.core.exact import Exact, natural, non_negative
from sfumato.core.extras import need
from sfumato.core.interrupts import check_outside
from sfumato.core.ledger import AccountLedger
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Mechanism, Query, ReleasedQuery, check_name
from sfumato.core.question import Preview
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput, NotDeclared, Unsupported
from sfumato.gate import Asked, released
from sfumato.governance.charged_to import charged_to
from sfumato.governance.memory import MemoryLedger
from sfumato.graphs.area import Graphs
from sfumato.graphs.graph import Graph
from sfumato.laws.margins import level_of
from sfumato.learning import TRAINING_QUERIES
from sfumato.learning.paradigms.area import Lessons
from sfumato.learning.paradigms.examples import Examples
from sfumato.learning.units import Units
from sfumato.mechanisms.calibration import least_epsilon, least_epsilon_where
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.presenter import Reports
from sfumato.reports.stored import stored_release
from sfumato.streams.desk import Desk
from sfumato.streams.sealed import derived_secret
from sfumato.streams.stream import Stream, declared_stream
from sfumato.tables.area import Tables
from sfumato.tables.keys import KeyValue
from sfumato.tables.public import PublicTable
from sfumato.tables.schema import Schema
from sfumato.tables.table import Table

if TYPE_CHECKING:
    from sfumato.governance.durable import DurableLedger
    from sfumato.governance.ledger import Ledger
    from sfumato.learning.evaluation import Evaluator
    from sfumato.learning.multiplicity import Multiplied
    from sfumato.learning.trainer import Trainer

__all__ = ["Vault"]


class Vault:
    """Protects one kind of unit under one budget.

    Guarantee: all releases together are (ε, δ)-DP for ``unit`` at the budget's ε and δ, however adaptively they are
    chosen. Assumes: each declared table holds the rows that it says, and public facts (keys, limits, versions) were not
    read off the data. ``population``, a public bound on the number of units, is what δ is judged by. With the ledger in
    memory the budget is forgotten when the process ends.

    With ``ledger=…, account="institution/department/project"`` the budget is that account's, and every dataset must be
    declared in the ledger; ``ledger`` is an open one, its settings file (``sfumato ledger init``), or its
    address with the ``key`` and ``anchor`` to open it.
    ``purpose`` and ``recipient`` say what releases are for and who gets them: data with terms are used within them.

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
    ) -> None:
        if unit is None:
            raise NotDeclared("a vault needs its unit: who is protected. Say unit=sf.user('patient_id', relation=…).")
        if not isinstance(unit, Unit):
            raise InvalidInput("unit must be one such as sf.user('patient_id', relation='add/remove').")
        durable: DurableLedger | None = None
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
            )
            if budget is not None or name is not None:
                raise InvalidInput(
                    "budget and name are those of the ledger's account; nothing was done. Leave them out."
                )
            budget, name = durable.budget, durable.path
            key = durable.ledger.key if key is None else key
        elif any(said is not None for said in (account, anchor, purpose, recipient)):
            raise NotDeclared(
                "an account, an anchor, a purpose and a recipient belong to a ledger. Nothing was done. "
                "Say ledger='ledger.db'."
            )
        if budget is None:
            raise NotDeclared("a vault needs its budget: how much may be said in all. Say budget=sf.Budget(epsilon=…).")
        if not isinstance(budget, Budget) or budget.epsilon == 0 or budget.delta == 1:
            raise InvalidInput("budget must be an sf.Budget with epsilon above 0 and delta below 1.")
        Budget.asked(epsilon=budget.epsilon, delta=budget.delta).judged(population)
        if name is None:
            raise NotDeclared("a vault needs a name, which its releases state as the account they were charged to.")
        check_name(name, "the name of a vault")
        self._unit = unit
        self._name = name
        self._key = key if isinstance(key, SigningKey) else SigningKey.new() if key is None else SigningKey.load(key)
        self._ledger: AccountLedger = durable or MemoryLedger(account=name, budget=budget)
        self._tables = Tables(unit=unit, name=name, budget=budget)
        self._graphs = Graphs(unit=unit, name=name)
        self._lessons = Lessons(unit=unit, name=name, secret=lambda: derived_secret(self._key, "parts of teachers"))
        self._areas: tuple[Area[Any], ...] = (self._tables, self._graphs, self._lessons)
        self._streams = Desk(
            unit=unit, ledger=self._ledger, key=self._key, presenter=Reports(), declarations=DECLARATIONS
        )
        self._training = Desk(
            unit=unit,
            ledger=self._ledger,
            key=self._key,
            presenter=Reports(),
            declarations=DECLARATIONS,
            queries=TRAINING_QUERIES,
            what="training run",
        )

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self._unit

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
        return self._key.public_text

    def table(
        self,
        data: object,
        *,
        schema: Schema | str | Path | None = None,
        name: str | None = None,
        version: str | None = None,
        limit: Limit | None = None,
        bounds: Mapping[str, tuple[Exact, Exact]] | None = None,
        keys: Mapping[str, Iterable[KeyValue | date]] | None = None,
        number: int | None = None,
        derived: bool = False,
    ) -> Table:
        """Declare a table: where its rows are, and the public facts about them.

        A file is not opened; a data frame is taken over as it is now. Nothing is counted and nothing is spent.

        ``version`` is a label of yours for this state of the data (a random one if you give none). ``limit`` says how
        much of each person counts and is enforced. ``keys`` lists, for each column to group by, all its values;
        ``bounds`` gives, for each column to sum, the public range that its values are held to. ``number`` is how many
        units there are, where that is public: under *replace*, and used where every unit counts as one row. A
        ``schema`` says all this at once; what is given beside it takes its place.

        Rows must be stored ones, with row-wise steps on them at most. A view, a query or a lazy frame that cannot be
        shown to be row-wise is refused. With ``derived=True`` it is taken: then you, the steward, vouch that each row
        of it depends on the rows of one protected unit only, and every certificate says that you do.

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
        >>> table = vault.table(pa.table({"sex": ["F", "M"]}), name="people", version="1", keys={"sex": ["F", "M"]})
        >>> table.dataset
        Dataset(name='people', edition='1')
        """
        check_outside()
        return self._tables.declare(
            self,
            data,
            schema=schema,
            name=name,
            version=version,
            limit=limit,
            bounds=bounds,
            keys=keys,
            number=number,
            derived=derived,
        )

    def public(self, data: object, *, name: str | None = None, version: str = "1") -> PublicTable:
        """Declare a public table, to be joined with private ones: a Parquet or CSV file, or a data frame.

        Everyone may see its rows: nothing of it is protected. Its values are public keys and bounds.

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
        >>> places = vault.public(pa.table({"hospital": ["A", "B"], "region": ["north", "south"]}), name="places")
        >>> list(places.columns)
        ['hospital', 'region']
        """
        check_outside()
        return self._tables.public(data, name=name, version=version)

    def graph(
        self,
        data: object,
        *,
        name: str | None = None,
        version: str | None = None,
        nodes: object = None,
        directed: bool = False,
        source: str = "source",
        target: str = "target",
        weight: str | None = None,
        bound: Exact | None = None,
        counts: str | None = None,
        derived: bool = False,
    ) -> Graph:
        """Declare a graph: an edge list (Parquet, CSV, plain text, Arrow, a data frame, an Ibis table, a database), an
        array or a list of pairs, a SciPy matrix, a NetworkX or igraph graph.

        A file is not opened; what is in memory is taken over as it is now. Nothing is counted and nothing is spent.

        ``nodes`` says how many nodes there are, called 0, 1, …, or lists their names: a public fact under edge and
        weight units and under replace, where pairs outside it do not count. Where nodes come and go it is secret:
        leave it out, or list the names of all nodes, which then stay private. ``source``, ``target`` and ``weight``
        name columns; weights are held to 0 … ``bound``. A loop is no edge, a pair that is listed twice is one, and a
        row without both ends or with a weight that is no number above 0 does not count.

        Edges are read into memory after the charge, except where ``counts`` is ``engine``: then the engine counts what
        it can (edges, degrees, stars, triangles), and the edges stay where they are. So it is for tables on PostgreSQL
        and Spark, unless ``counts`` is ``memory``. The numbers are the same.

        ``derived`` is as for a table: the steward's word that each row depends on one protected unit only.

        >>> import sfumato as sf
        >>> vault = Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=1), name="contacts")
        >>> wards = vault.graph([("A", "B"), ("B", "C")], name="wards", version="1", nodes=["A", "B", "C"])
        >>> wards.degrees().query.labels()
        {'node': ('A', 'B', 'C')}
        """
        check_outside()
        return self._graphs.declare(
            self,
            data,
            name=name,
            version=version,
            nodes=nodes,
            directed=directed,
            source=source,
            target=target,
            weight=weight,
            bound=bound,
            counts=counts,
            derived=derived,
        )

    def stream(
        self,
        *,
        name: str | None = None,
        horizon: int | None = None,
        version: str | None = None,
        bounds: tuple[int, int] = (0, 1_000_000),
        each: int = 1,
        window: int = 1,
        limit: Limit | None = None,
        separation: int = 1,
        groups: Sequence[str] = (),
        late: str = "refuse",
    ) -> Stream:
        """Declare a stream of ``horizon`` steps: whole numbers that are handed over as they come.

        Where nobody knows how long it will be, leave ``horizon`` out: it may then have up to 131,008 steps, and its
        error grows with those that were made.

        The number of a step is held to ``bounds`` without a word. One event counts from 0 to ``each`` in it, and from
        −``each`` where the bounds go below 0; with ``window=w`` the events of any w steps, one in each, are protected
        together. Where users are protected,
        ``limit`` says in how many steps a person counts (``groups``) and how often in one (``rows_per_group``), and
        ``separation`` how many steps apart; the stream enforces it. ``groups`` are public names: then each step has a
        number for each. ``late`` says what becomes of a step that was told already: ``refuse``, or ``now``.

        >>> import sfumato as sf
        >>> vault = Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="er")
        >>> total = vault.stream(name="er", horizon=60).running_total().open(epsilon=1, delta=1e-7)
        >>> total.add(17).step, vault.left.epsilon
        (1, Fraction(1, 1))
        """
        check_outside()
        return declared_stream(
            self._streams,
            name=name,
            horizon=horizon,
            version=version,
            bounds=bounds,
            each=each,
            window=window,
            limit=limit,
            separation=separation,
            groups=groups,
            late=late,
        )

    def examples(
        self,
        inputs: object,
        targets: object,
        *,
        name: str | None = None,
        version: str | None = None,
        ids: object = None,
        number: int | None = None,
    ) -> Examples:
        """Declare examples for learning: inputs, their targets, and whose they are.

        Inputs and targets are arrays, tensors or data frames, taken over as they are now; nothing is spent. Of all
        values only ``ids`` are looked at, each by itself, to tell persons apart: a record whose id is null, or is
        neither text, bytes nor a whole number, counts for nobody. ``number`` is the public number of persons,
        or of records, that shares and means are over. Where it is asked about records, of each person the first one
        counts; teachers are trained on all of them.

        >>> import sfumato as sf
        >>> import numpy as np
        >>> vault = Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=1), name="trial")
        >>> test = vault.examples(np.array([[0.2], [0.8]]), np.array([0, 1]), name="test set", version="1")
        >>> str(test.accuracy(lambda record: record[0] > 0.5, name="a rule").preview(epsilon=1))[:30]
        '1 number(s) at ε = 1: each wit'
        """
        check_outside()
        return self._lessons.declare(self, inputs, targets, ids=ids, name=name, version=version, number=number)

    def trainer(
        self,
        model: Any,
        loss: Callable[..., Any],
        *,
        data: Units,
        clip: Exact = 1,
        way: str = "auto",
        copies: "Multiplied | None" = None,
    ) -> "Trainer":
        """Declare a training run: a torch model, a loss of outputs and targets, and the units to learn from.

        ``clip`` is the l2 norm that the gradient of one unit is held to; it bounds what one unit can do in a step.
        ``way`` says how gradients are computed (``auto``, ``fast`` or ``semantic``), and ``copies`` how often each unit
        is augmented. Nothing is read and nothing is spent; :meth:`~sfumato.learning.Trainer.fit` charges.

        >>> import torch, sfumato as sf
        >>> from sfumato.learning import Units
        >>> vault = Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="trial")
        >>> data = Units(torch.zeros(50, 3), torch.zeros(50), number=50, name="visits", version="1")
        >>> trainer = vault.trainer(torch.nn.Linear(3, 1), lambda out, y: (out[:, 0] - y).square().mean(), data=data)
        >>> trainer.fit(epochs=1, epsilon=1, delta=1e-7).release.charged.epsilon, vault.left.epsilon
        (Fraction(1, 1), Fraction(1, 1))
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.learning.trainer import Trainer

        check_outside()
        return Trainer(self._training, model, loss, data=data, clip=clip, way=way, copies=copies)

    def evaluator(
        self,
        *,
        data: Units,
        evaluations: int,
        epsilon: Exact,
        delta: Exact,
        right: Callable[..., Any] | None = None,
    ) -> "Evaluator":
        """Pay for so many looks at how well models do on held-out units; charged now, as a whole.

        ``right(outputs, targets)`` says of one record whether the model is right; if not said, whether the highest
        output is that of its class.

        >>> import torch, sfumato as sf
        >>> from sfumato.learning import Units
        >>> vault = Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=2, delta=1e-6), name="trial")
        >>> held = Units(torch.zeros(50, 3), torch.zeros(50), number=50, name="held out", version="1")
        >>> vault.evaluator(data=held, evaluations=4, epsilon=1, delta=1e-7), vault.left.epsilon
        (<evaluator on 'held out': 4 of 4 left>, Fraction(1, 1))
        """
        need("torch", "pip install 'sfumato[learning]'")
        from sfumato.learning.evaluation import Evaluator

        check_outside()
        return Evaluator(self._training, data=data, evaluations=evaluations, epsilon=epsilon, delta=delta, right=right)

    def preview(
        self, query: Query, spend: Budget, *, confidence: Exact = Fraction(19, 20), rows: int | None = None
    ) -> Preview:
        """Say what error to expect; opens no data and spends nothing."""
        area, asked = self._area(query)
        sensitivity = query.sensitivity(self.unit, area.limit(query))
        mechanism = asked.mechanism(sensitivity, self.unit, spend)
        level = level_of(confidence)
        if rows is not None:
            natural(rows, "rows")
        margins, joint = (query.expected(mechanism.law, level, joint=all_, rows=rows) for all_ in (False, True))
        told = query.expected(mechanism.law, level, joint=False, rows=rows or 1)
        return Preview(
            spend=cost(promised(mechanism.loss(sensitivity), spend)),
            unit=self.unit,
            limit=area.limit(query),
            sensitivity=sensitivity,
            mechanism=mechanism,
            numbers=max(1, len(next(iter(query.labels().values()), ()))),
            confidence=level,
            margins=margins,
            joint_margins=joint,
            by_rows=tuple(name for name in query.names if name in told and name not in margins),
            untold=tuple(name for name in query.names if name not in told and name not in margins),
        )

    def epsilon_for(
        self,
        query: Query,
        *,
        margin: Exact,
        confidence: Exact,
        joint: bool = False,
        delta: Exact = 0,
        rows: int | None = None,
        column: str | None = None,
    ) -> Fraction:
        """Find the least ε that keeps a margin, at a δ that may be spent; opens no data and spends nothing."""
        area, asked = self._area(query)
        sensitivity = query.sensitivity(self.unit, area.limit(query))

        def mechanism(epsilon: Fraction) -> Mechanism:
            return asked.mechanism(sensitivity, self.unit, Budget(epsilon=epsilon, delta=delta))

        if query.measure is not None and query.size is not None and isinstance(margin, int):
            numbers = query.size if joint else 1
            return least_epsilon(mechanism, margin=margin, confidence=confidence, numbers=numbers)
        level, wanted = level_of(confidence), non_negative(margin, "margin")
        if rows is not None:
            natural(rows, "rows")
        name = _chosen(query.names, column)

        def reaches(epsilon: Fraction) -> bool:
            law = mechanism(epsilon).law
            margins = query.expected(law, level, joint=joint, rows=rows)
            if name in margins:
                return margins[name] <= wanted
            if rows is None and name in query.expected(law, level, joint=joint, rows=1):
                raise InvalidInput(
                    f"the error of {name!r} hangs on how many rows a group has; nothing was done. Say rows=…, how many "
                    "you expect."
                )
            raise InvalidInput(f"the error of {name!r} hangs on the data; nothing was done. Choose ε in another way.")

        return least_epsilon_where(reaches, f"keeps {name!r} within ±{margin}")

    def release(
        self,
        query: Query,
        spend: Budget,
        *,
        fresh: bool = False,
        idempotency: str | None = None,
        reads: tuple[str, str] | None = None,
    ) -> Release:
        """Charge, then read; store, then deliver.

        With a durable ledger a retry under the same ``idempotency`` key is charged once: it gets the answer that was
        stored, or finishes a release that was cut off before it had one. ``reads`` are the first and the last day of
        the data, which an account with windows of time asks for.
        """
        check_outside()
        spend = Budget.asked(epsilon=spend.epsilon, delta=spend.delta)
        area, asked = self._area(query)
        limit, private = area.limit(query), area.private(query)
        sensitivity = query.sensitivity(self.unit, limit)
        mechanism = asked.mechanism(sensitivity, self.unit, spend)
        event = mechanism.loss(sensitivity)
        guarantee = promised(event, spend)
        charge = cost(guarantee)
        derived = tuple(area.derived(query))
        parts = (query, self.unit, limit, charge, mechanism, *([derived] if derived else []))
        question = canonical([encode(part) for part in parts])
        stored = None if fresh else self._stored(question, private)
        if stored is not None:
            return stored
        # Who asks the same meanwhile waits for the answer, which then is a stored one; a fresh draw waits for nobody.
        with nullcontext() if fresh else self._ledger.asking(question):
            stored = None if fresh else self._stored(question, private)
            if stored is not None:
                return stored
            return released(
                Asked(
                    query=query,
                    area=area,
                    unit=self.unit,
                    limit=limit,
                    private=private,
                    derived=derived,
                    sensitivity=sensitivity,
                    mechanism=mechanism,
                    event=event,
                    guarantee=guarantee,
                    charge=charge,
                    question=question,
                ),
                ledger=self._ledger,
                key=self._key,
                idempotency=idempotency,
                reads=reads,
            )

    def _stored(self, question: str, private: Sequence[Dataset]) -> Release | None:
        """The answer that was given before, at no cost."""
        stored = self._ledger.stored(question, private)
        return None if stored is None else replace(stored, charged=Budget.none(), repeated=True)

    def _area(self, query: Query) -> tuple[Area[Any], ReleasedQuery]:
        """The area that answers a query, once it has been checked."""
        for area in self._areas:
            if area.answers(query):
                area.check(query)
                check_types(query, "the question")
                return area, query
        raise Unsupported(f"this vault cannot answer {type(query).__name__}; nothing was read and nothing was spent.")


def _chosen(names: Sequence[str], column: str | None) -> str:
    if column is None and len(names) == 1:
        return names[0]
    if column is None or column not in names:
        raise InvalidInput(f"say column=…, one of {', '.join(names)}; nothing was done.")
    return column
