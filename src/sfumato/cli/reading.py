"""Opening a ledger on the command line for reading: a public key is enough, and nothing can be written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.output import say
from sfumato.cli.proofs import read_head

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger

__all__ = ["Published", "Trusted", "reading"]

Trusted = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        help="The public key that you trust, or its file; else the .pub beside the key that the settings name.",
    ),
]
Published = Annotated[
    Path | None,
    typer.Option("--head", metavar="FILE", help="A published head: a ledger that is older than it is refused."),
]


@contextmanager
def reading(where: Path | None, key: str | None, head: Path | None, *, checked: bool = True) -> "Iterator[Ledger]":
    """The ledger that is meant, for the length of a block, without its private key; what cannot be noticed is said."""
    from sfumato.governance import settings

    given = None if head is None else read_head(head)
    book = settings.reading(where, key=key, head=given, checked=checked)
    try:
        if book.held_to_nothing:
            say(
                "note: you cannot read the anchor of this ledger. What follows is signed, and an old copy of it would "
                "not be noticed. Give a head that was published: --head FILE",
                error=True,
            )
        yield book
    finally:
        book.close()
