"""A draft of a schema for a steward to fill in, written from the names and types of columns alone."""

import re
from collections.abc import Mapping
from pathlib import Path

from sfumato.engines.expressions import Type
from sfumato.engines.sources import DatabaseTable, Source
from sfumato.engines.sources.files import named_columns
from sfumato.errors import InvalidInput
from sfumato.tables.schema import ColumnFacts, Schema
from sfumato.tables.schema_file import WORDS, name_of, text_of

__all__ = ["draft"]

HEAD = """\
# A draft, to be filled in by whoever is responsible for the data. It was written from the names and types of the
# columns alone; no row was read. What is declared here is public, and must be known without looking at the rows: from a
# questionnaire, a code book, a law, an earlier publication. A line that starts with # is not read.

kind = "schema"
version = 1  # of this kind of file

[dataset]
# The name stands in every release and certificate. The version is your label for this state of the rows: another state,
# another label. Never use a checksum of the rows; that would be an exact output.
"""
UNIT = """\

[unit]
# Who is protected: the column that identifies persons. It must hold text or whole numbers.
{column}
# population = 1000000  # a public bound on how many persons there could be; δ is judged by it
# number = 1000         # how many persons there are, if that is public; used only where neighbours replace each other

# How much of each person counts: the most groups, and the most rows in each. More means more noise.
# [limit]
# groups = 1
# rows_per_group = 1
# row = "visit"       # what a row is called where the limit is shown …
# person = "patient"  # … and a person

# How values are written, in a CSV file and the like; what cannot be read so is missing, and
# where(sf.unreadable("column")).count() counts it. Leave out what is as usual.
# [cells]
# decimal = ","
# thousands = "."
# date = "DD.MM.YYYY"
# true = ["yes"]
# false = ["no"]
# missing = ["NA"]
# trim = true  # blanks around a value are no part of it

# Where rows come from, to compare batches, instruments, sites or steps of processing: the column that names each.
# [provenance]
# batch = "…"

# The columns. Whatever is not listed here cannot be asked for, so leave out what nobody should ask."""
BOUNDS = "# bounds = [0, 100]  # the public range; values outside are moved to its ends"
HINTS = {
    Type.TEXT: ('# keys = ["…", "…"]  # to group by it: all values, those of nobody included',),
    Type.WHOLE: (BOUNDS, "# keys = [1, 2, 3]  # to group by it: all values, those of nobody included"),
    Type.NUMBER: (BOUNDS,),
    Type.TRUTH: ("# keys = [true, false]  # to group by it",),
    Type.TIME: ("# bounds = [2026-01-01, 2026-12-31]  # the period: its first and its last day",),
    Type.DATE: ("# keys = [2026-01-01, 2026-01-02]  # to group by it: all days, those of nobody included",),
}
PERSONS = (
    *("patient", "person", "subject", "participant", "individual", "member", "client", "customer", "resident"),
    *("student", "pupil", "employee", "respondent", "citizen", "user", "患者", "病人", "个人", "居民", "用户", "学生"),
)
MARKS = frozenset(("id", "ids", "nbr", "no", "nr", "num", "number", "key", "code", "uid", "guid", "hash", "pseudonym"))
NUMBERS = frozenset(("mrn", "ssn", "nhs", "pid", "hicn", "mbi", "subjid", "usubjid", "身份证", "身份证号", "病案号"))
"""What alone is the number of a person."""
EVENTS = (
    *("encounter", "visit", "stay", "admission", "episode", "event", "order", "claim", "sample", "specimen", "test"),
    *("transaction", "invoice", "record", "row", "line", "hadm", "就诊", "住院", "入院", "记录"),
)
UNSAID = "  # the file does not say: text, whole, number, truth, date or time"


