"""Releases: noisy numbers with their error distribution, a certificate, and explanations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.columns import AnswerFigure, AnswerRatio, ResultColumn, Value
from sfumato.core.cut import LimitCut, cut_of
from sfumato.core.deprecation import withdrawn
from sfumato.core.description import Word
from sfumato.core.exact import Exact, confidence_level
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, Frame
from sfumato.core.picture import Picture
from sfumato.core.spreadsheet import write_csv
from sfumato.core.statement import Statement
from sfumato.core.suggestion import did_you_mean, no_attribute
from sfumato.core.view import View
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.core.document_page import DocumentPage

__all__ = [
    "Presenter",
    "Release",
    "delivered_again",
    "interval_names",
    "limit_column",
    "only_release",
    "population_intervals",
    "presenter_of",
    "shown_columns",
    "viewed",
    "whole",
]

Columns = list[tuple[str, Sequence[Value], Sequence[tuple[Value, Value]] | None]]


class Presenter(Protocol):
    """Whoever turns a release into words and pictures; handed in from above, so that core imports nothing."""

    def explain(self, release: "Release", language: str, audience: str) -> str:
        """Put the release into plain language."""
        ...

    def plot(self, release: "Release", kind: str, language: str, theme: str, column: str | None) -> Chart:
        """Draw the release."""
        ...

    def map(
        self,
        release: "Release",
        areas: str | Path | Mapping[str, object],
        **asked: Any,  # names, each of a text or None
    ) -> Chart:
        """Draw the release by area."""
        ...

    def draw(self, picture: Picture, language: str, theme: str) -> Chart:
        """Draw what was worked out of releases."""
        ...

    def report(self, release: "Release", path: Path, languages: Sequence[str], reason: str, legal_basis: str) -> Path:
        """Write the release as one page, which needs nothing else."""
        ...

    def document(
        self, page: "DocumentPage", path: Path, languages: Sequence[str], reason: str, legal_basis: str
    ) -> Path:
        """Write a page about what was made of a release."""
        ...

    def workbook(
        self, shown: "Release | ResultColumn", path: Path, confidence: Exact, languages: Sequence[str]
    ) -> Path:
        """Write the release, or figures computed from releases, as a workbook for Excel."""
        ...

    def html(self, release: "Release") -> str:
        """A small table for notebooks."""
        ...

    def words(self, word: Word, language: str) -> str:
        """A word of a description in a language."""
        ...

    def text(self, release: "Release") -> str:
        """A few lines for whoever prints it."""
        ...

    def protection(self, release: "Release", language: str) -> tuple[str, ...]:
        """What was spent, and who is protected, in a few lines."""
        ...

    def figure(self, release: "Release") -> AnswerFigure:
        """The release as a figure that can be computed with (:class:`sfumato.inference.Figure`)."""
        ...

    def explain_figure(self, figure: ResultColumn, language: str, audience: str) -> str:
        """Put figures that were computed from releases into plain language."""
        ...


@withdrawn(presenter="explain, plot, map, report and figure", shown="columns, interval and to_arrow")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Release:
    """What leaves the vault.

    Guarantee: everything reachable from here is public; post-processing takes releases and cannot see data.
    ``charged`` is what this delivery cost (zero when ``repeated``: the stored answer was handed out again). ``view`` is
    how it is shown, where SQL asked for an order, some rows or computed columns; the certificate has all that was
    released.
    """

    statement: Statement
    certificate: Certificate
    charged: Budget
    repeated: bool
    view: View | None = None
    presenter: InitVar[Presenter]
    _presenter: Presenter = field(init=False, repr=False)

    def __post_init__(self, presenter: Presenter) -> None:
        object.__setattr__(self, "_presenter", presenter)

    @property
    def values(self) -> tuple[int, ...]:
        """The noisy numbers as they were drawn; for a count, in the order of the query's labels."""
        return self.statement.values

    @property
    def columns(self) -> Mapping[str, ResultColumn]:
        """The columns of the answer as figures with intervals, by name; they cost nothing."""
        return self.statement.query.columns(self) if self.view is None else self.view.columns(self)

    @property
    def labels(self) -> Mapping[str, Sequence[str | int | bool]]:
        """What each number is about: the keys of its group, in the order of the numbers."""
        return self.statement.query.labels() if self.view is None else self.view.labels(self)

    @property
    def measure(self) -> str | None:
        """The name of the one column that the drawn numbers themselves are; None where columns are computed."""
        return self.statement.query.measure if self.view is None else None

    def __getitem__(self, name: str) -> Any:  # a figure of the class that the query says, above core
        """One column of the answer, as a figure with intervals."""
        columns = self.columns
        if name not in columns:
            hint = did_you_mean(name, columns)
            if name in ("low", "high"):
                hint = f" Frames call the ends of an interval {' and '.join(interval_names(next(iter(columns))))}."
            raise InvalidInput(f"this release has no column {name!r}; it has {', '.join(columns)}.{hint}")
        return columns[name]

    def limit_words(self, language: str = "en") -> str:
        """What of one person counts, such as "at most 3 rows per patient"; empty where all of it does.

        A figure under a limit is that of the rows that count, and its interval is for that figure. What the limit cut
        (:meth:`limit_cuts`) is not in the interval.
        """
        words = self._cut.words
        return "" if words is None else self._presenter.words(words, language)

    def limit_cuts(self) -> bool:
        """Whether a limit can have cut something off these figures: then they are not those of all rows."""
        return self._cut.cuts

    @property
    def _cut(self) -> LimitCut:
        said = self.statement
        return cut_of(said.query, said.unit, said.limit)

    def interval(
        self, confidence: Exact = Fraction(19, 20), *, joint: bool = False, of: str | None = None
    ) -> list[tuple[Value, Value]]:
        """Low and high for each number; with ``joint`` all of them hold at once with this confidence.

        ``of="data"`` covers the privacy noise: the figure of these data, *under the limit* (:meth:`limit_words`), lies
        inside. ``of="population"`` covers sampling too; without ``of``, columns that estimate a population have that.
        What the limit cut off and errors in the data are not covered.
        """
        if self.measure is None:
            return self._only().interval(confidence, joint=joint, of=of)
        if of not in (None, "data"):
            raise InvalidInput(
                f"{self.measure!r} is a figure of these data and estimates nothing of a population; nothing was "
                "computed. Ask for of='data', or for a mean, a proportion, a ratio or a quantile of the table."
            )
        level = confidence_level(confidence)
        margin = self.statement.law.margin(level, numbers=len(self.values) if joint else 1)
        return [(value - margin, value + margin) for value in self.values]

    def to_arrow(self, confidence: Exact = Fraction(19, 20)) -> "pa.Table":
        """The labels, the numbers and their intervals as an Arrow table.

        ``count_data_low`` and ``count_data_high`` hold the count of these data (where there is a column ``limit``,
        under that limit). They are for the noise: sampling, and what a limit cut, are not in them. Columns that
        estimate a population have ``sbp_population_low`` and ``sbp_population_high`` before them: for sampling and
        noise together.
        """
        import pyarrow as pa

        columns: dict[str, Sequence[Value]] = {**self.labels}
        shown, sampled = self._shown(confidence), self._sampled(confidence)
        for name, values, ends in shown:
            columns[name] = values
            if name in sampled:
                both = zip(*sampled[name], strict=True) if sampled[name] else ((), ())
                columns.update(zip(interval_names(name, of="population"), both, strict=True))
            if ends is not None:
                columns.update(zip(interval_names(name), zip(*ends, strict=True) if ends else ((), ()), strict=True))
        if shown:
            columns |= limit_column(self.limit_words(), columns, len(shown[0][1]))
        return pa.table({name: _plain(column) for name, column in columns.items()})

    def _shown(self, confidence: Exact = Fraction(19, 20)) -> Columns:
        """Each column: its name, its numbers and the intervals of these data; none where they were chosen."""
        if self.measure is not None:
            return [(self.measure, self.values, self.interval(confidence))]
        return [
            (name, column.values, column.interval(confidence, of="data") if column.measured else None)
            for name, column in self.columns.items()
        ]

    def _sampled(self, confidence: Exact) -> Mapping[str, Sequence[tuple[Value, Value]]]:
        """The intervals of a population, of the columns that estimate one."""
        return {
            name: column.interval(confidence, of="population")
            for name, column in ({} if self.measure is not None else self.columns).items()
            if column.measured and column.estimates_population
        }

    def _only(self) -> ResultColumn:
        columns = self.columns
        if not columns:
            raise InvalidInput("this release has no columns of numbers; nothing was computed.")
        if len(columns) > 1:
            raise InvalidInput(
                f"this release has {len(columns)} columns; pick one: {', '.join(columns)}. "
                "Say release['name'], and compute with that."
            )
        (column,) = columns.values()
        return column

    def to_pandas(self, confidence: Exact = Fraction(19, 20)) -> Frame:
        """The same table for pandas, which must be installed."""
        need("pandas", "pip install pandas")
        return self.to_arrow(confidence).to_pandas()

    def to_polars(self, confidence: Exact = Fraction(19, 20)) -> Frame:
        """The same table for Polars, which must be installed."""
        return need("polars", "pip install polars").from_arrow(self.to_arrow(confidence))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def explain(self, language: str = "en", audience: str = "public") -> str:
        """Say in plain words what was released, how exact it is and what it guarantees.

        ``language`` is ``en`` or ``zh``; ``audience`` is ``public``, ``patient``, ``clinician``, ``manager`` or
        ``board``, an ethics board.
        """
        return self._presenter.explain(self, language, audience)

    def plot(
        self, kind: str = "intervals", *, column: str | None = None, language: str = "en", theme: str = "light"
    ) -> Chart:
        """Draw the release as an Altair chart; needs the ``plots`` extra.

        ``kind`` is ``intervals`` (the numbers with their error), ``noise`` (the error distribution), ``belief`` (what
        an attacker can come to believe) or ``frontier`` (the error at other ε); of networks also ``degrees`` and
        ``matrix``. The ``intervals`` of a stream are its series with bands, or its alarms over time. ``theme`` is
        ``light`` or ``dark``.
        ``column`` picks one where the answer has several; without it, ``intervals`` draws them side by side.
        """
        return self._presenter.plot(self, kind, language, theme, column)

    def map(
        self,
        areas: str | Path | Mapping[str, object],
        *,
        key: str | None = None,
        property: str | None = None,
        object: str | None = None,
        column: str | None = None,
        language: str = "en",
        theme: str = "light",
    ) -> Chart:
        """Draw the numbers by area, and beside them how exact they are, as an Altair chart; needs the ``plots`` extra.

        ``areas`` is a TopoJSON or GeoJSON file of your own, or what one holds. ``key`` is the key column that names
        areas, ``property`` the property of the map with the same names (its ids, if not given), ``object`` one of
        several objects of a topology, and ``column`` one of several columns.
        """
        asked = {"key": key, "property": property, "object": object, "column": column}
        return self._presenter.map(self, areas, **asked, language=language, theme=theme)

    def report(
        self, path: str | Path, *, languages: Sequence[str] = ("en", "zh"), reason: str = "", legal_basis: str = ""
    ) -> Path:
        """Write one page with numbers, pictures, words and certificate: ``.html``, or ``.pdf`` where a browser is.

        ``reason`` says why this ε and no smaller one, ``legal_basis`` on which ground it may be published; both are
        decisions of people. With both, the page is a publication and states them; without, it says that it is a draft.
        """
        return self._presenter.report(self, Path(path), languages, reason, legal_basis)

    @property
    def figure(self) -> AnswerFigure:
        """The release as a :class:`~sfumato.inference.Figure`: to add, subtract, divide, pick from and add up.

        Figures cost nothing and carry the error of the noise along. ``a + b``, ``a - b``, ``2 * a`` and ``a / b`` on
        releases are short for the same on their figures.
        """
        return self._presenter.figure(self)

    def __add__(self, other: object) -> AnswerFigure:
        return self.figure + other

    def __radd__(self, other: object) -> AnswerFigure:
        return other + self.figure

    def __sub__(self, other: object) -> AnswerFigure:
        return self.figure - other

    def __rsub__(self, other: object) -> AnswerFigure:
        return other - self.figure

    def __mul__(self, factor: object) -> AnswerFigure:
        return self.figure * factor

    def __rmul__(self, factor: object) -> AnswerFigure:
        return factor * self.figure

    def __truediv__(self, other: object) -> AnswerFigure | AnswerRatio:
        return self.figure / other

    def _repr_html_(self) -> str:
        return self._presenter.html(self)

    def to_csv(self, path: str | Path, confidence: Exact = Fraction(19, 20)) -> Path:
        """Write the same table as CSV; texts that a spreadsheet would take for a formula are made harmless."""
        return write_csv(self.to_arrow(confidence), path)

    def to_excel(
        self, path: str | Path, confidence: Exact = Fraction(19, 20), *, languages: Sequence[str] = ("en", "zh")
    ) -> Path:
        """Write the same table as a workbook for Excel (.xlsx), with a sheet of explanation in each language.

        Numbers are numbers and no text is a formula. The sheets beside the table say what counts, what was charged,
        who is protected and how exact the numbers are.
        """
        return self._presenter.workbook(self, Path(path), confidence, languages)

    def __str__(self) -> str:
        return self._presenter.text(self)

    __repr__ = __str__

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name)


