"""A small result on a real release: what every study has, with the words that are hardest to write."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.description import Phrase, Word
from sfumato.core.exact import Exact
from sfumato.core.picture import Picture, PictureRow
from sfumato.core.release import Release
from sfumato.demo.clinic import visits
from sfumato.studies.result import ResultTable, StudyResult

EVIL = (
    "=1+1",
    "<script>alert(1)</script>",
    "\\input{/etc/passwd} % $x$ & {",
    "a\x1b[2J\nb",
    "1\u202e2",
    "男，六十五岁以上",
)
SIZE = len(EVIL)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FakeResult(StudyResult):
    """Coefficients of nothing."""

    sources: tuple[Release, ...]

    @property
    def title(self) -> Word:
        return "A result <b>of</b> nothing & {more}_1"

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        half = float(Fraction(str(confidence)))
        return (
            ResultTable(
                name="coefficients",
                columns={
                    "term": list(EVIL),
                    "estimate": [0.123456, -1234.5678, 0.0, math.nan, 1.5, 2.0],
                    "standard error": [0.01234, 12.3, 0.5, math.nan, math.nan, 0.1],
                    "z": [10.004, -100.3, 0.0, math.nan, math.nan, 20.0],
                    "p-value": [0.0001, 0.01234, 1.0, math.nan, math.nan, 0.0499],
                    "low": [0.123456 - half * 0.02, -1258.9, -0.9, math.nan, -math.inf, 1.8],
                    "high": [0.123456 + half * 0.02, -1210.2, 0.9, math.nan, math.inf, 2.2],
                    "n": [12345, 2, 3, 4, 5, None],
                },
            ),
            ResultTable(name="fit: [all]", columns={"rows": [6], "converged": [True]}),
        )

    @property
    def facts(self) -> tuple[tuple[Word, Word], ...]:
        return (("Method", "weighted least squares"), ("Rows", "12,345"), ("Covariance", "HC1, " + "with noise " * 8))

    @property
    def notes(self) -> tuple[Word, ...]:
        return (Phrase("study.covers", {"percent": "95"}), "A note about <groups> & their\nnames, 100% of them.")

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture | None:
        del confidence
        rows = [PictureRow(at=name, value=float(place), low=None, high=None) for place, name in enumerate(EVIL)]
        return Picture(kind="forest", rows=rows, title=self.title, across="estimate")


def fake() -> FakeResult:
    """The result, of a release that cost ε = 1."""
    return FakeResult(sources=(visits().count().release(epsilon=1),))
