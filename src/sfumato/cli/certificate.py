"""What a reader does with a certificate. Needs no data, no engine and no vault."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.exits import Exit
from sfumato.cli.output import AsJson, Key, Language, LegalBasis, Reason, say, say_json, say_paragraphs, target_of
from sfumato.cli.proofs import as_document, certificate_of, checked, read_receipt
from sfumato.errors import InvalidInput, SfumatoError

if TYPE_CHECKING:
    from sfumato.core.release import Release

__all__ = ["File", "explain", "published", "reading", "report", "verify"]

File = Annotated[Path, typer.Argument(metavar="FILE", help="The certificate, a JSON file.")]
ONE_KEY = (
    "the key that signs certificates was taken for the ledger's: where it is another one (roles by key, an owner "
    "process), whoever signs certificates could have made this receipt. Give the ledger's own: --ledger-key KEY"
)
Audience = Literal["public", "patient", "clinician", "manager", "board"]


def verify(
    file: File,
    *,
    key: Key = None,
    root: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="The public key of the institution's root, or its file, in place of --key."),
    ] = None,
    certified: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --root: what sfumato key certify wrote; else KEY.cert beside --key."),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --root: the ledger's settings file; it knows of revocations."),
    ] = None,
    receipt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The receipt of the certificate, from sfumato receipt.")
    ] = None,
    head: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="With --receipt: a head that the ledger published; as many as you have."),
    ] = None,
    ledger_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="With --receipt: the public key of the ledger, if it is not that of --key."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a certificate from itself alone: sensitivity, loss, cost, seals and signature.

    Exits with 0 if all of it is consistent and with 3 if not, naming each field that is wrong. Without a trusted key
    nobody is authenticated: anyone can sign a consistent certificate.

    With --root the signing key need not be known: it is believed by its own certificate from the root, which lies
    beside it as a file, or stands in the ledger or in the receipt.

    With a receipt also whether the ledger stored it, as of the signed head in the receipt. Whoever holds the key could
    sign a head that nobody else saw: with a head that was published the release is final.

    Example: $ sfumato verify sfumato-demo/ili.json --key sfumato-demo/key.pub
    """
    from sfumato.core.documents import canonical
    from sfumato.reports.verify import read
    from sfumato.reports.verify import verify as check

    if receipt is None and (head or ledger_key is not None):
        raise InvalidInput("--head and --ledger-key go with --receipt. Nothing was verified.")
    if root is not None:
        if ledger_key is not None:
            raise InvalidInput(
                "a root vouches for the key of the ledger: leave --ledger-key out. Nothing was verified."
            )
        _verify_from_root(file, root, key, certified, ledger, receipt, head or (), as_json=as_json)
        return
    if certified is not None or ledger is not None:
        raise InvalidInput("--certified and --ledger go with --root: whose root? Nothing was verified.")
    with reading(file):
        document = read(file)
        outcome = check(document, key=key)
        stored = None if receipt is None else checked(canonical(document), receipt, head or (), ledger_key or key)
    if as_json:
        findings = [{"field": finding.field, "problem": finding.problem} for finding in outcome.findings]
        said = {"consistent": outcome.consistent, "authenticated": outcome.authenticated, "findings": findings}
        say_json(said if stored is None else said | {"receipt": as_document(stored)})
    else:
        say(str(outcome))
        if stored is not None:
            say(str(stored))
            if stored.signed and stored.final is None and ledger_key is None:
                say(ONE_KEY)
    if not outcome.consistent or not (stored is None or stored.holds):
        raise typer.Exit(Exit.FOUND_WRONG)


