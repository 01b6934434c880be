"""The ledger on the command line: made once, verified, published, exported; its populations, datasets and terms."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.exits import Exit
from sfumato.cli.output import AsJson, counted, one_line, say, say_json, say_line
from sfumato.cli.proofs import read_head
from sfumato.cli.protected import Delta, Epsilon, Reason, Relation, Who, unit_of
from sfumato.cli.reading import Published, Trusted, reading
from sfumato.cli.standing import standing_json, standing_words, witnessed_in
from sfumato.cli.verifying import How, verified, verify_export
from sfumato.errors import InvalidInput, NotDeclared

if TYPE_CHECKING:
    from sfumato.core.signature import SigningKey
    from sfumato.governance.ledger import Ledger
    from sfumato.governance.settings import Settings

__all__ = ["Method", "Order", "Out", "Where", "charged", "ledger", "opened", "write_new"]

ledger = typer.Typer(
    help="Make, verify, publish and export the ledger; declare populations, datasets and their terms. Reads no "
    "data.\n\nExample: $ sfumato ledger init",
    no_args_is_help=True,
)

Where = Annotated[
    Path | None,
    typer.Option(
        "--ledger", metavar="FILE", help="The ledger's settings file; else SFUMATO_LEDGER names it, else ./ledger.toml."
    ),
]
Method = Annotated[
    Literal["basic", "zcdp", "rdp"],
    typer.Option(help="The filter that decides: sums of ε and δ, zCDP, or Rényi at one order."),
]
Order = Annotated[str | None, typer.Option(metavar="X", help="The order of a Rényi filter, such as 20; it needs one.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write; never overwritten.")]


@contextmanager
def opened(where: Path | None) -> "Iterator[Ledger]":
    """The ledger that is meant, for the length of a block; one that lost entries is refused."""
    from sfumato.governance import settings

    book = settings.opened(where)
    try:
        yield book
    finally:
        book.close()


@contextmanager
def charged(where: Path | None) -> "Iterator[Ledger | str]":
    """The ledger that a vault charges: an open one, or the address of the owner process that keeps it."""
    from sfumato.governance import settings

    owner = settings.owner_of(where)
    if owner is not None:
        yield owner
        return
    with opened(where) as book:
        yield book


@ledger.command()
def init(
    place: Annotated[
        Path, typer.Argument(metavar="PLACE", help="A folder, the settings file (.toml) or the database (.db).")
    ] = Path(),
    *,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The database: a new SQLite file, or postgresql://… ; beside PLACE if none."),
    ] = None,
    anchor: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="A new file for the anchor, on another disk; or another database: postgresql://…#NAME."
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key that signs heads; made if it is not there.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The private key of the institution's root: then keys have roles."),
    ] = None,
    next_root: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The public key of the root that may follow it one day, or its file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make an empty ledger: its database, its key, its anchor, and the settings file that names the three.

    The anchor detects a restored backup, so it belongs on another disk and in no backup of the database.
    Without --anchor it lies beside the database, where it protects against less. A settings file whose address holds a
    password is readable by you alone; PGPASSFILE keeps the password out of it.

    With --root the keys have roles: one charges and signs heads, one signs certificates, one administers; the root
    vouches for them, and is then kept apart. Without it one key does everything.

    Example: $ sfumato ledger init
    """
    from sfumato.governance import settings

    made = settings.made(place, url=url, anchor=anchor, key=key, root=root, next_root=next_root)
    warning = _beside(made)
    if as_json:
        paths = {"settings": made.file, "key": made.key, "anchor": made.anchored_at}
        roles = {"root": made.root, "release": made.release, "administer": made.administer}
        paths |= {name: path for name, path in roles.items() if path is not None}
        say_json({name: str(path) for name, path in paths.items()} | {"database": made.address, "warning": warning})
        return
    say(f"settings: {made.file}\ndatabase: {made.address}\nkey:      {made.key} (keep it secret; without it nothing")
    say(f"          can be charged any more)\nanchor:   {made.anchored_at}")
    if made.root is not None:
        say(f"root:     {made.root} (its public half; put the private one away, only sfumato key needs it)")
        say(f"release:  {made.release} (signs certificates; give it to whoever answers questions)")
        say(f"administer: {made.administer} (opens accounts and declares data; keep it from the machine that charges)")
        if next_root is None:
            say("warning:  no next root was named, so that this one can never be followed by another: --next-root KEY")
    if warning is not None:
        say(f"warning:  {warning}")
    say("next:     sfumato account open NAME --unit user:COLUMN --epsilon … --reason …")


