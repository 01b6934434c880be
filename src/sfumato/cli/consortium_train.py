"""Training across the sites of a consortium on the command line: a declared network, and its weights."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.asked import SpendOptions, charge_document, say_charge
from sfumato.cli.consortium_ways import opened, reached
from sfumato.cli.federated_home import RUNS, FederatedHome
from sfumato.cli.groups import grouped
from sfumato.cli.output import AsJson, say, say_json
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.federated import DeclaredNetwork, TrainedAcrossSites, TrainingProposal
    from sfumato.vault import Vault

__all__ = ["train"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkOptions:
    """What is learned from what."""

    input: Annotated[
        list[str], typer.Option(metavar="COLUMN", help="A column that the model reads; once for each of them.")
    ]
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column that the model tells: one with keys.")]
    hidden: Annotated[
        list[int] | None,
        typer.Option(min=1, metavar="WIDTH", help="A hidden layer; without one it is logistic regression."),
    ] = None

    def network(self, home: FederatedHome) -> "DeclaredNetwork":
        """The network over the columns that the schema declares."""
        from sfumato.federated import DeclaredNetwork

        return DeclaredNetwork.of_schema(home.schema, inputs=self.input, target=self.target, hidden=self.hidden or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOptions:
    """How it is learned."""

    persons: Annotated[
        int, typer.Option(min=1, help="How many persons all sites have together, as far as the public knows.")
    ]
    rounds: Annotated[int, typer.Option(min=1, max=100_000, help="How many rounds; ε and δ are for all of them.")]
    batch: Annotated[
        int | None, typer.Option(min=1, help="How many persons a round expects; everybody, if not said.")
    ] = None
    clip: Annotated[str, typer.Option(help="The l2 norm that the gradient of one person is held to.")] = "1"
    lr: Annotated[float | None, typer.Option(help="The learning rate; one that suits the noise, if not said.")] = None

    def check(self) -> None:
        """Refuse what no run could learn with, before anybody is asked."""
        if self.batch is not None and self.batch > self.persons:
            raise InvalidInput("--batch is at most --persons; nothing was asked or spent.")
        if self.lr is not None and not 0 < self.lr < float("inf"):
            raise InvalidInput("--lr lies above 0; nothing was asked or spent.")


@grouped
def train(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder of the coordinator: its ledger, key and runs.")
    ],
    *,
    network: NetworkOptions,
    spend: SpendOptions,
    how: RoundOptions,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The weights to write: .safetensors; not overwritten.")
    ],
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The certificate to write; beside the weights as .json, if not said."),
    ] = None,
    patience: Annotated[
        float, typer.Option(min=1, max=86_400, help="Seconds after which a site that is silent has left the round.")
    ] = 60,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin another run and charge again, although one was begun or ended.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Train one model on the people of all sites: a secure sum of clipped gradients in each round.

    The model is a network over columns of the schema, as it declares them. Sites vote on the whole run, and each charges
    its own ledger once before it reads a row. The sites connect while this command runs. A command that was stopped is
    given again and goes on where it was, and nobody is charged again; nor is it, once the run has ended.

    Example: $ sfumato consortium train network --input week --input sex --target relapsed --persons 1900 --rounds 20 --epsilon 1 --delta 1e-7 -o model.safetensors
    """  # noqa: E501 - an example is one line
    from sfumato.core.extras import need

    need("torch", "pip install 'sfumato[learning]'")
    how.check()
    certificate = _checked(out, save)
    home = FederatedHome.load(folder, "consortium")
    declared = network.network(home)
    with reached(home, patience, []) as way, opened(home, way) as (vault, consortium, _):
        trainer = consortium.trainer(
            declared,
            n_units=how.persons,
            name=str(home.schema.name),
            version=str(home.schema.edition),
            clip=how.clip,
            max_records_per_unit=home.rows_of_a_person,
        )
        settings = {"epsilon": spend.epsilon, "delta": spend.delta, "rounds": how.rounds, "batch": how.batch}
        plan = trainer.plan(**settings)  # type: ignore[arg-type]  # each is of its own type
        run = _run_folder(home.folder / RUNS, plan, how.lr, fresh=fresh)
        if not as_json:
            where = f"at {home.paper.address}" if home.paper.address else f"by files in {home.folder}"
            say(f"asking {len(home.paper.agreement.members)} sites {where}", error=True)
        try:
            with _rounds(how.rounds) as watch:
                trained = trainer.fit(**settings, lr=how.lr, folder=run, watch=watch)  # type: ignore[arg-type]  # as above
        except KeyboardInterrupt:
            say("the run is kept: the same command goes on where it was, and charges nobody again", error=True)
            raise
        _write(out, certificate, declared, trained)
        _tell(declared, trained, vault, (out, certificate), as_json=as_json)


