"""A site of a consortium on the command line: made, joined to an agreement, and answering."""

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.data import Data, Within, source_of
from sfumato.cli.federated_home import ROUNDS, RUNS, FederatedHome
from sfumato.cli.output import AsJson, say, say_json, say_line
from sfumato.cli.protected import Delta, Epsilon, Reason
from sfumato.errors import InvalidInput, NotDeclared

if TYPE_CHECKING:
    from sfumato.federated import SiteProposal, TrainingProposal, TrainingSite
    from sfumato.federated.papers import ConsortiumPaper
    from sfumato.federated.whole_site import WholeSite
    from sfumato.governance.ledger import Ledger

__all__ = ["protections", "site"]

site = typer.Typer(
    help="Be one of the hospitals that are asked together: rows stay here, and what leaves is charged, noised and "
    "masked.\n\nExample: $ sfumato site new north --schema stays.toml --epsilon 4 --delta 1e-6 --reason 'for 2026'",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the site: its ledger, key and rounds.")]
Facts = Annotated[
    Path, typer.Option("--schema", metavar="FILE", help="The public facts that all sites share; see sfumato schema.")
]
MostEpsilon = Annotated[
    str | None, typer.Option(metavar="EPSILON", help="Decline every question or run that costs more than this ε.")
]
MostParameters = Annotated[
    int, typer.Option(min=1, help="Decline every training run whose model has more parameters than this.")
]
KIND = "site"


@site.command()
def new(
    folder: Folder,
    *,
    schema: Facts,
    epsilon: Epsilon,
    delta: Delta,
    reason: Reason,
    name: Annotated[str | None, typer.Option(help="The name of the site; that of its folder, if not said.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a site: a ledger with its key, and a budget for the people whom the schema protects. Reads no data.

    Its public key goes to the coordinator and to the other sites, on paper or by another way that you trust.

    Example: $ sfumato site new north --schema stays.toml --epsilon 4 --delta 1e-6 --reason "for 2026"
    """
    home = FederatedHome.made(
        folder,
        kind=KIND,
        name=name or folder.absolute().name,
        schema=schema,
        epsilon=epsilon,
        delta=delta,
        reason=reason,
    )
    key = home.key.public_text
    if as_json:
        say_json({"folder": str(folder), "name": home.name, "public_key": key})
        return
    say(f"site:       {home.name}\npublic key: {key}\nnext:       sfumato site join {folder} AGREEMENT")


@site.command()
def join(
    folder: Folder,
    agreement: Annotated[Path, typer.Argument(metavar="AGREEMENT", help="What sfumato consortium agree wrote.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Take the agreement of a consortium: who belongs to it and what protects them. Reads no data.

    From then on a question of anybody else, to anybody else or with less protection is declined. Compare the digest
    with the other sites by another way, such as the telephone: whoever sent you the file could have changed it.

    Example: $ sfumato site join north agreement.toml
    """
    from sfumato.federated.papers import ConsortiumPaper

    home, paper = FederatedHome.load(folder, KIND), ConsortiumPaper.load(agreement)
    if home.key.public_text not in paper.agreement.members.values():
        raise InvalidInput("the agreement does not name the key of this site; nothing was joined.")
    home.take(paper)
    if as_json:
        say_json({"consortium": paper.name, "digest": paper.digest})
        return
    say("\n".join(protections(paper)))


@site.command()
def answer(
    folder: Folder,
    data: Data,
    *,
    table: Within = None,
    most_epsilon: MostEpsilon = None,
    most_parameters: MostParameters = 100_000,
    as_json: AsJson = False,
) -> None:
    """Connect to the coordinator, answer its questions about FILE and train with it, until stopped (Ctrl-C or SIGTERM).

    Before a row is read for a question or a training run this site's own ledger is charged. What leaves are votes,
    public keys and masked numbers. Whatever breaks, the site or the coordinator, is begun again where it stopped, and
    charged once.

    Example: $ sfumato site answer north north/stays.csv
    """
    from sfumato.federated.http_site import HttpSite

    home = FederatedHome.load(folder, KIND)
    paper = home.paper
    if not paper.address:
        raise NotDeclared(
            "this consortium has no address: its requests are files. Nothing was sent. Answer one: "
            "sfumato site answer-file"
        )
    with home.opened() as book:
        whole = site_of(home, book, source_of(data, table), most_epsilon, most_parameters)
        _log(f"{home.name} answers the coordinator of {paper.name} at {paper.address}", as_json=as_json)
        HttpSite(
            whole,
            key=home.key,
            coordinator=paper.agreement.coordinator,
            address=paper.address,
            log=lambda words: _log(words, as_json=as_json),
        ).run(threading.Event())


@site.command("answer-file")
def answer_file(
    folder: Folder,
    request: Annotated[Path, typer.Argument(metavar="REQUEST", help="A request file that was carried here.")],
    data: Data,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The answer file to write.")],
    table: Within = None,
    most_epsilon: MostEpsilon = None,
    most_parameters: MostParameters = 100_000,
    as_json: AsJson = False,
) -> None:
    """Answer one request file of the coordinator, where no network leads to it; the answer is carried back.

    A file that the coordinator did not sign for this site is refused. The same request again gives the same bytes, and
    is charged once.

    Example: $ sfumato site answer-file north north-2f1c.request north.csv -o north-2f1c.answer
    """
    from sfumato.federated.file_transport import read_request, signed_answer

    home = FederatedHome.load(folder, KIND)
    if out.is_dir() or not out.absolute().parent.is_dir():
        raise InvalidInput(f"{out} is no place for a file; nothing was answered.")
    asked = read_request(request)
    with home.opened() as book:
        whole = site_of(home, book, source_of(data, table), most_epsilon, most_parameters)
        try:
            written = signed_answer(home.key, asked, whole.answer(asked))
        finally:
            whole.close()
    out.write_bytes(written)
    if as_json:
        say_json({"answer": str(out), "bytes": len(written)})
        return
    say(
        f"written: {out} ({len(written):,} bytes); carry it to the inbox of the coordinator under this name: "
        f"{request.with_suffix('.answer').name}"
    )


@site.command()
def runs(folder: Folder, *, as_json: AsJson = False) -> None:
    """List the training runs that this site voted for: what each costs and learns, and where it stands. Reads no data.

    Example: $ sfumato site runs north
    """
    from sfumato.federated.training.kept_runs import kept_runs

    home = FederatedHome.load(folder, KIND)
    found = kept_runs(home.folder / RUNS)
    lines = [
        {
            "run": one.digest,
            "epsilon": str(one.proposal.spend.epsilon),
            "delta": str(one.proposal.spend.delta),
            "rounds": one.proposal.training.rounds,
            "parameters": one.proposal.training.parameters,
            "standing": "left" if one.left else "charged" if one.charged else "not charged",
        }
        for one in found
    ]
    if as_json:
        say_json({"runs": lines})
        return
    for line in lines:
        say(
            f"{str(line['run'])[:16]}  {line['standing']}: ε = {line['epsilon']}, δ = {line['delta']}, "
            f"{line['rounds']:,} rounds, {line['parameters']:,} parameters"
        )
    if not lines:
        say(f"{home.name} has voted for no training run")


@site.command()
def leave(
    folder: Folder,
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run, by the first 8 digits or more.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Take this site out of a training run from its next step on; what was charged stays charged. Reads no data.

    The site may be answering meanwhile. The others go on where they are enough.

    Example: $ sfumato site leave north 2f1c77ab03d1
    """
    from sfumato.federated.training.kept_runs import leave_run

    home = FederatedHome.load(folder, KIND)
    left = leave_run(home.folder / RUNS, run)
    if as_json:
        say_json({"run": left.digest, "left": True})
        return
    say(f"{home.name} takes no part in run {left.digest} any more")


def site_of(
    home: FederatedHome, book: "Ledger", data: object, most_epsilon: str | None, most_parameters: int
) -> "WholeSite":
    """The site of a folder, with its rows behind its ledger: for questions, and for training."""
    from sfumato.federated import Hospital
    from sfumato.federated.whole_site import WholeSite
    from sfumato.vault import Vault

    facts, paper, allows = home.schema, home.paper.agreement, _Committee(most_epsilon).allows
    vault = Vault(unit=home.unit, population=facts.population, ledger=book, account=home.account)
    rows = vault.table(data, schema=facts)

    def training() -> "TrainingSite":
        return vault.declared_training_site(
            rows, agreement=paper, committee=allows, folder=home.folder / RUNS, most_parameters=most_parameters
        )

    hospital = Hospital(rows, agreement=paper, committee=allows, folder=home.folder / ROUNDS)
    return WholeSite(hospital, training, agreement=paper)


class _Committee:
    """Whom the site asks before it takes part: here a rule that was fixed when it was started."""

    def __init__(self, most_epsilon: str | None) -> None:
        from sfumato.core.exact import positive

        self._most = None if most_epsilon is None else positive(most_epsilon, "--most-epsilon")

    def allows(self, proposal: "SiteProposal | TrainingProposal") -> bool:
        return self._most is None or proposal.spend.epsilon <= self._most


def protections(paper: "ConsortiumPaper") -> list[str]:
    """What an agreement says, for people."""
    said = paper.agreement
    return [
        f"consortium:  {paper.name}",
        f"coordinator: {said.coordinator}",
        f"reached at:  {paper.address or 'no address: files are carried'}",
        *(f"member:      {name}  {key}" for name, key in sorted(said.members.items())),
        f"one person is in at most {said.sites_per_person} of them; up to {said.missing} may leave a round, up to "
        f"{said.colluding} may tell the coordinator what they see; the coordinator "
        f"{'may send anything' if said.lying else 'is trusted to keep to the protocol'}; no round has fewer than "
        f"{said.least_sites} sites",
        f"digest:      {paper.digest} (compare it with the other sites)",
    ]


def _log(words: str, *, as_json: bool) -> None:
    if as_json:
        say_json({"said": words})
    else:
        say_line(words)
    sys.stdout.flush()
