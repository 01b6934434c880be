"""The ledger on the command line: made once, verified, published, exported; its populations, datasets and terms."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.exits import Exit
from sfumato.cli.output import AsJson, one_line, say, say_json, say_line
from sfumato.cli.protected import Delta, Epsilon, Reason, Relation, Who, unit_of
from sfumato.cli.standing import standing_json, standing_words, witnessed_in
from sfumato.errors import InvalidInput, SfumatoError

if TYPE_CHECKING:
    from sfumato.core.signature import SigningKey
    from sfumato.governance.anchor import SignedHead
    from sfumato.governance.entries import Row
    from sfumato.governance.ledger import Ledger
    from sfumato.governance.settings import Settings

__all__ = ["Method", "Order", "Out", "Where", "head_in", "ledger", "opened", "write_new"]

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
    as_json: AsJson = False,
) -> None:
    """Make an empty ledger: its database, its key, its anchor, and the settings file that names the three.

    The anchor detects a restored backup, so it belongs on another disk and in no backup of the database.
    Without --anchor it lies beside the database, where it protects against less. A settings file whose address holds a
    password is readable by you alone; PGPASSFILE keeps the password out of it.

    Example: $ sfumato ledger init
    """
    from sfumato.governance import settings

    made = settings.made(place, url=url, anchor=anchor, key=key)
    warning = _beside(made)
    if as_json:
        paths = {"settings": made.file, "key": made.key, "anchor": made.anchored_at}
        say_json({name: str(path) for name, path in paths.items()} | {"database": made.address, "warning": warning})
        return
    say(f"settings: {made.file}\ndatabase: {made.address}\nkey:      {made.key} (keep it secret; without it nothing")
    say(f"          can be charged any more)\nanchor:   {made.anchored_at}")
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
        str | None, typer.Option(metavar="KEY", help="With --export: the public key that you trust, or its file.")
    ] = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Check every entry, the balances that follow from them, the anchor and the heads; name whatever is wrong.

    Goes through the whole record, also of a ledger that is refused. It checks the record, the balances and the heads;
    the stored answers themselves are verified by sfumato evidence. Whoever can rewrite the record and the anchor and
    holds the key is found by a published head alone. An auditor does the same with an export and published heads.

    Example: $ sfumato ledger verify
    """
    from sfumato.governance import settings

    heads = [head_in(file) for file in head or ()]
    if export is not None and witnessed:
        raise InvalidInput("--witnessed goes with a ledger, not with --export. Nothing was verified.")
    if export is not None:
        _verify_export(export, heads, key, as_json=as_json)
        return
    if key is not None:
        raise InvalidInput("--key goes with --export: a ledger has its own key. Nothing was verified.")
    with closing(settings.unchecked(ledger)) as book:
        found = book.verify(*heads, witnessed=[witnessed_in(file) for file in witnessed or ()])
        end = None if found else book.head().head
        standing = None if found else book.lease.standing()
    if as_json:
        findings = [{"entry": each.entry, "problem": each.problem} for each in found]
        told = {"witness": standing_json(standing)} if standing is not None else {}
        say_json({"holds": not found, "heads": len(heads), "findings": findings} | told)
    elif end is None:
        say("\n".join(one_line(str(each)) for each in found))
        say(f"This ledger does not hold: {_counted(len(found), 'finding')}. Charge nothing until that is clear.")
    else:
        compared = f" and {_counted(len(heads), 'published head')} agree" if heads else " agrees"
        say(f"{_counted(end.number, 'entry', 'entries')}, the last of {end.at}: each is in its place and unchanged.")
        say(f"All balances follow from them. The anchor{compared}.")
        say(standing_words(standing))
    if found:
        raise typer.Exit(Exit.FOUND_WRONG)


