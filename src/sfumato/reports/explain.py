"""A release in plain words: what it says, how exact it is, what it guarantees, what has been used up."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.release import Release, whole
from sfumato.errors import Unsupported
from sfumato.reports.catalogue import message
from sfumato.reports.view_notes import view_notes
from sfumato.reports.words import Facts, Margins, write
from sfumato.reports.words.facts import CONFIDENCE, Sampled

if TYPE_CHECKING:
    from sfumato.inference.derived import Derived

__all__ = ["explain", "explain_figure"]


def explain(release: Release, language: str, audience: str = "public") -> str:
    """Explain a release to one reader, a paragraph for each point, the first about what was released.

    Guarantee and rounding: those of :func:`sfumato.reports.words.write`. The audiences are ``public``, ``patient``,
    ``clinician``, ``manager`` and ``board``. Public: all of it.
    """
    words = str(write(Facts.of(whole(release)), language, audience))
    return "\n\n".join([words, *view_notes(release, language)])


def explain_figure(figure: "Derived", language: str, audience: str = "public") -> str:
    """Explain what was computed from releases of one account; where numbers err differently, by the widest margin."""
    margins = Margins(each=_widest(figure, joint=False), joint=_widest(figure, joint=True))
    sampled = (Sampled.of_figure(figure),) if figure.estimates_population else ()
    facts = Facts.derived(figure.sources, numbers=len(figure.values), margins=margins, sampled=sampled)
    caveat = getattr(figure, "caveat", None)  # what the figure's own margin leaves open
    words = str(write(facts, language, audience))
    return words if caveat is None else f"{words}\n\n{message(language, caveat)}"


def _widest(figure: "Derived", *, joint: bool) -> Fraction:
    """The largest distance between a number and an end of its interval, to three digits and rounded up."""
    ends = zip(figure.values, figure.interval(CONFIDENCE, joint=joint, of="data"), strict=True)
    widest = max(max(abs(high - value), abs(value - low)) for value, (low, high) in ends)
    if math.isinf(widest) or math.isnan(widest):
        raise Unsupported(
            "the noise leaves it open whether a ratio divides by 0, so there is no margin to explain; no text was made."
        )
    exact = Fraction(widest)
    if exact.denominator == 1:
        return exact
    step = Fraction(10) ** (math.floor(math.log10(exact)) - 2)
    return -(-exact // step) * step