def _beside(made: "Settings") -> str | None:
    if not made.same_disk:
        return None
    return (
        "the anchor lies on the same disk as the database. It notices a record that was edited or cut short, but not "
        "a backup in which both are restored together. Keep it on another disk: --anchor FILE"
    )


@ledger.command()
def verify(
    *,
    head: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A head that was published; give as many as you have."),
    ] = None,
    witnessed: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A head that the witness countersigned: sfumato witness renew -o FILE."),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Verify this export instead; needs neither the database nor its key."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="The public key that you trust, or its file; never a private one.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Remember here how far the ledger held, and replay only what came since. Keep it safe."
        ),
    ] = None,
    verifier_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your own key, which signs the checkpoint; else that of the ledger."),
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Replay all, and make the checkpoint anew.")] = False,
    chain_only: Annotated[
        bool, typer.Option("--chain-only", help="A quick look: digests and signatures; nothing is replayed.")
    ] = False,
    every_signature: Annotated[
        bool, typer.Option("--every-signature", help="Check that of each entry; later ones speak for those above.")
    ] = False,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Check every entry, the balances that follow from them, the anchor and the heads; name whatever is wrong.

    Goes through the whole record, also of a ledger that is refused; since a --checkpoint, through what came after it.
    It checks the record, the balances and the heads; the stored answers themselves are verified by sfumato evidence.
    Whoever can rewrite the record and the anchor and holds the key is found by a published head, or by a checkpoint of
    your own, alone. An auditor does the same with an export and published heads. No private key of the ledger is
    needed. Who cannot read the anchor gives published heads instead.

    Example: $ sfumato ledger verify
    """
    from sfumato.governance import settings
    from sfumato.governance.seen_head import SeenHead

    heads = [read_head(file) for file in head or ()]
    if export is not None and witnessed:
        raise InvalidInput("--witnessed goes with a ledger, not with --export. Nothing was verified.")
    own = verifier_key
    if checkpoint is not None and verifier_key is None:
        own = settings.found(ledger).key
        if not own.exists():
            raise NotDeclared(
                "a checkpoint is signed by who verified, and the key of the ledger is not here; nothing was verified. "
                "Sign it with a key of your own: --verifier-key FILE"
            )
    how = How(
        checkpoint=checkpoint,
        verifier=own,
        whole=whole,
        chain_only=chain_only,
        every_signature=every_signature,
    )
    how.check()
    if export is not None and (checkpoint is not None or chain_only or every_signature):
        raise InvalidInput("an export is always gone through as a whole; nothing was verified. Leave --export out.")
    if export is not None:
        verify_export(export, heads, key, as_json=as_json)
        return
    newest = max(heads, key=lambda one: one.head.number, default=None)
    with closing(settings.reading(ledger, key=key, head=newest, checked=False)) as book:
        done = verified(book, heads, how)
        found = (*done.findings, *book.held_to_witness([witnessed_in(file) for file in witnessed or ()]))
        end = None if found else book.head().head
        apart = isinstance(book.record.anchor, SeenHead)
        standing = None if found else book.lease.standing()
    if as_json:
        findings = [{"entry": each.entry, "problem": each.problem} for each in found]
        since = {"since": done.since, "replayed": done.replayed, "checkpoint": checkpoint and str(checkpoint)}
        told = {"witness": standing_json(standing)} if standing is not None else {}
        say_json({"holds": not found, "heads": len(heads), "findings": findings} | since | told)
    elif end is None:
        say("\n".join(one_line(str(each)) for each in found))
        say(f"This ledger does not hold: {counted(len(found), 'finding')}. Charge nothing until that is clear.")
    else:
        published = counted(len(heads), "published head")
        compared = f" and {published} agree" if heads else " agrees"
        held = f"The anchor{compared}."
        if apart:
            agreed = f"{published} {'agrees' if len(heads) == 1 else 'agree'}. "
            held = f"{agreed if heads else ''}The anchor was not asked: you cannot read it" + (
                "." if heads else ", so that an old copy would not be noticed. Give a published head: --head FILE"
            )
        said = f"{counted(end.number, 'entry', 'entries')}, the last of {end.at}"
        if done.since:
            new = counted(end.number - done.since, "entry", "entries")
            say(f"{said}: {new} came since the checkpoint at {done.since:,}, each in its place and unchanged.")
        else:
            say(f"{said}: each is in its place and unchanged.")
        if done.replayed:
            say(f"All balances follow from them. {held}")
        else:
            say(f"Nothing was replayed: whether balances follow is not known. {held}")
        say(standing_words(standing, apart=apart))
        if checkpoint is not None:
            say(f"remembered: {checkpoint}")
    if found:
        raise typer.Exit(Exit.FOUND_WRONG)


@ledger.command("head")
def show_head(*, out: Out = None, key: Trusted = None, ledger: Where = None, as_json: AsJson = False) -> None:
    """Print the signed head of the record, to be published: later it holds the record to what it is today.

    It states the number of entries, the sums of all charges and digests of the record, of its decisions, of its
    balances and of the tree that receipts lead to, and nothing about anybody's data.

    Example: $ sfumato ledger head -o head.json
    """
    from sfumato.governance.seen_head import SeenHead

    with reading(ledger, key, None) as book:
        signed, standing = book.head(), book.lease.standing()
        apart = isinstance(book.record.anchor, SeenHead)
    text = signed.text + "\n"
    if out is not None:
        write_new(out, iter([text]))
    if as_json:
        said = signed.head
        say_json(
            {
                "ledger": said.ledger,
                "number": said.number,
                "digest": said.digest,
                "at": said.at,
                "epsilon": str(said.epsilon),
                "delta": str(said.delta),
                "decisions": said.decisions,
                "state": said.state,
                "tree": said.tree,
                "signature": signed.signature,
                "written": out and str(out),
            }
            | ({} if standing is None else {"witness": standing_json(standing)})
        )
    else:
        if standing is not None:
            say(standing_words(standing, apart=apart), error=True)  # the head alone can be piped
        say(text.rstrip() if out is None else f"written: {out} (entry {signed.head.number}; publish it)")


@ledger.command()
def export(
    *,
    out: Out = None,
    key: Trusted = None,
    head: Published = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Write the whole record as lines of JSON: each entry with its number, digests and signature.

    The record holds declarations, decisions, charges and certificates; no row of anybody's data. With --json the lines
    become one list.

    Example: $ sfumato ledger export -o record.jsonl
    """
    from sfumato.governance.exported import document_of, line_of

    with reading(ledger, key, head) as book:
        if out is not None:
            number = write_new(out, (line_of(row) + "\n" for row in book.rows()))
            said = {"written": str(out), "entries": number}
            say_json(said) if as_json else say(f"written: {out} ({counted(number, 'entry', 'entries')})")
        elif as_json:
            say_json([document_of(row) for row in book.rows()])
        else:
            for row in book.rows():
                typer.echo(_harmless(line_of(row)))


