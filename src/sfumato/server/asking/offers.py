"""Offers: what a question would cost, the error to expect, what is left, and whether and why it is allowed.

All of it is worked out before anything is charged, from declarations and the ledger alone: the vault that is asked here
holds a table without a row.
"""

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, Protocol  # what was worked out before, of several kinds
from weakref import WeakKeyDictionary

from sfumato.core.budget import Budget
from sfumato.core.cut import cut_of
from sfumato.core.description import Word
from sfumato.core.documents import canonical, encode
from sfumato.core.exact import Exact, decimal_down, decimal_up, natural, non_negative, positive
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Query
from sfumato.core.question import Gate, Intended, Preview, Question, question_text
from sfumato.core.units import Family, Unit, User
from sfumato.core.view import View
from sfumato.engines.expressions import Type
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused, SfumatoError
from sfumato.governance.ledger_state import account_line, dataset_line, population_line
from sfumato.governance.terms import levels_of
from sfumato.reports.declarations import DECLARATIONS
from sfumato.research.minimal import check_depth
from sfumato.tables.question_parts import TABLE_QUERIES
from sfumato.tables.schema import Schema
from sfumato.tables.table import Table
from sfumato.vault import Vault

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.documents import Json
    from sfumato.governance.ledger import Ledger
    from sfumato.server.asking.undue import Undue

__all__ = [
    "AskableDataset",
    "Asker",
    "BalanceRow",
    "Offer",
    "OfferDecision",
    "OfferedColumn",
    "Precision",
    "no_rows",
    "schema_table",
]

CONFIDENCE = Fraction(19, 20)
MOST_VAULTS = 200
MOST_FORESEEN = 2_000
CLOSED = "after its engine failed"
"""In every refusal of data that were closed."""


class AskableDataset(Protocol):
    """A dataset as the service knows it: public facts, where its rows lie, and what they may be used for.

    Sensitive: what lies at ``place``; only a worker opens it.
    """

    @property
    def schema(self) -> Schema:
        """Its public facts."""
        ...

    @property
    def place(self) -> str:
        """Where its rows lie."""
        ...

    @property
    def purpose(self) -> str | None:
        """What releases of it are for, where it has terms."""
        ...

    @property
    def recipient(self) -> str | None:
        """Who gets them."""
        ...

    @property
    def reads(self) -> tuple[str, str] | None:
        """The first and the last day of its rows, where accounts have windows of time."""
        ...


