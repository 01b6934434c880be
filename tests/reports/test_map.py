"""Maps: nine squares, joined by name, coloured by number, blank where there is none; nothing fetched."""

import copy
import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.reports import plots
from sfumato.reports.plots import saving
from sfumato.reports.plots.areas import areas_of
from sfumato.reports.plots.theme import THEMES
from tests import parts
from tests.reports.pixels import Picture
from tests.reports.squares import LETTERS, collection, topology
from tests.reports.test_plots import texts


@pytest.fixture(autouse=True)
def drawer() -> None:
    for name in ("altair", "vl_convert"):
        parts.package(name)


@cache
def by_district(keys: str = "ABCDEFG") -> Release:
    """Counts and means by district, a thousand rows or so in each."""
    rows = [(key, 100.0 + 10 * place) for place, key in enumerate(keys) for _ in range(1000 + 200 * place)]
    data = pa.table({"district": [key for key, _ in rows], "sbp": [value for _, value in rows]})
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=10), name="map")
    asked = vault.table(data, name="visits", version="1", bounds={"sbp": (80, 220)}, keys={"district": tuple(keys)})
    return asked.group_by("district").agg(n=sf.count(), sbp=sf.mean("sbp")).release(epsilon=5)


def features(chart: Any) -> dict[str, dict[str, Any]]:
    """What each area of the left panel says of itself."""
    spec = chart.to_dict()
    held = [inner for inner in _held(spec) if inner and inner[0].get("type") == "Feature"]
    return {feature["properties"]["area"]: feature["properties"] for feature in held[0]}


def _held(part: Any) -> list[list[dict[str, Any]]]:
    if isinstance(part, dict):
        own = [part["values"]] if isinstance(part.get("values"), list) and isinstance(part["values"][0], dict) else []
        return own + [found for inner in part.values() for found in _held(inner)]
    return [found for inner in part for found in _held(inner)] if isinstance(part, list) else []


@pytest.mark.few(1)
@pytest.mark.parametrize("theme", sorted(THEMES))
@pytest.mark.parametrize("language", ["en", "zh"])
def test_it_is_drawn_whole_and_not_blank(language: str, theme: str) -> None:
    chart = by_district().map(topology(), key="district", property="district", language=language, theme=theme)
    marked = Picture.read(saving.png(chart, scale=0.6)).marked(THEMES[theme].paper)
    assert 0.1 < marked.mean() < 0.9
    for edge in (marked[:6], marked[-6:], marked[:, :6], marked[:, -6:]):
        assert not edge.any(), "something is cut off"
    height, width = marked.shape
    for part in (marked[height // 4 :, : width // 2], marked[height // 4 :, width // 2 :]):
        assert part.mean() > 0.2, "one of the two maps is missing"


def test_each_area_has_its_own_number_and_interval() -> None:
    made = by_district()
    shown = features(made.map(topology(), key="district", property="district", column="sbp"))
    assert set(shown) == set(LETTERS)
    for place, (key, value) in enumerate(zip("ABCDEFG", made["sbp"].values, strict=True)):
        low, high = made["sbp"].interval()[place]
        assert shown[key]["told"]
        assert shown[key]["value"] == pytest.approx(float(value))
        assert float(shown[key]["from"]) <= low < high <= float(shown[key]["to"])
        assert shown[key]["share"] == pytest.approx(max(high - value, value - low) / value)
    for key in "HI":
        assert not shown[key]["told"]
        assert "value" not in shown[key]
        assert shown[key]["number"] == "no number"


@pytest.mark.long
def test_areas_without_a_number_and_numbers_without_an_area_are_said() -> None:
    words = " ".join(texts(by_district().map(topology(), property="district")))
    assert "2 areas have no number here" in words
    assert "Not on this map" not in words
    words = " ".join(texts(by_district("ABCDEFGHIJK").map(topology(), property="district")))
    assert "Not on this map: J, K." in words
    assert "no number here" not in words
    assert "地图上没有：J、K。" in " ".join(
        texts(by_district("ABCDEFGHIJK").map(topology(), property="district", language="zh"))
    )


def test_all_ways_to_write_the_same_map_are_the_same_areas(tmp_path: Path) -> None:
    """Quantised or not, TopoJSON or GeoJSON, clockwise or not, from a file or not."""
    (tmp_path / "map.json").write_text(json.dumps(topology()))
    ways = [
        areas_of(source, named_by="district")
        for source in (
            topology(),
            topology(quantised=False),
            collection(),
            collection(clockwise=True),
            tmp_path / "map.json",
            str(tmp_path / "map.json"),
        )
    ]
    for areas in ways:
        assert [area.name for area in areas] == list(LETTERS)
        for area, other in zip(areas, ways[0], strict=True):
            ((ring,),), ((like,),) = area.polygons, other.polygons
            assert {(round(x, 9), round(y, 9)) for x, y in ring} == {(round(x, 9), round(y, 9)) for x, y in like}
            around = sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise(ring))
            assert around < 0, "clockwise, or the globe around it would be filled"
            assert ring[0] == ring[-1]


def test_areas_are_named_by_a_property_by_their_ids_or_by_the_key() -> None:
    assert [area.name for area in areas_of(topology())] == [str(place) for place in range(1, 10)]
    assert areas_of(collection(), like="district")[0].name == "A"
    with pytest.raises(InvalidInput, match=r"no property 'zip'.*property='district'"):
        areas_of(topology(), named_by="zip")
    with pytest.raises(InvalidInput, match="neither ids nor a property of the key's name"):
        areas_of(collection())


def test_holes_and_islands_are_kept() -> None:
    def square(size: float, west: float = 0.0) -> list[list[float]]:
        return [[west, 0.0], [west + size, 0.0], [west + size, size], [west, size], [west, 0.0]]

    shape = {"type": "MultiPolygon", "coordinates": [[square(9), square(3)], [square(2, 20.0)]]}
    (area,) = areas_of({"type": "FeatureCollection", "features": [{"type": "Feature", "id": 1, "geometry": shape}]})
    assert [len(polygon) for polygon in area.polygons] == [2, 1]


WRONG: list[tuple[Any, str]] = [
    ({}, "neither a TopoJSON topology nor a GeoJSON feature collection"),
    ({"type": "FeatureCollection"}, "no list of features"),
    ({"type": "FeatureCollection", "features": []}, "no polygon"),
    ({"type": "FeatureCollection", "features": [7]}, "no list of features"),
    ({"type": "Topology", "arcs": []}, "no objects"),
    (topology(roads={"type": "GeometryCollection", "geometries": []}), "several objects: 'districts', 'roads'"),
]


@pytest.mark.parametrize(("document", "said"), WRONG)
def test_what_is_no_map_is_refused(document: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=rf"{said}.*(nothing|Nothing) was drawn"):
        areas_of(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda map_: map_.update(arcs=[[["x", 1]]]),
        lambda map_: map_.update(transform={"scale": [1, 1]}),
        lambda map_: map_["arcs"][0].append([float("nan"), 1]),
        lambda map_: map_["objects"]["districts"]["geometries"][0].update(arcs=[[999]]),
        lambda map_: map_["objects"]["districts"]["geometries"][0].update(arcs=7),
    ],
)
def test_a_broken_map_is_refused_and_not_drawn(change: Any) -> None:
    broken = copy.deepcopy(topology())
    change(broken)
    with pytest.raises(InvalidInput, match="cannot be read"):
        areas_of(broken)


