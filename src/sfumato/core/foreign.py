"""Names for values that other libraries or files bring, which have no class that mypy knows; each with its reason."""

from collections.abc import Mapping
from typing import Any

__all__ = ["Array", "Chart", "ChartRow", "ChartSpec", "Frame", "TomlTable"]

Array = Any  # of NumPy, most of whose functions mypy takes to give anything
Chart = Any  # of Altair, which may not be installed; its charts, layers and channels share no class that helps
ChartRow = dict[str, Any]  # what one mark of a chart is drawn from, by its own names
ChartSpec = dict[str, Any]  # a chart as Vega-Lite: any JSON, floating-point numbers among it
Frame = Any  # of pandas, Polars, Arrow or Spark, of which each may not be installed
TomlTable = Mapping[str, Any]  # of a TOML file: each value is checked where it is read
