"""What a reader must know of an answer about a table: its measures in words, what bounds a choice, what was cut."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.description import (
    Counted,
    Description,
    Form,
    Listed,
    MeasuredColumn,
    OneLine,
    Paragraph,
    Phrase,
    Range,
    Word,
    phrase,
    plain,
)
from sfumato.core.exact import fraction_text
from sfumato.core.units import Family, User
from sfumato.engines.expressions import Expression
from sfumato.errors import Unsupported
from sfumato.mechanisms import Gaussian, NoisyThreshold, OptimalSelection, TopChoice
from sfumato.tables.choices import Found, Top
from sfumato.tables.clamped import Clamped
from sfumato.tables.conditions import condition, value
from sfumato.tables.describe_persons import about_persons
from sfumato.tables.keys import Keys
from sfumato.tables.measure import Measure

if TYPE_CHECKING:
    from sfumato.core.statement import Statement

__all__ = ["Quantile", "aggregate", "counts", "measured", "partition_selection", "quantiles", "top_groups"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A quantile of a value: the share ``level`` of the rows that have one lies below it."""

    name: str
    of: Clamped
    level: Fraction


def counts(said: "Statement", columns: tuple[str, ...], *, where: Expression | None, rest: bool) -> Description:
    """Counts of rows, in all or by group; ``rest`` says that rows of no listed group have one of their own."""
    numbers = len(said.values)
    description = Description(
        form=_form(numbers, columns),
        numbers=numbers,
        asked=_rows_asked(said, where),
        columns=columns,
        measure=_where("measure.count", where),
        figures=_condition(where),
        paragraphs={} if rest or not columns else {"uncounted": (("limit.keys",),)},
    )
    return about_persons(said, description)


def aggregate(
    said: "Statement",
    measures: Sequence[Measure],
    *,
    by: Sequence[Keys],
    where: Expression | None,
    number: int | None,
    kept: bool,
    kept_beside: bool,
) -> Description:
    """Measures that are computed from the numbers that were drawn.

    ``kept`` says that a limit leaves whole rows out, ``kept_beside`` that it does so for quantiles alone.
    """
    height = said.query.row_height  # type: ignore[attr-defined]  # only queries of measures come here
    moved = said.sensitivity
    rows: dict[str, Word] = {}
    if isinstance(said.mechanism, Gaussian) and moved.l2 is not None:
        rows = {"sensitivity": phrase("fact.sensitivity_rows_l2", squared=fraction_text(moved.l2.squared / height**2))}
    elif moved.l1 is not None:
        rows = {"sensitivity": phrase("fact.sensitivity_rows_l1", l1=fraction_text(moved.l1.value / height))}
    found = _computed(said, measures, by=by, where=where, number=number, facts=rows, height=height)
    beside = {"held_back": (("limit.kept_quantiles",),)} if kept_beside else {}
    return replace(found, kept=kept, paragraphs={**found.paragraphs, **beside})


def quantiles(
    said: "Statement", chosen: Sequence[Quantile], *, by: Sequence[Keys], where: Expression | None
) -> Description:
    """Quantiles, each chosen by its rank."""
    facts: dict[str, Word] = {"noise": phrase("fact.noise_chosen"), "sensitivity": phrase("fact.sensitivity_other")}
    return _computed(said, chosen, by=by, where=where, number=None, facts=facts, height=1)


