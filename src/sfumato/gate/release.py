"""One answer, from its declaration to its delivery: the only code that reads for a question and draws its noise.

Order of a release: check the declaration, look for a stored answer, check the columns, charge, read, draw, sign, store,
deliver. No row is read and no noise is drawn before the charge counts.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.core.cut import cut_of
from sfumato.core.data_kind import Limitable, SomeStore
from sfumato.core.documents import check_types
from sfumato.core.events import PrivacyEvent
from sfumato.core.exact import Exact, decimal_up, natural, non_negative, positive
from sfumato.core.interrupts import FAILED, attempt, check_outside
from sfumato.core.ledger import State
from sfumato.core.limits import Limit
from sfumato.core.query import Answer, Dataset, DrawnMechanism, Query, ReleasedQuery, SquaredError
from sfumato.core.question import Intended, Preview
from sfumato.core.release import Release, delivered_again
from sfumato.core.stored import Stored
from sfumato.errors import EngineFailed, InvalidInput, LedgerError, Refused, Unsupported
from sfumato.gate.notary import Notary, Priced, now
from sfumato.laws.margins import level_of
from sfumato.mechanisms.calibration import least_epsilon, least_epsilon_where
from sfumato.noise import SystemWords

__all__ = ["ReleaseGate"]

PAID = (State.RESERVED, State.COMMITTED)


def _unwatched(text: str) -> AbstractContextManager[None]:
    del text
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ReleaseGate:
    """Where questions are previewed and answered, whatever kind of data they are about.

    ``stores`` hold the data, one for each kind; ``watched`` shows whoever sits at the machine that reading goes on.
    """

    notary: Notary
    stores: Sequence[SomeStore]
    watched: Callable[[str], AbstractContextManager[None]] = field(default=_unwatched)

    def limited(self, limit: Limit) -> "ReleaseGate":
        """The same gate, at which another limit holds for the data that is asked; other kinds of data have none."""
        return replace(
            self, stores=tuple(store.limited(limit) for store in self.stores if isinstance(store, Limitable))
        )

    def check_columns(self, query: Query) -> None:
        """Refuse a question that does not fit the declared columns, also one whose answer is stored; reads no row."""
        store, asked = self._store(query)
        store.check_fit(asked)

    def preview(self, query: Query, spend: Budget, *, confidence: Exact, rows: int | None) -> Preview:
        """Say what error to expect; opens no data and spends nothing."""
        store, asked = self._store(query)
        unit, limit = self.notary.unit, store.limit(asked)
        sensitivity = asked.sensitivity(unit, limit)
        mechanism = asked.mechanism(sensitivity, unit, spend)
        level = level_of(confidence)
        if rows is not None:
            natural(rows, "rows")
        margins, joint = (asked.expected(mechanism.law, level, joint=all_, rows=rows) for all_ in (False, True))
        told = asked.expected(mechanism.law, level, joint=False, rows=rows or 1)
        cut = cut_of(asked, unit, limit)
        return Preview(
            spend=self.notary.priced(asked, mechanism, limit, sensitivity, spend).charge,
            unit=unit,
            limit=limit,
            sensitivity=sensitivity,
            mechanism=mechanism,
            numbers=max(1, len(next(iter(asked.labels().values()), ()))),
            confidence=level,
            margins=margins,
            joint_margins=joint,
            by_rows=tuple(name for name in asked.names if name in told and name not in margins),
            untold=tuple(name for name in asked.names if name not in told and name not in margins),
            limited="" if cut.words is None else self.notary.presenter.words(cut.words, "en"),
            cuts=cut.cuts,
        )

    def epsilon_for(
        self,
        query: Query,
        *,
        margin: Exact | None,
        mse: Exact | None = None,
        confidence: Exact,
        joint: bool,
        delta: Exact,
        rows: int | None,
        column: str | None,
    ) -> Fraction:
        """Find the least ε that keeps a margin or a mean squared error; opens no data and spends nothing."""
        if (margin is None) is (mse is None):
            raise InvalidInput("epsilon_for(...) takes margin=… or mse=…, one of the two; nothing was done.")
        store, asked = self._store(query)
        sensitivity = asked.sensitivity(self.notary.unit, store.limit(asked))

        def mechanism(epsilon: Fraction) -> DrawnMechanism:
            return asked.mechanism(sensitivity, self.notary.unit, Budget(epsilon=epsilon, delta=delta))

        if mse is not None:
            return _for_mse(asked, mechanism, positive(mse, "mse"), joint=joint, rows=rows, column=column)
        assert margin is not None  # noqa: S101 - one of the two was given
        if asked.measure is not None and asked.size is not None and isinstance(margin, int):
            numbers = asked.size if joint else 1
            return least_epsilon(mechanism, margin=margin, confidence=confidence, numbers=numbers)
        level, wanted = level_of(confidence), non_negative(margin, "margin")
        if rows is not None:
            natural(rows, "rows")
        name = _chosen(asked.names, column)

        def reaches(epsilon: Fraction) -> bool:
            law = mechanism(epsilon).law
            margins = asked.expected(law, level, joint=joint, rows=rows)
            if name in margins:
                return margins[name] <= wanted
            raise _untold(name, by_rows=rows is None and name in asked.expected(law, level, joint=joint, rows=1))

        return least_epsilon_where(reaches, f"keeps {name!r} within ±{margin}")

    def release(
        self,
        query: Query,
        spend: Budget,
        *,
        fresh: bool,
        idempotency: str | None,
        reads: tuple[str, str] | None,
        even_if_useless: bool = False,
    ) -> Release:
        """Charge, then read; store, then deliver. The same question is answered from storage, at no cost."""
        check_outside()
        store, priced, private, why_not = self._priced(query, spend)
        useless = None if even_if_useless else why_not
        if fresh:
            _check_useful(useless)
            return self._answered(store, priced, private, idempotency=idempotency, reads=reads)
        stored = self._stored(priced.question, private, reads)
        if stored is not None:
            return stored
        # Who asks the same meanwhile waits for the answer, which then is a stored one; a fresh draw waits for nobody.
        with self.notary.ledger.asking(priced.question):
            stored = self._stored(priced.question, private, reads)
            if stored is not None:
                return stored
            _check_useful(useless)
            return self._answered(store, priced, private, idempotency=idempotency, reads=reads)

    def check_fits(self, questions: Sequence[Intended], *, reads: tuple[str, str] | None) -> Budget:
        """What these questions would cost; refused where one would be, or where the charges do not fit together.

        Whoever asks several questions that belong together asks this first, so that nothing is spent where the last is
        refused. What is stored, or was charged under its key, costs nothing more.

        Guarantee: a function of the declarations and of the ledger alone; no row is read, and nothing is charged or
        held back. Assumes: nobody else charges the account between this and the last charge.
        """
        check_outside()
        charges: list[tuple[Budget, PrivacyEvent | None]] = []
        datasets: dict[Dataset, None] = {}
        for asked in questions:
            store, priced, private, useless = self._priced(asked.query, asked.spend)
            looked_up = asked.known and not asked.fresh
            if looked_up and self.notary.ledger.stored(priced.question, private, reads=reads) is not None:
                continue
            if asked.idempotency is not None and self.notary.ledger.named(asked.idempotency) in PAID:
                continue  # a key of another question is refused with that question
            _check_useful(useless)
            self._check_readable(store, priced.query, private)
            charges.append((priced.charge if asked.known else asked.spend, priced.event))
            datasets.update(dict.fromkeys(private))
        if charges:
            self.notary.ledger.check_fits(charges, datasets=tuple(datasets), reads=reads)
        return sum((cost for cost, _ in charges), start=Budget.none())

    def _priced(
        self, query: Query, spend: Budget
    ) -> tuple[SomeStore, Priced[DrawnMechanism], Sequence[Dataset], str | None]:
        """The store that answers, the price, the private data behind it, and why the answer would say nothing."""
        spend = Budget.asked(epsilon=spend.epsilon, delta=spend.delta)
        store, asked = self._store(query)
        unit, limit = self.notary.unit, store.limit(asked)
        sensitivity = asked.sensitivity(unit, limit)
        mechanism = asked.mechanism(sensitivity, unit, spend)
        priced = self.notary.priced(asked, mechanism, limit, sensitivity, spend, store.derived(asked))
        return store, priced, store.private(asked), store.says_nothing(asked, mechanism.law)

    def _answered(
        self,
        store: SomeStore,
        priced: Priced[DrawnMechanism],
        private: Sequence[Dataset],
        *,
        idempotency: str | None,
        reads: tuple[str, str] | None,
    ) -> Release:
        """Charge, read, draw, sign, store; then deliver.

        Guarantee: no row is read before the charge counts, and nothing is delivered before it is stored. A failure
        keeps the charge and closes the data; a real Ctrl-C keeps the charge and closes nothing. Sensitive: what is
        read.
        """
        query, ledger = priced.query, self.notary.ledger
        stored = self._check_readable(store, query, private)
        reservation = ledger.reserve(
            priced.charge,
            datasets=private,
            event=priced.event,
            idempotency=idempotency,
            lasts=_lasts(idempotency),
            reads=reads,
            question=priced.question,
        )
        given = None if idempotency is None else ledger.given(reservation)
        if given is not None:
            return given
        issued = now()
        answer = self._noisy(store, query, priced.mechanism)
        if answer is None and ledger.close(private, stored):
            raise EngineFailed(
                f"the engine stopped while it read {query.dataset.name!r}. Rows may have been read, so the charge of "
                f"{reservation.cost} is kept; no number was released, and this version of the data is closed. "
                "Check the data, then declare it as a new version."
            )
        # Of questions that are asked at once, one tells that it failed: what became of the others would tell more.
        if answer is None or self._closed(private, stored):
            raise Refused(
                f"what {query.dataset.name!r} reads was closed meanwhile, after its engine failed. The charge of "
                f"{reservation.cost} is kept; no number was released. Repair the data and declare a new version."
            )
        try:
            return self.notary.stored(priced, reservation, query, answer, issued=issued)
        except LedgerError:
            given = None if idempotency is None else ledger.given(reservation)
            if given is None:
                raise
            return given  # another process finished the same request first: its answer is the one that counts

    def _check_readable(self, store: SomeStore, query: Query, private: Sequence[Dataset]) -> Mapping[Dataset, Stored]:
        """Where the rows lie; refused where they were closed, or have not the columns that are asked for."""
        ledger = self.notary.ledger
        closed = next((dataset for dataset in private if ledger.closed(dataset)), None)
        if closed is not None:
            raise Refused(
                f"{closed.name!r} was closed after its engine failed: whether another question fails could tell "
                "what a row holds. Nothing was read and nothing was spent. Repair the data and declare a new version."
            )
        store.check_fit(query)
        stored = store.stored(query)
        for dataset, what in stored.items():
            if ledger.shut(dataset, what):
                raise Refused(
                    f"what {dataset.name!r} reads was closed under another name, after its engine failed: whether "
                    "another question fails could reveal what a row holds. Nothing was read and nothing was spent. "
                    "Repair the data and declare a new version."
                )
        return stored

    def _noisy(self, store: SomeStore, query: Query, mechanism: DrawnMechanism) -> Answer | None:
        """Read and draw; None where that failed. Exact numbers, and an engine's words that may quote data, end here.

        A real Ctrl-C is no failure of the engine: it ends in ``KeyboardInterrupt``, the charge counts and the data stay
        open. Nothing else that is raised leaves, whatever its class.
        """

        def answered() -> Answer:
            with self.watched(f"reading {query.dataset.name}"):
                exact = store.read(query)
            return mechanism.draw(exact, SystemWords())

        answer = attempt(answered)
        return None if answer is FAILED else answer

    def _closed(self, private: Sequence[Dataset], stored: Mapping[Dataset, Stored]) -> bool:
        ledger = self.notary.ledger
        return any(map(ledger.closed, private)) or any(map(ledger.shut, stored, stored.values()))

    def _stored(self, question: str, private: Sequence[Dataset], reads: tuple[str, str] | None) -> Release | None:
        """The answer that was given before, at no cost."""
        stored = self.notary.ledger.stored(question, private, reads=reads)
        return None if stored is None else delivered_again(stored)

    def _store(self, query: Query) -> tuple[SomeStore, ReleasedQuery]:
        """The store that answers a query, once it has been checked."""
        for store in self.stores:
            if store.answers(query):
                store.check(query)
                check_types(query, "the question")
                return store, query
        raise Unsupported(f"this vault cannot answer {type(query).__name__}; nothing was read and nothing was spent.")


def _for_mse(
    asked: ReleasedQuery,
    mechanism: Callable[[Fraction], DrawnMechanism],
    wanted: Fraction,
    *,
    joint: bool,
    rows: int | None,
    column: str | None,
) -> Fraction:
    """The least ε whose noise has at most this mean squared error in each number of a column."""
    if joint:
        raise InvalidInput("a mean squared error is that of each number; nothing was done. Leave joint out.")
    if rows is not None:
        natural(rows, "rows")
    name = _chosen(asked.names, column)

    def reaches(epsilon: Fraction) -> bool:
        law = mechanism(epsilon).law
        if asked.measure is not None:
            return law.variance <= wanted
        known = asked.expected_mse(law, rows=rows) if isinstance(asked, SquaredError) else {}
        if name in known:
            return known[name] <= wanted
        by_rows = rows is None and isinstance(asked, SquaredError) and name in asked.expected_mse(law, rows=1)
        raise _untold(name, by_rows=by_rows)

    return least_epsilon_where(reaches, f"keeps the mean squared error of {name!r} to {decimal_up(wanted)}")


def _untold(name: str, *, by_rows: bool) -> InvalidInput:
    """The refusal to work out an error that is not known beforehand."""
    if by_rows:
        return InvalidInput(
            f"the error of {name!r} depends on how many rows a group has; nothing was done. Say rows=…, how many you "
            "expect."
        )
    return InvalidInput(f"the error of {name!r} depends on the data; nothing was done. Choose ε in another way.")


def _check_useful(why_not: str | None) -> None:
    """Refuse to charge for an answer that says nothing, unless somebody asked for it all the same."""
    if why_not is not None:
        raise Refused(
            f"{why_not}; or pay for it all the same: even_if_useless=True (--even-if-useless). Nothing was read and "
            "nothing was spent."
        )


def _chosen(names: Sequence[str], column: str | None) -> str:
    if column is None and len(names) == 1:
        return names[0]
    if column is None or column not in names:
        raise InvalidInput(f"say column=…, one of {', '.join(names)}; nothing was done.")
    return column


def _lasts(idempotency: str | None) -> timedelta | None:
    """When a charge without an answer is stale; one that a retry may still finish never is."""
    return timedelta(days=1) if idempotency is None else None
