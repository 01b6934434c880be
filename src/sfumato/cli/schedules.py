"""A schedule on the terminal, for programs and as a picture: what each release costs and how exact it will be."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli.output import one_line, say, say_line, terminal
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from sfumato.governance.plans import Schedule, ScheduledLine
    from sfumato.runner import PlanFile

__all__ = ["document", "draw", "plain_table", "show"]

LEVEL, DELTA = Fraction(19, 20), Fraction(1, 10**6)


def show(read: "PlanFile", found: "Schedule") -> None:
    """Print a schedule as a table."""
    from sfumato.core.exact import decimal_up
    from sfumato.core.units import describe
    from sfumato.governance.plans import Accounting

    letter = "ε" if found.plan.accounting is Accounting.BASIC else "ρ"
    say_line(f"{read.plan.name} {read.plan.year}, charged to {read.account}; protected: {describe(read.unit)}")
    table = plain_table("release", "how often", "source", f"{letter} each", "all within", f"{letter} a year", words=3)
    for line in found.lines:
        every = found.plan.release(line.name).every.value
        margin = " · ".join(f"±{decimal_up(size)}" for size in _margins(read, found, line).values()) or "not known"
        amounts = (decimal_up(line.amount, 7), margin, decimal_up(line.total, 7))
        table.add_row(one_line(line.name), f"{every}, {line.periods}", _source(line), *amounts)
    terminal().print(table)
    say(
        f"total: {letter} = {decimal_up(found.total, 7)} of {decimal_up(found.cap, 7)}; what binds is {found.binding}; "
        f"{found.method}"
    )
    delta = found.plan.cap.delta or DELTA
    tight = decimal_up(found.tight(delta), 7)
    say(
        f"for information: carried out as it stands, the whole plan keeps ε = {tight} at δ = {decimal_up(delta)} "
        "(privacy loss distribution); what is charged is the total above"
    )


def document(read: "PlanFile", found: "Schedule") -> dict[str, object]:
    """The same for programs; amounts and margins are exact fractions in text."""
    delta = found.plan.cap.delta or DELTA
    return {
        "plan": read.plan.name,
        "year": read.plan.year,
        "account": read.account,
        "digest": read.digest,
        "accounting": found.plan.accounting.value,
        "releases": [
            {
                "release": line.name,
                "every": found.plan.release(line.name).every.value,
                "periods": line.periods,
                "source": line.source.value,
                "of": line.of,
                "parts": line.parts,
                "own_share": str(line.own_share),
                "each": str(line.amount),
                "a_year": str(line.total),
                "confidence": str(_level(read, line.name)),
                "margins": {name: str(size) for name, size in _margins(read, found, line).items()},
            }
            for line in found.lines
        ],
        "total": str(found.total),
        "cap": str(found.cap),
        "binding": found.binding,
        "method": found.method,
        "tight": {"epsilon": str(found.tight(delta)), "delta": str(delta)},
    }


def _source(line: "ScheduledLine") -> str:
    from sfumato.governance.plans import FigureSource

    if line.source is FigureSource.OWN:
        return "released"
    return f"{line.source.value}, {line.parts} of {one_line(str(line.of))}"


def _level(read: "PlanFile", name: str) -> Fraction:
    from sfumato.governance.plans import Margin

    wanted = read.plan.release(name).wanted
    return wanted.confidence if isinstance(wanted, Margin) else LEVEL


def _margins(read: "PlanFile", found: "Schedule", line: "ScheduledLine") -> dict[str, Fraction]:
    """The joint margin of all numbers of a release, by column; empty where it depends on the data."""
    from sfumato.governance.plans import Accounting
    from sfumato.runner.figures import expected_margin

    entry, level = read.entry(line.name), _level(read, line.name)
    basic = found.plan.accounting is Accounting.BASIC
    if entry.asked.counts:
        margin = expected_margin(found, line.name, level) if basic else Fraction(found.margin(line.name, level))
        return {"count": margin}
    if not basic:
        return {}
    preview = entry.asked.question.preview(epsilon=line.amount, confidence=level, rows=entry.rows)
    return dict(preview.joint_margins)


def draw(found: "Schedule", plot: Path) -> None:
    """Draw how the planned charges add up over the year."""
    from sfumato.core.budget import Budget
    from sfumato.governance.periods import periods
    from sfumato.governance.plans import Accounting, FigureSource
    from sfumato.reports.plots import burn_down, save

    if found.plan.accounting is not Accounting.BASIC:
        raise InvalidInput("the picture adds up ε, and this plan adds up ρ; no picture was drawn.")
    charges = sorted(
        (period.last, line.amount)
        for line in found.lines
        if line.source is not FigureSource.DERIVED
        for period in periods(found.plan.release(line.name).every, found.plan.year)
    )
    chart = burn_down([(day, Budget(epsilon=amount)) for day, amount in charges], found.plan.cap)
    words = {
        "text": f"{found.plan.name} {found.plan.year}",
        "subtitle": [f"What {len(charges)} releases would charge."],
    }
    chart.title = {**chart.title, **words}
    save(chart, plot)


def plain_table(*columns: str, words: int) -> "Table":
    """A table without lines: some columns of words, then numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < words else "right")
    return table
