"""Pictures of releases, by Altair; they open offline and need no browser."""

from typing import Any

from sfumato.core.extras import need
from sfumato.core.release import Release, only_release
from sfumato.errors import Unsupported
from sfumato.reports.catalogue import message

__all__ = ["draw", "intervals"]

INK, BAR = "#1f3a5f", "#9db4cf"
FONT = "Noto Sans CJK SC, Noto Sans, Helvetica, Arial, sans-serif"


def intervals(release: Release, language: str = "en") -> Any:
    """Draw each number as a point on its 95% interval; the chart can be saved as SVG, PNG or HTML."""
    altair = need("altair", "pip install 'sfumato[plots]'")
    said = only_release(release).statement
    labels = list(zip(*said.query.labels().values(), strict=True)) or [(said.query.measure,)]
    rows = [
        {"group": " · ".join(str(part) for part in label), "value": value, "low": low, "high": high}
        for label, value, (low, high) in zip(labels, release.values, release.interval(), strict=True)
    ]
    base = altair.Chart(altair.Data(values=rows)).encode(
        y=altair.Y("group:N", sort=None, title=" × ".join(said.query.labels()) or None),
    )
    axis = altair.Axis(title=message(language, "plot.axis"))
    spans = base.mark_bar(height=6, color=BAR, cornerRadius=3).encode(
        x=altair.X("low:Q", axis=axis, scale=altair.Scale(zero=False)), x2="high:Q"
    )
    points = base.mark_point(filled=True, size=46, color=INK, opacity=1).encode(x="value:Q")
    title = message(language, "plot.title", dataset=said.dataset.name)
    return (
        (spans + points)
        .properties(title=title, width=460)
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(grid=True, gridColor="#e8edf3", domain=False, ticks=False)
        .configure_title(anchor="start", color=INK)
    )


def draw(release: Release, kind: str, language: str, theme: str) -> Any:
    """Draw a release in one of the ways there are."""
    if kind != "intervals" or theme != "light":
        raise Unsupported(f"there is no picture {kind!r} in {theme!r}; the picture is 'intervals' in 'light'.")
    return intervals(release, language)