def test_files_that_are_not_there_or_not_json_are_refused(tmp_path: Path) -> None:
    (tmp_path / "map.txt").write_text("<svg>")
    (tmp_path / "list.json").write_text("[]")
    for name, said in (("map.txt", "not JSON"), ("list.json", "not a JSON object"), ("none.json", "cannot be read")):
        with pytest.raises(InvalidInput, match=said):
            by_district().map(tmp_path / name)


def test_what_does_not_fit_the_release_is_refused_by_name() -> None:
    made = by_district()
    with pytest.raises(InvalidInput, match=r"not grouped by 'zip'; it is by district"):
        made.map(topology(), key="zip")
    with pytest.raises(InvalidInput, match=r"no value of 'district' \('A'.*names an area of the map \('1'"):
        made.map(topology())
    with pytest.raises(InvalidInput, match="no column 'dbp'"):
        made.map(topology(), property="district", column="dbp")
    with pytest.raises(InvalidInput, match="no object 'roads'; it has 'districts'"):
        made.map(topology(), object="roads")
    with pytest.raises(InvalidInput, match="GeoJSON file has no objects"):
        made.map(collection(), object="districts")
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="map")
    data = pa.table({"district": ["A"], "sex": ["F"]})
    asked = vault.table(data, name="v", version="1", keys={"district": ("A", "B"), "sex": ("F", "M")})
    with pytest.raises(InvalidInput, match="district × sex, and a map shows one number for each area"):
        asked.group_by("district", "sex").count().release(epsilon="1/2").map(topology(), property="district")
    with pytest.raises(InvalidInput, match="has no groups"):
        asked.count().release(epsilon="1/2").map(topology())


@pytest.mark.long
def test_counts_are_drawn_too_and_saved_in_every_way_without_the_network(tmp_path: Path) -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="map")
    data = pa.table({"district": list(LETTERS) * 30})
    asked = vault.table(data, name="visits", version="1", keys={"district": tuple(LETTERS)})
    chart = asked.group_by("district").count().release(epsilon=1).map(topology(), property="district")
    for name in ("map.svg", "map.png", "map.html"):
        assert plots.save(chart, tmp_path / name).stat().st_size > 1000
    page = (tmp_path / "map.html").read_text("utf-8")
    assert "default-src 'none'" in page
    assert '"url"' not in json.dumps(chart.to_dict())


@pytest.mark.long
def test_coordinates_that_are_no_degrees_are_drawn_as_they_are() -> None:
    far = collection()
    for feature in far["features"]:
        ring = feature["geometry"]["coordinates"][0]
        feature["geometry"]["coordinates"][0] = [[x * 1e5, y * 1e5] for x, y in ring]
    spec = by_district().map(far, property="district").to_dict()
    assert spec["hconcat"][0]["projection"] == {"type": "identity", "reflectY": True}
    near = by_district().map(collection(), property="district").to_dict()
    assert near["hconcat"][0]["projection"]["type"] == "azimuthalEqualArea"