class OfferDecision(StrEnum):
    """What would become of a question that is asked now."""

    ALLOWED = "allowed"
    STORED = "stored"
    OVER = "over"
    """It asks for more than is left."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """How exact an answer is to be, or what it may cost: one of ``margin`` and ``epsilon``."""

    margin: Fraction | None = None
    epsilon: Fraction | None = None
    column: str | None = None
    joint: bool = False
    rows: int | None = None
    delta: Fraction = Fraction(0)

    @classmethod
    def read(cls, fields: Mapping[str, str]) -> "Precision":
        """What fields of a page say: a margin goes before an ε.

        >>> Precision.read({"margin": "20"}).margin
        Fraction(20, 1)
        """
        said = {name: text.strip() for name, text in fields.items()}
        margin = said.get("margin") or None
        epsilon = said.get("epsilon") or None
        if margin is not None and said.get("by") == "epsilon" and epsilon is not None:
            margin = None
        if margin is None and epsilon is None:
            raise NotDeclared(
                "say how exact the answer is to be, as a margin such as 20, or what it may cost, as an ε such as 0.5; "
                "nothing was done."
            )
        rows = said.get("rows") or None
        if rows is not None and not (rows.isdecimal() and rows.isascii() and len(rows) < 12):
            raise InvalidInput("how many rows a group is expected to have is a whole number; nothing was done.")
        return cls(
            margin=None if margin is None else positive(margin, "the margin"),
            epsilon=None if margin is not None or epsilon is None else positive(epsilon, "ε"),
            column=said.get("column") or None,
            joint=said.get("joint", "") in ("on", "true", "1"),
            rows=None if rows is None else natural(int(rows), "rows"),
            delta=non_negative(said.get("delta") or "0", "δ"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedColumn:
    """A column of the answer, and its error at 95%: of each number, and of all of them at once."""

    name: str
    margin: str | None
    joint: str | None
    unknown: str
    """Why the error is not known: ``rows`` or ``data``; empty where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceRow:
    """A budget that the charge would count against."""

    kind: str
    """``account``, ``dataset`` or ``population``."""
    name: str
    cap: str
    spent: str
    left: str
    share_spent: float
    """Of its cap, from 0 to 1, for a bar."""
    share_asked: float
    fits: bool
    missing: Budget
    """What it lacks for this charge, rounded up to what can be written out; nothing where it fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A question with all that whoever asks it should know first.

    Guarantee: a function of declarations and of the ledger alone; nothing was read, charged or held back. Public: every
    field, to whoever may charge the account.
    """

    dataset: Dataset
    account: str
    sql: str | None
    question: str
    numbers: int
    columns: tuple[OfferedColumn, ...]
    epsilon: Fraction
    delta: Fraction
    price: Budget
    """What would be charged now: nothing where the answer is stored."""
    left: Budget
    decision: OfferDecision
    refusal: str
    """In the words of the refusal; empty where there is none."""
    balances: tuple[BalanceRow, ...]
    limited: Word | None
    """What of one person counts; None where all of it does."""
    cuts: bool
    fitting: tuple[OfferedColumn, ...]
    """The errors at what is left, where more was asked for."""
    query: Query
    view: View | None

    @property
    def spend(self) -> Budget:
        """What the question may cost."""
        return Budget(epsilon=self.epsilon, delta=self.delta)

    @property
    def open(self) -> bool:
        """Whether it can be asked as it is."""
        return self.decision in (OfferDecision.ALLOWED, OfferDecision.STORED)


class _Foreseeing:
    """A gate that says what would be, and releases nothing: behind it lies a table without a row."""

    def __init__(self, gate: Gate, unit: Unit, known: dict[Hashable, Any], limit: Limit | None = None) -> None:
        self._gate, self.unit, self._known, self._limit = gate, unit, known, limit

    def release(self, query: Query, spend: Budget, **asked: object) -> NoReturn:
        """Refuse: only workers release."""
        del query, spend, asked
        raise Refused("this process reads no data and releases nothing; nothing was charged. Ask through a job.")

    def check_fits(self, questions: Sequence[Intended], *, reads: tuple[str, str] | None = None) -> Budget:
        """What the questions would cost."""
        return self._gate.check_fits(questions, reads=reads)

    def preview(
        self, query: Query, spend: Budget, *, confidence: Exact = CONFIDENCE, rows: int | None = None
    ) -> Preview:
        """The error to expect."""
        found: Preview = self._once(
            ("preview", canonical(encode(query)), spend, confidence, rows),
            lambda: self._gate.preview(query, spend, confidence=confidence, rows=rows),
        )
        return found

    def epsilon_for(self, query: Query, **asked: object) -> Fraction:
        """The least ε for a margin."""
        found: Fraction = self._once(
            ("epsilon", canonical(encode(query)), *sorted((name, repr(said)) for name, said in asked.items())),
            lambda: self._gate.epsilon_for(query, **asked),  # type: ignore[arg-type]  # as a gate is asked
        )
        return found

    def limited(self, limit: Limit) -> Gate:
        """The same under another limit."""
        return _Foreseeing(self._gate.limited(limit), self.unit, self._known, limit)

    def _once(self, key: Hashable, work: Callable[[], Any]) -> Any:
        """Work out once what follows from declarations alone, which are those of this gate for as long as it is."""
        whole = (self._limit, key)
        if whole not in self._known:
            if len(self._known) >= MOST_FORESEEN:
                self._known.clear()
            self._known[whole] = work()
        return self._known[whole]


