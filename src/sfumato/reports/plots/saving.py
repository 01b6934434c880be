"""Pictures as files: SVG, PNG, PDF, or a page that can be explored; none of them asks the network for anything."""

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path

from sfumato.core.foreign import Chart, ChartSpec
from sfumato.errors import InvalidInput
from sfumato.reports.plots.fonts import check_signs, drawer
from sfumato.reports.plots.theme import palette

__all__ = ["html", "pdf", "png", "save", "svg", "svg_of"]

SCALE = 2  # dots of a PNG for each point: sharp on today's screens
START = "vegaEmbed('#chart', JSON.parse(document.getElementById('spec').textContent), {options});"
OPTIONS: ChartSpec = {
    "mode": "vega-lite",
    "renderer": "svg",
    "ast": True,  # expressions are interpreted, so that the page can forbid itself eval
    "actions": {"export": True, "source": False, "compiled": False, "editor": False},
}


def save(chart: Chart, path: str | Path, *, scale: float = SCALE) -> Path:
    """Write a chart as ``.svg``, ``.png``, ``.pdf`` or ``.html``, by the ending of the path, and return the path.

    The HTML page holds all that it needs, answers to the mouse, and makes no network request. A PNG has ``scale`` dots
    for each point. Chinese text on a PNG or PDF needs a Chinese font here: the extra brings one.
    """
    target = Path(path)
    content: bytes
    match target.suffix.lower():
        case ".svg":
            content = svg(chart).encode()
        case ".png":
            content = png(chart, scale=scale)
        case ".pdf":
            content = pdf(chart)
        case ".html" | ".htm":
            content = html(chart).encode()
        case ending:
            raise InvalidInput(
                f"{target.name} is to be a {ending or 'file without an ending'}, and pictures are written as .svg, "
                ".png, .pdf or .html. Nothing was written. Choose one of these endings."
            )
    try:
        target.write_bytes(content)
    except OSError as wrong:
        raise InvalidInput(
            f"{target} cannot be written: {wrong.strerror or wrong}. Nothing was written. Choose another path."
        ) from None
    return target


def svg(chart: Chart) -> str:
    """The chart as SVG text."""
    return svg_of(_spec(chart))


def svg_of(spec: ChartSpec) -> str:
    """A specification of Vega-Lite as SVG text."""
    drawn: str = drawer().vegalite_to_svg(spec, allowed_base_urls=[])
    return drawn


def png(chart: Chart, *, scale: float = SCALE) -> bytes:
    """The chart as PNG, with ``scale`` dots for each point."""
    spec = _spec(chart)
    check_signs("".join(_texts(spec)))
    drawn: bytes = drawer().vegalite_to_png(spec, scale=scale, allowed_base_urls=[])
    return drawn


def pdf(chart: Chart) -> bytes:
    """The chart as a PDF of one page, with its letters as letters."""
    spec = _spec(chart)
    check_signs("".join(_texts(spec)))
    drawn: bytes = drawer().vegalite_to_pdf(spec, allowed_base_urls=[])
    return drawn


def html(chart: Chart) -> str:
    """The chart as a page of its own that answers to the mouse; its policy forbids everything but its own script."""
    spec = _spec(chart)
    known = spec.get("usermeta", {})
    script = _script()
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(script)}'; style-src 'unsafe-inline'; img-src data: blob:"
    )
    # In a script element only "<" can end or open anything; JSON has its own way to write it.
    data = json.dumps(spec, ensure_ascii=False).replace("<", "\\u003c")
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="{escape(str(known.get("language", "en")))}">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>{escape(str(known.get('title', '')))}</title>",
            f"<style>body {{ margin: 0; background: {palette(known.get('theme', 'light')).paper}; }}</style>",
            "</head>",
            "<body>",
            '<div id="chart"></div>',
            f'<script type="application/json" id="spec">{data}</script>',
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _spec(chart: Chart) -> ChartSpec:
    if not callable(getattr(chart, "to_dict", None)):
        raise InvalidInput(f"a chart is needed, such as release.plot() gives, not {type(chart).__name__}.")
    spec: ChartSpec = chart.to_dict()
    return spec


def _texts(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for inner in part.values():
            yield from _texts(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _texts(inner)


@cache
def _script() -> str:
    """Vega, Vega-Lite and the line that starts them; made once, as it takes a second."""
    made: str = drawer().javascript_bundle(START.format(options=json.dumps(OPTIONS)))
    return made.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(script: str) -> str:
    return b64encode(hashlib.sha256(script.encode()).digest()).decode()