@ledger.command("head")
def show_head(*, out: Out = None, ledger: Where = None, as_json: AsJson = False) -> None:
    """Print the signed head of the record, to be published: later it holds the record to what it is today.

    It states the number of entries, the sums of all charges and digests of the record, of its decisions and of its
    balances, and nothing about anybody's data.

    Example: $ sfumato ledger head -o head.json
    """
    with opened(ledger) as book:
        signed, standing = book.head(), book.lease.standing()
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
                "signature": signed.signature,
                "written": out and str(out),
            }
            | ({} if standing is None else {"witness": standing_json(standing)})
        )
    else:
        if standing is not None:
            say(standing_words(standing), error=True)  # the head alone can be piped
        say(text.rstrip() if out is None else f"written: {out} (entry {signed.head.number}; publish it)")


@ledger.command()
def export(*, out: Out = None, ledger: Where = None, as_json: AsJson = False) -> None:
    """Write the whole record as lines of JSON: each entry with its number, digests and signature.

    The record holds declarations, decisions, charges and certificates; no row of anybody's data. With --json the lines
    become one list.

    Example: $ sfumato ledger export -o record.jsonl
    """
    with opened(ledger) as book:
        if out is not None:
            number = write_new(out, (_line(row) + "\n" for row in book.rows()))
            said = {"written": str(out), "entries": number}
            say_json(said) if as_json else say(f"written: {out} ({_counted(number, 'entry', 'entries')})")
        elif as_json:
            say_json([_document(row) for row in book.rows()])
        else:
            for row in book.rows():
                typer.echo(_line(row, harmless=True))


