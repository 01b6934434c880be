"""Pictures inside a page: drawn once in the light theme, and repainted by the page's own style where it is dark."""

from dataclasses import fields
from html import escape

from sfumato.core.extras import need
from sfumato.core.release import Release
from sfumato.errors import MissingExtra
from sfumato.reports.catalogue import message
from sfumato.reports.plots import draw
from sfumato.reports.plots.saving import svg
from sfumato.reports.plots.theme import THEMES, Palette

__all__ = ["drawing", "paint"]

WASH = {"light": "#f5f7fa", "dark": "#1d2126"}  # behind what should stand out a little from the paper


def drawing(release: Release, kind: str, language: str) -> str:
    """A plot as inline SVG in a figure; nothing where the ``plots`` extra is missing."""
    try:
        need("vl_convert", "pip install 'sfumato[plots]'")
        chart = draw(release, kind, language, "light")
    except MissingExtra:
        return ""
    label = escape(message(language, f"page.picture_{kind}"))
    return f'<figure role="img" tabindex="0" aria-label="{label}">{svg(chart)}</figure>'


def paint() -> str:
    """Both themes as style: variables for the page, and rules that give each colour of a drawing its dark twin."""
    light, dark = THEMES["light"], THEMES["dark"]
    twins = [(getattr(light, role.name), getattr(dark, role.name)) for role in fields(Palette)]
    repaint = [
        f'figure svg [{part}="{before}"] {{ {part}: {after}; }}'
        for before, after in twins
        for part in ("fill", "stroke")
    ]
    return "\n".join(
        [
            f":root {{ color-scheme: light dark; {_variables('light')} }}",
            "@media screen and (prefers-color-scheme: dark) {",  # paper is always light
            f":root {{ {_variables('dark')} }}",
            *repaint,
            "}",
        ]
    )


def _variables(theme: str) -> str:
    colours = {role.name: getattr(THEMES[theme], role.name) for role in fields(Palette)} | {"wash": WASH[theme]}
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())
