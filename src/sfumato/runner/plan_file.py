"""Plan files: a year of releases in TOML, read strictly, with the place of what is wrong.

The file says what is asked of which data and how exact it has to be. Sensitivities, sizes and amounts are worked out.
No data is opened.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar  # a value of a TOML file, checked by who asks for it

from sfumato.core.budget import Budget
from sfumato.core.exact import natural
from sfumato.core.foreign import TomlTable
from sfumato.core.query import check_name
from sfumato.core.units import Family, Record, Unit, User, family, record, user
from sfumato.errors import InvalidInput, NotDeclared, Refused, SfumatoError, Unsupported
from sfumato.governance.digest import digest_of
from sfumato.governance.periods import Cadence, year_of
from sfumato.governance.plans import (
    Accounting,
    Aim,
    Fixed,
    Margin,
    MeanError,
    Plan,
    PlannedRelease,
    Price,
    Schedule,
    solve,
)
from sfumato.governance.terms import levels_of
from sfumato.reports.publication import Grounds
from sfumato.runner.asked import SqlQuestion
from sfumato.runner.places import DataPath
from sfumato.runner.planned_tests import PlannedTests, planned_tests
from sfumato.tables.schema import Schema

__all__ = ["PlanFile", "Planned"]

VERSION = 1
LONGEST = 2**20
PARTS = (
    "kind",
    "version",
    "name",
    "year",
    "account",
    "aim",
    "accounting",
    "purpose",
    "recipient",
    "reason",
    "legal_basis",
)
RELEASE = ("every", "question", "schema", "data", "wanted", "weight", "sums")
NOT_READ = "the plan was not read"
Made = TypeVar("Made")
Chosen = TypeVar("Chosen", bound=Enum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """One release of a plan file: what is asked, where each period's data lies, and what its margin is about."""

    name: str
    every: Cadence
    asked: SqlQuestion
    data: DataPath
    rows: int | None = None
    column: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A plan as it was written down, with everything that carrying it out needs.

    ``grounds`` are the reason for its ε and the legal basis; while one is missing, what a run writes is a draft.

    Guarantee: :attr:`digest` covers every question, schema and limit, every path as it is written, the tests and the
    grounds, so that a decision on it is one on what will be asked and published. Assumes: relative paths are taken from
    ``folder``, where the file lies, and the digest does not cover it: that the files there hold the data that their
    names say is the steward's word.
    Public: every field; no data is opened.
    """

    folder: Path
    account: str
    purpose: str | None
    recipient: str | None
    grounds: Grounds
    plan: Plan
    entries: tuple[Planned, ...]
    tests: PlannedTests | None = None

    @classmethod
    def load(cls, path: str | Path) -> "PlanFile":
        """Read a plan; what is wrong is said with its place. Paths in it are taken from the folder it lies in."""
        place = Path(path)
        try:
            with place.open("rb") as file:
                content = file.read(LONGEST + 1)
        except OSError as wrong:
            raise InvalidInput(f"the plan {place.name!r} could not be read: {wrong.strerror}.") from None
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidInput(f"{place.name!r} is not a text in UTF-8; {NOT_READ}.") from None
        if len(content) > LONGEST:
            raise InvalidInput(f"{place.name!r} is longer than a plan can be; {NOT_READ}.")
        return _at(place.name, lambda: _read(text, place.absolute().parent))

    @property
    def digest(self) -> str:
        """What names this plan in a decision and in the keys of its releases."""
        return digest_of(self.plan)

    @property
    def unit(self) -> Unit:
        """Who is protected."""
        return self.plan.unit

    def entry(self, name: str) -> Planned:
        """The entry of a release."""
        self.plan.release(name)
        return next(entry for entry in self.entries if entry.name == name)

    def solved(self, levels: Mapping[str, Budget] | None = None) -> Schedule:
        """The amounts of the plan, or a refusal with the constraint that binds; no data is opened, nothing is spent."""
        prices: dict[str, Price] = {
            entry.name: entry.asked.price(rows=entry.rows, column=entry.column)
            for entry in self.entries
            if not entry.asked.counts and isinstance(self.plan.release(entry.name).wanted, Margin)
        }
        return solve(self.plan, levels=levels, prices=prices)


def _read(text: str, folder: Path) -> PlanFile:
    try:
        body = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as wrong:
        raise InvalidInput(f"this is not TOML: {wrong}; {NOT_READ}.") from None
    except (RecursionError, ValueError):  # ValueError: a whole number of thousands of digits
        raise InvalidInput(f"the TOML is nested too deep or holds an endless number; {NOT_READ}.") from None
    _check_known(body, "the file", (*PARTS, "unit", "cap", "releases", "tests"))
    if body.get("kind") != "plan":
        raise InvalidInput(f'kind = "plan" is missing: this is another kind of file; {NOT_READ}.')
    if natural(_needed(body, "version", "the file", "version = 1"), "version") > VERSION:
        raise Unsupported(f"the file is of a newer version than this code reads ({VERSION}); {NOT_READ}.")
    year = _at("year", lambda: year_of(_needed(body, "year", "the file", "year = 2026")))
    account = _text(body, "account", "the file")
    _at("account", lambda: levels_of(account))
    purpose, recipient = _optional(body, "purpose"), _optional(body, "recipient")
    grounds = Grounds(**{name: value or "" for name, value in _stated(body).items()})
    unit = _at("unit", lambda: _unit(_table(body, "unit", '[unit] with kind = "user", column = … and relation = …')))
    cap = _at("cap", lambda: _cap(_table(body, "cap", "[cap] with epsilon = …")))
    aim = _choice(Aim, _needed(body, "aim", "the file", 'aim = "least cost"'), "aim")
    accounting = _choice(Accounting, body.get("accounting", "basic"), "accounting")
    tables = _table(body, "releases", "[releases.daily] with every = … and question = …")
    entries, schemas = list[Planned](), dict[str, Schema]()
    for name in tables:
        place = f"releases.{name}"
        facts = _table(tables, name, f"[{place}] with every = … and question = …", above="releases.")
        _check_known(facts, place, RELEASE)
        _check_file_name(name)
        planned = _at(place, lambda: _entry(name, facts, folder, year, unit, cap, schemas))  # noqa: B023 - called at once
        entries.append(planned)
    tests = _at("tests", lambda: _tests(body, entries, year, unit))
    told = {} if tests is None else {"tests": tests.text}  # so that whoever decides on the plan decides on its tests
    releases = []
    for planned in entries:
        beside = {"data": planned.data.text, "purpose": purpose, "recipient": recipient, **_stated(body), **told}
        facts = tables[planned.name]
        made = _at(f"releases.{planned.name}", lambda: _release(planned, facts, aim, beside))  # noqa: B023 - called at once
        releases.append(made)
    _check_one_state(entries)
    _check_sums(releases, entries)
    plan = Plan(
        name=_text(body, "name", "the file"),
        year=year,
        unit=unit,
        cap=cap,
        releases=tuple(releases),
        aim=aim,
        accounting=accounting,
    )
    check_name(plan.name, "the name of a plan")
    return PlanFile(
        folder=folder,
        account=account,
        purpose=purpose,
        recipient=recipient,
        grounds=grounds,
        plan=plan,
        entries=tuple(entries),
        tests=tests,
    )


def _tests(body: TomlTable, entries: list[Planned], year: int, unit: Unit) -> PlannedTests | None:
    if "tests" not in body:
        return None
    facts = _table(body, "tests", "[tests.compare.name] with release, column, first and second")
    asked = {entry.name: entry.asked for entry in entries}
    if "tests" in {entry.name.casefold() for entry in entries}:
        raise InvalidInput(f"a release has the name 'tests', and the table of the tests too; {NOT_READ}. Rename it.")
    found = planned_tests(facts, asked, {entry.name: entry.every for entry in entries}, year, unit)
    for test in found.tests:
        if "sums" in body["releases"][test.release]:
            raise Unsupported(
                f"{test.name!r} tests {test.release!r}, which may be computed from finer periods without a release of "
                f"its own; {NOT_READ}. Leave its sums out, or test the finer release."
            )
    return found


def _stated(body: TomlTable) -> dict[str, str | None]:
    """The reason and the legal basis that the file states; they are part of what is decided on."""
    return {name: _optional(body, name) for name in ("reason", "legal_basis") if name in body}


# ------------------------------------------------------------------------------------------------------- one release


def _entry(
    name: str,
    facts: TomlTable,
    folder: Path,
    year: int,
    unit: Unit,
    cap: Budget,
    schemas: dict[str, Schema],
) -> Planned:
    every = _choice(Cadence, _needed(facts, "every", "it", 'every = "daily"'), "every")
    data = DataPath(text=_text(facts, "data", "it"), every=every, year=year)
    called = _text(facts, "schema", "it")
    if not called.isprintable():
        raise InvalidInput(f"schema = {called!r} is not the path of a file; {NOT_READ}.")
    if called not in schemas:
        schemas[called] = Schema.load(folder / called)
    asked = SqlQuestion.of(_text(facts, "question", "it"), schemas[called], unit, cap)
    wanted = _wanted(facts)
    rows, column = wanted.get("rows"), wanted.get("column")
    if rows is not None:
        natural(rows, "wanted.rows")
    if column is not None and not isinstance(column, str):
        raise InvalidInput(f"wanted.column must be the name of a column in quotes; {NOT_READ}.")
    if asked.counts and (rows is not None or column is not None):
        raise InvalidInput(f"wanted.rows and wanted.column are for answers that are not counts; {NOT_READ}.")
    return Planned(name=name, every=every, asked=asked, data=data, rows=rows, column=column)


def _release(entry: Planned, facts: TomlTable, aim: Aim, beside: dict[str, str | None]) -> PlannedRelease:
    wanted = _target(_wanted(facts))
    if not entry.asked.counts:
        if isinstance(wanted, MeanError):
            raise Unsupported(f"a mean error can be asked of counts alone; {NOT_READ}. Give a margin.")
        if aim is not Aim.LEAST_COST and not isinstance(wanted, Fixed):
            raise NotDeclared(
                f"for {aim.value!r} the error of an answer that is not a count has no common measure; {NOT_READ}. Give "
                'wanted = { epsilon = … }, or aim = "least cost".'
            )
        if "sums" in facts:
            raise Unsupported(f"only counts of rows are added up over time; {NOT_READ}. Leave sums out.")
    return PlannedRelease(
        name=entry.name,
        every=entry.every,
        l1=entry.asked.limit_of_l1,
        l2_squared=entry.asked.limit_of_l2_squared,
        numbers=entry.asked.query.size,
        wanted=wanted,
        weight=facts.get("weight", Fraction(1)),
        sums=_optional(facts, "sums"),
        question=entry.asked.text(**beside, rows=entry.rows, column=entry.column),
    )


def _wanted(facts: TomlTable) -> TomlTable:
    wanted = facts.get("wanted", {})
    if not isinstance(wanted, dict) or ("wanted" in facts and not wanted):
        raise InvalidInput(f"wanted must be a table such as {{ margin = 5, confidence = 0.95 }}; {NOT_READ}.")
    _check_known(wanted, "wanted", ("margin", "confidence", "mean_error", "epsilon", "rows", "column"))
    return wanted


def _target(wanted: TomlTable) -> Margin | MeanError | Fixed | None:
    match sorted(set(wanted) - {"rows", "column"}):
        case []:
            return None
        case ["confidence", "margin"]:
            return Margin(margin=wanted["margin"], confidence=wanted["confidence"])
        case ["mean_error"]:
            return MeanError(error=wanted["mean_error"])
        case ["epsilon"]:
            return Fixed(epsilon=wanted["epsilon"])
    raise InvalidInput(
        f"wanted must be margin with confidence, or mean_error, or epsilon, and only one of them; {NOT_READ}."
    )


# ------------------------------------------------------------------------------------------- what releases share


def _check_one_state(entries: list[Planned]) -> None:
    """Refuse two paths for one version of a dataset: its name and the period's label mean one state of the data.

    A question that is asked twice of it would be answered once, and one of the two releases would have no charge.
    """
    known: dict[tuple[str, Cadence], Planned] = {}
    for place, entry in enumerate(entries):
        for before in entries[:place]:
            if before.name.casefold() == entry.name.casefold():
                raise InvalidInput(f"{before.name!r} and {entry.name!r} would have one folder; {NOT_READ}. Rename one.")
            if before.every is entry.every and before.asked.same_as(entry.asked):
                raise Refused(
                    f"{before.name!r} and {entry.name!r} ask the same of the same periods; {NOT_READ}. Take one out."
                )
        other = known.setdefault((entry.asked.dataset, entry.every), entry)
        if other.data.text != entry.data.text:
            raise Refused(
                f"{other.name!r} and {entry.name!r} read different files as the same periods of "
                f"{entry.asked.dataset!r}; {NOT_READ}. Give both one path, or their schemas different names."
            )


def _check_sums(releases: list[PlannedRelease], entries: list[Planned]) -> None:
    asked = {entry.name: entry.asked for entry in entries}
    for release in releases:
        if release.sums is None:
            continue
        place = f"releases.{release.name}"
        if release.sums not in asked:
            raise InvalidInput(f"{place}.sums names {release.sums!r}, which is not a release of this plan; {NOT_READ}.")
        if not asked[release.name].adds_up:
            raise Refused(
                f"{place}: the persons of several periods do not add up, since whoever comes twice would count twice; "
                f"{NOT_READ}. Leave sums out."
            )
        if not asked[release.name].same_as(asked[release.sums]):
            raise Refused(
                f"{place} asks another question than {release.sums!r} and is not its sum; {NOT_READ}. "
                "Ask the same of both."
            )


def _check_file_name(name: str) -> None:
    """A release's name is that of its folder too."""
    plain = all(sign.isalnum() or sign in " _-." for sign in name) and len(name) <= 80
    if not name or not plain or not (name[0].isalnum() and name[-1].isalnum()):
        raise InvalidInput(
            f"releases.{name}: the name of a release is that of its folder, up to 80 letters, digits, spaces and "
            f"_ - . with a letter or digit at both ends; {NOT_READ}."
        )


