"""What a reader must know of a release, as message keys and plain values: no class of any kind of data.

A query describes the release that answered it (:meth:`sfumato.core.query.Query.describe`); reports render descriptions,
in every language and for every reader, and know no query.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from sfumato.core.exact import fraction_text, natural
from sfumato.errors import InvalidInput

__all__ = [
    "PLACES",
    "Counted",
    "Description",
    "Form",
    "Joined",
    "Listed",
    "MeasuredColumn",
    "OneLine",
    "Paragraph",
    "Phrase",
    "Range",
    "Word",
    "WordRun",
    "phrase",
    "plain",
]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A message, by its key, and the words that it is filled with."""

    key: str
    words: Mapping[str, "Word"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counted:
    """A number of things, in the grammatical number that the language asks for: ``Counted("row", 3)``."""

    noun: str
    number: int


@dataclass(frozen=True, slots=True)
class NamedWord:
    """What somebody declared that a thing is called: ``noun`` in English and its Chinese; else words of the catalogue.

    With a ``number``, this many of them.
    """

    one: str
    many: str
    zh: "Word"
    number: int | None = None
    worth: bool = False


@dataclass(frozen=True, slots=True)
class Listed:
    """Several words as a list, the last joined by "and"."""

    parts: tuple["Word", ...]


@dataclass(frozen=True, slots=True)
class Joined:
    """Several words, each two joined by the message ``by``, which has a ``left`` and a ``right``."""

    by: str
    parts: tuple["Word", ...]


@dataclass(frozen=True, slots=True)
class WordRun:
    """Several words, one directly after the other."""

    parts: tuple["Word", ...]


@dataclass(frozen=True, slots=True)
class OneLine:
    """A word as one line: whatever breaks a line, or turns the text around, becomes a space."""

    word: "Word"


Word = str | Phrase | Counted | NamedWord | Listed | Joined | WordRun | OneLine
Paragraph = tuple[str, ...]
"""Keys of messages, said one after the other and filled from the figures of the release."""


def phrase(key: str, **words: Word) -> Phrase:
    """A message and what it is filled with.

    >>> phrase("measure.sum", value="sbp")
    Phrase(key='measure.sum', words={'value': 'sbp'})
    """
    return Phrase(key, words)


def plain(bound: Fraction) -> str:
    """A bound as people write it: ``80``, ``0.5``, ``1/3``.

    >>> plain(Fraction(1200)), plain(Fraction(1, 2)), plain(Fraction(1, 3))
    ('1,200', '0.5', '1/3')
    """
    if bound.denominator == 1:
        return f"{bound.numerator:,}"
    short = f"{float(bound):.6g}"
    return short if Fraction(short) == bound else fraction_text(bound)


class Form(Enum):
    """What was released."""

    NUMBER = "number"
    NUMBERS = "numbers"
    TABLE = "table"
    CURVE = "curve"
    MODEL = "model"
    DERIVED = "derived"
    FOUND = "found"
    TOP = "top"
    SERIES = "series"
    ALARMS = "alarms"


MAY_BE_EMPTY = (Form.MODEL, Form.FOUND, Form.SERIES, Form.ALARMS)
BY_COLUMNS = (Form.TABLE, Form.CURVE, Form.FOUND, Form.TOP)

PLACES = frozenset(
    {
        "what",  # what was released; else the words for its form
        "risk",  # what one unit may do in it, and what the guarantee leaves open
        "method",  # how it was made, for those who answer for it
        "charged",  # when it was charged
        "error",  # how exact it is, where no margin says it; a key that starts with * is in the words of each reader
        "joint",  # how exact all numbers are at once, said beside margins that differ
        "named",  # how exact names are that were chosen; else words for any choice
        "limits",  # what was not counted; else what the places below and the limit of persons say
        "uncounted",  # first of all: rows that belong nowhere
        "held_back",  # what was cut off
        "listed",  # what a public list leaves out
        "patient_limit",  # what of a person counts, in the words for patients
        "manager_limit",  # what was not counted, for managers
        "again",  # what several of them cost; else words for any release
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredColumn:
    """What a computed column is: in words, whether it counts rows or persons, and what it can be at all."""

    words: Word
    counts: bool = False
    low: Fraction | None = None
    high: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The range that a value was held to."""

    value: Word
    low: Fraction
    high: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a release is about. Public: all of it.

    ``numbers`` counts what was released (the points of a curve, the values found, the groups named; 0 for a model) and
    ``columns`` are what it goes by. ``asked`` is the question in one line. ``measure`` is the key of the words for what
    the numbers are. ``figures`` are what the sentences of this release are filled with, ``roles`` what stands for the
    protected unit in them, where that is not the unit itself; ``together`` is the key for several such units.
    ``paragraphs`` says at each place of a text (:data:`PLACES`) what this release says there in its own words,
    ``facts`` the same for the list of facts, by their names. ``measured`` are columns that were computed, ``ranges``
    what values were held to, ``aside`` names columns that are described elsewhere than among the margins. ``counts``
    says that all numbers count rows or persons, ``once`` is the key for how each of a public number of units counts
    exactly once.
    ``height`` is by how much one row moves the numbers that were drawn.
    ``one_row`` is the key for how rows of a person were made into one, where they were: a limit on rows cuts nothing of
    it. ``kept`` says that a limit leaves rows out where others are counted as they are.
    ``plot`` is the picture of the answer; ``scattered`` says why no single noise distribution can be drawn, where that
    is so. ``glance`` are figures that stand first, each with the key of its words, where they are not margins.
    """

    form: Form
    numbers: int
    asked: Word
    columns: tuple[str, ...] = ()
    measure: str | None = "measure.count"
    figures: Mapping[str, Word] = field(default_factory=dict)
    roles: Mapping[str, Word] = field(default_factory=dict)
    together: str | None = None
    paragraphs: Mapping[str, tuple[Paragraph, ...]] = field(default_factory=dict)
    facts: Mapping[str, Word] = field(default_factory=dict)
    measured: Mapping[str, MeasuredColumn] = field(default_factory=dict)
    ranges: tuple[Range, ...] = ()
    aside: tuple[str, ...] = ()
    counts: bool = True
    once: str = ""
    one_row: str = ""
    kept: bool = False
    height: int = 1
    plot: str = "intervals"
    scattered: str | None = None
    glance: tuple[tuple[Word, str], ...] = ()

    def __post_init__(self) -> None:
        natural(self.numbers, "numbers", least=0 if self.form in MAY_BE_EMPTY else 1)
        if self.form is Form.NUMBER and self.numbers != 1:
            raise InvalidInput(f"one number was announced and {self.numbers} were counted; no text was made.")
        if self.form in BY_COLUMNS and not self.columns:
            raise InvalidInput(f"a {self.form.value} needs the columns that it goes by; no text was made.")
        if self.form is Form.DERIVED and "sources" not in self.figures:
            raise InvalidInput("a derived figure needs the releases that it was computed from; no text was made.")
        unknown = sorted(self.paragraphs.keys() - PLACES)
        if unknown:
            raise InvalidInput(f"{', '.join(unknown)}: a text has no such place; no text was made.")

    def at(self, place: str) -> tuple[Paragraph, ...]:
        """What is said at a place in words of its own."""
        return self.paragraphs.get(place, ())
