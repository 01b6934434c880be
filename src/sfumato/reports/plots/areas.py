"""Areas of a map: polygons read from a TopoJSON or GeoJSON file, each with the name that numbers are joined by.

The file is the user's own and nothing is fetched. Rings are turned so that a drawing on the globe fills their inside,
whichever way the file has them.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidInput

__all__ = ["Area", "areas_of"]

Geo = Any  # a part of a map: GeoJSON or TopoJSON, which says of itself what it is; each part is checked when read
GeoObject = Mapping[str, Geo]

MOST_POINTS = 400_000
NAMED = 8  # how many names an error lists
Ring = list[list[float]]
Polygon = list[Ring]


@dataclass(frozen=True, slots=True)
class Area:
    """One area: the name that it is joined by, and its polygons, each an outer ring with its holes."""

    name: str
    polygons: tuple[Polygon, ...]

    @property
    def points(self) -> Iterator[tuple[float, float]]:
        """All corners."""
        return ((point[0], point[1]) for polygon in self.polygons for ring in polygon for point in ring)


def areas_of(
    source: str | Path | GeoObject, *, named_by: str | None = None, within: str | None = None, like: str = ""
) -> tuple[Area, ...]:
    """Read the areas of a map.

    ``source`` is a file, or what such a file holds: a TopoJSON topology or a GeoJSON feature collection. ``within`` is
    the object of a topology that has several. ``named_by`` is the property that names an area; without it the areas'
    own ids do, or a property called ``like``. What cannot be drawn is refused and named.

    >>> square = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}
    >>> areas_of({"type": "FeatureCollection", "features": [{"type": "Feature", "id": 7, "geometry": square}]})[0].name
    '7'
    """
    document = _document(source)
    match document.get("type"):
        case "Topology":
            found = _of_topology(document, within)
        case "FeatureCollection":
            if within is not None:
                raise InvalidInput("a GeoJSON file has no objects to choose from; nothing was drawn. Leave object out.")
            found = [
                (feature, _polygons(feature.get("geometry"))) for feature in _list(document, "features", "the map")
            ]
        case _:
            raise InvalidInput(
                "this is neither a TopoJSON topology nor a GeoJSON feature collection; nothing was drawn."
            )
    names = _names([feature for feature, _ in found], named_by, like)
    areas = tuple(
        Area(name, tuple(_turned(polygon) for polygon in polygons))
        for name, (_, polygons) in zip(names, found, strict=True)
        if polygons
    )
    if not areas:
        raise InvalidInput("the map has no polygon; nothing was drawn.")
    if sum(1 for area in areas for _ in area.points) > MOST_POINTS:
        raise InvalidInput(f"the map has more than {MOST_POINTS:,} corners; nothing was drawn. Simplify it first.")
    return areas


def _document(source: str | Path | GeoObject) -> GeoObject:
    if isinstance(source, Mapping):
        return source
    try:
        document = json.loads(Path(source).read_text(encoding="utf-8"))
    except OSError as wrong:
        raise InvalidInput(f"{source} cannot be read: {wrong.strerror or wrong}. Nothing was drawn.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{source} is not JSON, and so neither TopoJSON nor GeoJSON; nothing was drawn.") from None
    if not isinstance(document, dict):
        raise InvalidInput(f"{source} is not a JSON object, and so no map; nothing was drawn.")
    return document


def _of_topology(document: GeoObject, within: str | None) -> list[tuple[GeoObject, list[Polygon]]]:
    objects = document.get("objects")
    if not isinstance(objects, Mapping) or not objects:
        raise InvalidInput("the topology has no objects; nothing was drawn.")
    if within is None and len(objects) > 1:
        raise InvalidInput(
            f"the topology has several objects: {_some(objects)}. Nothing was drawn. Say which with object=..."
        )
    chosen = next(iter(objects)) if within is None else within
    if chosen not in objects:
        raise InvalidInput(f"the topology has no object {chosen!r}; it has {_some(objects)}. Nothing was drawn.")
    arcs = _arcs(document)
    shapes = objects[chosen]
    members = _list(shapes, "geometries", f"object {chosen!r}") if _kind(shapes) == "GeometryCollection" else [shapes]
    return [(member, _stitched(member, arcs)) for member in members]


def _arcs(document: GeoObject) -> list[Ring]:
    """The arcs with their true coordinates; quantised ones are differences in whole steps."""
    transform = document.get("transform")
    found: list[Ring] = []
    try:
        for arc in _list(document, "arcs", "the topology"):
            if transform is None:
                found.append([_point(point) for point in arc])
                continue
            (sx, sy), (tx, ty) = transform["scale"], transform["translate"]
            x, y, line = 0, 0, []
            for point in arc:
                x, y = x + point[0], y + point[1]
                line.append(_point((x * sx + tx, y * sy + ty)))
            found.append(line)
    except (KeyError, TypeError, ValueError, IndexError):
        raise _broken("its arcs or their transform") from None
    return found


def _stitched(shape: Geo, arcs: Sequence[Ring]) -> list[Polygon]:
    """The polygons of a shape whose rings are lists of arcs; ``~i`` is arc i backwards."""

    def ring(indices: Geo) -> Ring:
        line: Ring = []
        for index in indices:
            arc = arcs[index] if index >= 0 else arcs[~index][::-1]
            line += arc[1:] if line else arc
        return line

    try:
        match _kind(shape):
            case "Polygon":
                return [[ring(part) for part in shape["arcs"]]]
            case "MultiPolygon":
                return [[ring(part) for part in polygon] for polygon in shape["arcs"]]
    except (KeyError, TypeError, IndexError):
        raise _broken("the arcs of an area") from None
    return []


def _polygons(geometry: Geo) -> list[Polygon]:
    try:
        match _kind(geometry):
            case "Polygon":
                return [[[_point(point) for point in ring] for ring in geometry["coordinates"]]]
            case "MultiPolygon":
                return [[[_point(point) for point in ring] for ring in polygon] for polygon in geometry["coordinates"]]
    except (KeyError, TypeError, ValueError, IndexError):
        raise _broken("the coordinates of an area") from None
    return []


def _names(features: Sequence[GeoObject], named_by: str | None, like: str) -> list[str]:
    """The name of each area, by the property that is asked for, its id, or a property called like the key."""
    held = [feature.get("properties") or {} for feature in features]
    known = list(dict.fromkeys(name for properties in held for name in properties))
    if named_by is None and all(feature.get("id") is not None for feature in features):
        return [_text(feature["id"]) for feature in features]
    wanted = like if named_by is None else named_by
    if wanted not in known:
        missing = f"no property {wanted!r}" if named_by is not None else "neither ids nor a property of the key's name"
        raise InvalidInput(
            f"the areas of the map have {missing}; nothing was drawn. Name them by one of their properties: "
            f"property={_some(known) or '… (they have none)'}."
        )
    return [_text(properties.get(wanted)) for properties in held]


def _turned(polygon: Polygon) -> Polygon:
    """With the outer ring clockwise and its holes the other way, as a drawing on the globe needs them."""
    return [
        ring if (_doubled_area(ring) < 0) is (place == 0) else ring[::-1]
        for place, ring in enumerate(polygon)
        if len(ring) >= 4
    ]


def _doubled_area(ring: Ring) -> float:
    """Twice the area inside, negative if the ring runs clockwise."""
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, [*ring[1:], ring[0]], strict=True))


def _point(point: Geo) -> list[float]:
    x, y = float(point[0]), float(point[1])
    if not (math.isfinite(x) and math.isfinite(y)):
        raise ValueError
    return [x, y]


def _kind(shape: Geo) -> object:
    return shape.get("type") if isinstance(shape, Mapping) else None


def _list(holder: Geo, name: str, what: str) -> list[Geo]:
    found = holder.get(name) if isinstance(holder, Mapping) else None
    if not isinstance(found, list) or not all(isinstance(each, Mapping | list) for each in found):
        raise InvalidInput(f"{what} has no list of {name}; nothing was drawn.")
    return found


def _some(names: Iterable[object]) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:NAMED]) + (f" and {len(shown) - NAMED} more" if len(shown) > NAMED else "")


def _text(name: object) -> str:
    """A name as text; whole numbers that a file holds as 7.0 are 7."""
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)


def _broken(what: str) -> InvalidInput:
    return InvalidInput(f"the map cannot be read: {what} are not as its format has them. Nothing was drawn.")