# ------------------------------------------------------------------------------------------------------------- parts


def _unit(facts: TomlTable) -> Unit:
    kind = _text(facts, "kind", "it")
    fields: dict[str, tuple[str, ...]] = {
        "user": ("column", "relation"),
        "family": ("size", "column", "relation"),
        "record": ("relation",),
    }
    if kind not in fields:
        raise InvalidInput(f"kind must be one of {', '.join(fields)}; {NOT_READ}.")
    _check_known(facts, "it", ("kind", *fields[kind]))
    relation = _text(facts, "relation", "it")
    made: User | Family | Record
    match kind:
        case "user":
            made = user(_text(facts, "column", "it"), relation=relation)
        case "family":
            made = family(_needed(facts, "size", "it", "size = 3"), _text(facts, "column", "it"), relation=relation)
        case _:
            made = record(relation=relation)
    return made


def _cap(facts: TomlTable) -> Budget:
    _check_known(facts, "it", ("epsilon", "delta"))
    return Budget.asked(epsilon=_needed(facts, "epsilon", "it", "epsilon = 8"), delta=facts.get("delta", 0))


def _choice(kind: type[Chosen], value: object, name: str) -> Chosen:
    for member in kind:
        if member.value == value:
            return member
    known = ", ".join(f'"{member.value}"' for member in kind)
    raise InvalidInput(f"{name} must be one of {known}; {NOT_READ}.")


def _table(body: TomlTable, name: str, example: str, above: str = "") -> TomlTable:
    found = body.get(name)
    if not isinstance(found, dict) or not found:
        raise NotDeclared(f"{above}{name} is missing or no table; {NOT_READ}. Write {example}.")
    return found


def _needed(body: TomlTable, name: str, place: str, example: str) -> Any:
    if name not in body:
        raise NotDeclared(f"{place} does not say {name}; {NOT_READ}. Write {example}.")
    return body[name]


def _text(body: TomlTable, name: str, place: str) -> str:
    value = _needed(body, name, place, f'{name} = "…"')
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{name} must be a text in quotes; {NOT_READ}.")
    return value


def _optional(body: TomlTable, name: str) -> str | None:
    return _text(body, name, "it") if name in body else None


def _check_known(body: TomlTable, place: str, known: tuple[str, ...]) -> None:
    for name in body:
        if name not in known:
            raise InvalidInput(f"{place} has an unknown field {name!r}; {NOT_READ}. Known are {', '.join(known)}.")


def _at(place: str, make: Callable[[], Made]) -> Made:
    """Make something, and say where the words stand that do not allow it."""
    try:
        return make()
    except SfumatoError as wrong:
        raise type(wrong)(f"{place}: {wrong}") from None