@ledger.command()
def recover(
    *,
    reason: Reason,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", metavar="NAME=KEYFILE", help="A member of the board who agreed; a board needs its quorum of them."
        ),
    ] = None,
    board: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The same board with keys, where it is from before acts were signed."),
    ] = None,
    agreement: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="What a member signed elsewhere; one paper for all, see --paper."),
    ] = None,
    paper: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Change nothing, and write a paper for members to sign.")
    ] = None,
    charge_epsilon: Annotated[
        str | None, typer.Option(metavar="X", help="ε to charge to every balance, if the lost entries charge no more.")
    ] = None,
    charge_delta: Annotated[str, typer.Option(metavar="X", help="δ to charge beside it.")] = "0",
    certified: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A document of the root that was lost with its entry, in order; and its word on how many there are.",
        ),
    ] = None,
    witness_lost: Annotated[
        bool, typer.Option("--witness-lost", help="The witness is lost too: everything left is charged.")
    ] = False,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Go on after entries were lost, by a decision that is recorded with its reason.

    Every balance is charged what the anchor says was lost: no balance can have lost more. Where the anchor is lost
    too, everything that is left under every cap is charged. Where the record names a witness, it is asked, and its
    lease is charged with what it has seen. Where a board is seated, its quorum has to agree: members sign one paper
    (--paper) on their own machines (sfumato ballot sign), and --agreement hands each copy in. A ledger that lost
    nothing is refused.

    Example: $ sfumato ledger recover --reason "the disk failed; the backup of Sunday is back"

    Example: $ sfumato ledger recover --reason "the disk failed" --paper loss.ballot
    """
    from sfumato.cli.proofs import certificate_of
    from sfumato.cli.requests import wrote
    from sfumato.core.budget import Budget
    from sfumato.governance import settings
    from sfumato.governance.agreements import CLOSED, Agreement
    from sfumato.governance.declared import board_of
    from sfumato.governance.entries import Recovered
    from sfumato.governance.ledger import Ledger

    if charge_epsilon is None and charge_delta != "0":
        raise InvalidInput("--charge-delta goes with --charge-epsilon; nothing was changed.")
    charge = None if charge_epsilon is None else Budget(epsilon=charge_epsilon, delta=charge_delta)
    where = settings.found(ledger)
    agreed = dict(_signer(text) for text in by or ())
    seated = None if board is None else board_of(board)
    documents = tuple(certificate_of(file) for file in certified or ())
    if paper is not None:
        asked = Ledger.agreement(
            where.url,
            key=where.key,
            anchor=where.anchor,
            root=where.root,
            reason=reason,
            charge=charge,
            board=seated,
            witness=where.witness,
            witness_lost=witness_lost,
            documents=documents,
        )
        wrote(asked, paper, as_json=as_json)
        return
    with closing(
        Ledger.recover(
            where.url,
            key=where.key,
            anchor=where.anchor,
            root=where.root,
            reason=reason,
            charge=charge,
            approvals=agreed,
            agreements=tuple(Agreement.load(file) for file in agreement or ()),
            board=seated,
            witness=where.witness,
            witness_lost=witness_lost,
            documents=documents,
        )
    ) as book:
        number, entry = [(row.number, entry) for row in book.rows() if isinstance(entry := row.entry, Recovered)][-1]
    if as_json:
        gap = {"epsilon": str(entry.gap.epsilon), "delta": str(entry.gap.delta)}
        say_json(
            {
                "entry": number,
                "lost": entry.lost,
                "charged": gap,
                "whole": entry.whole,
                "basis": entry.basis,
                "closes": entry.closes,
            }
        )
        return
    if entry.whole:
        say("Nobody knows what was charged: nothing is left under any cap.")
    else:
        say(f"{counted(entry.lost, 'entry', 'entries')} lost; every balance was charged {entry.gap}.")
    say(f"How that is known: {entry.basis}.")
    if entry.closes:
        say(CLOSED)
    say(f"The ledger goes on at entry {number}. Publish its new head: sfumato ledger head")


@ledger.command()
def population(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the people are called.")],
    *,
    unit: Who,
    epsilon: Epsilon,
    reason: Reason,
    relation: Relation = "add/remove",
    delta: Delta = "0",
    method: Method = "basic",
    order: Order = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Declare people, and the cap that everything known about them shares: all datasets, copies and versions.

    Example: $ sfumato ledger population patients --unit user:patient_id --epsilon 8 --delta 1e-6 --reason "lifetime"
    """
    from sfumato.core.budget import Budget

    cap = Budget.asked(epsilon=epsilon, delta=delta)
    who = unit_of(unit, relation)
    with opened(ledger) as book:
        book.declare_population(name, unit=who, cap=cap, reason=reason, method=method, order=order)
    _declared(f"the population {name!r} has a privacy budget of {cap} in all", {"population": name}, as_json=as_json)