def draft(data: object) -> str:
    """Write a schema to fill in, as TOML.

    Opens metadata only: the end of a Parquet file, the first line of a CSV file, the head of a file of Stata, SAS or
    SPSS, the catalogue of a database.

    >>> import pyarrow as pa
    >>> print(draft(pa.table({"id": [1], "sex": ["F"]})).splitlines()[-1])
    # keys = ["…", "…"]  # to group by it: all values, those of nobody included
    """
    is_path = isinstance(data, str | Path) and "://" not in str(data)
    names = named_columns(Path(str(data))) if is_path else None
    columns = Source(data, derived=True).columns() if names is None else _untyped(names, Path(str(data)))
    usable = {name: kind for name, kind in columns.items() if kind is not Type.OTHER}
    # Made once as a schema, so that a name or a table that no schema could hold is refused now.
    Schema(columns=tuple(ColumnFacts(name=name, type=kind) for name, kind in usable.items()))
    lines = [HEAD + f"name = {text_of(_name(data))}", '# version = "2026-10"', UNIT.format(column=_unit(usable))]
    for name, kind in columns.items():
        lines += _column(name, kind, "" if names is None else UNSAID)
    return "\n".join(lines) + "\n"


def _untyped(names: list[str], path: Path) -> dict[str, Type]:
    if not names or not all(names):
        raise InvalidInput(f"the first line of {path.name!r} does not name its columns; nothing was done.")
    return dict.fromkeys(names, Type.TEXT)


def _name(data: object) -> str:
    """A first name for the dataset: that of the file or the table."""
    match data:
        case DatabaseTable(name=(*_, last)):
            return last
        case str() if "://" in data:
            return data.rpartition("table=")[2].partition("&")[0].rpartition(".")[2] or "data"
        case str() | Path():
            return Path(data).name.partition(".")[0] or "data"
    return "data"


def _unit(columns: Mapping[str, Type]) -> str:
    """The columns that could tell persons apart; those that sound like it first."""
    could = [name for name, kind in columns.items() if kind in (Type.TEXT, Type.WHOLE)]
    likely = sorted(could, key=_sounds_like_a_person, reverse=True)
    likely = [name for name in likely if _sounds_like_a_person(name)] or likely
    if not likely:
        return "# column = …  # no column can: none holds text or whole numbers"
    others = f"  # or {', '.join(map(text_of, likely[1:6]))}{', …' if len(likely) > 6 else ''}" if likely[1:] else ""
    return f"# column = {text_of(likely[0])}{others}"


def _sounds_like_a_person(name: str) -> int:
    """How much a name sounds as if the column tells persons apart, and not their visits: by its words alone.

    >>> names = ["encounter_id", "patient_age", "id", "patient_nbr", "MRN"]
    >>> sorted(names, key=_sounds_like_a_person, reverse=True)
    ['patient_nbr', 'MRN', 'id', 'encounter_id', 'patient_age']
    """
    words = re.findall(r"[a-z]+|[^\W\d_a-z]+", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).casefold())
    marks = any(word in MARKS or word.endswith("号") or _joined(word) for word in words)
    of_person = any(person in word for word in words for person in PERSONS) or bool(NUMBERS.intersection(words))
    of_event = any(event in word for word in words for event in EVENTS)
    if of_person and (marks or NUMBERS.intersection(words)):
        return 2 if of_event else 5
    if of_person and len(words) == 1:
        return 4
    if not marks:
        return 0
    return 1 if of_event else 3 if len(words) == 1 else 2


def _joined(word: str) -> bool:
    """Whether two words were written as one, as in ``patientid``."""
    return word.endswith("id") and any(part in word for part in (*PERSONS, *EVENTS))


def _column(name: str, kind: Type, note: str) -> list[str]:
    if kind is Type.OTHER:
        hint = '# type = "number"  # its type cannot be used as it is; a decimal can be declared a number'
        return ["", f"# [columns.{name_of(name)}]", hint]
    word = next(word for word, known in WORDS.items() if known is kind)
    return ["", f"[columns.{name_of(name)}]", f'type = "{word}"{note}', *HINTS[kind]]
