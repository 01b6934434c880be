"""What an auditor asks for: the list of all releases, and the evidence behind them. Reads the record, never data."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.exits import Exit
from sfumato.cli.ledger import Where
from sfumato.cli.output import AsJson, LegalBasis, Reason, one_line, say, say_json, say_line, terminal
from sfumato.cli.reading import Published, Trusted, reading
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.governance.provenance import Provenance, Trail

__all__ = ["evidence", "releases"]

Account = Annotated[str | None, typer.Option(metavar="PATH", help="Only this account and all below it.")]


def releases(
    *,
    account: Account = None,
    dataset: Annotated[str | None, typer.Option(metavar="NAME", help="Only this dataset, in any version.")] = None,
    key: Trusted = None,
    head: Published = None,
    where: Where = None,
    as_json: AsJson = False,
) -> None:
    """List every release of a ledger: when, on which account and data, at what ε and δ, for what, by which approval.

    Charges that have no answer are listed too: they count, since rows may have been read for them. What nobody
    declared is shown as not declared.

    Example: $ sfumato releases --account hospital/oncology
    """
    from sfumato.governance.provenance import Trail
    from sfumato.reports.evidence.lineage import listed

    with reading(where, key, head) as ledger:
        trail = Trail.of(ledger)
    near = trail.within(account=account, dataset=dataset)
    found = [charge for charge in near if charge.counts]
    if as_json:
        end = trail.head.head
        unread = [{"entry": place.number, "problem": problem} for place, problem in trail.unread]
        say_json(
            {
                "ledger": end.ledger,
                "head": {"entry": end.number, "digest": end.digest, "at": end.at},
                "releases": [listed(charge) for charge in found],
                "given_back": len(near) - len(found),
                "unread": unread,
            }
        )
        return
    if found:
        _show(found)
    say(_summary(found, len(near) - len(found), trail))


def evidence(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="A new or empty folder for the pack.")],
    release: Annotated[
        str | None, typer.Option(metavar="ID", help="One release, by its identifier or the number of its charge.")
    ] = None,
    account: Account = None,
    everything: Annotated[bool, typer.Option("--all", help="All releases of the ledger.")] = False,
    publisher: Annotated[str | None, typer.Option(metavar="NAME", help="Who publishes the releases.")] = None,
    licence: Annotated[
        str | None, typer.Option(metavar="NAME", help="Their licence: an address, or a name such as CC-BY-4.0.")
    ] = None,
    access: Annotated[str | None, typer.Option(metavar="URL", help="The address where they are found.")] = None,
    region: Annotated[str | None, typer.Option(metavar="TEXT", help="The region that they describe.")] = None,
    reason: Reason = "",
    legal_basis: LegalBasis = "",
    key: Trusted = None,
    head: Published = None,
    where: Where = None,
    as_json: AsJson = False,
) -> None:
    """Write the evidence behind releases into a folder: JSON, Markdown, metadata, and every certificate.

    The pack gathers what the record says, with figures for singling out, linkage and inference that follow from the
    guarantees, and lists the questions that only a person can answer. It gives no verdict. Exits with 3 where the
    record or a stored answer does not verify; the pack then says where.

    With a reason and a legal basis the pack is a publication, states both, and has metadata and the entries of a public
    registry. Without, it is marked as a draft, and has neither.

    Example: $ sfumato evidence --all --out evidence --publisher "City Hospital" --licence CC-BY-4.0
    """
    from sfumato.reports.evidence import Declared, Scope, pack, write

    if sum((release is not None, account is not None, everything)) != 1:
        raise InvalidInput("say what the pack is about: --release ID, --account PATH or --all. Nothing was written.")
    declared = Declared(
        publisher=publisher, licence=licence, access=access, region=region, reason=reason, legal_basis=legal_basis
    )
    with reading(where, key, head) as ledger:
        made = pack(ledger, Scope(release=release, account=account), declared)
    files = write(made, out)
    counted = made.evidence["charges"]
    if as_json:
        say_json(
            {
                "written": [str(file) for file in files],
                "sound": made.sound,
                "charges": counted,
                "publication": declared.grounds.document(),
            }
        )
    else:
        say_line(f"written: {out}, {len(files)} files. Begin with {out / 'evidence.md'}")
        if declared.grounds.missing:
            say(declared.grounds.line("en"))
        say("record and stored answers verify" if made.sound else "the record or a stored answer does not verify")
    if not made.sound:
        raise typer.Exit(Exit.FOUND_WRONG)


def _show(found: "Sequence[Provenance]") -> None:
    """A line for each charge where the terminal is wide enough, else a few lines for each."""
    from rich.table import Table
    from rich.text import Text

    screen = terminal()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("charge", "when", "account", "data", "ε", "δ", "mechanism", "purpose", "approval", "identifier"):
        table.add_column(name)
    lines = [_cells(charge) for charge in found]
    for cells in lines:
        table.add_row(*(Text(cell) for cell in cells))
    if table.__rich_measure__(screen, screen.options).maximum <= screen.width:
        screen.print(table)
        return
    for number, when, account, data, epsilon, delta, mechanism, purpose, approval, identifier in lines:
        say_line(f"charge {number}  {when}  {account}")
        say_line(f"  {data}, ε = {epsilon}, δ = {delta}, mechanism {mechanism}")
        say_line(f"  purpose {purpose}, approval {approval}")
        say_line(f"  {identifier}")


def _cells(charge: "Provenance") -> list[str]:
    from sfumato.reports.evidence.lineage import listed

    line = listed(charge)
    approvals = ", ".join(f"proposal {approval.proposal.number}" for approval in charge.approvals)
    data = ", ".join(f"{each.dataset.name} {each.dataset.edition}" for each in charge.readings)
    cells = (
        *(line["charge"], charge.charged.at[:16].replace("T", " "), line["account"], data),
        *(line["epsilon"], line["delta"], str(line["mechanism"] or "none").removeprefix("mechanism.")),
        *(line["purpose"] or "not declared", approvals or "not declared"),
        line["identifier"] or f"none: {line['state']}",
    )
    return [one_line(str(cell)) for cell in cells]


def _summary(found: "Sequence[Provenance]", given_back: int, trail: "Trail") -> str:
    from sfumato.governance.provenance import ChargeFate

    answered = sum(charge.fate is ChargeFate.ANSWERED for charge in found)
    lines = [f"{answered} releases; {len(found) - answered} charges without an answer, which count"]
    if given_back:
        lines.append(f"{given_back} charges given back, which do not count")
    if trail.unread:
        lines.append(f"{len(trail.unread)} entries of the record could not be read; see: sfumato ledger verify")
    return "\n".join(lines)
