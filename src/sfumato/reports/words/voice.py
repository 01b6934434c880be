"""Says messages in one language, filled in from one table of figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sfumato.errors import Refused
from sfumato.reports.catalogue import LANGUAGES, message

__all__ = ["Voice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """A language and the figures it may use.

    >>> Voice(language="zh", figures={"margin": "6"}).say("accuracy.one")
    '若这样发布 100 次，平均至少有 95 次，该数字与真实值相差不超过 ±6。'
    """

    language: str
    figures: Mapping[str, str]

    def __post_init__(self) -> None:
        empty = [name for name, figure in self.figures.items() if not figure.strip()]
        if empty:
            raise Refused(f"the explanation has nothing to fill in for {', '.join(empty)}; it was not made.")

    def say(self, *identifiers: str) -> str:
        """One paragraph of these messages, in order."""
        return self.joined([message(self.language, identifier, **self.figures) for identifier in identifiers])

    def joined(self, sentences: Sequence[str]) -> str:
        """One paragraph of finished sentences."""
        return ("" if LANGUAGES[self.language] == "zh-Hans" else " ").join(sentences)
