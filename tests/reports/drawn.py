"""A picture drawn once, for all that is looked at in it: its words, its colours and its dots."""

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from sfumato.reports.plots import fonts, saving
from sfumato.reports.plots.theme import THEMES
from tests.reports.pixels import Picture

__all__ = ["LOOKS", "Drawn"]

# Every picture is drawn once in each run, in the language whose letters are harder; the gallery is drawn in English.
LOOKS = [
    ("zh", "dark"),
    pytest.param("en", "light", marks=pytest.mark.long),
    pytest.param("en", "dark", marks=pytest.mark.long),
    pytest.param("zh", "light", marks=pytest.mark.long),
]


@dataclass(frozen=True)
class Drawn:
    """A chart as SVG, which a PNG is made of."""

    svg: str
    theme: str

    @classmethod
    def of(cls, chart: Any, theme: str = "light") -> "Drawn":
        return cls(saving.svg(chart), theme)

    @cached_property
    def texts(self) -> list[str]:
        """All that stands written in the drawing."""
        drawn = ET.fromstring(self.svg)  # noqa: S314 - drawn by ourselves
        return ["".join(part.itertext()) for part in drawn.iter() if part.tag.endswith("}text")]

    @property
    def colours(self) -> set[str]:
        return set(re.findall(r'(?:fill|stroke)="(?!none|transparent)([^"]*)"', self.svg))

    def marked(self, scale: float = 0.6) -> "np.ndarray[tuple[int, int], np.dtype[np.bool_]]":
        """Where something is drawn."""
        return Picture.read(fonts.drawer().svg_to_png(self.svg, scale=scale)).marked(THEMES[self.theme].paper)
