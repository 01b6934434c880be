"""Says messages in one language, filled in from one table of figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.errors import Refused
from sfumato.reports.catalogue import in_chinese, message

__all__ = ["Voice", "paragraph"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """A language and the figures it may use.

    >>> Voice(language="zh", figures={"margin": "6", "truth": "准确值"}).say("accuracy.one")
    '若这样重复发布 100 次，平均至少有 95 次，该数字与准确值相差不超过 ±6。'
    """

    language: str
    figures: Mapping[str, str]

    def __post_init__(self) -> None:
        empty = [name for name, figure in self.figures.items() if not figure.strip()]
        if empty:
            raise Refused(f"the explanation has nothing to fill in for {', '.join(empty)}; it was not made.")

    def say(self, *identifiers: str) -> str:
        """One paragraph of these messages, in order."""
        return paragraph([message(self.language, name, **self.figures) for name in identifiers], self.language)


def paragraph(sentences: Sequence[str], language: str) -> str:
    """Finished sentences one after the other, as the language sets them.

    >>> paragraph(["A.", "B."], "en"), paragraph(["甲。", "乙。"], "zh")
    ('A. B.', '甲。乙。')
    """
    return ("" if in_chinese(language) else " ").join(sentences)
