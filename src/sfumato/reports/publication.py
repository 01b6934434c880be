"""What must be on record before a release is published: a reason, a legal basis, and a text for every reader.

Software can refuse to go on without them; it cannot judge them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.guarantees import Approximate
from sfumato.core.release import Release
from sfumato.errors import NotDeclared, Refused
from sfumato.reports.catalogue import message
from sfumato.reports.words import AUDIENCES, Facts, Text, write
from sfumato.reports.words.figures import exact, one_line

__all__ = ["Publication", "publication"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A release with what people put on record for it, and its texts by (language, audience).

    Whatever is empty blocks it. Public: every field. It says what was recorded, not whether that is right.
    """

    release: Release
    reason: str
    legal_basis: str
    texts: Mapping[tuple[str, str], Text]

    def __post_init__(self) -> None:
        for name, value in (("reason", self.reason), ("legal_basis", self.legal_basis)):
            if not isinstance(value, str) or not value.strip():
                raise NotDeclared(f"a publication needs its {name}, in words; nothing was published. Say {name}='…'.")
        languages = {language for language, _ in self.texts}
        missing = [
            f"{who} ({language})"
            for language in sorted(languages)
            for who in AUDIENCES
            if (language, who) not in self.texts
        ]
        if missing or not languages:
            raise Refused(
                f"a publication needs a text for {', '.join(missing) or 'every reader'}; nothing was published."
            )

    def text(self, language: str, audience: str) -> str:
        """The text for one reader; the board's ends with what was put on record."""
        words = str(self.texts[language, audience])
        if audience != "board":
            return words
        guarantee = self.release.statement.guarantee
        facts = {
            "epsilon": exact(self.release.statement.spend.epsilon),
            "delta": exact(guarantee.delta if isinstance(guarantee, Approximate) else Fraction(0)),
            "reason": one_line(self.reason),
            "legal_basis": one_line(self.legal_basis),
        }
        return f"{words}\n\n{message(language, 'publication.recorded', **facts)}"


def publication(
    release: Release, *, reason: str = "", legal_basis: str = "", languages: Sequence[str] = ("en", "zh")
) -> Publication:
    """Put a release on record for publication, with its texts for every reader in these languages.

    ``reason`` says why this ε and no smaller one, ``legal_basis`` on which ground the publisher may publish: both are
    decisions of people, stated in their own words, and have no default.
    """
    facts = Facts.of(release)
    texts = {(language, who): write(facts, language, who) for language in languages for who in AUDIENCES}
    return Publication(release=release, reason=reason, legal_basis=legal_basis, texts=texts)
