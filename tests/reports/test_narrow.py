"""Pictures for a phone: the same data, under each other, within its width, with letters of their size."""

from typing import Any

from sfumato.reports.plots.narrow import MOST, NAMES, WITH_NAMES, narrowed

DATA = {"values": [{"width": 900, "fontSize": 3}]}


def panel(width: float, *, axis: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    y = {"field": "group", "type": "nominal", "axis": axis}
    layers = [{"encoding": {"x": {"field": "low"}, "y": y}}, {"encoding": {"x": {"value": width + 56}, "y": y}}]
    return {"data": DATA, "width": width, "layer": layers, **more}


def test_a_panel_is_cut_with_what_stands_at_its_right_edge() -> None:
    made = narrowed(panel(440, axis={"labelLimit": 220}))
    assert made["width"] == WITH_NAMES
    assert made["layer"][1]["encoding"]["x"] == {"value": WITH_NAMES + 56}
    assert made["layer"][0]["encoding"]["y"]["axis"] == {"labelLimit": NAMES}


def test_the_data_and_what_was_given_stay_as_they_are() -> None:
    given = panel(440, axis={"labelLimit": 220})
    made = narrowed(given)
    assert made["data"] == DATA
    assert given == panel(440, axis={"labelLimit": 220})


def test_panels_that_stood_side_by_side_stand_under_each_other_with_their_names() -> None:
    made = narrowed({"concat": [panel(150, axis={"labelLimit": 130}), panel(150, axis=None)], "columns": 3})
    assert made["columns"] == 1
    first, second = (part["layer"][0]["encoding"]["y"]["axis"] for part in made["concat"])
    assert first == second == {"labelLimit": NAMES}
    assert narrowed({"facet": {"column": {"field": "a"}}, "spec": panel(150, axis={})})["facet"] == {
        "row": {"field": "a"}
    }


def test_a_curve_is_cut_and_its_legend_stands_in_one_column() -> None:
    made = narrowed({"width": 600, "layer": [], "config": {"legend": {"orient": "bottom"}, "font": "x"}})
    assert made["width"] == MOST
    assert made["config"]["font"] == "x"
    assert made["config"]["legend"] == {"orient": "bottom", "direction": "vertical", "labelLimit": MOST, "columns": 1}


def test_what_is_drawn_to_scale_keeps_its_shape_and_has_larger_letters() -> None:
    dots = {"width": 646.5, "layer": [{"mark": {"fontSize": 20}, "encoding": {"x": {"axis": None}}, "data": DATA}]}
    made = narrowed(dots)
    assert made["width"] == 646.5
    assert made["layer"][0]["mark"] == {"fontSize": 27}
    assert made["layer"][0]["data"] == DATA
    assert narrowed({**dots, "width": 400}) == {**dots, "width": 400}
