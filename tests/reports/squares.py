"""A tiny country of nine squares, A to I, as TopoJSON with shared, quantised arcs, and as GeoJSON."""

from typing import Any

__all__ = ["LETTERS", "collection", "topology"]

LETTERS = "ABCDEFGHI"
STEP, WEST, SOUTH = 0.001, 8.0, 50.0  # a lattice of thousandths of a degree
WIDE, TALL = 1100, 700  # which are as long on the ground, so far north


def topology(*, quantised: bool = True, name: str = "district", **other: Any) -> dict[str, Any]:
    """Every edge between two squares is one arc, which one of them runs along and the other runs back."""
    arcs: list[list[list[float]]] = []
    places: dict[tuple[tuple[int, int], tuple[int, int]], int] = {}

    def edge(start: tuple[int, int], end: tuple[int, int]) -> int:
        if (end, start) in places:
            return ~places[end, start]
        if quantised:
            first = [start[0] * WIDE, start[1] * TALL]
            arcs.append([first, [(end[0] - start[0]) * WIDE, (end[1] - start[1]) * TALL]])
        else:
            arcs.append([list(_degrees(start)), list(_degrees(end))])
        places[start, end] = len(arcs) - 1
        return len(arcs) - 1

    shapes = []
    for place, letter in enumerate(LETTERS):
        x, y = place % 3, 2 - place // 3
        corners = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)]
        ring = [edge(start, end) for start, end in zip(corners, [*corners[1:], corners[0]], strict=True)]
        shapes.append({"type": "Polygon", "arcs": [ring], "id": place + 1, "properties": {name: letter}})
    document: dict[str, Any] = {
        "type": "Topology",
        "objects": {"districts": {"type": "GeometryCollection", "geometries": shapes}, **other},
        "arcs": arcs,
    }
    if quantised:
        document["transform"] = {"scale": [STEP, STEP], "translate": [WEST, SOUTH]}
    return document


def collection(*, clockwise: bool = False, name: str = "district") -> dict[str, Any]:
    """The same squares as GeoJSON."""
    features = []
    for place, letter in enumerate(LETTERS):
        x, y = place % 3, 2 - place // 3
        corners = [(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1), (x, y)]
        ring = [list(_degrees(corner)) for corner in (corners[::-1] if clockwise else corners)]
        shape = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": {name: letter}, "geometry": shape})
    return {"type": "FeatureCollection", "features": features}


def _degrees(corner: tuple[int, int]) -> tuple[float, float]:
    return WEST + corner[0] * WIDE * STEP, SOUTH + corner[1] * TALL * STEP
