"""The witness on the command line: made, told of ledgers and served on its own host; named and asked by the ledger."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.ledger import Out, Where, opened, write_new
from sfumato.cli.output import AsJson, say, say_json
from sfumato.cli.proofs import read_head
from sfumato.cli.protected import Reason
from sfumato.errors import InvalidInput

__all__ = ["witness"]

witness = typer.Typer(
    help="Run a witness on another host, which countersigns what a ledger goes on with; name it and ask it. Reads no "
    "data.\n\nExample: $ sfumato witness init witness",
    no_args_is_help=True,
)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder of the witness: its key and its memory.")]


@witness.command()
def init(folder: Folder, *, as_json: AsJson = False) -> None:
    """Make a witness: a key and an empty memory. On another host than the ledger, under another administrator.

    Its memory must never be restored from a backup: a witness that forgets is none.

    Example: $ sfumato witness init witness
    """
    from sfumato.governance.witness import Witness

    made = Witness.create(folder)
    if as_json:
        say_json({"folder": str(folder), "witness": made.key.public_text})
        return
    say(f"witness: {folder} (keep it in no backup that is ever restored)\nkey:     {made.key.public_text}")
    say(f"next:    sfumato witness enrol {folder} HEAD --key KEY")


@witness.command()
def enrol(
    folder: Folder,
    head: Annotated[Path, typer.Argument(metavar="HEAD", help="A head of the ledger: sfumato ledger head -o HEAD.")],
    *,
    key: Annotated[str, typer.Option(metavar="KEY", help="The public key of the ledger, or its file.")],
    instead: Annotated[
        bool, typer.Option("--instead", help="The ledger is enrolled: this key alone signs its heads from now on.")
    ] = False,
    also: Annotated[bool, typer.Option("--also", help="The ledger is enrolled: this key signs its heads too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell a witness of a ledger: the key that its heads are signed with. Compare the key by another way first.

    Where keys have roles, several may charge, and one that was revoked is replaced: HEAD is then one that the new key
    has signed.

    Example: $ sfumato witness enrol witness head.json --key ledger.key.pub

    Example: $ sfumato witness enrol witness head.json --key charge-2.key.pub --instead
    """
    from sfumato.core.signature import read_public_key
    from sfumato.governance.witness import Witness

    said, place, public = read_head(head), Witness(folder), read_public_key(key)
    if instead and also:
        raise InvalidInput("a key comes in place of the others (--instead) or beside them (--also); nothing was done.")
    name = said.head.ledger
    if instead or also:
        place.follow(said, public, also=also)
        told = f"from now on the key {public} {'too' if also else 'alone'} signs heads of the ledger {name}."
        say_json({"ledger": name, "key": public}) if as_json else say(told)
        return
    place.enrol(said, public)
    say_json({"ledger": name}) if as_json else say(f"the ledger {name} is witnessed from entry {said.head.number} on.")


@witness.command()
def end(
    folder: Folder,
    head: Annotated[Path, typer.Argument(metavar="HEAD", help="Any head of the ledger, such as it was enrolled by.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Witness a ledger no more, because it has named another witness. There is no way back.

    Without this, a recovery from a backup older than the change would ask here and trust what was seen last.

    Example: $ sfumato witness end witness head.json
    """
    from sfumato.governance.witness import Witness

    ledger = read_head(head).head.ledger
    Witness(folder).end(ledger)
    say_json({"ended": ledger}) if as_json else say(f"the ledger {ledger} is witnessed no more.")


@witness.command()
def ledgers(folder: Folder, *, as_json: AsJson = False) -> None:
    """List the ledgers that a witness was told of, and the last entry that it has seen of each.

    Example: $ sfumato witness ledgers witness
    """
    from sfumato.governance.witness import Witness

    found = Witness(folder).ledgers()
    if as_json:
        say_json([{"ledger": name, "entry": number, "ended": ended} for name, number, ended in found])
        return
    for name, number, ended in found:
        say(f"{name}  {'ended at' if ended else 'seen up to'} entry {number}")


@witness.command()
def serve(
    folder: Folder,
    *,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")] = 8470,
    as_json: AsJson = False,
) -> None:
    """Answer ledgers over HTTP until it is stopped. Both sides sign, so the connection need not be trusted.

    Listens on this machine alone unless --host says otherwise. Whoever reaches the port can ask, and can neither
    forge a head nor learn what a ledger holds.

    Example: $ sfumato witness serve witness
    """
    from sfumato.governance.witness import Witness
    from sfumato.governance.witness_server import WitnessServer

    try:
        server = WitnessServer(Witness(folder), host, port)
    except OSError as wrong:
        raise InvalidInput(
            f"the witness cannot listen at {host}:{port}: {wrong.strerror}. Nothing was served."
        ) from None
    with server:
        said = {"address": server.address, "witness": server.witness.key.public_text}
        say_json(said) if as_json else say(f"the witness {said['witness']} answers at {said['address']}")
        server.serve_forever()


@witness.command()
def name(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The public key of the witness, or its file.")],
    *,
    lease_epsilon: Annotated[str, typer.Option(metavar="X", help="ε that may be charged beyond what it has seen.")],
    reason: Reason,
    lease_delta: Annotated[str, typer.Option(metavar="X", help="δ beside it.")] = "0",
    address: Annotated[
        str | None, typer.Option(metavar="URL", help="Where it is asked; written into the settings of the ledger.")
    ] = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Name the witness of a ledger, and its lease: what may be charged before it has to be asked again.

    A charge within the lease does not wait for the witness; one beyond it is refused while the witness cannot be
    reached. Where a board is seated, it decides on both: request an exception with the subject "witness KEY" and the
    lease as its amount.

    Example: $ sfumato witness name witness/witness.key.pub --lease-epsilon 1 --reason "a second host"
    """
    from sfumato.core.budget import Budget
    from sfumato.core.signature import read_public_key
    from sfumato.governance import settings

    lease, public = Budget(epsilon=lease_epsilon, delta=lease_delta), read_public_key(key)
    where = settings.found(ledger)
    if address is not None:
        where = where.with_witness(address)
    with opened(ledger) as book:
        book.lease.name(public, lease=lease, reason=reason)
    if as_json:
        say_json({"witness": public, "lease": {"epsilon": str(lease.epsilon), "delta": str(lease.delta)}})
        return
    say(f"the witness of this ledger is {public}, with a lease of {lease}.")
    if where.witness is None:
        say(f'next: write witness = "http://HOST:PORT" into {where.file}, then sfumato witness renew')


@witness.command()
def renew(*, out: Out = None, ledger: Where = None, as_json: AsJson = False) -> None:
    """Have the end of the record countersigned now: run it every few minutes. The head can be published.

    Refused where the witness has seen another record than this one.

    Example: $ sfumato witness renew
    """
    with opened(ledger) as book:
        head = book.lease.renew()
    if out is not None:
        write_new(out, iter([head.text + "\n"]))
    said = head.signed.head
    if as_json:
        say_json({"entry": said.number, "at": head.at, "witness": head.witness, "root": head.root})
        return
    say(f"entry {said.number} was witnessed at {head.at}; up to {head.lease} may be charged before the next time.")
