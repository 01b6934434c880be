"""The budget and its board on the command line: how everything stands, requests, votes, vetoes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.ledger import Where, opened
from sfumato.cli.output import AsJson, say, say_json, say_line, terminal
from sfumato.cli.protected import Reason
from sfumato.cli.reading import Published, Trusted, reading
from sfumato.cli.requests import entered, wrote
from sfumato.errors import InvalidInput, NotDeclared

if TYPE_CHECKING:
    from sfumato.core.signature import SigningKey
    from sfumato.governance.board import Reasons
    from sfumato.governance.ledger import Ledger

__all__ = ["budget"]

budget = typer.Typer(
    help="Show what is spent and left, seat the board, ask it, vote and veto. Reads no data.\n\n"
    "Whoever acts on the board signs with a key of their own (--key), and the signature stays in the record. A name "
    "without a key cannot act. Who is not at this machine signs a paper: sfumato ballot\n\n"
    "Example: $ sfumato budget show",
    no_args_is_help=True,
)

Self = Annotated[str, typer.Option("--as", metavar="NAME", help="Who you are on the board.")]
Signer = Annotated[Path, typer.Option(metavar="FILE", help="Your key, whose public half the board knows.")]
Number = Annotated[int, typer.Argument(metavar="N", min=1, help="The number of the request.")]
Words = Annotated[str, typer.Option(metavar="TEXT", help="Why, in words that stay in the record.")]
Community = Annotated[str, typer.Option(metavar="NAME", help="The community that you speak for.")]
Dataset = Annotated[str, typer.Option(metavar="NAME", help="The dataset.")]
ACTIONS = {
    "raise": "RAISE",
    "unlock": "UNLOCK",
    "dataset": "DATASET",
    "plan": "PLAN",
    "exception": "EXCEPTION",
    "board": "BOARD",
}


@budget.command()
def show(*, key: Trusted = None, head: Published = None, ledger: Where = None, as_json: AsJson = False) -> None:
    """Show every budget as a tree with bars: spent, reserved and left, of accounts, people, datasets and windows.

    What was spent is rounded up and what is left rounded down; --json has the exact figures.

    Example: $ sfumato budget show
    """
    from sfumato.cli.budget_tree import document, draw
    from sfumato.governance.overview import overview

    with reading(ledger, key, head) as book:
        found = overview(book)
    say_json(document(found)) if as_json else draw(found, terminal())


@budget.command()
def board(
    file: Annotated[Path, typer.Argument(metavar="FILE", help='TOML, with kind = "board", members and quorum.')],
    *,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who seats it.")],
    reason: Reason,
    proposal: Annotated[
        int | None, typer.Option(metavar="N", help="The approved request that names this board, once there is one.")
    ] = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Seat the board. From then on a release needs terms and an approval, and caps rise by decisions alone.

    The file has members and quorum; for each site [[committees]] with site, members, representatives and quorum; for
    each veto [[communities]] with name, representatives and datasets; under [keys] the public key of each person, or
    its file, since a name without a key cannot act; proposers may ask without a seat. A later board needs an approved
    request: budget request --action board --board FILE. A board from before acts were signed can be given keys for
    those who have none, once, without a request.

    Example: $ sfumato budget board board.toml --by director --reason "decided on 5 January"
    """
    from sfumato.governance.declared import board_of
    from sfumato.governance.digest import digest_of

    seated = board_of(file)
    with opened(ledger) as book:
        book.seat(seated, by=by, reason=reason, proposal=proposal)
    if as_json:
        say_json({"members": list(seated.members), "quorum": seated.quorum, "digest": digest_of(seated)})
        return
    members = ", ".join(seated.members)
    say_line(f"seated: {members}; {seated.quorum} of them decide, and whoever proposes does not vote.")
    if seated.silent:
        say_line(f"no key is known of {', '.join(seated.silent)}, who cannot act. Seat a board that has it: [keys]")