class Asker:
    """Makes offers over the datasets of a service, charged to accounts of its ledger.

    Guarantee: no row is read and nothing is charged, whatever is asked. Assumes: ``datasets`` are public facts.
    """

    def __init__(
        self, ledger: "Ledger", datasets: Mapping[str, AskableDataset], *, undue: "Undue | None" = None
    ) -> None:
        self._ledger, self._datasets, self._undue = ledger, datasets, undue
        self._turn = threading.Lock()
        self._vaults: dict[tuple[object, ...], Vault] = {}
        self._tables: dict[tuple[object, ...], tuple[Schema, Table]] = {}
        self._foreseen: WeakKeyDictionary[Vault, dict[Hashable, Any]] = WeakKeyDictionary()

    def held(self, name: str) -> AskableDataset:
        """A dataset by its name."""
        found = self._datasets.get(name)
        if found is None:
            raise NotDeclared("there is no dataset of this name here, or not for you; nothing was done.")
        return found

    def table(self, account: str, name: str) -> Table:
        """A dataset without rows, to make questions with; none of them can be released here."""
        vault, table = self._opened(account, name)
        return replace(table, gate=self._foreseeing(vault))

    def question(self, account: str, name: str, sql: str) -> Question:
        """The question that a text asks; other datasets of the same persons may be joined."""
        unit = self._opened(account, name)[0].unit
        others = [other for other in self._datasets if other != name and self._joins(name, other, unit)]
        asked = [self.table(account, each) for each in (name, *others)]
        return asked[0].sql(sql, *asked[1:])

    def decoded(self, account: str, name: str, document: "Json", *, limit: Limit | None = None) -> Question:
        """The question that a document of a query states, from a program; ``limit`` is another than the declared."""
        vault, _ = self._opened(account, name)
        try:
            query = DECLARATIONS.decode(document, "question")
        except RecursionError:
            raise InvalidInput("the question is nested too deeply; nothing was done.") from None
        if type(query) not in TABLE_QUERIES:
            raise InvalidInput("this is no question about a table; nothing was read and nothing was spent.")
        if query.dataset.name != name:
            raise InvalidInput(f"the question is about another dataset than {name!r}; nothing was done.")
        gate = self._foreseeing(vault)
        return Question(query=query, gate=gate if limit is None else gate.limited(limit))

    def offer(
        self,
        account: str,
        name: str,
        question: Question,
        precision: Precision,
        *,
        sql: str | None = None,
        fresh: bool = False,
        even_if_useless: bool = False,
        limit: Limit | None = None,
    ) -> Offer:
        """What a question would cost and how exact its answer would be, and whether it may be asked."""
        query = question.query
        check_depth(query)
        opened = self._opened(account, name)[0]
        vault: Gate = opened if limit is None else opened.limited(limit)
        epsilon = precision.epsilon
        if epsilon is None:
            margin = precision.margin
            epsilon = question.epsilon_for(
                margin=int(margin) if margin is not None and margin.denominator == 1 else margin,
                joint=precision.joint,
                delta=precision.delta,
                rows=precision.rows,
                column=precision.column or (None if len(query.names) == 1 else query.names[0]),
            )
        spend = Budget.asked(epsilon=epsilon, delta=precision.delta)
        preview = question.preview(epsilon=spend.epsilon, delta=spend.delta, rows=precision.rows)
        price, decision, refusal = preview.spend, OfferDecision.ALLOWED, ""
        try:
            price = self._fits(account, vault, [Intended(query=query, spend=spend, fresh=fresh)], limit)
            if price == Budget.none():
                decision = OfferDecision.STORED
        except BudgetExceeded as wrong:
            decision, refusal = OfferDecision.OVER, str(wrong)
        except SfumatoError as wrong:
            decision, refusal = OfferDecision.REFUSED, str(wrong)
        left = self.left(account, query.dataset)
        if decision is OfferDecision.REFUSED and even_if_useless and "even_if_useless" in refusal:
            decision, refusal = (OfferDecision.ALLOWED, "") if left.covers(price) else (OfferDecision.OVER, refusal)
        return Offer(
            dataset=query.dataset,
            account=account,
            sql=sql,
            question=question_text(query),
            numbers=preview.numbers,
            columns=_columns(preview, query),
            epsilon=spend.epsilon,
            delta=spend.delta,
            price=price,
            left=left,
            decision=decision,
            refusal=refusal,
            balances=self.balances(account, query.dataset, price),
            limited=cut_of(query, preview.unit, preview.limit).words,
            cuts=preview.cuts,
            fitting=_fitting(question, left, precision) if decision is OfferDecision.OVER else (),
            query=query,
            view=question.view,
        )

    def cost(self, account: str, name: str, intended: Sequence[Intended], *, limit: Limit | None = None) -> Budget:
        """What several questions to a dataset would cost together; refused where that does not fit."""
        opened = self._opened(account, name)[0]
        for each in intended:
            check_depth(each.query)
        return self._fits(account, opened if limit is None else opened.limited(limit), intended, limit)

    def _fits(self, account: str, gate: Gate, intended: Sequence[Intended], limit: Limit | None) -> Budget:
        """What questions would cost, as it was before answers and failures that are not due."""
        if self._undue is None:
            return gate.check_fits(intended, reads=None)
        asked = self._undue.masked(intended, limit)
        try:
            return gate.check_fits(asked, reads=None)
        except Refused as wrong:
            if CLOSED not in str(wrong) or not self._undue.closed():
                raise
        price = sum((_unclosed(gate, each) for each in asked), start=Budget.none())
        left = self.left(account, asked[0].query.dataset)
        if not left.covers(price):
            raise BudgetExceeded(
                f"{account!r} has ε = {decimal_down(left.epsilon)} left for this, and it would cost "
                f"{decimal_up(price.epsilon)}. Nothing was read and nothing was spent. Ask for less, or request a "
                "raise."
            )
        return price

    def left(self, account: str, dataset: Dataset) -> Budget:
        """What an account may still ask of a dataset: the least over all budgets that a charge counts against."""
        charged = self._ledger.account(account, unit=self._ledger.balance(account).unit)
        try:
            return charged.left_for([dataset])
        except SfumatoError:  # of one that is closed what is left says the same as before
            with self._ledger.record.reading() as transaction:
                edition = transaction.edition(dataset)
                lines = [dataset_line(dataset.name)]
                lines += [] if edition is None else [population_line(edition.population)]
                rooms = [balance.left for balance in map(transaction.balance, lines) if balance is not None]
            rooms.append(charged.left)
            return Budget(epsilon=min(room.epsilon for room in rooms), delta=min(room.delta for room in rooms))

    def balances(self, account: str, dataset: Dataset, price: Budget) -> tuple[BalanceRow, ...]:
        """The budgets that a charge would count against, from the account up and to the people behind the data."""
        with self._ledger.record.reading() as transaction:
            edition = transaction.edition(dataset)
            found = {balance.name: balance for balance in transaction.balances()}
        named = [("account", path, account_line(path)) for path in reversed(levels_of(account))]
        named.append(("dataset", dataset.name, dataset_line(dataset.name)))
        if edition is not None:
            named.append(("population", edition.population, population_line(edition.population)))
        rows = []
        for kind, shown, line in named:
            balance = found.get(line)
            if balance is None:
                continue
            cap, spent, left = balance.cap.epsilon, balance.spent.epsilon, balance.left
            rows.append(
                BalanceRow(
                    kind=kind,
                    name=shown,
                    cap=decimal_down(cap),
                    spent=decimal_up(spent),
                    left=decimal_down(left.epsilon),
                    share_spent=_share(spent, cap),
                    share_asked=_share(price.epsilon, cap),
                    fits=price.epsilon <= left.epsilon and price.delta <= left.delta,
                    missing=_missing(price, left),
                )
            )
        return tuple(rows)

    def _foreseeing(self, vault: Vault) -> "_Foreseeing":
        return _Foreseeing(vault, vault.unit, self._foreseen.setdefault(vault, {}))

    def _joins(self, name: str, other: str, unit: Unit) -> bool:
        here, there = self._datasets[name], self._datasets[other]
        told = isinstance(unit, User | Family) and there.schema.unit == unit.column
        return told and (here.purpose, here.recipient, here.reads) == (there.purpose, there.recipient, there.reads)

    def _opened(self, account: str, name: str) -> tuple[Vault, Table]:
        held = self.held(name)
        terms = account, held.purpose, held.recipient, held.reads
        key = (*terms, name, held.schema.edition)
        with self._turn:
            if len(self._vaults) > MOST_VAULTS:
                self._vaults.clear()
                self._tables.clear()
            known = self._tables.get(key)
            if known is not None and known[0] != held.schema:  # something of its declaration was stated anew
                self._vaults.pop(terms, None)
                self._tables = {each: made for each, made in self._tables.items() if each[: len(terms)] != terms}
            vault = self._vaults.get(terms)
            if vault is None:
                vault = self._vaults[terms] = Vault(
                    unit=self._ledger.balance(account).unit,
                    ledger=self._ledger,
                    account=account,
                    purpose=held.purpose,
                    recipient=held.recipient,
                    reads=held.reads,
                )
            if key not in self._tables:
                self._tables[key] = held.schema, vault.table(no_rows(held.schema), schema=held.schema)
            return vault, self._tables[key][1]


