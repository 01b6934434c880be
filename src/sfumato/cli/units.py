"""The same statistic with another unit protected."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

import typer

from sfumato.cli.certificate import published
from sfumato.cli.output import AsJson, Key, Language, Theme, harmless, say_json, target_of, terminal
from sfumato.cli.written import say_written
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.core.budget import Budget
    from sfumato.core.exact import Exact
    from sfumato.core.limits import Limit
    from sfumato.core.units import Unit
    from sfumato.reports.comparison import Comparison

__all__ = ["units"]

NARROW = 72
MOST = 2**31


def units(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="A certificate: its statistic under a row, a person, a family."),
    ] = None,
    *,
    epsilon: Annotated[str | None, typer.Option(help="The ε of the first unit; a certificate has its own.")] = None,
    delta: Annotated[str, typer.Option(help="The δ that goes with it.")] = "0",
    margin: Annotated[
        int | None, typer.Option(min=0, max=MOST, help="In place of ε: the error to reach, such as 20 for ±20.")
    ] = None,
    confidence: Annotated[str, typer.Option(help="Of the margins.")] = "0.95",
    max_degree: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="Edges of a graph: an edge beside a node of at most this degree."),
    ] = None,
    events: Annotated[
        int | None, typer.Option(min=1, max=MOST, help="Events: one beside a person of whom at most this many count.")
    ] = None,
    groups: Annotated[int | None, typer.Option(min=1, help="Rows: the most groups of a person that count …")] = None,
    rows: Annotated[int | None, typer.Option(min=1, max=MOST, help="… and the most rows in each.")] = None,
    family: Annotated[int | None, typer.Option(min=2, max=MOST, help="Also this many persons together.")] = None,
    lang: Language = "en",
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw it: .svg, .png, .pdf or .html. Needs the plots extra."),
    ] = None,
    theme: Theme = "light",
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Set units side by side: which ε each has for the same error, and which error for the same ε.

    The statistic is that of a certificate, or the number of edges of a graph (--max-degree), the number of events
    (--events), counts of rows (--groups and --rows); several may be asked at once. Opens no data and spends nothing.
    The output says what is enforced and what is only assumed.

    Example: $ sfumato units sfumato-demo/ili.json --family 3

    Example: $ sfumato units --max-degree 20 --events 12 --epsilon 0.5
    """
    held = _limit(groups, rows)
    found = []
    spend: Budget | None = None
    if file is not None:
        from sfumato.reports.comparison import cases_of, compare

        if epsilon is not None or margin is not None or delta != "0":
            raise InvalidInput("a certificate has its own ε, δ and error; leave --epsilon, --delta and --margin out.")
        release = published(file, key)
        found.append(compare(release, cases_of(release, family=family, limit=held), confidence=confidence))
        spend = release.statement.spend
    found += _declared(
        max_degree=max_degree,
        events=events,
        limit=held if file is None else None,
        family=family,
        asked={"epsilon": epsilon, "delta": delta, "margin": margin}
        if spend is None
        else {"epsilon": spend.epsilon, "delta": spend.delta},
        confidence=confidence,
    )
    if not found:
        raise InvalidInput(
            "nothing to compare. Give a certificate, --max-degree, --events, or --groups and --rows; "
            "for example: sfumato units --max-degree 20 --epsilon 0.5"
        )
    written = None if plot is None else _draw(found, plot, lang, theme, beside=file)
    if as_json:
        from sfumato.reports.comparison_words import document

        say_json({"comparisons": [document(each) for each in found], "written": written and str(written)})
        return
    for each in found:
        _show(each, lang)
    if written is not None:
        say_written(written, lang)


class _Spend(TypedDict, total=False):
    """How much the first unit spends, or which error to reach."""

    epsilon: "Exact | None"
    delta: "Exact"
    margin: int | None


def _declared(
    *,
    max_degree: int | None,
    events: int | None,
    limit: "Limit | None",
    family: int | None,
    asked: _Spend,
    confidence: str,
) -> "list[Comparison]":
    """The comparisons that follow from options alone, all under add/remove."""
    from sfumato.core.units import edge, event, node, record, user
    from sfumato.core.units import family as family_of
    from sfumato.reports.comparison import Case, EdgeCount, EventCount, Statistic, compare
    from sfumato.tables.queries.count import row_counts

    relation = "add/remove"
    person = user("person", relation=relation)
    persons: list[Unit] = [person] if family is None else [person, family_of(family, "person", relation=relation)]
    wanted: list[tuple[Statistic, list[Case]]] = []
    if max_degree is not None:
        capped = node(max_degree=max_degree, relation=relation)
        wanted.append((EdgeCount(), [Case(unit=edge(relation=relation)), Case(unit=capped)]))
    if events is not None:
        whole = [Case(unit=event(relation=relation)), *(Case(unit=unit) for unit in persons)]
        wanted.append((EventCount(most=events), whole))
    if limit is not None:
        rows = [Case(unit=record(relation=relation)), *(Case(unit=unit, limit=limit) for unit in persons)]
        wanted.append((row_counts(limit), rows))
    if wanted and asked["epsilon"] is None and asked.get("margin") is None:
        raise InvalidInput("say how much the first unit spends, --epsilon, or which error to reach, --margin.")
    return [compare(statistic, cases, confidence=confidence, **asked) for statistic, cases in wanted]


def _limit(groups: int | None, rows: int | None) -> "Limit | None":
    from sfumato.core.limits import Limit

    if groups is None and rows is None:
        return None
    if groups is None or rows is None:
        raise InvalidInput(
            "--groups and --rows go together: the most groups of a person that count, and the most rows in each."
        )
    return Limit(groups=groups, rows_per_group=rows)


def _draw(
    found: "list[Comparison]", target: Path, lang: str, theme: Literal["light", "dark"], *, beside: Path | None
) -> Path:
    from sfumato.reports.comparison_plot import draw
    from sfumato.reports.plots import save

    if len(found) > 1:
        raise InvalidInput("a picture holds one comparison, and this asks for several; nothing was drawn.")
    place = target if beside is None else target_of(target, beside, target.suffix)
    return save(draw(found[0], lang, theme), place)


def _show(found: "Comparison", lang: str) -> None:
    """A table where there is room for one, a short paragraph for each unit where not; then what it rests on."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from sfumato.reports.comparison_words import heading, notes, rows, title

    console = terminal()
    columns, lines = heading(lang), rows(found, lang)
    console.print(Text(harmless(title(found, lang)), style="bold"))
    if console.width >= NARROW:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        table.add_column(columns[0], no_wrap=True)
        for column in columns[1:]:
            table.add_column(column, justify="right")
        for line in lines:
            table.add_row(*line)
        console.print(Padding(table, (1, 0), expand=False))
    else:
        for line in lines:
            console.print(Text(f"\n{line[0]}"))
            for column, cell in zip(columns[1:], line[1:], strict=True):
                console.print(Text(f"  {column}: {cell}"))
        console.print()
    points = Table.grid(padding=(0, 1, 0, 0))
    for note in notes(found, lang):
        points.add_row("-", Text(harmless(note)))
    console.print(points)
    console.print()
