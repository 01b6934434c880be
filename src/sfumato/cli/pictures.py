"""Pictures of a release."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sfumato.cli.certificate import File, published
from sfumato.cli.output import AsJson, Key, Language, Theme, say_json, target_of
from sfumato.cli.written import say_written

__all__ = ["plot"]

Kind = Literal["intervals", "noise", "belief", "frontier"]


def plot(
    file: File,
    *,
    kind: Annotated[
        Kind,
        typer.Option(
            help="intervals: the numbers; noise: the error distribution; belief: what an attacker can come to believe; "
            "frontier: the error at other ε."
        ),
    ] = "intervals",
    column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The column to draw, where the release has several; all if not given."),
    ] = None,
    lang: Language = "en",
    theme: Theme = "light",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="The picture to write: .svg, .png, .pdf or .html; FILE with .svg if not given.",
        ),
    ] = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Draw a release: its numbers with their error, the noise distribution, belief, or the frontier of ε and error.

    The ending decides what is written: a drawing (.svg, .png, .pdf), or a page that opens offline and can be pointed at
    (.html). Needs the plots extra. A certificate that does not verify is refused.

    Example: $ sfumato plot sfumato-demo/ili.json -o regions.svg

    Example: $ sfumato plot sfumato-demo/ili.json --kind noise --column count -o noise.svg

    Example: $ sfumato plot sfumato-demo/ili.json --kind belief --lang zh --theme dark -o belief.png
    """
    from sfumato.reports.plots import save

    chart = published(file, key).plot(kind, column=column, language=lang, theme=theme)
    written = save(chart, target_of(out, file, ".svg"))
    say_json({"written": str(written), "kind": kind}) if as_json else say_written(written, lang)