@budget.command()
def request(
    *,
    by: Self,
    action: Annotated[
        Literal["raise", "unlock", "dataset", "plan", "exception", "board"],
        typer.Option(help="Raise a cap, unlock reserve, open a dataset, adopt a plan, an exception, a new board."),
    ],
    account: Annotated[
        str | None,
        typer.Option(metavar="PATH", help='The account, or another balance such as "dataset visits".'),
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A dataset that it touches; give all of them.")
    ] = None,
    site: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A site whose committee decides too; those of the terms if none is given."),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="How much it asks for: ε.")] = None,
    delta: Annotated[str, typer.Option(help="The δ beside it.")] = "0",
    subject: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Its title; of a plan, the digest that names it.")
    ] = None,
    board: Annotated[Path | None, typer.Option(metavar="FILE", help="The new board, where that is asked for.")] = None,
    plan: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The plan to adopt: its account and its digest are taken.")
    ] = None,
    benefit: Annotated[str, typer.Option(metavar="TEXT", help="What is gained.")] = "",
    risk: Annotated[str, typer.Option(metavar="TEXT", help="What those in the data risk.")] = "",
    choice: Annotated[str, typer.Option(metavar="TEXT", help="Why this much, and neither more nor less.")] = "",
    reasons: Annotated[
        Path | None, typer.Option(metavar="FILE", help='The three in a TOML file, with kind = "reasons".')
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=366, help="How many days it waits for a decision.")] = 14,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your key, whose public half the board knows.")
    ] = None,
    paper: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Enter nothing, and write a paper to be signed elsewhere: sfumato ballot"),
    ] = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Ask the board, with the reasons that are recorded: benefit, risk, and why this choice.

    An ε is chosen by weighing them. They are options, or a file (--reasons) with kind = "reasons", version = 1.

    Example: $ sfumato budget request --as ada --key ada.key --action dataset --dataset visits --reasons reasons.toml

    Example: $ sfumato budget request --as ada --key ada.key --action raise --account hospital --epsilon 1 --reasons reasons.toml

    Example: $ sfumato budget request --as ada --paper a.ballot --action dataset --dataset visits --reasons reasons.toml
    """  # noqa: E501 - one line can be copied
    from datetime import timedelta

    from sfumato.core.budget import Budget
    from sfumato.governance.board import Action

    kind = Action[ACTIONS[action]]
    why = _reasons(benefit, risk, choice, reasons)
    amount = None if epsilon is None and delta == "0" else Budget(epsilon=epsilon or "0", delta=delta)
    if (key is None) is (paper is None):
        raise NotDeclared("a request is signed: give --key FILE, or --paper FILE to sign elsewhere. Nothing was asked.")
    title, where = _subject(kind.value, subject, board, [*([account] if account else []), *(dataset or ())]), account
    if plan is not None:
        title, where = _planned(kind.value, plan, subject, account)
    with opened(ledger) as book:
        ballot = book.request_ballot(
            by=by,
            action=kind,
            subject=title,
            reasons=why,
            account=where,
            datasets=tuple(dataset or ()),
            sites=tuple(site or _sites(book, dataset or ())),
            amount=amount,
            lasts=timedelta(days=days),
        )
        if key is None:
            wrote(ballot, paper, as_json=as_json)
            return
        asked = book.submit(ballot.signed(_key(key)))
    entered(asked, as_json=as_json)


@budget.command()
def requests(
    *,
    open_only: Annotated[bool, typer.Option("--open", help="Only those that wait for a decision.")] = False,
    key: Trusted = None,
    head: Published = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """List the requests: what is asked, how it stands, the votes so far, who is still needed, and until when.

    Example: $ sfumato budget requests
    """
    from sfumato.cli.requests import document, draw
    from sfumato.governance.overview import minutes_now

    with reading(ledger, key, head) as book:
        minutes = minutes_now(book)
    found = [asked for asked in minutes.proposals if not open_only or minutes.decision(asked.number) is None]
    if as_json:
        say_json({"requests": [document(asked, minutes) for asked in found]})
    elif found:
        draw(found, minutes, terminal())
    else:
        say("no request waits for a decision." if open_only else "nothing was asked of the board yet.")


@budget.command()
def approve(
    number: Number,
    *,
    by: Self,
    reason: Words = "",
    key: Signer,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Vote yes. A vote is cast once and stands; whoever asked does not vote.

    Example: $ sfumato budget approve 1 --as ben --key ben.key
    """
    _vote(number, "YES", by, reason, key, ledger, as_json=as_json)


@budget.command()
def reject(
    number: Number, *, by: Self, reason: Words, key: Signer, ledger: Where = None, as_json: AsJson = False
) -> None:
    """Vote no. The no of somebody who speaks for a community of the dataset ends the request at once.

    Example: $ sfumato budget reject 2 --as cho --key cho.key --reason "the old figures are not published yet"
    """
    _vote(number, "NO", by, reason, key, ledger, as_json=as_json)


