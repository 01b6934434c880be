"""The receipt of a release: that a ledger stored it, for whoever has its certificate."""

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.certificate import File, reading
from sfumato.cli.ledger import Where
from sfumato.cli.output import AsJson, say, say_json, target_of
from sfumato.cli.proofs import read_head, read_receipt
from sfumato.cli.reading import reading as reading_ledger
from sfumato.errors import InvalidInput

__all__ = ["receipt"]


def receipt(
    file: File,
    *,
    head: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A head that was published, which the receipt shall lead to; or several."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The receipt to write; FILE with .receipt.json if not given."),
    ] = None,
    ledger: Where = None,
    as_json: AsJson = False,
) -> None:
    """Write the receipt of a release beside its certificate: it shows that this ledger stored it.

    It leads from the certificate to the signed head of the ledger by a few hashes, and to published heads if you name
    them. Whoever has certificate and receipt checks both without the ledger: sfumato verify FILE --receipt FILE. An
    earlier receipt of the same name is replaced, anything else is not. Reads no data and charges nothing.

    Example: $ sfumato receipt releases/quarters/2024-Q1.certificate.json
    """
    from sfumato.core.certificate import Certificate
    from sfumato.core.documents import canonical
    from sfumato.reports.verify import read

    with reading(file):
        certificate = Certificate(canonical(read(file)))
    beside = file.with_name(f"{file.name.removesuffix('.json').removesuffix('.certificate')}.receipt.json")
    target = target_of(out or beside, file, "")
    if target.exists() or target.is_symlink():
        _check_replaced(target)
    heads = [read_head(each) for each in head or ()]
    with reading_ledger(ledger, None, None) as book:
        made = book.receipt(certificate, *heads)
    made.save(target)
    if as_json:
        say_json({"written": str(target), "entry": made.number, "as_of": made.head.head.number, "heads": len(heads)})
    else:
        say(f"written: {target} (entry {made.number}, as of the head of entry {made.head.head.number})")


def _check_replaced(target: Path) -> None:
    try:
        read_receipt(target)
    except InvalidInput:
        raise InvalidInput(
            f"{target} exists and is not a receipt; nothing was written. Name another file with -o."
        ) from None
