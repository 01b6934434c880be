"""A consortium on the command line: made, agreed on, asked, and its answers verified from their rounds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.asked import Confidence, FileAndTableOptions, SpendOptions, deliver
from sfumato.cli.consortium_train import train
from sfumato.cli.consortium_ways import opened, reached
from sfumato.cli.curves import deliver_curve
from sfumato.cli.exits import Exit
from sfumato.cli.federated_home import FederatedHome
from sfumato.cli.groups import grouped
from sfumato.cli.output import AsJson, say, say_json
from sfumato.cli.protected import Delta, Epsilon, Reason
from sfumato.cli.site import Facts, protections
from sfumato.errors import InvalidInput, Refused, SfumatoError

if TYPE_CHECKING:
    from sfumato.federated import Consortium

__all__ = ["consortium"]

consortium = typer.Typer(
    help="Ask several hospitals at once: one secure sum for each question, and nobody sees the figures of one site. "
    "Holds no rows.\n\nExample: $ sfumato consortium new network --name 'relapse network' --schema stays.toml "
    "--epsilon 4 --delta 1e-6 --reason 'for 2026'",
    no_args_is_help=True,
)
consortium.command()(train)

Folder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="The folder of the coordinator: its ledger, key and transcripts.")
]
KIND = "consortium"


@consortium.command()
def new(
    folder: Folder,
    *,
    name: Annotated[str, typer.Option(help="The name of the consortium, which its releases state.")],
    schema: Facts,
    epsilon: Epsilon,
    delta: Delta,
    reason: Reason,
    as_json: AsJson = False,
) -> None:
    """Make a coordinator: a ledger with its key, for what all questions together may cost. Reads no data.

    Example: $ sfumato consortium new network --name "relapse network" --schema stays.toml --epsilon 4 --delta 1e-6 --reason "for 2026"
    """  # noqa: E501 - an example is one line
    home = FederatedHome.made(folder, kind=KIND, name=name, schema=schema, epsilon=epsilon, delta=delta, reason=reason)
    key = home.key.public_text
    if as_json:
        say_json({"folder": str(folder), "name": name, "public_key": key})
        return
    say(f"consortium: {name}\npublic key: {key}\nnext:       sfumato consortium agree {folder} --site NAME=KEY …")


@consortium.command()
def agree(
    folder: Folder,
    *,
    site: Annotated[
        list[str], typer.Option(metavar="NAME=KEY", help="A site, and its public key or the file that holds it.")
    ],
    sites_per_person: Annotated[
        int, typer.Option(min=1, help="In how many sites one person can be: what you vouch for.")
    ],
    missing: Annotated[int, typer.Option(min=0, help="How many sites may leave in the middle of a round.")] = 0,
    colluding: Annotated[
        int, typer.Option(min=0, help="How many sites may tell the coordinator all that they see.")
    ] = 0,
    trusted: Annotated[
        bool, typer.Option("--trusted-coordinator", help="The coordinator keeps to the protocol; else it may not.")
    ] = False,
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where sites reach the coordinator; without, files are carried.")
    ] = "",
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The agreement to write.")],
    as_json: AsJson = False,
) -> None:
    """Write down who belongs to the consortium and what protects them; every site takes the same file. Reads no data.

    Example: $ sfumato consortium agree network --site north=north/ledger.key.pub --site south=south/ledger.key.pub --site west=west/ledger.key.pub --sites-per-person 1 --missing 1 --address 127.0.0.1:7443 -o agreement.toml
    """  # noqa: E501 - an example is one line
    from sfumato.federated.agreement import SiteAgreement
    from sfumato.federated.papers import ConsortiumPaper

    home = FederatedHome.load(folder, KIND)
    if out.exists() or out.is_symlink():
        raise InvalidInput(f"{out} already exists and was not overwritten. Name another file with -o.")
    paper = ConsortiumPaper(
        name=home.name,
        address=address,
        agreement=SiteAgreement(
            members=_members(site),
            sites_per_person=sites_per_person,
            missing=missing,
            colluding=colluding,
            lying=not trusted,
            coordinator=home.key.public_text,
        ),
    )
    home.take(paper)
    out.write_text(paper.to_toml(), "utf-8")
    if as_json:
        say_json({"agreement": str(out), "digest": paper.digest})
        return
    say("\n".join(protections(paper)))
    say(f"written:     {out}\nnext:        each site takes it: sfumato site join FOLDER {out.name}")


@consortium.command()
@grouped
def ask(
    folder: Folder,
    sql: Annotated[
        str | None, typer.Argument(metavar="SQL", help="The question: SELECT … FROM the name in the schema.")
    ] = None,
    *,
    spend: SpendOptions,
    survival: Annotated[
        str | None,
        typer.Option(metavar="TIME:EVENT", help="In place of SQL: a Kaplan–Meier curve of these two columns …"),
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="COLUMN", help="… one curve for each key of this column.")] = None,
    patience: Annotated[
        float, typer.Option(min=1, max=86_400, help="Seconds after which a site that is silent has left the round.")
    ] = 60,
    left: Annotated[
        list[str] | None,
        typer.Option(metavar="SITE", help="Where files are carried: a site that is waited for no more."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin another round and charge again, although one was begun or stored.")
    ] = False,
    confidence: Confidence = "0.95",
    files: FileAndTableOptions,
    as_json: AsJson = False,
) -> None:
    """Ask all sites one question by one secure sum, and print the answer with its margins.

    The sites connect to the address of the agreement while this command runs; without an address, requests are written
    to FOLDER/outbox, and the command is given again once answers lie in FOLDER/inbox. Each site votes, charges its own
    ledger and sends masked numbers; what becomes known is the noisy sum. A command that was stopped is given again and
    goes on where it was; the same question once more gives the stored answer at no cost.

    Example: $ sfumato consortium ask network "SELECT sex, COUNT(*) FROM stays GROUP BY sex" --epsilon 1 --delta 1e-7

    Example: $ sfumato consortium ask network --survival week:relapsed --epsilon 1 --delta 1e-7 --save curve.json
    """
    from sfumato.laws.margins import level_of

    level = level_of(confidence)
    files.check()
    if (sql is None) is (survival is None) or (by is not None and survival is None):
        raise InvalidInput(
            "ask one question: SQL, or --survival TIME:EVENT, which --by goes with; nothing was asked or spent."
        )
    home = FederatedHome.load(folder, KIND)
    with reached(home, patience, left or []) as way, opened(home, way) as (vault, network, stays):
        if not as_json:
            where = f"at {home.paper.address}" if home.paper.address else f"by files in {home.folder}"
            say(f"asking {len(home.paper.agreement.members)} sites {where}", error=True)
        if survival is None:
            release = stays.sql(str(sql)).release(epsilon=spend.epsilon, delta=spend.delta, fresh=fresh)
            _say_votes(network, as_json=as_json)
            failed = deliver(release, vault, level, files, charged=True, as_json=as_json)
        else:
            time, event = _pair(survival)
            study = stays.survival(time, event, by=by)
            result = study.release(epsilon=spend.epsilon, delta=spend.delta, fresh=fresh)
            _say_votes(network, as_json=as_json)
            failed = deliver_curve(result, vault, level, files, as_json=as_json)
    if failed is not None:
        raise failed


@consortium.command()
def verify(
    folder: Folder,
    certificate: Annotated[Path, typer.Argument(metavar="FILE", help="The certificate of an answer: ask --save FILE.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Open the round of an answer again: every signature, the one list of survivors, and the sum. Reads no data.

    Example: $ sfumato consortium verify network curve.json
    """
    from sfumato.reports.stored import stored_release

    home = FederatedHome.load(folder, KIND)
    try:
        release = stored_release(certificate.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"{certificate} cannot be read; nothing was verified.") from None
    with opened(home, None) as (_, network, _stays):
        try:
            result = network.verify(release)
        except Refused as wrong:
            say(f"sfumato: {wrong}", error=True)
            raise typer.Exit(Exit.FOUND_WRONG) from None
    members = {key: name for name, key in home.paper.agreement.members.items()}
    roster = [members.get(key, key) for key in result.terms.roster]
    there = [roster[place - 1] for place in result.survivors]
    if as_json:
        say_json({"verified": True, "roster": roster, "survivors": there})
        return
    say(f"verified: the sum of {', '.join(there)}; every message is signed by its site")
    if result.missing:
        say(f"left the round: {', '.join(name for name in roster if name not in there)}")


def _say_votes(network: "Consortium", *, as_json: bool) -> None:
    if network.votes and not as_json:
        say("votes: " + ", ".join(f"{name} {vote}" for name, vote in network.votes.items()), error=True)


def _members(said: list[str]) -> dict[str, str]:
    from sfumato.core.signature import read_public_key

    found: dict[str, str] = {}
    for one in said:
        name, sign, key = one.partition("=")
        if not (name and sign and key) or name in found:
            raise InvalidInput(f"{one!r} is not NAME=KEY, or its name comes twice; nothing was agreed.")
        try:
            found[name] = read_public_key(key)
        except SfumatoError as wrong:
            raise InvalidInput(f"{name}: {wrong}") from None
    return found


def _pair(text: str) -> tuple[str, str]:
    time, _, event = text.partition(":")
    if not time or not event:
        raise InvalidInput(f"{text!r} is not TIME:EVENT, two columns of the schema; nothing was asked or spent.")
    return time, event