@budget.command()
def abstain(
    number: Number,
    *,
    by: Self,
    reason: Words = "",
    key: Signer,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Vote neither yes nor no.

    Example: $ sfumato budget abstain 1 --as cho --key cho.key
    """
    _vote(number, "ABSTAIN", by, reason, key, ledger, as_json=as_json)


@budget.command()
def withdraw(number: Number, *, by: Self, key: Signer, ledger: Where = None, as_json: AsJson = False) -> None:
    """Take back your own request.

    Example: $ sfumato budget withdraw 2 --as ada --key ada.key
    """
    signing = _key(key)
    with opened(ledger) as book:
        book.withdraw(number, by=by, key=signing)
        done = book.minutes().entries[-1]
    entered(done, as_json=as_json)


@budget.command()
def veto(
    *,
    by: Self,
    community: Community,
    dataset: Dataset,
    reason: Words,
    key: Signer,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Say no for a community: ends all open requests about the dataset, and blocks its releases while it stands.

    Example: $ sfumato budget veto --as eva --key eva.key --community riverside --dataset visits --reason "no"
    """
    signing = _key(key)
    with opened(ledger) as book:
        book.veto(by=by, community=community, dataset=dataset, reason=reason, key=signing)
        done = book.minutes().entries[-1]
    entered(done, as_json=as_json)


@budget.command()
def lift(
    *,
    by: Self,
    community: Community,
    dataset: Dataset,
    reason: Words,
    key: Signer,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Lift the veto of your own community. What was approved before must be approved anew.

    Example: $ sfumato budget lift --as eva --key eva.key --community riverside --dataset visits --reason "yes"
    """
    signing = _key(key)
    with opened(ledger) as book:
        book.lift_veto(by=by, community=community, dataset=dataset, reason=reason, key=signing)
        done = book.minutes().entries[-1]
    entered(done, as_json=as_json)


def _vote(number: int, choice: str, by: str, reason: str, key: Path, ledger: Path | None, *, as_json: bool) -> None:
    from sfumato.governance.board import Choice

    signing = _key(key)
    with opened(ledger) as book:
        book.vote(number, by=by, choice=Choice[choice], reason=reason, key=signing)
        minutes = book.minutes()
    entered(minutes.votes(number)[-1], minutes, as_json=as_json)


def _key(file: Path) -> "SigningKey":
    from sfumato.core.signature import SigningKey

    return SigningKey.load(file)


def _reasons(benefit: str, risk: str, choice: str, file: Path | None) -> "Reasons":
    from sfumato.governance.board import Reasons
    from sfumato.governance.declared import reasons_of

    if file is None:
        return Reasons(benefit=benefit, risk=risk, choice=choice)
    if benefit or risk or choice:
        raise InvalidInput("give --reasons, or --benefit, --risk and --choice; nothing was asked.")
    return reasons_of(file)


def _subject(action: str, said: str | None, board: Path | None, about: list[str]) -> str:
    """The title of a request; that of a new board is its digest, so that everybody votes on the same text."""
    from sfumato.governance.declared import board_of
    from sfumato.governance.digest import digest_of

    if action == "change the board":
        if board is None or said is not None:
            raise NotDeclared("a new board is asked for by its file: --board FILE, and no subject. Nothing was asked.")
        return digest_of(board_of(board))
    if board is not None:
        raise InvalidInput("--board goes with --action board; nothing was asked.")
    return said or f"{action}: {', '.join(about) or 'no account or dataset named'}"


def _planned(action: str, plan: Path, said: str | None, account: str | None) -> tuple[str, str]:
    """The digest of a plan and the account that it is charged to."""
    from sfumato.runner import PlanFile

    if action != "adopt a plan" or said is not None:
        raise InvalidInput("--plan goes with --action plan, and with no subject; nothing was asked.")
    read = PlanFile.load(plan)
    if account not in (None, read.account):
        raise InvalidInput(f"{plan} is charged to {read.account!r}, and not to {account!r}; nothing was asked.")
    return read.digest, read.account


def _sites(book: "Ledger", datasets: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """The sites that the terms of the datasets name."""
    known = [book.terms(name) for name in datasets]
    return tuple(sorted({site for terms in known if terms is not None for site in terms.sites}))
