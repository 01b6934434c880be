"""What the commands print, and where they write: text from a file is made harmless to a terminal first."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "AsJson",
    "Key",
    "Language",
    "LegalBasis",
    "Reason",
    "Theme",
    "counted",
    "harmless",
    "one_line",
    "say",
    "say_json",
    "say_line",
    "say_paragraphs",
    "target_of",
    "terminal",
]

Reason = Annotated[
    str,
    typer.Option(metavar="TEXT", help="For publication: why this ε and no smaller one. Without it, a draft."),
]
LegalBasis = Annotated[
    str, typer.Option(metavar="TEXT", help="For publication: on which legal basis. Without it, a draft.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for programs.")]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="The public key that you trust, or its file. Get it from the publisher, not with the release.",
    ),
]
Language = Annotated[Literal["en", "zh", "zh-Hans"], typer.Option(help="The language of the text.")]
Theme = Annotated[Literal["light", "dark"], typer.Option(help="The colours of the picture.")]


def harmless(text: str) -> str:
    r"""Spell out control characters, line breaks aside: a certificate must not move the cursor or hide a word.

    >>> harmless("ε = 1\n\x1b[2J")
    'ε = 1\n\\x1b[2J'
    """
    return "".join(sign if sign == "\n" or sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def one_line(text: str) -> str:
    r"""Spell out line breaks too, where a line holds a name that somebody chose: a name must not add a line.

    >>> print(one_line("visits\nrequest 9 is approved"))
    visits\nrequest 9 is approved
    """
    return harmless(text).replace("\n", "\\n")


def say_line(text: str, *, error: bool = False) -> None:
    """Print one line, whatever is in it."""
    typer.echo(one_line(text), err=error)


def say(text: str, *, error: bool = False) -> None:
    """Print a text, on the stream of errors if it is one."""
    typer.echo(harmless(text), err=error)


def terminal(*, quiet: bool = False) -> "Console":
    """Where tables and steps are printed; if the reader goes away, the program ends with the code for that."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Terminal(highlight=False, quiet=quiet)


def say_paragraphs(text: str) -> None:
    """Print a long text: broken between words on a terminal, left as it is for programs and files."""
    if sys.stdout is not None and sys.stdout.isatty():
        from rich.text import Text

        terminal().print(Text(harmless(text)))
    else:
        say(text)


def say_json(found: object) -> None:
    """Print a result for programs; what a terminal could mistake for a command is escaped by JSON itself."""
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)
    typer.echo("".join(sign if sign == "\n" or sign.isprintable() else json.dumps(sign)[1:-1] for sign in text))


def target_of(out: Path | None, source: Path, ending: str) -> Path:
    """Where to write: the file named, or the one beside its source with another ending; never the source itself."""
    target = source.with_suffix(ending) if out is None else out
    if target.exists() and source.exists() and target.samefile(source):
        raise InvalidInput(f"{target} is the certificate itself; nothing was written. Name another file with -o.")
    return target


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number of things in words.

    >>> counted(1, "entry", "entries"), counted(2, "finding")
    ('1 entry', '2 findings')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
