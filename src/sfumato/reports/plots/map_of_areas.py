"""A map of a release: each area in the tone of its number, and beside it how exact that number is."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import ModuleType

from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.columns import AnswerColumn, magnitude, one_of
from sfumato.reports.limited import covers_lines, truth
from sfumato.reports.plots.areas import Area, areas_of
from sfumato.reports.plots.labels import clean, listing
from sfumato.reports.plots.theme import Palette, dressed, palette
from sfumato.reports.words.rendering import render

__all__ = ["choropleth"]

WIDTH, LEAST_HEIGHT, MOST_HEIGHT = 300, 150, 420
LISTED = 4


def choropleth(
    release: Release,
    areas: str | Path | Mapping[str, object],
    *,
    key: str | None = None,
    property: str | None = None,
    object: str | None = None,
    column: str | None = None,
    language: str = "en",
    theme: str = "light",
) -> Chart:
    """Draw a release by area: on the left the numbers, on the right their 95% margins beside the numbers themselves.

    ``areas`` is a TopoJSON or GeoJSON file, or what one holds; ``key`` is the key column that names areas, and
    ``property`` the property of the map that has the same names (its ids, if not given); ``object`` picks one of
    several objects of a topology, ``column`` one of several columns. Areas without a number stay blank, and numbers
    without an area are named under the title. Nothing is fetched: the drawing holds all that it needs. Covers the added
    noise alone.
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    chosen = one_of(only_release(release), column)
    name, labels = _labels(release, key)
    shapes = areas_of(areas, named_by=property, within=object, like=name)
    places = {label: place for place, label in enumerate(labels)}
    known = {area.name for area in shapes}
    absent = [label for label in labels if label not in known]
    if len(absent) == len(labels):
        raise InvalidInput(
            f"no value of {name!r} ({_some(labels)}) names an area of the map ({_some(sorted(known))}); nothing was "
            "drawn. Choose the property that has the same names with property=..."
        )
    features = [_feature(area, chosen, places.get(area.name), language) for area in shapes]
    blank = sum(not feature["properties"]["told"] for feature in features)
    colours = palette(theme)
    panels = [
        _panel(altair, features, colours, shapes, language, field=field, heading=heading)
        for field, heading in (
            ("value", _measure(release, chosen, language)),
            ("share", message(language, "map.margin")),
        )
    ]
    facts = {"dataset": clean(release.statement.dataset.name), "name": clean(chosen.name), "key": clean(name)}
    return dressed(
        altair.hconcat(*panels, spacing=36).resolve_scale(color="independent"),
        title=message(language, "map.title", **facts),
        subtitle=[
            message(
                language,
                "plot.figure_apart",
                amount=amount(release.statement.spend, language),
                truth=truth(release, language, columns=[chosen]),
            ),
            *covers_lines(release, language, [chosen]),
            *_notes(blank, absent, language),
        ],
        language=language,
        theme=theme,
        labels=[feature["properties"]["area"] for feature in features],
    )


def _labels(release: Release, key: str | None) -> tuple[str, list[str]]:
    """The key column and its values as text; a map has room for one number in each area."""
    labels = release.labels
    if not labels:
        raise InvalidInput("this release has no groups, so there is nothing to draw on a map. Group it by area.")
    if key is not None and key not in labels:
        raise InvalidInput(f"this release is not grouped by {key!r}; it is by {', '.join(labels)}. Nothing was drawn.")
    if len(labels) > 1:
        raise InvalidInput(
            f"this release goes by {' × '.join(labels)}, and a map shows one number for each area; nothing was drawn. "
            "Release one that is grouped by the areas alone."
        )
    ((name, column),) = labels.items()
    return name, [str(label) for label in column]


def _feature(area: Area, column: AnswerColumn, place: int | None, language: str) -> ChartRow:
    nothing = message(language, "map.none")
    told: ChartRow = {"told": False, "number": nothing, "from": nothing, "to": nothing, "margin": nothing}
    if place is not None and math.isfinite(column.values[place]):
        value, half = column.values[place], column.halves[place] if column.halves else None
        low, high = column.interval(place) or (message(language, "plot.open"),) * 2
        told = {"told": True, "number": column.text(place), "from": low, "to": high, "value": float(value)}
        told["share"] = 1.0 if half is None or not value else min(1.0, float(half / abs(Fraction(value))))
        told["margin"] = message(language, "map.most") if half is None else f"±{magnitude(half)}"
    return {
        "type": "Feature",
        "properties": {"area": clean(area.name), **told},
        "geometry": {"type": "MultiPolygon", "coordinates": list(area.polygons)},
    }


