"""What figures, ratios and all else that is worked out of releases share: numbers with labels and intervals."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from sfumato.core import enclosures
from sfumato.core.columns import Value
from sfumato.core.cut import cut_of
from sfumato.core.description import Joined
from sfumato.core.exact import Exact, confidence_level
from sfumato.core.extras import need
from sfumato.core.foreign import Frame
from sfumato.core.release import Release, interval_names, limit_column, presenter_of
from sfumato.core.rounding import rounded, short
from sfumato.core.spreadsheet import write_csv
from sfumato.core.suggestion import did_you_mean
from sfumato.errors import InvalidInput
from sfumato.inference.linear_combination import LinearCombination
from sfumato.inference.population import level_for

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.inference.population import Population

__all__ = ["Derived", "Label", "joined", "level_of"]

Label = str | int | bool
MOST_ROWS = 20


class Derived:
    """What figures and ratios share: numbers with labels and intervals, as tables."""

    __slots__ = ()

    if TYPE_CHECKING:  # most state these, and some take them from another figure

        @property
        def labels(self) -> Mapping[str, tuple[Label, ...]]:
            """What each number is about."""
            ...

        @property
        def measure(self) -> str:
            """What the numbers are called."""
            ...

        @property
        def sources(self) -> tuple[Release, ...]:
            """The releases that they were computed from."""
            ...

    measured: ClassVar[bool] = True
    """Whether the numbers carry noise of a known law, and so have intervals."""

    @property
    def values(self) -> tuple[Value, ...]:
        """The numbers as they were computed."""
        raise NotImplementedError

    def explain(self, language: str = "en", audience: str = "public") -> str:
        """Say in plain words what was computed from which releases, how exact it is and what is guaranteed."""
        if not self.sources:
            raise InvalidInput("a figure of constants alone has nothing to explain.")
        return presenter_of(self.sources[0]).explain_figure(self, language, audience)

    def interval(
        self, confidence: Exact = Fraction(19, 20), *, joint: bool = False, of: str | None = None
    ) -> list[tuple[Value, Value]]:
        """Low and high for each number; with ``joint`` all of them hold at once with this confidence.

        ``of="population"``: for the value of the population that the people in the data are a sample of; sampling and
        privacy noise together. ``of="data"``: for the figure of these very data; the noise alone. Without ``of``, the
        population's where the numbers estimate one, as means and shares do, else that of the data (counts and sums).
        """
        if of not in (None, "population", "data"):
            raise InvalidInput(f"of={of!r} is neither 'population' nor 'data'; nothing was computed.")
        sampled = None if of == "data" else self._population()
        if sampled is not None:
            return list(sampled.ends(level_for(confidence, len(self.values), joint=joint)))
        if of == "population":
            raise InvalidInput(
                f"{self.measure!r} is a figure of these data and estimates nothing of a population; nothing was "
                "computed. Ask for of='data', or for a mean, a proportion, a ratio or a quantile of the table."
            )
        return self._data_interval(confidence, joint=joint)

    @property
    def estimates_population(self) -> bool:
        """Whether the numbers estimate values of a population, so that sampling is part of their interval."""
        return False

    @property
    def population(self) -> "Population | None":
        """What the intervals of a population are worked out from, for whoever computes on; None where there is none."""
        return self._population()

    @property
    def quality(self) -> str | None:
        """The key of the message that says how far the population's interval can be relied on; None without one."""
        sampled = self._population()
        return None if sampled is None else sampled.quality

    def _population(self) -> "Population | None":
        """What the intervals of a population are worked out from; None where there is none."""
        return None

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[Value, Value]]:
        """The interval for the figure of these data, which covers the noise alone."""
        raise NotImplementedError

    def _picked(self, labels: Mapping[str, Label]) -> tuple[list[int], dict[str, tuple[Label, ...]]]:
        """The places of the numbers whose labels are the given ones, and the labels that are left."""
        unknown = [name for name in labels if name not in self.labels]
        wanted = tuple(labels.values())
        if unknown:
            kept = []
        elif labels:
            rows = zip(*(self.labels[name] for name in labels), strict=True)
            kept = [place for place, row in enumerate(rows) if row == wanted]
        else:
            kept = list(range(len(self.values)))
        if not kept:
            meant = did_you_mean(unknown[0], self.labels) if unknown else self._other_labels(labels)
            raise InvalidInput(
                f"no number here is about {labels}; the labels are {', '.join(self.labels) or 'none'}.{meant}"
            )
        left = {
            name: tuple(column[place] for place in kept) for name, column in self.labels.items() if name not in labels
        }
        return kept, left

    def _other_labels(self, labels: Mapping[str, Label]) -> str:
        """Labels that are nearly the given ones; they are released, and so public."""
        texts = {name: [each for each in self.labels[name] if isinstance(each, str)] for name in labels}
        return "".join(did_you_mean(value, texts[name]) for name, value in labels.items())

    def to_arrow(self, confidence: Exact = Fraction(19, 20)) -> "pa.Table":
        """Labels, numbers and intervals as an Arrow table, with what a limit leaves of each person if one can cut."""
        import pyarrow as pa

        lows, highs = zip(*self.interval(confidence, of="data"), strict=True)
        columns: dict[str, Sequence[Value]] = {**self.labels}
        whole = all(isinstance(value, int) for value in (*self.values, *lows, *highs))
        names, found = [self.measure], [self.values]
        if self.estimates_population:
            names += interval_names(self.measure, of="population")
            found += zip(*self.interval(confidence, of="population"), strict=True)
        for name, column in zip((*names, *interval_names(self.measure)), (*found, lows, highs), strict=True):
            columns[name] = column if whole else [float(value) for value in column]
        columns |= limit_column(self.limit_words(), columns, len(lows))
        return pa.table({name: list(column) for name, column in columns.items()})

    def limit_words(self, language: str = "en") -> str:
        """What of one person counts in the releases; empty where all of it does."""
        said = (release.statement for release in self.sources)
        cut = [cut_of(each.query, each.unit, each.limit).words for each in said]
        words = [word for place, word in enumerate(cut) if word is not None and word not in cut[:place]]
        return presenter_of(self.sources[0]).words(Joined("cut.several", tuple(words)), language) if words else ""

    def limit_cuts(self) -> bool:
        """Whether a limit can have cut something off the releases."""
        return any(release.limit_cuts() for release in self.sources)

    def to_pandas(self, confidence: Exact = Fraction(19, 20)) -> Frame:
        """The same table for pandas, which must be installed."""
        need("pandas", "pip install pandas")
        return self.to_arrow(confidence).to_pandas()

    def to_polars(self, confidence: Exact = Fraction(19, 20)) -> Frame:
        """The same table for Polars, which must be installed."""
        return need("polars", "pip install polars").from_arrow(self.to_arrow(confidence))

    def to_csv(self, path: str | Path, confidence: Exact = Fraction(19, 20)) -> Path:
        """Write the same table as CSV; texts that a spreadsheet would take for a formula are made harmless."""
        return write_csv(self.to_arrow(confidence), path)

    def to_excel(
        self, path: str | Path, confidence: Exact = Fraction(19, 20), *, languages: Sequence[str] = ("en", "zh")
    ) -> Path:
        """Write the same table as a workbook for Excel (.xlsx), with a sheet of explanation in each language."""
        if not self.sources:
            raise InvalidInput("a figure of constants alone has nothing to explain; write it with to_csv.")
        return presenter_of(self.sources[0]).workbook(self, Path(path), confidence, languages)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        names, total = list(zip(*self.labels.values(), strict=True)) or [()], len(self.values)
        ends = self.interval() if self.measured else [None] * total
        lines = [
            f"{' · '.join(map(str, name))}{': ' if name else ''}{_shown(value, pair)}"
            for name, value, pair in list(zip(names, self.values, ends, strict=True))[:MOST_ROWS]
        ]
        if total > MOST_ROWS:
            lines.append(f"… and {total - MOST_ROWS:,} more")
        limit = self.limit_words()
        return "\n".join([*lines, f"({limit})"] if limit else lines)