@ledger.command()
def dataset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The public name of the dataset, as its schema has it.")],
    *,
    version: Annotated[str, typer.Option(metavar="TEXT", help="This state of the data, as its schema has it.")],
    population: Annotated[str, typer.Option(metavar="NAME", help="Whose data they are.")],
    epsilon: Epsilon,
    delta: Delta = "0",
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Declare a version of a dataset, the people it is about, and the cap that all its versions share.

    Said again it changes nothing; said differently it is refused.

    Example: $ sfumato ledger dataset visits --version 2026-10 --population patients --epsilon 4 --delta 1e-6
    """
    from sfumato.core.budget import Budget
    from sfumato.core.query import Dataset

    cap = Budget.asked(epsilon=epsilon, delta=delta)
    with opened(ledger) as book:
        book.declare_dataset(Dataset(name=name, edition=version), population=population, cap=cap)
    about = {"dataset": name, "version": version, "population": population}
    _declared(
        f"{name!r} version {version!r} is about {population!r}; its privacy budget is {cap}", about, as_json=as_json
    )


@ledger.command()
def terms(
    file: Annotated[Path, typer.Argument(metavar="FILE", help='TOML, with kind = "terms" and the fields of Terms.')],
    *,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Declare what a dataset may be used for: purposes, legal grounds, consent, recipients, sites, the last day.

    A release outside them is refused. New terms end what the board approved under older ones. This checks declarations
    against declarations; it is not legal advice.

    Example: $ sfumato ledger terms visits-terms.toml
    """
    from sfumato.governance.declared import terms_of

    said = terms_of(file)
    with opened(ledger) as book:
        book.declare_terms(said)
    words = f"{said.dataset!r} may be used for {', '.join(said.purposes)} until {said.until}"
    _declared(words, {"dataset": said.dataset, "until": said.until}, as_json=as_json)


