"""The audit of one training run by its canaries."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.audit import REFUTED
from sfumato.cli.certificate import published
from sfumato.cli.output import AsJson, Key, Language, Theme, say, say_json
from sfumato.cli.written import PICTURES, check_file, written_last
from sfumato.core.extras import need
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.audit import OneRunAudit

__all__ = ["model"]

LARGEST = 64_000_000  # bytes of evidence


def model(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The certificate of your training run; an invented model if not given."),
    ] = None,
    *,
    evidence: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Coins and scores of the run, as audit.canary_evidence gives them (JSON)."),
    ] = None,
    canaries: Annotated[
        int | None,
        typer.Option(min=20, max=5_000, help="Of the invented model: how many canaries; 1,000 if not given."),
    ] = None,
    score: Annotated[
        Literal["gradient", "loss"] | None,
        typer.Option(help="Of the invented model: what coins are guessed by; gradient if not given."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw bounds and scores: .svg, .png, .pdf or .html.")
    ] = None,
    lang: Language = "en",
    theme: Theme = "light",
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Audit one training run by its canaries: invented units, each in by a coin that was sealed before the charge.

    With a certificate and its evidence, your own run; coins that do not match the certificate are refused. Without
    them, a small invented model is trained and audited. No data is read and nothing is charged for an audit. Where
    nothing is found, nothing is proven. Exits with 4 if the certificate of your run is refuted; an invented model is
    correct, and refuted by chance in up to 5% of the runs.

    Example: $ sfumato audit model --canaries 200

    Example: $ sfumato audit model --canaries 100 --score loss --lang zh --json
    """
    check_file(picture, PICTURES)
    if picture is not None:
        need("vl_convert", "pip install 'sfumato[plots]'")
    if file is None and evidence is None:
        found = _invented(canaries or 1_000, score or "gradient")
    else:
        _only_for_invented(canaries, score)
        found = _own(file, evidence, key)
    say_json(found.plain()) if as_json else say(found.explain(lang))
    refuted = file is not None and (found.refuted or found.refuted_if_gaussian)
    code = written_last(
        None if picture is None else lambda: _drawn(found, picture, lang, theme),
        language=lang,
        quiet=as_json,
        ending=REFUTED if refuted else 0,
    )
    if code:
        raise typer.Exit(code)


def _drawn(found: "OneRunAudit", picture: Path, language: str, theme: str) -> Path:
    from sfumato.audit.one_run_plot import audit_chart
    from sfumato.reports.plots import save

    return save(audit_chart(found, language, theme), picture)


def _invented(canaries: int, score: Literal["gradient", "loss"]) -> "OneRunAudit":
    from sfumato.audit.one_run import trained
    from sfumato.audit.one_run_demo import demonstrated

    return trained(demonstrated(canaries=canaries, score=score, weights=4 * canaries))


def _only_for_invented(canaries: int | None, score: str | None) -> None:
    """Refuse what a run of one's own had fixed before it was charged."""
    given = [name for name, value in (("--canaries", canaries), ("--score", score)) if value is not None]
    if given:
        raise InvalidInput(
            f"{' and '.join(given)} {'is' if len(given) == 1 else 'are'} for the invented model: your run fixed its "
            "canaries and their score before it was charged. Nothing was audited. Leave that out."
        )


def _own(file: Path | None, evidence: Path | None, key: str | None) -> "OneRunAudit":
    from sfumato.audit.one_run import judged_evidence

    if file is None or evidence is None:
        raise InvalidInput("a certificate and its evidence go together; nothing was audited. Say FILE --evidence FILE.")
    told, certificate = _document(evidence), _document(file)
    if "coins" in certificate and "statement" in told:
        raise InvalidInput(
            "these files are swapped: the first is the evidence and the second the certificate. Nothing was audited. "
            f"Say: sfumato audit model {evidence} --evidence {file}"
        )
    if "statement" in told:
        raise InvalidInput(
            f"{evidence} is a certificate, and not the evidence of an audit; nothing was audited. Evidence is what "
            "audit.canary_evidence gives."
        )
    if "coins" in certificate:
        raise InvalidInput(
            f"{file} is the evidence of an audit, and not a certificate; nothing was audited. The certificate is what "
            "release.certificate.save writes."
        )
    try:
        statement = published(file, key).statement
    except InvalidInput as wrong:
        raise InvalidInput(str(wrong).replace("othing was verified", "othing was audited")) from None
    return judged_evidence(statement, told)


def _document(file: Path) -> dict[str, object]:
    """What a file of JSON says."""
    try:
        size = file.stat().st_size
        told = json.loads(file.read_text(encoding="utf-8")) if size <= LARGEST else None
    except (OSError, ValueError, RecursionError):
        raise InvalidInput(f"{file} cannot be read as JSON; nothing was audited.") from None
    if size > LARGEST:
        raise InvalidInput(f"{file} is too large for an audit; nothing was audited.")
    if not isinstance(told, dict):
        raise InvalidInput(
            f"{file} is neither a certificate nor the evidence of an audit (a JSON object); nothing was audited."
        )
    return told
