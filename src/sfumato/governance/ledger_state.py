"""The state of a ledger: what follows from the record. One reducer keeps it in the database and in memory.

:func:`admit` decides whether a charge may be entered; :func:`apply` enters what was decided. Both work on exact
rationals and on any :class:`LedgerState`, so that a replay of the record gives the same state bit for bit.

Over 600 lines because it is one reducer: in several files nobody could see that each kind of entry is applied, and by
what a charge is held.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Protocol

from sfumato.accounting.filter_cost import reading
from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode
from sfumato.core.ledger import State
from sfumato.core.query import Dataset
from sfumato.errors import LedgerError, NotDeclared
from sfumato.governance.balances import Balance
from sfumato.governance.board import Proposal
from sfumato.governance.decision_state import GOVERNING, DecisionState
from sfumato.governance.entries import (
    ADMINISTRATIVE,
    CHARGING,
    AccountOpened,
    Acted,
    Administered,
    Advanced,
    ClockConfirmed,
    Committed,
    DatasetClosed,
    DatasetDeclared,
    Entry,
    Expired,
    LedgerOpened,
    Migrated,
    PopulationDeclared,
    Recovered,
    Released,
    Repriced,
    Reserved,
    Row,
    Started,
    WindowsDeclared,
    unwrapped,
)
from sfumato.governance.entry_tree import Frontier, entered, root_text
from sfumato.governance.keyring import check_entry
from sfumato.governance.memory import MOST_PARTS
from sfumato.governance.time_windows import grouped

__all__ = [
    "Charge",
    "Edition",
    "LedgerState",
    "MemoryLedgerState",
    "Totals",
    "account_line",
    "admit",
    "apply",
    "asked_for",
    "dataset_line",
    "decided_on",
    "drawn_on",
    "end_of",
    "lifetime_line",
    "losses_of",
    "population_line",
    "question_key",
    "replay",
    "request_of",
    "touched",
    "window_line",
]


def account_line(path: str) -> str:
    """The name of an account's balance."""
    return f"account {path}"


def dataset_line(name: str) -> str:
    """The name of a dataset's balance; its versions share it."""
    return f"dataset {name}"


def population_line(name: str) -> str:
    """The name of a population's balance."""
    return f"population {name}"


def window_line(path: str, label: str) -> str:
    """The name of the balance of one window of an account."""
    return f"window {path} {label}"


def lifetime_line(path: str, entries: int | None = None) -> str:
    """The name of the balance of a whole life; with ``entries``, a charge to it of that many (person, period) pairs."""
    return f"lifetime {path}" if entries is None else f"lifetime {path} × {entries}"