@ledger.command()
def clock(*, reason: Reason, ledger: Where = None, as_json: AsJson = False) -> None:
    """Say that the clock is right, after nobody used the ledger for more than 7 days.

    A clock that runs ahead would shut the ledger once it is set right, so a charge far after the last entry is refused
    until somebody vouches for the time. Silence that was confirmed is not asked about again, if it lasts no longer. No
    budget is renewed.

    Example: $ sfumato ledger clock --reason "closed over the summer; date checked against the wall"
    """
    with opened(ledger) as book:
        book.confirm_clock(reason)
        at = book.head().head.at
    say_json({"at": at}) if as_json else say(f"the clock is confirmed: {at}")


@ledger.command()
def expire(*, ledger: Where = None, as_json: AsJson = False) -> None:
    """Settle charges whose time is over. They go on counting, unless nothing can have been read for them.

    Example: $ sfumato ledger expire
    """
    with opened(ledger) as book:
        done = {number: book.charge(number).state.value for number in book.expire()}
    if as_json:
        say_json({"charges": [{"charge": number, "state": state} for number, state in done.items()]})
    elif not done:
        say("no charge is stale")
    for number, state in () if as_json else done.items():
        say(f"charge {number}: {'given back, nothing was read' if state == 'released' else 'counts as spent'}")


def _declared(words: str, about: dict[str, str], *, as_json: bool) -> None:
    say_json({"declared": about}) if as_json else say_line(f"{words}.")


def _harmless(line: str) -> str:
    """A line of JSON in which what moves a cursor is escaped."""
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in line)


def _signer(text: str) -> "tuple[str, SigningKey | None]":
    from sfumato.core.signature import SigningKey

    name, given, file = text.partition("=")
    return name, SigningKey.load(file) if given else None


def write_new(out: Path, lines: "Iterator[str]") -> int:
    """Write lines to a file that must not exist; how many there were."""
    if out.exists() or out.is_symlink():
        raise InvalidInput(f"{out} already exists and was not overwritten. Name another file with -o.")
    number = 0
    with out.open("x", encoding="utf-8") as file:
        for line in lines:
            file.write(line)
            number += 1
    return number