def _missing(price: Budget, left: Budget) -> Budget:
    epsilon, delta = max(price.epsilon - left.epsilon, Fraction(0)), max(price.delta - left.delta, Fraction(0))
    return Budget(epsilon=Fraction(decimal_up(epsilon)), delta=Fraction(decimal_up(delta)))


def _columns(preview: Preview, query: Query) -> tuple[OfferedColumn, ...]:
    def unknown(name: str) -> str:
        return "rows" if name in preview.by_rows else "data" if name in preview.untold else ""

    return tuple(
        OfferedColumn(
            name=name,
            margin=_short(preview.margins[name]) if name in preview.margins else None,
            joint=_short(preview.joint_margins[name]) if name in preview.joint_margins else None,
            unknown=unknown(name),
        )
        for name in query.names
    )


def _fitting(question: Question, left: Budget, precision: Precision) -> tuple[OfferedColumn, ...]:
    """The errors to expect for all that is left."""
    if not left.epsilon:
        return ()
    delta = min(precision.delta, left.delta)
    try:
        preview = question.preview(epsilon=Fraction(decimal_down(left.epsilon)), delta=delta, rows=precision.rows)
    except SfumatoError:  # what is left is too little to be written down
        return ()
    return _columns(preview, question.query)


def _short(margin: Fraction) -> str:
    text = decimal_up(margin)
    return f"{int(text):,}" if text.isdigit() else text


