"""Keys on the command line: made and shown; certified and revoked by the root of a ledger, and listed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.ledger import Where, opened
from sfumato.cli.output import AsJson, counted, one_line, say, say_json, say_line, terminal
from sfumato.cli.proofs import certificate_of
from sfumato.cli.protected import Reason
from sfumato.cli.reading import Published, Trusted, reading
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.governance.keyring import CertifiedKey

__all__ = ["keys"]

Public = Annotated[str, typer.Argument(metavar="KEY", help="The public key, as 64 digits or its .pub file.")]
RoleName = Annotated[
    Literal["charge", "release", "administer"],
    typer.Option("--role", help="What it may do: sign heads, sign certificates, or open accounts and declare."),
]
Root = Annotated[Path, typer.Option(metavar="FILE", help="The private key of the institution's root.")]

keys = typer.Typer(
    help="Make and show keys; say, with the root of a ledger, which key may do what.\n\n"
    "Example: $ sfumato key new board.key",
    no_args_is_help=True,
)


@keys.command("new")
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the key.")], *, as_json: AsJson = False
) -> None:
    """Make an Ed25519 key: FILE, readable by you alone, and FILE.pub to share.

    Neither is ever overwritten: whoever loses a key can no longer sign as the same publisher.

    Example: $ sfumato key new board.key
    """
    from sfumato.core.signature import SigningKey

    public = Path(f"{file}.pub")
    for taken in (file, public):
        if taken.exists() or taken.is_symlink():
            raise InvalidInput(f"{taken} already exists and was not overwritten. Choose a new file.")
    key = SigningKey.new()
    key.save(file)
    if as_json:
        say_json({"key": str(file), "public_key_file": str(public), "public_key": key.public_text})
        return
    say(f"key:        {file} (keep it secret)\npublic key: {public} (share it)\n{key.public_text}")


@keys.command("show")
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A key, or its .pub file.")], *, as_json: AsJson = False
) -> None:
    """Print the public half of a key, as 64 hexadecimal digits; the private half is never printed.

    Example: $ sfumato key show board.key
    """
    from sfumato.core.signature import SigningKey, read_public_key

    if not file.is_file():
        raise InvalidInput(f"there is no file {file}. Make a key: sfumato key new {file}")
    try:
        text = read_public_key(file)
    except InvalidInput:
        text = SigningKey.load(file).public_text
    say_json({"public_key": text}) if as_json else say(text)


@keys.command("certify")
def certify(
    key: Public,
    *,
    role: RoleName,
    holder: Annotated[str, typer.Option(metavar="NAME", help="The person or machine that holds the key.")],
    root: Root,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="Its last day, such as 2027-12-31.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write the certificate; KEY.cert beside a key file."),
    ] = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Let a key act in a role of a ledger with a root, from now on; writes the key's certificate to be handed around.

    Whoever holds the certificate and the public key of the root can verify what the key signed. Where the key that
    charges was lost, name the new one in the settings first: the entry that certifies it is the first that it signs.

    Example: $ sfumato key certify press.key.pub --role release --holder "press office" --root root.key
    """
    target = _target(key, out, "cert")
    with opened(ledger) as book:
        signed = book.certify(key, role=role, holder=holder, root=root, until=until)
        number = book.head().head.number
    if target is not None:
        target.write_text(signed.text + "\n", encoding="utf-8")
    if as_json:
        said = {"entry": number, "role": role, "holder": holder, "until": until, "document": signed.said.number}
        say_json(said | {"written": target and str(target)})
        return
    last = "" if until is None else f", until {until}"
    say_line(f"{holder} may {_MAY[role]} from entry {number} on{last}.")
    if target is not None:
        say_line(f"written: {target} (share it beside the public key)")


@keys.command("revoke")
def revoke(
    key: Public,
    *,
    role: RoleName,
    reason: Reason,
    root: Root,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Where to write it; KEY.revoked beside a key file."),
    ] = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Let a key act in a role no more. What it signed before this entry stands; nothing after it does.

    Keep what it writes: where the entry is lost one day, a recovery asks for it.

    Example: $ sfumato key revoke press.key.pub --role release --reason "the laptop was stolen" --root root.key
    """
    target = _target(key, out, "revoked")
    with opened(ledger) as book:
        signed = book.revoke(key, role=role, reason=reason, root=root)
        number = book.head().head.number
    if target is not None:
        target.write_text(signed.text + "\n", encoding="utf-8")
    if as_json:
        said = {"entry": number, "role": role, "document": signed.said.number}
        say_json(said | {"written": target and str(target)})
        return
    say_line(f"after entry {number} this key may not {_MAY[role]} any more.")
    if target is not None:
        say_line(f"written: {target} (keep it: a recovery may ask for it)")


@keys.command("rotate-root")
def rotate_root(
    root: Annotated[Path, typer.Argument(metavar="FILE", help="The private key of the new root.")],
    *,
    next_root: Annotated[
        str | None, typer.Option(metavar="KEY", help="The public key of the root after it, or its file.")
    ] = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Put the next root, whose hash was recorded beforehand, in the place of the present one, which is not needed.

    Whoever stole the old root cannot do this, and after it certifies nothing any more. Give out the new public key.

    Example: $ sfumato key rotate-root root-2.key --next-root root-3.key.pub
    """
    with opened(ledger) as book:
        signed = book.rotate_root(root, next_root=next_root)
        number = book.head().head.number
    if as_json:
        say_json({"entry": number, "document": signed.said.number})
        return
    say_line(f"from entry {number} on {root} is the root. Give its public half out, and name it in the settings.")
    if next_root is None:
        say("warning: no next root was named, so that this one can never be followed by another.")


