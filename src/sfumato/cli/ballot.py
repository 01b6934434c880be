"""Ballots on the command line: papers are written at the ledger, signed at home, and handed in by anybody."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.ledger import Where, opened
from sfumato.cli.output import AsJson
from sfumato.cli.requests import entered, wrote
from sfumato.errors import InvalidInput, NotDeclared

if TYPE_CHECKING:
    from sfumato.governance.agreements import Agreement
    from sfumato.governance.ballots import Ballot

__all__ = ["ballot"]

ballot = typer.Typer(
    help="Decide from another machine: a paper is written at the ledger, signed where the key is, and handed in by "
    "anybody. Reads no data.\n\n"
    "Keys never travel, and a signed ballot counts once, for what it says.\n\n"
    "Example: $ sfumato ballot write --request 1",
    no_args_is_help=True,
)

Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write it; never overwritten.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The paper, or the signed ballot.")]


@ballot.command()
def write(
    *,
    request: Annotated[int | None, typer.Option(metavar="N", min=1, help="To vote on this request.")] = None,
    withdraw: Annotated[int | None, typer.Option(metavar="N", min=1, help="To take this request back.")] = None,
    veto: Annotated[str | None, typer.Option(metavar="NAME", help="To veto this dataset.")] = None,
    lift: Annotated[str | None, typer.Option(metavar="NAME", help="To lift the veto over this dataset.")] = None,
    community: Annotated[
        str | None, typer.Option(metavar="NAME", help="The community that says it, of a veto or a lift.")
    ] = None,
    out: Out = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Write a paper to be signed: what is decided, in plain words, and all that a signature is bound to.

    A vote can be handed in while its request is open, a lift for 14 days, a veto always. A paper with a new request is
    written by: sfumato budget request --paper FILE

    Example: $ sfumato ballot write --request 1 --out request-1.ballot

    Example: $ sfumato ballot write --veto visits --community riverside --out veto.ballot
    """
    given = (("request", request), ("withdraw", withdraw), ("veto", veto), ("lift", lift))
    wanted = [word for word, value in given if value is not None]
    if len(wanted) != 1 or (community is not None) is not (wanted[0] in ("veto", "lift")):
        raise InvalidInput(
            "a paper is for one thing: --request N, --withdraw N, or --veto NAME or --lift NAME with --community NAME. "
            "Nothing was written."
        )
    with opened(ledger) as book:
        paper = book.ballot(vote=request, withdraw=withdraw, veto=veto, lift=lift, community=community)
    name = next(f"{word}-{value}.ballot" for word, value in given if value is not None)
    wrote(paper, out or Path(name.replace("/", "-")), as_json=as_json)


@ballot.command()
def show(file: File, *, as_json: AsJson = False) -> None:
    """Show what a paper or a signed ballot says, worked out on this machine; needs no ledger.

    Example: $ sfumato ballot show request-1.ballot
    """
    wrote(_read(file), None, as_json=as_json)


@ballot.command()
def sign(
    file: File,
    *,
    key: Annotated[Path, typer.Option(metavar="FILE", help="Your key; it stays where it is.")],
    choice: Annotated[Literal["yes", "no", "abstain"] | None, typer.Option(help="Of a vote: what you decide.")] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why, in words that stay in the record.")] = "",
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Sign a paper with your own key. Needs neither ledger nor database nor network.

    What the paper says is worked out here and printed: read it (sfumato ballot show), and send the signed file to
    anybody at the ledger. A no, a veto and the end of a veto need a reason.

    Example: $ sfumato ballot sign request-1.ballot --key ada.key --choice yes --reason "as discussed"
    """
    from sfumato.core.signature import SigningKey
    from sfumato.governance.agreements import Agreement
    from sfumato.governance.ballots import Matter
    from sfumato.governance.board import Choice

    paper, signing = _read(file), SigningKey.load(key)
    if isinstance(paper, Agreement):
        if choice is not None or reason:
            raise InvalidInput("an agreement asks for no choice and has its reason; nothing was signed.")
        agreed = paper.signed(signing)
        wrote(agreed, out or _beside(file, str(agreed.signer), signing.public_text), as_json=as_json)
        return
    if (paper.matter in (Matter.VETO, Matter.LIFT) or choice == "no") and not reason.strip():
        raise NotDeclared("this decision needs its reason: --reason TEXT. Nothing was signed.")
    chosen = None if choice is None else Choice(choice)
    signed = paper.signed(signing, choice=chosen, reason=reason)
    wrote(signed, out or _beside(file, str(signed.signer), signed.key), as_json=as_json)


@ballot.command()
def submit(file: File, *, ledger: Where = None, as_json: AsJson = False) -> None:
    """Hand a signed ballot in, whoever signed it. It counts once, for what it says, or it is refused.

    Example: $ sfumato ballot submit request-1-ben.ballot
    """
    from sfumato.governance.ballots import Ballot

    signed = _read(file)
    if not isinstance(signed, Ballot):
        raise InvalidInput(
            f"{file} is an agreement to a recovery, which is handed in with the recovery; nothing was entered. Do it: "
            "sfumato ledger recover --agreement FILE"
        )
    with opened(ledger) as book:
        done = book.submit(signed)
        minutes = book.minutes()
    entered(done, minutes, as_json=as_json)


def _read(file: Path) -> "Ballot | Agreement":
    """A ballot, or an agreement to a recovery, whichever the file says that it is."""
    from sfumato.governance.agreements import Agreement
    from sfumato.governance.ballots import Ballot

    try:
        return Agreement.load(file)
    except InvalidInput:
        return Ballot.load(file)


def _beside(file: Path, name: str, key: str) -> Path:
    """Where a signed copy goes: a name is somebody's text, and becomes part of a file's name only if it is plain."""
    return Path(f"{file.stem}-{name if name.isalnum() else key[:8]}{file.suffix}")