def _panel(
    altair: ModuleType,
    features: list[ChartRow],
    colours: Palette,
    areas: Sequence[Area],
    language: str,
    *,
    field: str,
    heading: str,
) -> Chart:
    sizes = [feature["properties"][field] for feature in features if feature["properties"]["told"]] or [0.0]
    low, high = (min(sizes), max(sizes)) if field == "value" else (0.0, max(sizes))
    high = high if high > low else low + (abs(low) or 1.0)
    scale = altair.Scale(domain=[low, high], range=[colours.faint, colours.mark], interpolate="lab", nice=False)
    digits = min(12, max(0, 1 - math.floor(math.log10(high - low))))
    form = "~%" if field == "share" else f",.{digits}~f"
    legend = altair.Legend(format=form, gradientLength=200, gradientThickness=10, tickCount=3, padding=16)
    tone = altair.Color(f"properties.{field}:Q", scale=scale, legend=legend)
    width, height, projection = _frame(areas)
    tips = [
        altair.Tooltip("properties.area:N", title=message(language, "map.area")),
        altair.Tooltip("properties.number:N", title=message(language, "plot.value")),
        altair.Tooltip("properties.from:N", title=message(language, "column.low")),
        altair.Tooltip("properties.to:N", title=message(language, "column.high")),
        altair.Tooltip("properties.margin:N", title=message(language, "plot.margin_axis")),
    ]
    base = altair.Chart().encode(tooltip=tips)
    blank = base.mark_geoshape(fill=colours.paper, stroke=colours.quiet, strokeDash=[3, 3], strokeWidth=1)
    toned = base.mark_geoshape(stroke=colours.paper, strokeWidth=1.5).transform_filter("datum.properties.told")
    return (
        altair.layer(blank, toned.encode(color=tone), data=altair.Data(values=features))
        .project(**projection)
        .properties(
            width=width,
            height=height,
            title={"text": heading, "fontSize": 12, "fontWeight": "normal", "frame": "group", "limit": WIDTH},
        )
    )


def _frame(areas: Sequence[Area]) -> tuple[int, int, ChartRow]:
    """How large the map is, and its projection: on the globe one that keeps areas, seen from above their middle.

    Coordinates that are no longitudes and latitudes are drawn as they are.
    """
    xs, ys = zip(*(point for area in areas for point in area.points), strict=True)
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)
    globe = left >= -180 and right <= 180 and low >= -90 and high <= 90
    wide, tall = right - left or 1.0, high - low or 1.0
    if globe:
        middle = (low + high) / 2
        wide *= max(0.1, math.cos(math.radians(middle)))
        projection: ChartRow = {"type": "azimuthalEqualArea", "rotate": [-(left + right) / 2, -middle, 0]}
    else:
        projection = {"type": "identity", "reflectY": True}
    return WIDTH, round(min(MOST_HEIGHT, max(LEAST_HEIGHT, WIDTH * tall / wide))), projection


def _measure(release: Release, column: AnswerColumn, language: str) -> str:
    if column.computed:
        return clean(column.name)
    if column.measured is None:
        return message(language, "map.count")
    return message(language, "map.value", measure=clean(render(column.measured.words, language)))


def _notes(blank: int, absent: Sequence[str], language: str) -> list[str]:
    """What the map does not show."""
    notes = []
    if blank:
        notes.append(message(language, "map.blank_one" if blank == 1 else "map.blank_many", areas=f"{blank:,}"))
    if absent:
        names = listing([clean(label) for label in absent[:LISTED]], language)
        more = len(absent) - LISTED
        word = "map.absent_more" if more > 0 else "map.absent"
        notes.append(message(language, word, names=names, more=f"{more:,}"))
    return notes


def _some(names: Sequence[str]) -> str:
    shown = [repr(name) for name in names[:LISTED]]
    return ", ".join(shown) + (", …" if len(names) > LISTED else "")
