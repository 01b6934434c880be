"""What a reader does with a certificate. Needs no data, no engine and no vault."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.output import say
from sfumato.errors import InvalidInput, SfumatoError

if TYPE_CHECKING:
    from sfumato.core.release import Release

__all__ = ["explain", "report", "verify"]

FOUND_WRONG = 3

File = Annotated[Path, typer.Argument(metavar="FILE", help="The certificate, a JSON file.")]
Key = Annotated[
    str | None,
    typer.Option(help="The public key that you trust, or its file. Get it from the publisher, not with the release."),
]


def verify(
    file: File,
    *,
    key: Key = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Check a certificate from itself alone: sensitivity, loss, cost, seals and signature.

    Exits with 0 if all of it is consistent and with 3 if not, naming each field that is wrong. Without a trusted key
    nobody is authenticated: anyone can sign a consistent certificate.

    Example: $ sfumato verify sfumato-demo/ili.json --key sfumato-demo/key.pub
    """
    from sfumato.reports.verify import read
    from sfumato.reports.verify import verify as check

    with _reading(file):
        outcome = check(read(file), key=key)
    if as_json:
        findings = [{"field": finding.field, "problem": finding.problem} for finding in outcome.findings]
        found = {"consistent": outcome.consistent, "authenticated": outcome.authenticated, "findings": findings}
        typer.echo(json.dumps(found, indent=1))
    else:
        say(str(outcome))
    if not outcome.consistent:
        raise typer.Exit(FOUND_WRONG)


def explain(
    file: File,
    *,
    lang: Annotated[Literal["en", "zh", "zh-Hans"], typer.Option(help="The language of the text.")] = "en",
    key: Key = None,
) -> None:
    """Say in plain words what was released, how exact it is and what it promises.

    A certificate that does not verify is refused.

    Example: $ sfumato explain sfumato-demo/ili.json --lang zh
    """
    say(_published(file, key).explain(lang))


def report(
    file: File,
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page to write; FILE with .html if not given."),
    ] = None,
    key: Key = None,
) -> None:
    """Write a release as one web page, in English and Chinese, that needs no script and no network.

    A certificate that does not verify is refused. An earlier page of the same name is overwritten.

    Example: $ sfumato report sfumato-demo/ili.json -o ili.html
    """
    from sfumato.reports.page import page

    target = file.with_suffix(".html") if out is None else out
    text = page(_published(file, key))
    if target.exists() and target.samefile(file):
        raise InvalidInput(f"{target} is the certificate itself; nothing was written. Name another file with -o.")
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as wrong:
        raise InvalidInput(f"{target} was not written: {wrong.strerror}. Name another file with -o.") from None
    say(f"written: {target}")


def _published(file: Path, key: str | None) -> "Release":
    from sfumato.reports.verify import load

    with _reading(file):
        return load(file, key=key)


@contextmanager
def _reading(file: Path) -> Iterator[None]:
    """Refuse what reading itself stumbles over: half a character, a number of thousands of digits, endless nesting."""
    try:
        yield
    except SfumatoError:
        raise
    except (ValueError, RecursionError):
        raise InvalidInput(f"{file} holds text or numbers that no certificate has; nothing was verified.") from None
