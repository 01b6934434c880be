"""Pictures inside a page: drawn in the light theme, repainted by the page's own style where it is dark.

Each is drawn twice, for a wide screen and for a phone, and the page shows one of them. Its title is text of the page.
"""

from dataclasses import dataclass, fields

from sfumato.core.extras import need
from sfumato.core.foreign import ChartSpec
from sfumato.core.release import Release
from sfumato.errors import MissingExtra, Unsupported
from sfumato.reports.catalogue import message
from sfumato.reports.plots import draw
from sfumato.reports.plots.narrow import narrowed
from sfumato.reports.plots.saving import svg_of
from sfumato.reports.plots.theme import THEMES, Palette
from sfumato.reports.rendering import Markup

__all__ = ["Drawing", "drawing", "laid_out", "paint"]

WASH = {"light": "#f5f7fa", "dark": "#1d2126"}  # behind what should stand out a little from the paper
PADDING = {"left": 12, "right": 12, "top": 4, "bottom": 4}  # letters are wider in some fonts of readers than in ours


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A picture as SVG for a wide screen and for a phone, with its title, the lines under it, and what it shows."""

    title: str
    lines: tuple[str, ...]
    label: str
    roomy: Markup
    narrow: Markup


def drawing(release: Release, kind: str, language: str) -> Drawing | None:
    """A plot for the page; nothing where the ``plots`` extra is missing, or where there is nothing to draw.

    Public: all of it. What is drawn is XML with its text escaped, which a page may hold as it is.
    """
    try:
        need("vl_convert", "pip install 'sfumato[plots]'")
        spec = draw(release, kind, language, "light").to_dict()
    except (MissingExtra, Unsupported):
        return None
    return laid_out(spec, label=message(language, f"page.picture_{kind}"))


def laid_out(spec: ChartSpec, *, label: str) -> Drawing:
    """A dressed chart, as a specification of Vega-Lite in the light theme, for a page; ``label`` says what it shows."""
    title = spec["title"]
    bare = {name: part for name, part in spec.items() if name != "title"} | {"padding": PADDING}
    return Drawing(
        title=title["text"],
        lines=tuple(title.get("subtitle", ())),
        label=label,
        roomy=Markup(svg_of(bare)),
        narrow=Markup(svg_of(narrowed(bare))),
    )


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
