"""Words for releases: from public facts to a text for each reader, in each language."""

from sfumato.reports.words.audiences import AUDIENCES, write
from sfumato.reports.words.facts import Facts, Margins, Span
from sfumato.reports.words.safe_harbor import safe_harbor
from sfumato.reports.words.text import Explanation
from sfumato.reports.words.what_if import what_if

__all__ = [
    "AUDIENCES",
    "Explanation",
    "Facts",
    "Margins",
    "Span",
    "safe_harbor",
    "what_if",
    "write",
]