def joined(left: tuple[Release, ...], right: tuple[Release, ...]) -> tuple[Release, ...]:
    """All releases of two figures, each once."""
    known = {release.statement.identifier: release.statement for release in left}
    for release in right:
        if known.setdefault(release.statement.identifier, release.statement) != release.statement:
            raise InvalidInput(
                "two releases have one identifier and say different things: one of them is forged. "
                "Nothing was computed."
            )
    seen = {release.statement.identifier for release in left}
    return (*left, *(release for release in right if release.statement.identifier not in seen))


def level_of(confidence: Exact, forms: Sequence[LinearCombination]) -> Fraction:
    """The confidence that each of several numbers needs so that all hold at once.

    Numbers without a common noise are independent: the root of the level. Others share their doubt equally.
    """
    level = confidence_level(confidence)
    if len(forms) <= 1:
        return level
    noises = [noise for form in forms for noise in form.noises]
    if len(set(noises)) < len(noises):
        return 1 - (1 - level) / len(forms)
    return min(enclosures.exp(enclosures.log(level).high / len(forms)).high, 1 - (1 - level) / len(forms))


def _shown(value: Value, ends: tuple[Value, Value] | None) -> str:
    """A number with its interval, rounded for its margin; what was chosen stands alone."""
    if ends is None:
        return short(value)
    texts = rounded(value, *ends)
    return (
        f"{short(value)} ({short(ends[0])} to {short(ends[1])})"
        if texts is None
        else f"{texts[0]} ({texts[1]} to {texts[2]})"
    )
