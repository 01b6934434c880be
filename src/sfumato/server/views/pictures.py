"""Pictures of published releases as SVG: in a language and a theme, for a wide and for a narrow screen."""

from functools import lru_cache
from pathlib import Path

from sfumato.core.release import Release
from sfumato.errors import InvalidInput, MissingExtra, Unsupported
from sfumato.reports.drawings import PADDING
from sfumato.reports.plots import choropleth, draw
from sfumato.reports.plots.narrow import narrowed
from sfumato.reports.plots.saving import svg_of

__all__ = ["THEMES", "WIDTHS", "drawn"]

THEMES, WIDTHS = ("light", "dark"), ("wide", "narrow")


def drawn(release: Release, kind: str, language: str, theme: str, width: str, areas: Path | None) -> str | None:
    """A picture as SVG; None if a release has no such picture, or the extra for plots is missing."""
    return _drawn(_Keyed(release), kind, language, theme, width, areas)


class _Keyed:
    """A release that is told apart by its identifier."""

    def __init__(self, release: Release) -> None:
        self.release, self.name = release, release.statement.identifier

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and other.name == self.name


@lru_cache(maxsize=512)
def _drawn(keyed: _Keyed, kind: str, language: str, theme: str, width: str, areas: Path | None) -> str | None:
    try:
        if kind == "map":
            chart = None if areas is None else choropleth(keyed.release, areas, language=language, theme=theme)
        elif kind in ("intervals", "people", "noise"):
            chart = draw(keyed.release, kind, language, theme)
        else:
            return None
        if chart is None:
            return None
        spec = {name: part for name, part in chart.to_dict().items() if name != "title"} | {"padding": PADDING}
        svg: str = svg_of(narrowed(spec) if width == "narrow" else spec)
    except (MissingExtra, Unsupported, InvalidInput):
        return None
    return svg
