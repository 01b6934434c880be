"""Limits: how much of each person counts, and what rows and persons are called where that is said."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

from sfumato.core.documents import LEFT_OUT
from sfumato.core.exact import natural
from sfumato.errors import InvalidInput

__all__ = ["Limit", "Noun"]

MOST = 2**31  # so that what an engine adds up stays within 64 bits
LONGEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """A word for things: one, several of them, and in Chinese with its measure word (``zh="次就诊"``) if there is one.

    Public: it is shown with every figure, and never read off the data.

    >>> Noun.of("visit").many, Noun.of("study").many, Noun.of(Noun(one="child", many="children")).many
    ('visits', 'studies', 'children')
    """

    KIND: ClassVar[str] = "noun"
    VERSION: ClassVar[int] = 1
    one: str
    many: str
    zh: str | None = None

    def __post_init__(self) -> None:
        for word in (self.one, self.many, *([] if self.zh is None else [self.zh])):
            if not isinstance(word, str) or not 0 < len(word.strip()) <= LONGEST or not word.isprintable():
                raise InvalidInput(f"a word for rows or persons has 1 to {LONGEST} printable signs; nothing was done.")

    @classmethod
    def of(cls, word: "Noun | str") -> "Noun":
        """A word as a noun; the plural of a text is formed by the rule, and an exception is said as a Noun."""
        if isinstance(word, Noun):
            return word
        if not isinstance(word, str) or not word:
            raise InvalidInput("a word for rows or persons is a text or an sf.Noun(one=…, many=…); nothing was done.")
        if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
            return cls(one=word, many=f"{word[:-1]}ies")
        return cls(one=word, many=f"{word}es" if word.endswith(("s", "x", "z", "ch", "sh")) else f"{word}s")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Limit:
    """At most ``groups`` groups of a person count, and at most ``rows_per_group`` rows in each.

    Guarantee: enforced by the engine for every output grouping: a person's total in a group is clipped first, then
    the groups are chosen from that person's own data and a secret key alone.

    ``row`` and ``person`` say what a row and a person are called wherever the limit is shown, such as "visit" and
    "patient". They change no figure: limits that differ in words alone are equal, and the same question.

    >>> Limit(groups=3, rows_per_group=5).rows
    15
    >>> Limit(groups=1, rows_per_group=3, row="visit") == Limit(groups=1, rows_per_group=3)
    True
    """

    KIND: ClassVar[str] = "limit"
    VERSION: ClassVar[int] = 1
    groups: int
    rows_per_group: int
    row: Noun | None = field(default=None, compare=False, metadata={LEFT_OUT: True})
    person: Noun | None = field(default=None, compare=False, metadata={LEFT_OUT: True})

    def __init__(
        self, *, groups: int, rows_per_group: int, row: Noun | str | None = None, person: Noun | str | None = None
    ) -> None:
        natural(groups, "groups", most=MOST)
        natural(rows_per_group, "rows_per_group", most=MOST)
        said = {
            "groups": groups,
            "rows_per_group": rows_per_group,
            "row": None if row is None else Noun.of(row),
            "person": None if person is None else Noun.of(person),
        }
        for name, value in said.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        words = (("row", self.row), ("person", self.person))
        said = "".join(f", {name}={noun!r}" for name, noun in words if noun is not None)
        return f"Limit(groups={self.groups}, rows_per_group={self.rows_per_group}{said})"

    @property
    def rows(self) -> int:
        """The most rows of one person that count in one answer."""
        return self.groups * self.rows_per_group

    @property
    def without_words(self) -> "Limit":
        """The limit as it is enforced."""
        return self if self.row is None and self.person is None else replace(self, row=None, person=None)

    def in_words_of(self, other: "Limit | None") -> "Limit":
        """This limit in the words of another, where it has none of its own."""
        if other is None:
            return self
        return replace(self, row=self.row or other.row, person=self.person or other.person)