def question_key(question: str) -> str:
    """What a canonical question is looked up by: a digest, since questions are longer than an index takes."""
    return hashlib.sha256(question.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A declared version of a dataset, the people it is about, whether it was closed, the entry that declared it."""

    dataset: Dataset
    population: str
    closed: bool = False
    declared: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A charge and what became of it; ``number`` is that of its entry, ``place`` how far its count has come.

    ``digest`` is that of its entry, ``answered`` that of the entry ``answer``: a row of the record is believed by them.
    """

    number: int
    state: State
    cost: Budget
    losses: tuple[tuple[str, Fraction], ...]
    lines: tuple[str, ...]
    idempotency: str | None
    request: str
    queued: bool
    started: bool
    expires: str | None
    answer: int | None = None
    place: int | None = None
    holder: str | None = None
    digest: str = ""
    answered: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The head of the record, and all that was ever charged: the most that any balance can have lost in a gap."""

    number: int
    digest: str
    at: str
    epsilon: Fraction
    delta: Fraction
    decisions: str = ""
    """A digest of all entries that decided or declared something (:mod:`sfumato.governance.decision_state`)."""
    state: str = ""
    """The root of the map of the stored state (:mod:`sfumato.governance.leaves`); a replay leaves it out."""
    frontier: Frontier = field(default_factory=Frontier)
    """All that is needed to go on with the tree of entries (:mod:`sfumato.governance.entry_tree`)."""

    @property
    def tree(self) -> str:
        """The root of the tree of entries, by which a head proves the frontier; nothing where its size is another."""
        return root_text(self.frontier) if self.frontier.size == self.number else ""


class LedgerState(Protocol):
    """Where balances, charges and answers are kept."""

    def balance(self, name: str) -> Balance | None:
        """A balance by its name."""
        ...

    def balances(self) -> Iterable[Balance]:
        """All balances, by name."""
        ...

    def put_balance(self, balance: Balance) -> None:
        """Keep a balance in place of the one with the same name."""
        ...

    def gather(self, names: Sequence[str]) -> None:
        """Say which balances will be looked at, so that they can be read together."""
        ...

    def edition(self, dataset: Dataset) -> Edition | None:
        """A declared version of a dataset."""
        ...

    def put_edition(self, edition: Edition) -> None:
        """Keep a version."""
        ...

    def population(self, name: str) -> str | None:
        """The people that a dataset is about, in all its versions."""
        ...

    def datasets(self, population: str) -> set[str]:
        """The names of all datasets about some people."""
        ...

    def charge(self, number: int) -> Charge | None:
        """A charge by its number."""
        ...

    def put_charge(self, charge: Charge) -> None:
        """Keep a charge in place of the one with the same number."""
        ...

    def put_answer(self, key: str, number: int, digest: str) -> None:
        """Remember the entry that answers a question, and its digest."""
        ...

    def decision_state(self) -> DecisionState:
        """What was decided and declared."""
        ...

    def put_decision_state(self, decisions: DecisionState) -> None:
        """Keep what was decided and declared; it follows from the record and is stored nowhere else."""
        ...

    def totals(self) -> Totals | None:
        """The head and the sums; None for an empty record."""
        ...

    def put_totals(self, totals: Totals) -> None:
        """Move the head."""
        ...


@dataclass(slots=True)
class MemoryLedgerState:
    """LedgerState in dictionaries, for a replay; equal states are equal values."""

    kept: dict[str, Balance] = field(default_factory=dict)
    editions: dict[Dataset, Edition] = field(default_factory=dict)
    charges: dict[int, Charge] = field(default_factory=dict)
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    head: Totals | None = None
    decided: DecisionState = field(default_factory=lambda: DecisionState(ledger=""), compare=False)

    def balance(self, name: str) -> Balance | None:
        """A balance by its name."""
        return self.kept.get(name)

    def balances(self) -> Iterable[Balance]:
        """All balances, by name."""
        return [self.kept[name] for name in sorted(self.kept)]

    def gather(self, names: Sequence[str]) -> None:
        """Nothing: all are in memory."""

    def put_balance(self, balance: Balance) -> None:
        """Keep a balance in place of the one with the same name."""
        self.kept[balance.name] = balance

    def edition(self, dataset: Dataset) -> Edition | None:
        """A declared version of a dataset."""
        return self.editions.get(dataset)

    def put_edition(self, edition: Edition) -> None:
        """Keep a version."""
        self.editions[edition.dataset] = edition

    def population(self, name: str) -> str | None:
        """The people that a dataset is about, in all its versions."""
        return next((each.population for each in self.editions.values() if each.dataset.name == name), None)

    def datasets(self, population: str) -> set[str]:
        """The names of all datasets about some people."""
        return {each.dataset.name for each in self.editions.values() if each.population == population}

    def charge(self, number: int) -> Charge | None:
        """A charge by its number."""
        return self.charges.get(number)

    def put_charge(self, charge: Charge) -> None:
        """Keep a charge in place of the one with the same number."""
        self.charges[charge.number] = charge

    def put_answer(self, key: str, number: int, digest: str) -> None:
        """Remember the entry that answers a question, and its digest."""
        self.answers[key] = (number, digest)

    def decision_state(self) -> DecisionState:
        """What was decided and declared."""
        return self.decided

    def put_decision_state(self, decisions: DecisionState) -> None:
        """Keep what was decided and declared."""
        self.decided = decisions

    def totals(self) -> Totals | None:
        """The head and the sums; None for an empty record."""
        return self.head

    def put_totals(self, totals: Totals) -> None:
        """Move the head."""
        self.head = totals


def admit(state: LedgerState, entry: Reserved) -> list[Balance]:
    """Refuse a charge that any of its balances cannot bear; changes nothing. How they would stand after it.

    Guarantee: if every charge that counts was admitted in the order of the record, then the releases behind each
    balance are together within its cap, however adaptively they were chosen (docs/proofs/filters.md).
    """
    losses, after = losses_of(state, entry), []
    for line in entry.lines:
        balance, draw = drawn_on(state, line, entry.cost)
        loss = losses.get(line)
        balance.admit(draw, loss)
        moved = balance.moved(draw, loss, times=1, charges=1)
        after.append(moved)
        longest = max(
            *(moved.epsilon_spent.denominator, moved.delta_spent.denominator),
            *(moved.rho_spent.denominator, moved.loss_spent.denominator),
        )
        if longest <= MOST_PARTS:
            continue
        # A plain decimal always finds room, so that nobody's odd fractions can shut a balance for the others.
        plain = all(10**30 % part.denominator == 0 for part in (entry.cost.epsilon, entry.cost.delta))
        if longest > MOST_PARTS * (10**30 if plain else 1):
            raise LedgerError(
                f"the charges of {line!r} have too many different denominators: their sum could not be written "
                "down any more. Nothing was read and nothing was spent. Ask with fewer digits."
            )
    return after


_ADMINISTERED = (Administered, *ADMINISTRATIVE)
_moment = lru_cache(maxsize=64)(datetime.fromisoformat)


def apply(state: LedgerState, row: Row, entry: Entry, charged: Sequence[Balance] | None = None) -> None:
    """Enter what an entry says into the stored state.

    ``charged`` are the balances of a charge as :func:`admit` has just found that they stand after it, one for each of
    its lines; without it they are worked out.
    """
    totals = state.totals()
    epsilon, delta = (Fraction(0), Fraction(0)) if totals is None else (totals.epsilon, totals.delta)
    decisions = "" if totals is None else totals.decisions
    whole, charging = entry, isinstance(entry, CHARGING)  # of which nobody signs one, and which decide nothing
    if not charging:
        if isinstance(entry, _ADMINISTERED):
            check_entry(state.decision_state().keys, entry, row.number, decisions)
        entry = unwrapped(entry)
    _check_time(totals, entry)
    if isinstance(entry, Recovered) and totals is not None:
        ring = state.decision_state().keys
        if ring is not None:
            ring.check_set_back(totals.at, entry.at)
    if isinstance(entry, LedgerOpened) is not (totals is None):
        raise LedgerError("a record is opened once, by its first entry; nothing was changed.")
    if not charging and isinstance(whole, GOVERNING):
        _govern(state, row.number, entry)
        decisions = decided_on(decisions, row)
    match entry:
        # The two that most entries are, first.
        case Reserved():
            losses = losses_of(state, entry)
            if charged is None or len({balance.name for balance in charged}) != len(entry.lines):
                _move(state, entry.lines, entry.cost, losses, times=1)
            else:
                for balance in charged:
                    state.put_balance(balance)
            state.put_charge(_charge(row, entry, losses))
            epsilon, delta = _added(epsilon, entry.cost.epsilon), _added(delta, entry.cost.delta)
        case Committed():
            charge = _open(state, entry.charge)
            state.put_charge(_answered(charge, row))
            state.put_answer(question_key(entry.question), row.number, row.digest)
        case LedgerOpened():
            state.put_decision_state(DecisionState.opened(entry, bare=not row.nonce))
        case Migrated():
            state.put_decision_state(replace(state.decision_state(), bare=False))
        case AccountOpened():
            state.put_balance(_opened(state, account_line(entry.path), entry))
        case PopulationDeclared():
            state.put_balance(_opened(state, population_line(entry.name), entry))
        case DatasetDeclared():
            line = dataset_line(entry.dataset.name)
            if state.population(entry.dataset.name) not in (None, entry.population):
                raise LedgerError(f"the versions of {entry.dataset.name!r} are about different people; not entered.")
            if state.edition(entry.dataset) is not None:
                raise LedgerError(f"this version of {entry.dataset.name!r} is declared already; nothing was changed.")
            if state.balance(line) is None:
                people = _known(state, population_line(entry.population))
                state.put_balance(_begun(state, Balance(name=line, unit=people.unit, cap=entry.cap)))
            state.put_edition(Edition(dataset=entry.dataset, population=entry.population, declared=row.number))
        case DatasetClosed():
            edition = state.edition(entry.dataset)
            if edition is None:
                raise LedgerError(f"the ledger has no version {entry.dataset.edition!r} of {entry.dataset.name!r}.")
            state.put_edition(replace(edition, closed=True))
        case Started():
            charge = _open(state, entry.charge)
            state.put_charge(replace(charge, started=True))
            if charge.started:  # gone on with: somebody else may have drawn for it, which no balance can count
                epsilon, delta = _added(epsilon, charge.cost.epsilon), _added(delta, charge.cost.delta)
        case Advanced():
            charge = _open(state, entry.charge)
            lost = state.decision_state().recovered > entry.charge
            if not charge.started or lost or entry.place != _next(charge):
                raise LedgerError(f"the count of charge {entry.charge} does not go on like this; nothing was changed.")
            state.put_charge(replace(charge, place=entry.place, holder=entry.holder))
        case Released():
            _give_back(state, entry.charge, State.RELEASED)
        case Expired(counted=False):
            _give_back(state, entry.charge, State.RELEASED)
        case Expired():
            state.put_charge(replace(_open(state, entry.charge), state=State.EXPIRED))
        case Recovered():
            for balance in state.balances():
                nothing = entry.whole or _is_life(balance)
                state.put_balance(balance.exhausted() if nothing else balance.used_up(entry.gap))
            epsilon, delta = _added(epsilon, entry.gap.epsilon), _added(delta, entry.gap.delta)
        case Repriced():
            more = _reprice(state, entry)
            epsilon, delta = _added(epsilon, more.epsilon), _added(delta, more.delta)
    frontier = Frontier() if totals is None else totals.frontier
    state.put_totals(
        Totals(
            number=row.number,
            digest=row.digest,
            at=entry.at,
            epsilon=epsilon,
            delta=delta,
            decisions=decisions,
            frontier=entered(frontier, row.number, row.digest),
        )
    )


def end_of(state: LedgerState) -> Totals:
    """The head of a state that must have one."""
    totals = state.totals()
    if totals is None:
        raise LedgerError("the record of the ledger is empty; nothing was done.")
    return totals


def decided_on(before: str, row: Row) -> str:
    """The digest of all decisions, with one more."""
    return hashlib.sha256(canonical([before, row.number, row.digest]).encode()).hexdigest()


def replay(rows: Iterable[Row]) -> MemoryLedgerState:
    """Work the stored state out again from the record alone."""
    state = MemoryLedgerState()
    for row in rows:
        apply(state, row, row.entry)
    return state


_ASKED = ("purpose", "recipient", "reads", "losses", "question")
"""What later versions of a charge state too."""


def request_of(entry: Reserved) -> str:
    """A digest of what was asked for, to tell a retry from another request under the same key."""
    parts: tuple[object, ...] = (
        *(entry.account.name, entry.unit, entry.datasets, entry.cost, entry.rho, entry.queued),
        *((name, getattr(entry, name)) for name in _ASKED if getattr(entry, name)),
    )
    return _digest_of_parts(parts)


@lru_cache(maxsize=256)
def _digest_of_parts(parts: tuple[object, ...]) -> str:
    return hashlib.sha256(canonical([encode(part) for part in parts]).encode()).hexdigest()


def losses_of(state: LedgerState, entry: Reserved) -> dict[str, Fraction]:
    """What a charge counts against the filters of its lines, as the entry states it.

    The first version of the entry stated one ρ, for all lines that a zCDP filter keeps.
    """
    if not entry.losses and entry.rho is None:
        return {}
    filtered = [line for line in entry.lines if drawn_on(state, line, entry.cost)[0].filter_cap is not None]
    losses = dict(entry.losses) if entry.rho is None else dict.fromkeys(filtered, entry.rho)
    if any(line not in filtered or loss < 0 for line, loss in losses.items()) or len(entry.losses) > len(losses):
        raise LedgerError("a charge states a loss that no filter counts; nothing was changed.")
    return losses


def _govern(state: LedgerState, number: int, entry: Entry) -> None:
    """Enter a decision or a declaration, and raise the caps that were decided by it."""
    before = state.decision_state()
    if isinstance(entry, Acted) and isinstance(entry.act, Proposal):
        _check_touched(state, before, entry.act)
    after = before.after(number, entry)
    for proposal in before.raises(after):
        if proposal.amount is not None:
            balance = asked_for(state, str(proposal.account)).raised(proposal.amount)
            # What was lost is not known in the terms of a filter: it stays used up, also of a higher cap.
            state.put_balance(balance if after.lost is None else balance.used_up(Budget.none()))
    if isinstance(entry, WindowsDeclared) and entry.windows.summed_lifetime is not None:
        name, cap = lifetime_line(entry.path), entry.windows.summed_lifetime
        state.put_balance(_begun(state, Balance(name=name, unit=entry.windows.unit, cap=cap)))
    state.put_decision_state(after)


def touched(state: LedgerState, name: str | None) -> set[str]:
    """The datasets whose people a change of this balance concerns."""
    kind, _, rest = (name or "").partition(" ")
    return {rest} if kind == "dataset" else state.datasets(rest) if kind == "population" else set()


def _check_touched(state: LedgerState, decisions: DecisionState, proposal: Proposal) -> None:
    """A proposal names every dataset that it concerns and all their sites, so that those are asked who can say no."""
    if not touched(state, proposal.account) <= set(proposal.datasets):
        raise NotDeclared(f"a proposal about {proposal.account!r} names all its datasets; it was not entered.")
    for dataset in proposal.datasets:
        missing = decisions.sites_of(dataset) - set(proposal.sites)
        if missing:
            raise NotDeclared(
                f"{dataset!r} comes from {', '.join(sorted(missing))} too, whose committee has to decide; the proposal "
                "was not entered. Name all its sites."
            )


def asked_for(state: LedgerState, name: str) -> Balance:
    """The balance that a proposal names: an account by its path, anything else as ``dataset visits``."""
    balance = state.balance(account_line(name)) or state.balance(name)
    if balance is None:
        raise LedgerError(f"the ledger has no account, dataset or population {name!r}; nothing was changed.")
    return balance


def _opened(state: LedgerState, name: str, entry: AccountOpened | PopulationDeclared) -> Balance:
    if state.balance(name) is not None:
        raise LedgerError(f"{name!r} is there already, and a second opening would empty it; nothing was changed.")
    state.decision_state().check_opening(name, entry.cap)
    most = entry.rho if entry.order is None else entry.loss
    if most is not None and not entry.cap.covers(reading(most, entry.order, entry.cap.delta)):
        raise LedgerError(f"the filter of {name!r} admits more than its cap; nothing was changed.")
    return _begun(
        state,
        Balance(name=name, unit=entry.unit, cap=entry.cap, rho=entry.rho, order=entry.order, loss=entry.loss),
    )


def _begun(state: LedgerState, balance: Balance) -> Balance:
    """A balance that is opened now. After a recovery it may have been open before, in the entries that were lost."""
    lost = state.decision_state().lost
    if lost is None:
        return balance
    return balance.exhausted() if _is_life(balance) or state.decision_state().lost_whole else balance.used_up(lost)


def _is_life(balance: Balance) -> bool:
    """Whether this is the balance of a lifetime, whose charges are multiples of those that totals add up."""
    return balance.name.startswith("lifetime ")


def _added(total: Fraction, more: Fraction) -> Fraction:
    """The sum, rounded up to 60 digits once it has more than 100: an anchor has room for no more."""
    if not more:
        return total
    whole = total + more
    return whole if whole.denominator <= 10**100 else Fraction(ceil(whole * 10**60), 10**60)


def _check_time(totals: Totals | None, entry: Entry) -> None:
    """Entries follow one another in time; only a recovery may set a clock right that ran ahead."""
    try:
        now = _moment(entry.at)
        back = totals is not None and now < _moment(totals.at) and not isinstance(entry, Recovered)
    except (ValueError, TypeError):
        raise LedgerError("an entry does not say when it was made; nothing was changed.") from None
    if isinstance(entry, ClockConfirmed) and (totals is None or entry.since != totals.at):
        raise LedgerError("a silence is confirmed from the entry before it on; nothing was changed.")
    if now.tzinfo is None or back:
        raise LedgerError("an entry was made before the one that it follows; nothing was changed.")


def _charge(row: Row, entry: Reserved, losses: Mapping[str, Fraction]) -> Charge:
    return Charge(
        number=row.number,
        digest=row.digest,
        state=State.RESERVED,
        cost=entry.cost,
        losses=tuple(losses.items()),
        lines=entry.lines,
        idempotency=entry.idempotency,
        request=request_of(entry),
        queued=entry.queued,
        started=not entry.queued,
        expires=entry.expires,
    )


def _answered(charge: Charge, row: Row) -> Charge:
    return Charge(  # each field by its name: several times as fast as a general replace
        number=charge.number,
        state=State.COMMITTED,
        cost=charge.cost,
        losses=charge.losses,
        lines=charge.lines,
        idempotency=charge.idempotency,
        request=charge.request,
        queued=charge.queued,
        started=charge.started,
        expires=charge.expires,
        answer=row.number,
        place=charge.place,
        holder=charge.holder,
        digest=charge.digest,
        answered=row.digest,
    )


def _next(charge: Charge) -> int:
    """The next place in the count of a charge."""
    return 0 if charge.place is None else charge.place + 1


def _give_back(state: LedgerState, number: int, outcome: State) -> None:
    charge = _open(state, number)
    if charge.started:
        raise LedgerError(f"rows may have been read for charge {number}: it counts. Nothing was changed.")
    _move(state, charge.lines, charge.cost, dict(charge.losses), times=-1)
    state.put_charge(replace(charge, state=outcome))


def _reprice(state: LedgerState, entry: Repriced) -> Budget:
    """Count a charge at its new cost; how much more that is."""
    charge = state.charge(entry.charge)
    if charge is None or charge.state is State.RELEASED:
        raise LedgerError(f"charge {entry.charge} is unknown or was given back; nothing was changed.")
    if max(part.denominator for part in (entry.cost.epsilon, entry.cost.delta)) > 10**60:
        raise LedgerError("a price with that many digits could not be written down; nothing was changed. Use fewer.")
    before, after = dict(charge.losses), dict(entry.losses)
    lower = any(line not in after or after[line] < loss for line, loss in before.items()) or set(after) - set(before)
    if not entry.cost.covers(charge.cost) or lower:
        raise LedgerError(f"charge {entry.charge} would cost less than before; nothing was changed.")
    _move(state, charge.lines, charge.cost, before, times=-1)
    _move(state, charge.lines, entry.cost, after, times=1)
    state.put_charge(replace(charge, cost=entry.cost, losses=entry.losses))
    return entry.cost - charge.cost


def _move(
    state: LedgerState, lines: Sequence[str], cost: Budget, losses: Mapping[str, Fraction], *, times: int
) -> None:
    for line in lines:
        balance, draw = drawn_on(state, line, cost)
        state.put_balance(balance.moved(draw, losses.get(line), times=times, charges=times))


def drawn_on(state: LedgerState, line: str, cost: Budget) -> tuple[Balance, Budget]:
    """The balance that a line of a charge draws on, and what it draws: a life loses what all entries read lose."""
    if not line.startswith(("lifetime ", "window ")):
        return _known(state, line), cost
    life, times, entries = line.rpartition(" × ")
    if times and line.startswith("lifetime ") and entries.isdecimal():
        return _known(state, life), grouped(cost, int(entries))
    path, _, _ = line.removeprefix("window ").rpartition(" ")
    windows = state.decision_state().windows.get(path) if line.startswith("window ") else None
    if windows is not None and state.balance(line) is None:
        return _begun(state, Balance(name=line, unit=windows.unit, cap=windows.cap)), cost
    return _known(state, line), cost


def _known(state: LedgerState, name: str) -> Balance:
    balance = state.balance(name)
    if balance is None:
        raise LedgerError(f"the ledger has no balance {name!r}; nothing was changed.")
    return balance


def _open(state: LedgerState, number: int) -> Charge:
    charge = state.charge(number)
    if charge is None or charge.state is not State.RESERVED:
        raise LedgerError(f"charge {number} is unknown or settled already; nothing was changed.")
    return charge
