"""The health of a ledger: what whoever runs it should see every day, without a value of anybody's data.

Names of accounts, datasets, populations and communities are in it, and amounts of budgets; no answer and no question.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_up
from sfumato.governance.balances import Balance
from sfumato.governance.board import moment
from sfumato.governance.checkpoint import Checkpoint
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import Charge, account_line
from sfumato.governance.overview import overview
from sfumato.governance.seen_head import SeenHead
from sfumato.governance.signed_record import SKEW

__all__ = ["Health", "HeldCharge", "Limits", "health", "metrics"]

END = "# EOF\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """From when on something needs attention."""

    near: Fraction = Fraction(8, 10)
    """The share of a budget."""
    open_for: timedelta = timedelta(days=1)
    """The age of a charge that nobody settled."""
    unverified: timedelta = timedelta(days=7)
    """The time since the last verification."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCharge:
    """A charge that nobody settled yet: its entry, the account that it counts against, its cost, and its age."""

    number: int
    account: str
    cost: Budget
    seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a ledger is; ages in seconds, by the clock of this machine.

    ``used`` is the share of each budget that counts as spent, by kind and name. ``closed`` are versions of datasets
    that nobody may read any more, ``stuck`` the datasets of which no other is left. ``verified`` is the age of the last
    verification, None where nobody asked, and below 0 where there was none.
    """

    entries: int
    open_charges: int
    oldest_open: int
    stale: int
    last_entry: int
    unanchored: int
    verified: int | None
    verified_whole: int | None
    used: tuple[tuple[str, str, Fraction], ...]
    closed: tuple[tuple[str, str], ...]
    stuck: tuple[str, ...]
    vetoes: tuple[tuple[str, str], ...]
    clock: str | None
    """What is wrong with the clock, if anything is."""
    lease: Fraction | None
    """The share of the lease of the witness that is used; None without one, or for who cannot read the anchor."""
    limits: Limits
    held: tuple[HeldCharge, ...] = ()
    """The charges that are open, the oldest first."""

    @property
    def near(self) -> tuple[tuple[str, str, Fraction], ...]:
        """The budgets that are near their end, the nearest first."""
        found = (each for each in self.used if each[2] >= self.limits.near)
        return tuple(sorted(found, key=lambda each: (-each[2], each[0], each[1])))

    def attention(self) -> tuple[str, ...]:
        """What somebody should look at, in sentences; empty where all is well. A veto is a decision, not a fault."""
        return tuple(self._attention())

    def _attention(self) -> Iterator[str]:
        if self.oldest_open > self.limits.open_for.total_seconds():
            yield f"a charge has been open for {_age(self.oldest_open)}: was its process killed?"
        if self.stale:
            yield f"{self.stale} open charges are past their time: sfumato ledger expire"
        if self.verified is not None and self.verified < 0:
            yield "the ledger was never verified: sfumato ledger verify --checkpoint FILE"
        elif self.verified is not None and self.verified > self.limits.unverified.total_seconds():
            yield f"the ledger was last verified {_age(self.verified)} ago: sfumato ledger verify --checkpoint FILE"
        for kind, name, share in self.near:
            yield f"the {kind} {name!r} has used {percent(share)} of its budget"
        if self.lease is not None and self.lease >= self.limits.near:
            yield (
                f"{percent(self.lease)} of the lease of the witness is used, which is renewed at half: is the witness "
                "there? sfumato witness renew"
            )
        for name in self.stuck:
            yield f"no version of {name!r} can be read any more: its engine failed. Mend the data, declare a new one"
        if self.clock is not None:
            yield self.clock


def health(
    ledger: Ledger, *, checkpoint: Checkpoint | None = None, asked: bool = False, limits: Limits | None = None
) -> Health:
    """How a ledger is now; ``asked`` whether there should be a ``checkpoint`` of its last verification."""
    record, now = ledger.record, ledger.record.clock()
    anchored = record.anchored()
    with record.reading() as transaction:
        end, silence = transaction.end(), transaction.decision_state().silence
        waiting = transaction.unsettled()
        made = [transaction.entry_at(charge.number, charge.digest).at for charge in waiting]
        balances = transaction.balances()
    stands = overview(ledger)
    last = moment(end.at)
    return Health(
        entries=end.number,
        open_charges=len(waiting),
        oldest_open=max((_since(at, now) for at in made), default=0),
        stale=sum(charge.expires is not None and moment(charge.expires) <= now for charge in waiting),
        last_entry=_since(end.at, now),
        unanchored=0 if anchored is None else max(0, end.number - anchored.head.number),
        verified=_verified(None if checkpoint is None else checkpoint.at, now, asked=asked),
        verified_whole=_verified(None if checkpoint is None else checkpoint.whole, now, asked=asked),
        used=tuple(_used(balances)),
        closed=tuple((held.level.name, version) for held in stands.datasets for version in held.closed),
        stuck=tuple(held.level.name for held in stands.datasets if held.closed == held.versions),
        vetoes=tuple((held.level.name, name) for held in stands.datasets for name in held.vetoed_by),
        clock=_clock(now, last, silence),
        lease=_lease(ledger),
        limits=limits or Limits(),
        held=tuple(
            HeldCharge(number=charge.number, account=_payer(charge), cost=charge.cost, seconds=_since(at, now))
            for at, charge in sorted(zip(made, waiting, strict=True), key=lambda each: each[1].number)
        ),
    )


def _payer(charge: Charge) -> str:
    """The deepest account that a charge counts against."""
    start = account_line("")
    paths = [line.removeprefix(start) for line in charge.lines if line.startswith(start)]
    return max(paths, key=lambda path: path.count("/"), default="")


def _since(at: str, now: datetime) -> int:
    return max(0, int((now - moment(at)).total_seconds()))


def _verified(at: str | None, now: datetime, *, asked: bool) -> int | None:
    if at is None:
        return -1 if asked else None
    return _since(at, now)


def _used(balances: Iterable[Balance]) -> Iterator[tuple[str, str, Fraction]]:
    for balance in balances:
        kind, _, name = balance.name.partition(" ")
        shares = [balance.epsilon_spent / balance.cap.epsilon] if balance.cap.epsilon else [Fraction(1)]
        if balance.cap.delta:
            shares.append(balance.delta_spent / balance.cap.delta)
        elif balance.delta_spent:  # a recovery charged it, and nothing fits any more
            shares.append(Fraction(1))
        if balance.filter_cap is not None and balance.filter_spent is not None:  # then a filter decides
            shares = [balance.filter_spent / balance.filter_cap] if balance.filter_cap else [Fraction(1)]
        yield kind, name, max(shares)


def _lease(ledger: Ledger) -> Fraction | None:
    standing = None if isinstance(ledger.record.anchor, SeenHead) else ledger.lease.standing()
    if standing is None:
        return None
    lease = standing.named.lease if standing.witnessed is None else standing.witnessed.lease
    shares = [standing.charged.epsilon / lease.epsilon]
    if lease.delta:
        shares.append(standing.charged.delta / lease.delta)
    return max(shares)


def _clock(now: datetime, last: datetime, silence: timedelta) -> str | None:
    if now < last - SKEW:
        return f"the clock is {_age(int((last - now).total_seconds()))} behind the last entry: nothing can be charged"
    if now - last > silence:
        days = (now - last).days
        return f"nobody used the ledger for {days} days, or the clock runs ahead: sfumato ledger clock --reason …"
    return None


def percent(share: Fraction) -> str:
    """A share in percent, rounded up.

    >>> percent(Fraction(1, 3))
    '33.4%'
    """
    return f"{decimal_up(share * 100, 3)}%"


def _age(seconds: int) -> str:
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = seconds // size
            return f"{number} {name}{'' if number == 1 else 's'}"
    return f"{seconds} seconds"


def metrics(found: Health | None) -> str:
    """The same in the OpenMetrics text format, for a monitor to read; of a ledger that is refused, that it is down."""
    lines = [*_gauge("up", "Whether the ledger could be opened.", [("", int(found is not None))])]
    if found is not None:
        lines += _gauge("entries", "Entries of the record.", [("", found.entries)])
        lines += _gauge("open_charges", "Charges that nobody settled yet.", [("", found.open_charges)])
        lines += _gauge("oldest_open_charge_seconds", "Age of the oldest of them.", [("", found.oldest_open)])
        lines += _gauge("stale_charges", "Open charges past their time.", [("", found.stale)])
        lines += _gauge("last_entry_seconds", "Age of the last entry.", [("", found.last_entry)])
        lines += _gauge("unanchored_entries", "Entries after the anchored one.", [("", found.unanchored)])
        for name, age in (("verified", found.verified), ("verified_whole", found.verified_whole)):
            what = "verification" if name == "verified" else "verification of the whole record"
            known = [] if age is None else [("", age if age >= 0 else "+Inf")]
            lines += _gauge(f"{name}_seconds", f"Age of the last {what}.", known)
        used = [(_label(kind=kind, name=name), _ratio(share)) for kind, name, share in found.used]
        lines += _gauge("budget_used_ratio", "Share of each budget that counts as spent.", used)
        lines += _gauge("budgets_near_their_end", "Budgets that are nearly used up.", [("", len(found.near))])
        lines += _gauge("closed_versions", "Versions of datasets that were closed.", [("", len(found.closed))])
        vetoes = [(_label(dataset=dataset, community=name), 1) for dataset, name in found.vetoes]
        lines += _gauge("veto", "Vetoes that stand.", vetoes)
        lines += _gauge("clock_right", "Whether the clock fits the record.", [("", int(found.clock is None))])
        lease = [] if found.lease is None else [("", _ratio(found.lease))]
        lines += _gauge("lease_used_ratio", "Share of the lease of the witness that is used.", lease)
        lines += _gauge("attention", "Things that somebody should look at.", [("", len(found.attention()))])
    return "\n".join(lines) + "\n" + END


def _gauge(name: str, what: str, values: Iterable[tuple[str, int | str]]) -> list[str]:
    full = f"sfumato_ledger_{name}"
    return [f"# TYPE {full} gauge", f"# HELP {full} {what}", *(f"{full}{label} {value}" for label, value in values)]


def _ratio(share: Fraction) -> str:
    return decimal_up(share, 6)


def _label(**names: str) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{escaped(text)}"' for name, text in names.items()) + "}"
