"""A chart laid out for a phone: panels under each other, narrow, and its words as large as they were.

A picture that is merely shrunk to the width of a phone has letters of half their size.
"""

from collections.abc import Iterator
from typing import Any  # any part of a chart's JSON

from sfumato.core.foreign import ChartSpec

__all__ = ["narrowed"]

MOST, WITH_NAMES, NAMES = 290, 190, 96  # points: of a panel, of one with a name before each row, and of such a name
LOUDER = 1.35  # how much larger letters are in what is drawn to scale and shrinks as a whole


def narrowed(spec: ChartSpec) -> ChartSpec:
    """The chart as a specification of Vega-Lite for a narrow screen, with the same data; the one given stays as it is.

    >>> narrowed({"hconcat": [{"width": 600}, {"width": 100}]})
    {'vconcat': [{'width': 290}, {'width': 100}]}
    """
    made = _panel(spec)
    if "config" in made:
        legend = {**made["config"].get("legend", {}), "direction": "vertical", "labelLimit": MOST, "columns": 1}
        made["config"] = {**made["config"], "legend": legend}
    return made


def _panel(spec: ChartSpec) -> ChartSpec:
    made = dict(spec)
    if "hconcat" in made:
        made["vconcat"] = made.pop("hconcat")
    if "vconcat" in made:
        made["vconcat"] = [_panel(each) for each in made["vconcat"]]
    if "concat" in made:  # where panels stood side by side, the first alone had the names of the rows
        first, *others = made["concat"]
        axis = next((y["axis"] for y in _channels(first, "y") if y.get("axis") is not None), None)
        made["concat"] = [_panel(first), *(_panel(_named(each, axis)) for each in others)]
        made["columns"] = 1
    if "spec" in made:
        made["spec"] = _panel(made["spec"])
        facet = dict(made["facet"])
        made["facet"] = {"row" if side == "column" else side: over for side, over in facet.items()}
    return _slimmer(made) if isinstance(made.get("width"), int | float) or "layer" in made else made


def _slimmer(spec: ChartSpec) -> ChartSpec:
    """One panel: its width cut, and with it the places that were counted from its right edge."""
    width = spec.get("width") or max((layer.get("width", 0) for layer in spec.get("layer", ())), default=0)
    if any("axis" in x and x["axis"] is None for x in _channels(spec, "x")):  # drawn to scale, such as dots
        louder: ChartSpec = _louder(spec) if width > 1.5 * MOST else spec
        return louder
    rows = any(y.get("type") == "nominal" and y.get("axis", True) is not None for y in _channels(spec, "y"))
    slim: ChartSpec = _cut(spec, width, WITH_NAMES if rows else min(width, MOST))
    return slim


def _cut(part: Any, before: float, after: float) -> Any:
    """The same specification, narrower; data is left alone."""
    if isinstance(part, list):
        return [_cut(each, before, after) for each in part]
    if not isinstance(part, dict):
        return part
    made: ChartSpec = {}
    for name, each in part.items():
        if name == "data":
            made[name] = each
        elif name == "width" and each == before:
            made[name] = after
        elif name == "labelLimit":
            made[name] = min(each, NAMES)
        elif name in ("x", "x2") and isinstance(each, dict) and _edge(each, before):
            made[name] = {**each, "value": each["value"] - before + after}
        else:
            made[name] = _cut(each, before, after)
    return made


def _edge(channel: ChartSpec, width: float) -> bool:
    value = channel.get("value")
    return isinstance(value, int | float) and value >= width


def _louder(part: Any) -> Any:
    """The same specification with larger letters, for a drawing that will be shrunk as a whole."""
    if isinstance(part, list):
        return [_louder(each) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        name: each if name == "data" else round(each * LOUDER) if name == "fontSize" else _louder(each)
        for name, each in part.items()
    }


def _named(panel: ChartSpec, axis: ChartSpec | None) -> ChartSpec:
    layers = [_with_axis(layer, axis) for layer in panel.get("layer", ())]
    return {**panel, "layer": layers} if axis is not None and layers else panel


def _with_axis(layer: ChartSpec, axis: ChartSpec | None) -> ChartSpec:
    encoding = layer.get("encoding", {})
    if "y" not in encoding or encoding["y"].get("axis", axis) is not None:
        return layer
    return {**layer, "encoding": {**encoding, "y": {**encoding["y"], "axis": axis}}}


def _channels(spec: ChartSpec, name: str) -> Iterator[ChartSpec]:
    """What a panel and its layers say of a channel."""
    for part in (spec, *spec.get("layer", ())):
        channel = part.get("encoding", {}).get(name)
        if isinstance(channel, dict):
            yield channel
