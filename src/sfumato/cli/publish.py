"""Publishing from the command line: the public part of a ledger as a static site. Reads the record, never data."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.ledger import Where
from sfumato.cli.output import AsJson, LegalBasis, Reason, say_json, say_line
from sfumato.cli.reading import Published, Trusted, reading
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.reports.publication import Grounds

__all__ = ["publish"]


def publish(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder for the site.")],
    *,
    release: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A release outside of plans to publish too, with --reason and --legal-basis."),
    ] = None,
    reason: Reason = "",
    legal_basis: LegalBasis = "",
    service: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="A service, whose stewards put releases on record: sfumato serve"),
    ] = None,
    publisher: Annotated[str | None, typer.Option(metavar="NAME", help="Who publishes; shown on every page.")] = None,
    licence: Annotated[
        str | None, typer.Option(metavar="NAME", help="An address, or a name such as CC-BY-4.0.")
    ] = None,
    access: Annotated[str | None, typer.Option(metavar="URL", help="The address where the site will lie.")] = None,
    region: Annotated[str | None, typer.Option(metavar="TEXT", help="The region that the releases describe.")] = None,
    areas: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Maps, one for each dataset: NAME.areas.json")
    ] = None,
    key: Trusted = None,
    head: Published = None,
    where: Where = None,
    as_json: AsJson = False,
) -> None:
    """Write what is published as a static site: pages in English and Chinese, certificates, receipts and the registry.

    Published is what is on record for it: releases of adopted plans that state a reason and a legal basis, those that
    stewards of a service put on record, and those named here with both. What a veto or terms forbid today is withheld.
    Pages name neither accounts nor purposes, hold no script, and load nothing from elsewhere.

    Example: $ sfumato publish site --publisher "City Hospital"
    """
    from sfumato.reports.evidence import Declared
    from sfumato.reports.publication import Grounds
    from sfumato.server.publishing.site import written_site

    stated: dict[str, Grounds] = {}
    if service is not None:
        stated |= _of_service(service)
        where = where or service
    if release:
        grounds = Grounds(reason=reason, legal_basis=legal_basis)
        grounds.check("a release for everybody")
        stated |= dict.fromkeys(release, grounds)
    elif reason or legal_basis:
        raise InvalidInput("--reason and --legal-basis are for the releases named by --release; nothing was written.")
    with reading(where, key, head) as ledger:
        made = written_site(
            ledger,
            folder,
            stated=stated,
            declared=Declared(publisher=publisher, licence=licence, access=access, region=region),
            now=datetime.now(UTC),
            areas=areas,
        )
    if as_json:
        say_json(
            {
                "written": str(folder),
                "releases": made.releases,
                "plans": made.plans,
                "withheld": made.withheld,
                "files": len(made.files),
            }
        )
        return
    say_line(f"written: {folder}, {len(made.files)} files. Begin with {folder / 'index.html'}")
    withheld = f"; {made.withheld} withheld, as terms or a veto do not allow them today" if made.withheld else ""
    say_line(f"{made.releases} releases, {made.plans} dashboards{withheld}")


def _of_service(folder: Path) -> "dict[str, Grounds]":
    """The grounds that the stewards of a service put on record."""
    from sfumato.server.database import Database
    from sfumato.server.publishing.grounds import Publications
    from sfumato.server.settings import ServiceSettings

    url = ServiceSettings.load(folder).database
    database = Database(url if "://" in url else f"sqlite:///{folder / url}")
    try:
        held = Publications(database, now=lambda: 0.0).all()
        return {identifier: each.grounds for identifier, each in held.items()}
    finally:
        database.close()