def interval_names(name: str, of: str = "data") -> tuple[str, str]:
    """What the ends of an interval are called in a frame: after the figure that they are for, ``of`` the data or not.

    >>> interval_names("count")
    ('count_data_low', 'count_data_high')
    >>> interval_names("sbp", of="population")
    ('sbp_population_low', 'sbp_population_high')
    """
    return f"{name}_{of}_low", f"{name}_{of}_high"


def limit_column(words: str, beside: Iterable[str], rows: int) -> dict[str, list[str]]:
    """The column of a frame that says what of one person counts at the most; none where nothing can be cut.

    >>> limit_column("at most 3 rows per patient", ["region", "limit"], 2)
    {'contribution_limit': ['at most 3 rows per patient', 'at most 3 rows per patient']}
    """
    if not words:
        return {}
    name, taken = "limit", set(beside)
    while name in taken:
        name = f"contribution_{name}"
    return {name: [words] * rows}


def _plain(column: Sequence[Value]) -> list[Value]:
    """Numbers as Arrow takes them: fractions as doubles."""
    if any(isinstance(value, Fraction) for value in column):
        return [float(value) for value in column]
    return list(column)


def only_release(given: object) -> Release:
    """Let a release through and nothing else: what makes words, pictures or new figures must not be handed rows.

    >>> only_release([1, 2, 3])
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: post-processing takes releases and was given list; nothing was done.
    """
    if not isinstance(given, Release):
        raise InvalidInput(f"post-processing takes releases and was given {type(given).__name__}; nothing was done.")
    return given


def shown_columns(release: Release, confidence: Exact = Fraction(19, 20)) -> Columns:
    """Each column of an answer: its name, its numbers and the intervals of these data; none for what was chosen."""
    return release._shown(confidence)


def population_intervals(
    release: Release, confidence: Exact = Fraction(19, 20)
) -> Mapping[str, Sequence[tuple[Value, Value]]]:
    """The intervals of a population, of the columns of an answer that estimate one, by name."""
    return release._sampled(confidence)


def presenter_of(release: Release) -> Presenter:
    """Whoever turns a release into words and pictures."""
    return release._presenter


def viewed(release: Release, view: View | None) -> Release:
    """A release as a view shows it."""
    return release if view is None else replace(release, presenter=release._presenter, view=view)


def whole(release: Release) -> Release:
    """All that was released, without the view that shows some of it."""
    found = only_release(release)
    return found if found.view is None else replace(found, presenter=found._presenter, view=None)


def delivered_again(release: Release) -> Release:
    """A stored answer as it is handed out once more, for nothing."""
    return replace(release, presenter=release._presenter, charged=Budget.none(), repeated=True)