@ledger.command()
def recover(
    *,
    reason: Reason,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by", metavar="NAME[=KEYFILE]", help="A member of the board who agreed; a board needs its quorum of them."
        ),
    ] = None,
    charge_epsilon: Annotated[
        str | None, typer.Option(metavar="X", help="ε to charge to every balance, if the lost entries charge no more.")
    ] = None,
    charge_delta: Annotated[str, typer.Option(metavar="X", help="δ to charge beside it.")] = "0",
    witness_lost: Annotated[
        bool, typer.Option("--witness-lost", help="The witness is lost too: everything left is charged.")
    ] = False,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Go on after entries were lost, by a decision that is recorded with its reason.

    Every balance is charged what the anchor says was lost: no balance can have lost more. Where the anchor is lost
    too, everything that is left under every cap is charged. Where the record names a witness, it is asked, and its
    lease is charged with what it has seen. Where a board is seated, its quorum has to agree. A ledger that lost nothing
    is refused.

    Example: $ sfumato ledger recover --reason "the disk failed; the backup of Sunday is back"
    """
    from sfumato.core.budget import Budget
    from sfumato.governance import settings
    from sfumato.governance.entries import Recovered
    from sfumato.governance.ledger import Ledger

    if charge_epsilon is None and charge_delta != "0":
        raise InvalidInput("--charge-delta goes with --charge-epsilon; nothing was changed.")
    charge = None if charge_epsilon is None else Budget(epsilon=charge_epsilon, delta=charge_delta)
    where = settings.found(ledger)
    agreed = dict(_signer(text) for text in by or ())
    with closing(
        Ledger.recover(
            where.url,
            key=where.key,
            anchor=where.anchor,
            reason=reason,
            charge=charge,
            approvals=agreed,
            witness=where.witness,
            witness_lost=witness_lost,
        )
    ) as book:
        number, entry = [(row.number, entry) for row in book.rows() if isinstance(entry := row.entry, Recovered)][-1]
    if as_json:
        gap = {"epsilon": str(entry.gap.epsilon), "delta": str(entry.gap.delta)}
        say_json({"entry": number, "lost": entry.lost, "charged": gap, "whole": entry.whole, "basis": entry.basis})
        return
    if entry.whole:
        say("Nobody knows what was charged: nothing is left under any cap.")
    else:
        say(f"{_counted(entry.lost, 'entry', 'entries')} lost; every balance was charged {entry.gap}.")
    say(f"How that is known: {entry.basis}.")
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


def _verify_export(file: Path, heads: "list[SignedHead]", key: str | None, *, as_json: bool) -> None:
    """Hold an export to itself, to the heads and to the key, and say what follows and what does not."""
    from sfumato.core.signature import read_public_key
    from sfumato.governance.verify import check_record

    trusted = None if key is None else read_public_key(key)
    end = 0

    def rows() -> "Iterator[Row]":
        nonlocal end
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                row = _exported(line, file, end + 1)
                end = row.number
                yield row

    try:
        with file.open(encoding="utf-8") as lines:
            unsigned = '"nonce":' not in lines.readline()  # written before rows were signed
        found = tuple(check_record(rows(), heads=tuple(heads), key=trusted, unsigned=unsigned))
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not an export of a ledger; nothing was verified.") from None
    if end == 0:
        raise InvalidInput(f"{file} holds no entry; nothing was verified.")
    if as_json:
        findings = [{"entry": each.entry, "problem": each.problem} for each in found]
        say_json({"holds": not found, "heads": len(heads), "trusted": trusted is not None, "findings": findings})
    elif found:
        say("\n".join(one_line(str(each)) for each in found))
        say(f"This export does not hold: {_counted(len(found), 'finding')}.")
    else:
        say(f"{_counted(end, 'entry', 'entries')}: each is in its place, unchanged, and follows from those before.")
        if not heads or trusted is None:
            say("Nothing outside the file was asked: give a published head and the key that you trust.")
        else:
            say(f"{_counted(len(heads), 'published head')} and the trusted key agree.")
    if found:
        raise typer.Exit(Exit.FOUND_WRONG)


def _exported(line: str, file: Path, number: int) -> "Row":
    """A line of an export as a row; the text of its entry is taken as it stands, because it was hashed so."""
    from sfumato.core.documents import canonical, parse
    from sfumato.governance.entries import Row

    try:
        whole = parse(line)
        shape = {"number": int, "previous": str, "digest": str, "entry": dict}
        signed = shape | {"nonce": str, "head": str}
        kinds = {name: type(value) for name, value in whole.items()} if isinstance(whole, dict) else {}
        if not isinstance(whole, dict) or kinds not in (shape, signed):
            raise InvalidInput("another shape")
        entry = whole["entry"]
        body, kind = canonical(entry), str(entry.get("kind")) if isinstance(entry, dict) else ""
        texts = (str(whole.get(name, "")) for name in ("previous", "digest", "nonce", "head"))
        return Row(int(str(whole["number"])), kind, body, *texts)
    except SfumatoError:
        raise InvalidInput(
            f"{file}: line {number} is not an entry of a ledger; nothing was verified. Get one: sfumato ledger export"
        ) from None


def head_in(file: Path) -> "SignedHead":
    """The signed head in a file."""
    from sfumato.governance.anchor import SignedHead

    try:
        return SignedHead.read(file.read_text("utf-8").strip())
    except (SfumatoError, UnicodeDecodeError):
        raise InvalidInput(f"{file} is not a signed head; nothing was verified. Get one: sfumato ledger head") from None


def _document(row: "Row") -> dict[str, object]:
    from sfumato.core.documents import parse

    said = {"number": row.number, "previous": row.previous, "digest": row.digest, "nonce": row.nonce}
    return said | {"head": row.head, "entry": parse(row.body)}


def _line(row: "Row", *, harmless: bool = False) -> str:
    """A row as a line of JSON, the text of its entry as it was hashed; ``harmless`` escapes what moves a cursor."""
    text = f'{{"number":{row.number},"previous":"{row.previous}","digest":"{row.digest}","nonce":"{row.nonce}",'
    text += f'"head":{json.dumps(row.head, ensure_ascii=False)},"entry":{row.body}}}'
    if not harmless:
        return text
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in text)


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


def _counted(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