def _share(part: Fraction, whole: Fraction) -> float:
    return 1.0 if not whole else float(min(Fraction(1), part / whole))


def _unclosed(gate: Gate, asked: Intended) -> Budget:
    """What a question to data that were closed would have cost before that."""
    try:
        return gate.check_fits([asked], reads=None)  # what is stored is handed out still
    except Refused:
        if not asked.known:
            return asked.spend
        return gate.preview(asked.query, asked.spend, confidence=CONFIDENCE, rows=None).spend


def schema_table(schema: Schema, unit: Unit) -> Table:
    """A table with the columns of a schema and no row, to make of a release what was asked for; it has no ledger."""
    home = Vault(unit=unit, budget=Budget(epsilon=1), name="nobody")
    table = home.table(no_rows(schema), schema=schema)
    return replace(table, gate=_Foreseeing(home, unit, {}))


def no_rows(schema: Schema) -> "pa.Table":
    """A table with the columns of a schema and no row: what this process holds in place of data."""
    import pyarrow as pa

    kinds = {
        Type.TEXT: pa.string(),
        Type.WHOLE: pa.int64(),
        Type.NUMBER: pa.float64(),
        Type.TRUTH: pa.bool_(),
        Type.DATE: pa.date32(),
        Type.TIME: pa.timestamp("us"),
    }
    zones = {column.name: column.zone for column in schema.columns}
    types = {
        name: pa.timestamp("us", tz="UTC") if kind is Type.TIME and zones[name] else kinds[kind]
        for name, kind in schema.types.items()
    }
    return pa.table({name: pa.array([], kind) for name, kind in types.items()})
