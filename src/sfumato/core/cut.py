"""What a contribution limit can cut from an answer, in words that stand wherever the answer is shown.

A figure under a limit is another figure than the one that a plain count gives: "rows, at most 3 per patient". A query
says so itself (:class:`LimitedQuery`); everything that shows a release renders what it says.
"""

import re
from dataclasses import dataclass
from typing import Protocol

from sfumato.core.description import Counted, NamedWord, OneLine, Word, phrase
from sfumato.core.limits import Limit, Noun
from sfumato.core.query import Query
from sfumato.core.units import Family, Node, Unit, User

__all__ = ["LimitCut", "LimitedQuery", "cut_by", "cut_of", "person_word", "row_words"]

KNOWN = (  # columns that are called so have a word in every language
    "case",
    "child",
    "client",
    "customer",
    "employee",
    "household",
    "individual",
    "inhabitant",
    "member",
    "participant",
    "patient",
    "person",
    "pupil",
    "resident",
    "respondent",
    "student",
    "subject",
    "user",
)
ENDING = re.compile(r"[ _.-]*(?:id|uid|nbr|nr|no|num|number|key|code|pseudonym)$", re.IGNORECASE)
APART = re.compile(r"(?:[ _.-]+(?:id|uid|nbr|nr|no|num|number|key|code|pseudonym)|(?<=[a-z])(?:Id|ID|Key|No|Nr))$")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitCut:
    """How an answer is cut by a limit. Public: all of it, since it follows from declarations.

    ``words`` says what of one unit counts at the most; None where that is all of it. ``cuts`` says whether the limit
    can cut something off what the words name: a count of persons, each once, is exact. ``rows`` is what was asked of
    which rows and by which groups, ``most`` the limit as far as it can cut: answers that agree in both are cut alike.
    """

    words: Word | None = None
    cuts: bool = False
    rows: tuple[object, ...] = ()
    most: tuple[object, ...] = ()


class LimitedQuery(Query, Protocol):
    """A query that knows what a limit can cut from its answer."""

    def cut(self, unit: Unit, limit: Limit | None) -> LimitCut:
        """How the answer is cut where a unit is held to ``limit``."""
        ...


def cut_of(query: Query, unit: Unit, limit: Limit | None) -> LimitCut:
    """How an answer is cut; where the query does not say, every limit is one that can cut."""
    cut = getattr(query, "cut", None)  # a query need not be a LimitedQuery
    if cut is not None:
        found: LimitCut = cut(unit, limit)
        return found
    if isinstance(unit, Node):
        words = phrase("cut.links", links=Counted("link", unit.max_degree))
        return LimitCut(words=words, cuts=True, most=(unit.max_degree,))
    if limit is None:
        return LimitCut()
    return cut_by(unit, Limit(groups=1, rows_per_group=limit.rows).in_words_of(limit), cells=1)


def cut_by(
    unit: Unit,
    limit: Limit | None,
    *,
    cells: int,
    counted: str | None = "row",
    rows: tuple[object, ...] = (),
) -> LimitCut:
    """How rows are cut that are counted in each of ``cells`` groups.

    ``counted`` is what a person is held to in a group, as a noun of the catalogue; None where each counts once there,
    however many rows it has, as in a count of persons.

    >>> from sfumato.core.units import record, user
    >>> cut_by(record(relation="replace"), None, cells=4).words is None
    True
    >>> held = Limit(groups=2, rows_per_group=3)
    >>> cut_by(user("patient_id", relation="replace"), held, cells=1).words.key
    'cut.rows'
    >>> cut_by(user("patient_id", relation="replace"), held, cells=1, counted=None).words is None
    True
    >>> once = cut_by(user("patient_id", relation="replace"), Limit(groups=1, rows_per_group=1), cells=1)
    >>> once.words.key, once.cuts
    ('cut.each', False)
    """
    if limit is None:
        return LimitCut(rows=rows)
    groups = None if cells <= limit.groups else limit.groups
    alone = cells == 1
    words: dict[str, Word] = {"person": person_word(unit, limit)}
    if groups is not None:
        words["groups"] = Counted("group", groups)
    if counted is not None:
        words["rows"] = row_words(limit, limit.rows_per_group, counted)
    most = (groups, None if counted is None else limit.rows_per_group)
    match groups, counted:
        case None, None:
            return LimitCut(rows=rows)
        case None, "row" if limit.rows_per_group == 1:  # a count of persons
            name = "cut.each" if alone else "cut.each_group"
            return LimitCut(words=phrase(name, person=words["person"]), rows=rows)
        case None, _:
            name = "cut.rows" if alone else "cut.rows_each"
        case 1, None:
            name = "cut.once"
        case _, None:
            name = "cut.groups"
        case 1, _:
            name = "cut.rows_one_group"
        case _:
            name = "cut.rows_groups"
    if groups == 1:
        del words["groups"]
    return LimitCut(words=phrase(name, **words), cuts=True, rows=rows, most=most)


def row_words(limit: Limit, number: int, counted: str = "row") -> Word:
    """A number of rows, in the declared word for them where there is one.

    >>> row_words(Limit(groups=1, rows_per_group=3), 3)
    Counted(noun='row', number=3)
    >>> row_words(Limit(groups=1, rows_per_group=3, row="visit"), 3).many
    'visits'
    """
    usual = Counted(counted, number)
    return usual if limit.row is None else _named(limit.row, usual, number=number, worth=counted == "worth")


def _named(noun: Noun, usual: Word, *, number: int | None = None, worth: bool = False) -> NamedWord:
    return NamedWord(one=noun.one, many=noun.many, zh=noun.zh or usual, number=number, worth=worth)


def person_word(unit: Unit, limit: Limit | None = None) -> Word:
    """What one person is called: as the limit declares it, else read off the name of the column of persons.

    >>> from sfumato.core.units import user
    >>> [person_word(user(name, relation="replace")) for name in ("Patient_ID", "ward")]
    [Phrase(key='person.patient', words={}), OneLine(word='ward')]
    >>> person_word(user("id", relation="replace")).key
    'person.person'
    >>> person_word(user("id", relation="replace"), Limit(groups=1, rows_per_group=1, person="resident")).zh.key
    'person.resident'
    """
    if limit is None or limit.person is None:
        return _of_column(unit)
    word = limit.person.one.casefold()
    return _named(limit.person, phrase(f"person.{word}") if word in KNOWN else _of_column(unit))


def _of_column(unit: Unit) -> Word:
    if not isinstance(unit, User | Family):
        return phrase("person.unit")
    bare = ENDING.sub("", unit.column)
    if not bare:
        return phrase("person.person")
    if bare.casefold() in KNOWN:
        return phrase(f"person.{bare.casefold()}")
    return OneLine(APART.sub("", unit.column) or unit.column)
