"""The audit of one training run by its canaries."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.audit import REFUTED
from sfumato.cli.certificate import published
from sfumato.cli.output import AsJson, Key, Language, Theme, say, say_json
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
    canaries: Annotated[int, typer.Option(min=20, max=5_000, help="Of the invented model: how many canaries.")] = 1_000,
    score: Annotated[
        Literal["gradient", "loss"], typer.Option(help="Of the invented model: what coins are guessed by.")
    ] = "gradient",
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
    found = _invented(canaries, score) if file is None and evidence is None else _own(file, evidence, key)
    if as_json:
        say_json(found.plain())
    else:
        say(found.explain("zh-Hans" if lang == "zh" else lang))
    if picture is not None:
        from sfumato.audit.one_run_plot import audit_chart
        from sfumato.reports.plots import save

        written = save(audit_chart(found, "zh-Hans" if lang == "zh" else lang, theme), picture)
        if not as_json:
            say(f"written: {written}")
    if file is not None and (found.refuted or found.refuted_if_gaussian):
        raise typer.Exit(REFUTED)


def _invented(canaries: int, score: Literal["gradient", "loss"]) -> "OneRunAudit":
    from sfumato.audit.one_run import trained
    from sfumato.audit.one_run_demo import demonstrated

    return trained(demonstrated(canaries=canaries, score=score, weights=4 * canaries))


def _own(file: Path | None, evidence: Path | None, key: str | None) -> "OneRunAudit":
    from sfumato.audit.one_run import judged_evidence

    if file is None or evidence is None:
        raise InvalidInput("a certificate and its evidence go together; nothing was audited. Say FILE --evidence FILE.")
    try:
        if evidence.stat().st_size > LARGEST:
            raise InvalidInput(f"{evidence} is too large for the evidence of an audit; nothing was audited.")
        told = json.loads(evidence.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InvalidInput(f"{evidence} cannot be read as JSON; nothing was audited.") from None
    if not isinstance(told, dict):
        raise InvalidInput(f"{evidence} is not the evidence of an audit; nothing was audited.")
    return judged_evidence(published(file, key).statement, told)