def _checked(out: Path, save: Path | None) -> Path:
    """Where the certificate goes; refused before anybody is asked where a file could not be written."""
    if out.suffix != ".safetensors":
        raise InvalidInput(f"{out.name} holds weights: choose the ending .safetensors. Nothing was asked or spent.")
    certificate = out.with_suffix(".json") if save is None else save
    if certificate.absolute() == out.absolute():
        raise InvalidInput("weights and certificate have the same file; nothing was asked or spent. Name another.")
    for file in (out, certificate):
        if file.exists() or file.is_symlink():
            raise InvalidInput(f"{file} already exists and is not overwritten. Nothing was asked or spent.")
        if not file.absolute().parent.is_dir():
            raise InvalidInput(f"there is no folder {file.absolute().parent}; nothing was asked or spent. Make it.")
    return certificate


def _run_folder(runs: Path, plan: "TrainingProposal", lr: float | None, *, fresh: bool) -> Path:
    """The folder of the run with these settings: the last one, or another one where that is wanted."""
    said = json.dumps([replace(plan, number=0).to_json(), lr])
    name = sha256(said.encode()).hexdigest()[:32]
    found = [int(path.name.rpartition("-")[2]) for path in runs.glob(f"{name}-*")]
    return runs / f"{name}-{max(found, default=0) + (fresh or not found)}"


def _write(out: Path, certificate: Path, network: "DeclaredNetwork", trained: "TrainedAcrossSites") -> None:
    from sfumato.federated.training.weights_file import weights_bytes

    out.write_bytes(weights_bytes(network, trained.model))
    trained.release.certificate.save(certificate)


@contextmanager
def _rounds(rounds: int) -> "Iterator[Callable[[int, Mapping[str, str]], object]]":
    """A bar of rounds, where somebody looks."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("rounds", total=rounds)

        def watch(number: int, votes: Mapping[str, str]) -> None:
            there = sum(vote == "joins" for vote in votes.values())
            bar.update(task, completed=number, description=f"rounds, {there} sites")

        yield watch


def _tell(
    network: "DeclaredNetwork",
    trained: "TrainedAcrossSites",
    vault: "Vault",
    written: tuple[Path, Path],
    *,
    as_json: bool,
) -> None:
    release = trained.release
    if as_json:
        said = charge_document(release, vault, charged=True)
        more = {"run": trained.run, "rounds": trained.rounds, "parameters": network.parameters}
        say_json({**said, **more, "votes": dict(trained.votes), "written": [str(file) for file in written]})
        return
    kind = "a network" if network.hidden else "logistic regression"
    inputs = ", ".join(column.name for column in network.inputs)
    say(f"model:   {kind} of {network.target.name} on {inputs}; {network.parameters:,} parameters")
    say(f"rounds:  {trained.rounds:,} gave a sum")
    if trained.votes:
        say("sites:   " + ", ".join(f"{name} {vote}" for name, vote in trained.votes.items()))
    say(f"run:     {trained.run}")
    say_charge(release, vault, charged=True)
    for file in written:
        say(f"written: {file}")
