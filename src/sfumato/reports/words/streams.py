"""What a stream told, and what one unit may do in it: the public facts that its words are made of."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato import laws
from sfumato.core.query import Mechanism
from sfumato.core.units import Unit, User
from sfumato.errors import Unsupported
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.mechanisms.sparse_vector import SparseVector
from sfumato.reports.catalogue import counted, message
from sfumato.streams.alarms import Alarms
from sfumato.streams.noise import SeriesNoise
from sfumato.streams.total import RunningTotal

if TYPE_CHECKING:
    from sfumato.core.statement import Statement

__all__ = ["Course", "course_of", "slack_of", "strategy_name", "stream_figures", "stream_unit", "window_figures"]

ROLES = ("unit", "member", "this", "that", "another", "yours", "thing", "several", "trait", "traits", "example", "case")
ONE_SIDE = Fraction(39, 40)  # each of two noises, so that both hold in 95 of 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The facts of one stream. Public: all of them.

    ``level`` is ``event``, ``window`` (the events of several steps in a row) or ``person``. ``numbers`` counts the
    totals that the certificate holds, or the alarms. ``joint`` is within what all totals lie at once, where known.
    ``slack`` is within what the noise of one comparison of a watch stays.
    """

    level: str
    told: int
    numbers: int
    lower: int
    upper: int
    each: int
    times: int
    separation: int
    horizon: int | None = None
    groups: int = 0
    kept: bool = True
    joint: Fraction | None = None
    watched: str | None = None
    drift: int = 0
    threshold: int = 0
    most: int = 0
    slack: int = 0

    @property
    def watch(self) -> bool:
        """Whether it is about alarms."""
        return self.watched is not None

    @property
    def apart(self) -> bool:
        """Whether a person's steps are held apart."""
        return self.separation > 1 and self.times > 1


def course_of(said: "Statement", *, joint: Fraction | None = None) -> Course:
    """The facts of a stream, read off its statement."""
    query = said.query
    match query:
        case RunningTotal():
            numbers = query.told * max(1, len(query.groups)) if query.kept else 0
            more: dict[str, Any] = {
                "horizon": query.horizon,
                "groups": len(query.groups),
                "kept": query.kept,
                "joint": joint,
            }
        case Alarms():
            numbers = len(said.values) // 2
            more = {"watched": query.watched, "drift": query.drift, "threshold": query.threshold}
            more |= {"most": query.alarms, "slack": slack_of(said.mechanism)}
        case _:
            raise Unsupported(f"a {query.KIND} is no stream; no text was made.")
    return Course(
        level=_level(said.unit, query.times),
        told=query.told,
        numbers=numbers,
        lower=query.lower,
        upper=query.upper,
        each=query.each,
        times=query.times,
        separation=query.separation,
        **more,
    )


def slack_of(mechanism: Mechanism) -> int:
    """Within what the noise of one comparison stays, 95 times in 100: the threshold's and the number's together.

    >>> slack_of(SparseVector.calibrated(sensitivity=1, alarms=1, epsilon=1, monotone=True))
    14
    """
    if not isinstance(mechanism, SparseVector):
        raise Unsupported(f"a {mechanism.KIND} raises no alarms; no text was made.")
    scales = (mechanism.threshold_scale, mechanism.query_scale)
    return sum(int(laws.DiscreteLaplace(scale=scale).margin(ONE_SIDE)) for scale in scales)


def strategy_name(mechanism: SeriesNoise) -> str:
    """The message that says what a strategy measures."""
    match mechanism.strategy:
        case Toeplitz(form="increments" | "totals" as form):
            return f"strategy.{form}"
        case Tree():
            return "strategy.tree"
    return "strategy.mixed"


def stream_unit(said: "Statement", language: str) -> str | None:
    """Who is protected where that is more than the unit alone says: the events of several steps in a row."""
    query = said.query
    if not isinstance(query, RunningTotal | Alarms) or _level(said.unit, query.times) != "window":
        return None
    return message(language, "window.unit", width=counted(language, "step", query.times))


def window_figures(course: Course | None, language: str) -> dict[str, str]:
    """What stands for the unit in a sentence, where it is the events of several steps in a row."""
    if course is None or course.level != "window":
        return {}
    width = counted(language, "step", course.times)
    return {role: message(language, f"window.{role}", width=width) for role in ROLES}


def stream_figures(course: Course, language: str) -> dict[str, str]:
    """What sentences about streams need."""
    shown = {
        "steps": counted(language, "step", course.told),
        "each": f"{course.each:,}",
        "width": counted(language, "step", course.times),
        "separation": counted(language, "step", course.separation),
        "lower": f"{course.lower:,}",
        "upper": f"{course.upper:,}",
    }
    if course.horizon is not None:
        shown["horizon"] = counted(language, "step", course.horizon)
    if course.groups:
        shown["parts"] = counted(language, "group", course.groups)
    if course.watch:
        none = message(language, "stream.raised_none")
        shown |= {
            "raised": counted(language, "alarm", course.numbers) if course.numbers else none,
            "watched": message(language, f"stream.watched_{course.watched}", drift=f"{course.drift:,}"),
            "threshold": f"{course.threshold:,}",
            "most": counted(language, "alarm", course.most),
            "slack": f"{course.slack:,}",
        }
    return shown


def _level(unit: Unit, times: int) -> str:
    return "person" if isinstance(unit, User) else "window" if times > 1 else "event"
