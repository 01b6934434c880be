"""Tables of audits: what is shipped, then what is broken on purpose, readable on a terminal of 80 columns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import typer

from sfumato.cli.output import say, terminal

__all__ = ["AuditLine", "as_verdict", "named_alike", "show_audits"]

STANDS = "Shipped. 'nothing found' is no proof: these attacks found nothing"
BROKEN = "Broken on purpose: these must be refuted"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """One line of a table: a name, numbers and a verdict; ``twin`` is a copy that is broken on purpose."""

    name: str
    numbers: tuple[str, ...]
    verdict: str
    twin: bool


def as_verdict(*, twin: bool, refuted: bool, skipped: str | None) -> str:
    """The verdict in words: a broken copy that was not refuted is told loudly."""
    if skipped is not None:
        return "not attacked"
    return "refuted" if refuted else "NOT refuted" if twin else "nothing found"


def named_alike(only: str, names: Iterable[str], what: str) -> None:
    """Refuse a part of a name that no name has, and say which names there are."""
    known = list(dict.fromkeys(names))
    if not any(only.casefold() in name.casefold() for name in known):
        raise typer.BadParameter(
            f"no {what} has this in its name; nothing was attacked. There are: {'; '.join(known)}.", param_hint="--only"
        )


def show_audits(heads: Sequence[str], lines: Sequence[AuditLine], notes: Sequence[str]) -> None:
    """Print the table of what is shipped and that of broken copies, and the notes below them.

    The first and the last of the heads are of names and verdicts. Names are broken between words; numbers are not.
    """
    from rich.markup import escape
    from rich.table import Table

    for twin, title in ((False, STANDS), (True, BROKEN)):
        shown = [line for line in lines if line.twin == twin]
        if not shown:
            continue
        terminal().print(title, style="italic")
        table = Table(box=None, pad_edge=False)
        table.add_column(heads[0], ratio=1)
        for head in heads[1:-1]:
            table.add_column(head, justify="right", no_wrap=True, vertical="bottom")
        table.add_column(heads[-1], no_wrap=True, vertical="bottom")
        for line in shown:
            table.add_row(escape(line.name), *line.numbers, line.verdict)
        terminal().print(table)
        say("")
    for note in notes:
        terminal().print(note, markup=False, soft_wrap=False)