def partition_selection(said: "Statement", over: tuple[str, ...], *, where: Expression | None) -> Description:
    """Values that enough persons share; a mechanism that does not belong to them is refused."""
    if not isinstance(said.mechanism, NoisyThreshold | OptimalSelection):
        raise _foreign(said)
    choice, found = Found.by(said.mechanism), len(said.found)
    sharers = "persons" if _persons(said) else "rows"
    figures: dict[str, Word] = {
        "values": Counted("value", found),
        "sharers": phrase(f"found.{sharers}"),
        "enough": phrase(f"found.enough_{sharers}", n=f"{choice.enough:,}"),
    }
    if choice.counted:
        figures |= {"least": f"{choice.least:,}", "margin": f"{choice.margin:,}"}
    limited = () if said.limit is None else ("limit.found",)
    counted: tuple[Paragraph, ...] = (("*found_counts", "accuracy.noise"),) if choice.counted else ()
    paragraphs: dict[str, tuple[Paragraph, ...]] = {
        "what": _chosen("found", found, where, counted=choice.counted),
        "risk": (("found.alone",),),
        "error": (("*found",), *counted),
        "limits": ((*limited, "limit.found_missing"),),
        "patient_limit": () if said.limit is None else (("patient.limit_found",),),
    }
    description = Description(
        form=Form.FOUND,
        numbers=found,
        asked=_computed_asked("found", over, where, said),
        columns=over,
        figures=figures | _condition(where),
        paragraphs=paragraphs,
        facts=_found_facts(said),
    )
    return about_persons(said, description)


def top_groups(said: "Statement", by: Sequence[Keys], *, cells: int, where: Expression | None) -> Description:
    """The largest groups; a mechanism that does not belong to them is refused."""
    if not isinstance(said.mechanism, TopChoice):
        raise _foreign(said)
    choice, columns = Top.by(said.mechanism, cells), tuple(keys.column for keys in by)
    facts: dict[str, Word] = {}
    if said.sensitivity.linf is not None:
        facts["sensitivity"] = phrase("fact.sensitivity_top", linf=fraction_text(said.sensitivity.linf.value))
    name = "page.top_all" if where is None else "page.top_where"
    more = {} if where is None else {"condition": condition(where)}
    figures: dict[str, Word] = {
        "chosen": Counted("group", len(said.values)),
        "candidates": f"{choice.candidates:,}",
        "gap": Counted("row", choice.gap),
    }
    description = Description(
        form=Form.TOP,
        numbers=len(said.values),
        asked=Phrase(name, {"names": Listed(columns), **more}),
        columns=columns,
        figures=figures | _condition(where),
        paragraphs={
            "what": _chosen("top", len(said.values), where, counted=False),
            "error": (("*top",),),
            **_uncounted("limit.candidates", by),
        },
        facts=facts,
    )
    return about_persons(said, description)


def measured(measure: Measure | Quantile, *, persons: bool = True) -> Word:
    """What one column is; where single rows are protected, persons are rows."""
    if isinstance(measure, Quantile):
        name = "measure.median" if measure.level == Fraction(1, 2) else "measure.quantile"
        return phrase(name, value=_of(measure.of), percent=plain(100 * measure.level))
    parts = {name: _part(part) for name, part in measure.parts.items()}
    return phrase(measure.words if persons else measure.words_of_rows, **parts)


def _part(part: Clamped | Expression | Fraction) -> Word:
    match part:
        case Clamped():
            return _of(part)
        case Fraction():
            return plain(part)
    return OneLine(condition(part))


def _computed(
    said: "Statement",
    measures: Sequence[Measure | Quantile],
    *,
    by: Sequence[Keys],
    where: Expression | None,
    number: int | None,
    facts: dict[str, Word],
    height: int,
) -> Description:
    persons, cells = _persons(said), said.query.cells  # type: ignore[attr-defined]  # only queries by keys come here
    words = [measured(measure, persons=persons) for measure in measures]
    listed: list[Word] = [
        phrase("measure.named", measure=word, name=OneLine(measure.name)) if len(measures) > 1 else word
        for word, measure in zip(words, measures, strict=True)
    ]
    figures: dict[str, Word] = {"measures": Listed(tuple(listed))}
    if number is not None:
        figures["number"] = f"{number:,}"
    numbers = cells * len(measures)
    complete = all(value.complete for measure in measures if isinstance(measure, Measure) for value in measure.ranges)
    description = Description(
        form=_form(numbers, by),
        numbers=numbers,
        asked=_computed_asked("measured", said.query.names, where, said),
        columns=tuple(keys.column for keys in by),
        measure=_where("measure.of", where),
        figures=figures | _condition(where),
        paragraphs=_uncounted("limit.keys", by) if by else {},
        facts=facts,
        measured={
            measure.name: _column(measure, word)
            for word, measure in zip(words, measures, strict=True)
            if not isinstance(measure, Quantile)
        },
        ranges=tuple(_ranges(measures)),
        counts=all(isinstance(measure, Measure) and measure.counts for measure in measures),
        once="" if number is None else "filled" if complete else "everyone",
        height=height,
    )
    return about_persons(said, description)