def _verify_from_root(
    file: Path,
    root: str,
    key: str | None,
    certified: Path | None,
    ledger: Path | None,
    receipt: Path | None,
    heads: Sequence[Path],
    *,
    as_json: bool,
) -> None:
    """Verify by the certificate of the signing key, by the ledger, or by the receipt; say as of when."""
    from sfumato.cli.reading import reading as reading_ledger
    from sfumato.core.documents import canonical
    from sfumato.reports.release_keys import verify_by_certificate, verify_by_ledger, verify_by_receipt
    from sfumato.reports.verify import read

    beside = Path(f"{key}.cert") if certified is None and key is not None else certified
    with reading(file):
        document = read(file)
        if ledger is not None:
            with reading_ledger(ledger, root, None) as book:
                outcome = verify_by_ledger(document, ledger=book)
        elif beside is not None:
            outcome = verify_by_certificate(document, root=root, certificate=certificate_of(beside))
        elif receipt is not None:
            outcome = verify_by_receipt(document, root=root, receipt=read_receipt(receipt))
        else:
            raise InvalidInput(
                "a root vouches for keys, and which document says so for this one is not known; nothing was verified. "
                "Give the key's certificate, --certified FILE, the ledger, --ledger FILE, or a receipt, --receipt FILE."
            )
        stored = None if receipt is None else checked(canonical(document), receipt, heads, None, root)
    if as_json:
        findings = [{"field": finding.field, "problem": finding.problem} for finding in outcome.findings]
        known = {"consistent": outcome.consistent, "authenticated": outcome.consistent, "findings": findings}
        known |= {"said": outcome.said or None}
        say_json(known if stored is None else known | {"receipt": as_document(stored)})
    else:
        say(str(outcome))
        if stored is not None:
            say(str(stored))
    if not outcome.consistent or not (stored is None or stored.holds):
        raise typer.Exit(Exit.FOUND_WRONG)


def explain(
    file: File,
    *,
    lang: Language = "en",
    audience: Annotated[Audience, typer.Option(help="Who reads it; board is an ethics board.")] = "public",
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Say in plain words what was released, how exact it is and what it guarantees.

    A certificate that does not verify is refused.

    Example: $ sfumato explain sfumato-demo/ili.json --lang zh

    Example: $ sfumato explain sfumato-demo/ili.json --audience board
    """
    text = published(file, key).explain(lang, audience)
    if as_json:
        say_json({"language": lang, "audience": audience, "paragraphs": text.split("\n\n")})
    else:
        say_paragraphs(text)


def report(
    file: File,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The report to write, .html or .pdf; FILE with .html if not given."
        ),
    ] = None,
    lang: Annotated[Literal["both", "en", "zh"], typer.Option(help="The languages of the report.")] = "both",
    reason: Reason = "",
    legal_basis: LegalBasis = "",
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Write a release as one page that needs no network: table, pictures, words, certificate.

    The ending decides: a web page (.html), or paper (.pdf) where a browser is installed that can print one. A
    certificate that does not verify is refused. An earlier report of the same name is overwritten.

    With a reason and a legal basis the page is a publication and states both. Without, it is marked as
    a draft.

    Example: $ sfumato report sfumato-demo/ili.json -o ili.html

    Example: $ sfumato report sfumato-demo/ili.json --reason "ε = 1/2 gives ±20" --legal-basis "Act on statistics, § 7"
    """
    from sfumato.reports.publication import Grounds

    release = published(file, key)
    target = target_of(out, file, ".html")
    languages = ("en", "zh") if lang == "both" else (lang,)
    grounds = Grounds(reason=reason, legal_basis=legal_basis)
    written = release.report(target, languages=languages, reason=reason, legal_basis=legal_basis)
    if as_json:
        say_json({"written": str(written), "languages": list(languages), "publication": grounds.document()})
        return
    say(f"written: {written}")
    if grounds.missing:
        say(grounds.line("en"))


def published(file: Path, key: str | None) -> "Release":
    """The release in a certificate that verifies."""
    from sfumato.reports.verify import load

    with reading(file):
        return load(file, key=key)


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Refuse what reading itself stumbles over: half a character, a number of thousands of digits, endless nesting."""
    try:
        yield
    except SfumatoError:
        raise
    except (ValueError, RecursionError):
        raise InvalidInput(f"{file} holds text or numbers that no certificate has; nothing was verified.") from None
