"""Units side by side, in words and for programs: the same figures, rounded against us."""

from fractions import Fraction

from sfumato.core.cut import row_words
from sfumato.core.documents import Json, encode
from sfumato.core.exact import decimal_down, decimal_up, fraction_text
from sfumato.core.guarantees import Approximate, Pure
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import Family, Node, Record, Relation, Unit, User
from sfumato.mechanisms import Laplace
from sfumato.reports.catalogue import counted, message
from sfumato.reports.columns import magnitude
from sfumato.reports.comparison import Comparison, EventCount, Line
from sfumato.reports.words.rendering import render

__all__ = ["document", "heading", "name", "notes", "rows", "title", "within"]


def title(found: Comparison, language: str) -> str:
    """What is compared."""
    dataset, name = getattr(found.statistic, "dataset", None), getattr(found.statistic, "COMPARED", "comparison.rows")
    if dataset is None:
        statistic = message(language, name)
    elif found.released or found.computed:
        statistic = message(language, name, dataset=dataset.name, edition=dataset.edition)
    else:
        statistic = message(language, "comparison.rows")
    return message(language, "comparison.title", statistic=statistic)


def heading(language: str) -> tuple[str, ...]:
    """The names of the columns."""
    return tuple(
        message(language, f"comparison.{column}") for column in ("unit", "moved", "epsilon", "margin", "promise")
    )


def rows(found: Comparison, language: str) -> list[tuple[str, ...]]:
    """A line of text for each unit, in the order of :func:`heading`."""
    return [
        (
            name(line.case.unit, language),
            _moved(line.sensitivity, found.height, pure=found.pure),
            _epsilon(line.epsilon, found.delta, language),
            message(language, "comparison.within", margin=within(line.margin, found)),
            _promise(line, language),
        )
        for line in found.lines
    ]


def notes(found: Comparison, language: str) -> list[str]:
    """What the figures mean and what they rest on, a sentence or two for each point."""
    held = found.lines[0].case.unit
    pure = found.spend.delta == 0
    relation = {Relation.ADD_REMOVE: "add_remove", Relation.REPLACE: "replace"}[held.relation]
    return [
        message(
            language,
            "comparison.shared_pure" if pure else "comparison.shared_delta",
            epsilon=decimal_up(found.spend.epsilon),
            delta=decimal_up(found.spend.delta),
            margin=within(found.margin, found),
            percent=decimal_down(100 * found.confidence),
        ),
        *([message(language, "comparison.in_rows")] if found.computed else []),
        message(language, f"comparison.held_{relation}"),
        *_factor(found, language),
        *dict.fromkeys(_grounds(found, line, language) for line in found.lines),
        message(language, "comparison.stands", held=name(held, language)),
        *(
            message(language, f"comparison.none_{line.reason}", unit=name(line.case.unit, language))
            for line in found.lines
            if line.reason is not None
        ),
        message(language, "comparison.no_data"),
    ]


def name(unit: Unit, language: str) -> str:
    """A unit in a few words."""
    return message(
        language,
        f"comparison.{unit.KIND.removeprefix('unit.')}",
        size=unit.size if isinstance(unit, Family) else 1,
        degree=unit.max_degree if isinstance(unit, Node) else 0,
    )


def within(margin: int, found: Comparison) -> str:
    """A margin in the units of the comparison: as it is, or in rows."""
    return magnitude(Fraction(margin, found.height))


def document(found: Comparison) -> dict[str, Json]:
    """The comparison for programs, with exact fractions as text."""
    return {
        "statistic": title(found, "en").partition(": ")[2],
        "spend": {"epsilon": fraction_text(found.spend.epsilon), "delta": fraction_text(found.spend.delta)},
        "noise": encode(found.mechanism),
        "confidence": fraction_text(found.confidence),
        "margin": _exact(found.margin, found),
        "units": [
            {
                "unit": encode(line.case.unit),
                "limit": None if line.case.limit is None else encode(line.case.limit),
                "sensitivity": encode(line.sensitivity),
                "epsilon_for_the_same_error": fraction_text(line.epsilon),
                "margin_for_the_same_epsilon": _exact(line.margin, found),
                "as_it_stands": _guarantee(line),
                "rests_on": _grounds(found, line, "en"),
            }
            for line in found.lines
        ],
        "notes": [*notes(found, "en")],
    }


def _exact(margin: int, found: Comparison) -> Json:
    return margin if found.height == 1 else fraction_text(Fraction(margin, found.height))


def _guarantee(line: Line) -> Json:
    match line.as_it_stands:
        case Pure(epsilon=epsilon):
            return {"epsilon": fraction_text(epsilon), "delta": "0"}
        case Approximate(epsilon=epsilon, delta=delta):
            return {"epsilon": fraction_text(epsilon), "delta": decimal_up(delta, 6)}
    return None


def _epsilon(epsilon: Fraction, delta: Fraction, language: str) -> str:
    if delta == 0:
        return decimal_up(epsilon)
    return message(language, "comparison.epsilon_delta", epsilon=decimal_up(epsilon), delta=decimal_up(delta, 2))


def _promise(line: Line, language: str) -> str:
    match line.as_it_stands:
        case Pure(epsilon=epsilon):
            return _epsilon(epsilon, Fraction(0), language)
        case Approximate(epsilon=epsilon, delta=delta):
            return _epsilon(epsilon, delta, language)
    return message(language, "comparison.none")


def _moved(sensitivity: Sensitivity, height: int, *, pure: bool) -> str:
    """In the norm that the noise is measured against: l1, or the root of the squared l2."""
    if pure and sensitivity.l1 is not None:
        return decimal_up(sensitivity.l1.value / height)
    return "" if sensitivity.l2 is None else f"√{fraction_text(sensitivity.l2.squared / height**2)}"


def _factor(found: Comparison, language: str) -> list[str]:
    """How the units at both ends relate; only pure noise has one factor for both questions."""
    moves = [(line.sensitivity.l1.value, line) for line in found.lines if line.sensitivity.l1 is not None]
    if not isinstance(found.mechanism, Laplace) or found.spend.delta != 0 or len(moves) < 2:
        return []
    (least, weak), (most, strong) = (best(moves, key=lambda pair: pair[0]) for best in (min, max))
    if least == most:
        return []
    return [
        message(
            language,
            "comparison.factor",
            strong=name(strong.case.unit, language),
            weak=name(weak.case.unit, language),
            factor=decimal_up(most / least),
        )
    ]


def _grounds(found: Comparison, line: Line, language: str) -> str:
    unit, limit = line.case.unit, line.case.limit
    if limit is not None:
        return message(
            language,
            "comparison.limit",
            groups=counted(language, "group", limit.groups),
            rows=render(row_words(limit, limit.rows_per_group), language),
        )
    if isinstance(unit, Node):
        return message(language, "comparison.degree", degree=f"{unit.max_degree:,}")
    if isinstance(found.statistic, EventCount) and isinstance(unit, User | Family):
        most = found.statistic.most
        events = message(language, f"comparison.events_{'one' if most == 1 else 'many'}", n=f"{most:,}")
        return message(language, "comparison.most", events=events)
    free = "comparison.free_row" if isinstance(unit, Record) else "comparison.free"
    return message(language, free, unit=name(unit, language))