@keys.command("enter")
def enter(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A document that a root signed.")],
    *,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Enter a certificate or a revocation that a root signed elsewhere, such as one that was lost with a backup.

    Example: $ sfumato key enter press.key.pub.cert
    """
    signed = certificate_of(file)
    with opened(ledger) as book:
        book.enter(signed)
        number = book.head().head.number
    say_json({"entry": number}) if as_json else say_line(f"entered as entry {number}.")


@keys.command("standing")
def standing(
    *,
    root: Root,
    documents: Annotated[
        int, typer.Option(metavar="N", help="The number of the last document that the root has signed for the ledger.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write it.")],
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Say, for the recovery of a ledger that lost entries, how many documents its root has signed; changes nothing.

    N is what the holder of the root knows: the ledger may have lost the last ones. The recovery believes the anchor by
    it, since none can be left out then, such as the revocation of a key that was stolen.

    Example: $ sfumato key standing --root root.key --documents 4 -o standing.json
    """
    from sfumato.governance import settings
    from sfumato.governance.recovery import vouched

    if out.exists() or out.is_symlink():
        raise InvalidInput(f"{out} already exists and was not overwritten. Name another file with -o.")
    where = settings.found(ledger)
    signed = vouched(where.url, anchor=where.anchor, root=root, documents=documents)
    out.write_text(signed.text + "\n", encoding="utf-8")
    said = {"documents": documents, "written": str(out)}
    say_json(said) if as_json else say_line(f"written: {out} (give it to the recovery: --certified {out})")


@keys.command("list")
def show_all(*, key: Trusted = None, head: Published = None, ledger: Where = None, as_json: AsJson = False) -> None:
    """List the keys of a ledger: who holds them, their roles, and from which entry to which they are valid.

    Example: $ sfumato key list
    """
    with reading(ledger, key, head) as book:
        ring, end = book.keys(), book.head().head
        only = book.public_key
    if ring is None:
        said = {"root": None, "keys": [{"key": only, "role": "everything", "from": 1, "to": None}], "as_of": end.number}
        say_json(said) if as_json else say(f"this ledger has no root: the key {only} does everything.")
        return
    if as_json:
        found = [_described(one, end.number + 1, end.at) for one in ring.keys]
        signed = {"root": ring.root, "earlier_roots": list(ring.roots[:-1]), "documents": ring.number}
        say_json({**signed, "keys": found, "as_of": end.number})
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in ("role", "holder", "key", "from entry", "to entry", "last day", "now"):
        table.add_column(name)
    for one in ring.keys:
        now = "valid" if one.valid(end.number + 1, end.at) else one.refusal(end.number + 1, end.at)
        ended = "" if one.ended is None else str(one.ended)
        cells = (one.role.value, one.holder, f"{one.key[:16]}…", str(one.since), ended, one.until or "", now)
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    terminal().print(table)
    say(
        f"root: {ring.root}, {counted(ring.number, 'document', 'documents')} signed\nas of entry {end.number}, {end.at}"
    )


def _target(key: str, out: Path | None, ending: str) -> Path | None:
    """Where a document about a key is written: beside its file, where it is one."""
    target = out or (Path(f"{key}.{ending}") if Path(key).suffix == ".pub" else None)
    if target is not None and (target.exists() or target.is_symlink()):
        raise InvalidInput(f"{target} already exists and was not overwritten. Name another file with -o.")
    return target


_MAY = {"charge": "charge and sign heads", "release": "sign certificates", "administer": "administer"}


def _described(one: "CertifiedKey", number: int, at: str) -> dict[str, object]:
    who: dict[str, object] = {"role": one.role.value, "holder": one.holder, "key": one.key}
    when = {"from": one.since, "to": one.ended, "until": one.until, "valid": one.valid(number, at)}
    return who | when | {"reason": one.why or None}