def _column(measure: Measure, words: Word) -> MeasuredColumn:
    """What a column is, and what it can be at all."""
    low, high = measure.possible or (None, None)
    return MeasuredColumn(words=words, counts=measure.counts, low=low, high=high)


def _ranges(measures: Iterable[Measure | Quantile]) -> Iterable[Range]:
    """Each value that was held to a range, once."""
    held = [(measure.of,) if isinstance(measure, Quantile) else measure.ranges for measure in measures]
    for each in dict.fromkeys(each for some in held for each in some):
        yield Range(value=_of(each), low=each.low, high=each.high)


def _of(given: Clamped) -> Word:
    return OneLine(value(given.value))


def _persons(said: "Statement") -> bool:
    return isinstance(said.unit, User | Family)


def _form(numbers: int, by: Sequence[object]) -> Form:
    return Form.TABLE if by else Form.NUMBER if numbers == 1 else Form.NUMBERS


def _where(key: str, where: Expression | None) -> str:
    return key if where is None else f"{key}_where"


def _condition(where: Expression | None) -> dict[str, Word]:
    return {} if where is None else {"condition": OneLine(condition(where))}


def _uncounted(key: str, by: Sequence[Keys]) -> dict[str, tuple[Paragraph, ...]]:
    """That rows of no listed group do not count, unless they have a group of their own."""
    return {} if all(keys.other is not None for keys in by) else {"uncounted": ((key,),)}


def _chosen(form: str, numbers: int, where: Expression | None, *, counted: bool) -> tuple[Paragraph, ...]:
    first = f"what.{form}" if numbers else f"what.{form}_none"
    condition = () if where is None else ("what.rows_where",)
    return ((first, *condition, *(("what.found_counted",) if counted and numbers else ())),)


def _rows_asked(said: "Statement", where: Expression | None) -> Word:
    rows = phrase("page.rows_all") if where is None else phrase("page.rows_where", condition=condition(where))
    return _by_columns(rows, said)


def _computed_asked(form: str, names: Sequence[str], where: Expression | None, said: "Statement") -> Word:
    more = {} if where is None else {"condition": condition(where)}
    name = f"page.{form}_all" if where is None else f"page.{form}_where"
    return _by_columns(Phrase(name, {"names": Listed(tuple(names)), **more}), said)


def _by_columns(rows: Word, said: "Statement") -> Word:
    columns = " × ".join(said.query.labels())
    return phrase("page.rows_by", rows=rows, columns=columns) if columns else rows


def _found_facts(said: "Statement") -> dict[str, Word]:
    facts: dict[str, Word] = {}
    match said.mechanism:
        case NoisyThreshold(scale=scale, threshold=least):
            noise = phrase("noise.laplace", scale=fraction_text(scale))
            facts["noise"] = phrase("fact.noise_threshold", noise=noise, least=f"{least:,}")
        case OptimalSelection(sure=sure):
            facts["noise"] = phrase("fact.noise_selection", sure=f"{sure:,}")
    moved = said.sensitivity
    if moved.l0 is not None and moved.linf is not None:
        most = fraction_text(moved.linf.value)
        facts["sensitivity"] = phrase("fact.sensitivity_found", l0=f"{moved.l0.count:,}", linf=most)
    return facts


def _foreign(said: "Statement") -> Unsupported:
    return Unsupported(f"there is no text for a {said.query.KIND} by a {said.mechanism.KIND}; nothing was made.")
