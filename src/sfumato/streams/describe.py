"""What a reader must know of a stream: what it told, what one unit may do in it, and when it was charged."""

from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from sfumato import laws
from sfumato.core.cut import LimitCut, person_word
from sfumato.core.description import Counted, Description, Form, Paragraph, Word, phrase
from sfumato.core.exact import decimal_up, fraction_text
from sfumato.core.limits import Limit
from sfumato.core.query import Mechanism
from sfumato.core.units import Unit, User
from sfumato.errors import Unsupported
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.mechanisms.sparse_vector import SparseVector
from sfumato.streams.noise import SeriesNoise

if TYPE_CHECKING:
    from sfumato.core.statement import Statement

__all__ = ["alarms", "cut_steps", "level_of", "running_total", "slack_of"]

ROLES = ("unit", "member", "this", "that", "another", "yours", "thing", "several", "trait", "traits", "example", "case")
ONE_SIDE = Fraction(39, 40)  # each of two noises, so that both hold in 95 of 100
SCATTERED = "the noise of a total depends on its step"


class SteppedQuery(Protocol):
    """What all questions about a stream declare: what a step and one unit in it may be, and how many were released."""

    @property
    def told(self) -> int: ...
    @property
    def lower(self) -> int: ...
    @property
    def upper(self) -> int: ...
    @property
    def each(self) -> int: ...
    @property
    def times(self) -> int: ...
    @property
    def separation(self) -> int: ...


def running_total(
    query: SteppedQuery, said: "Statement", *, horizon: int, groups: tuple[str, ...], kept: bool
) -> Description:
    """A total after each step; ``kept`` says that the totals are in the certificate."""
    numbers = query.told * max(1, len(groups)) if kept else 0
    what = "series_groups" if groups else "series"
    what = "series_empty" if not query.told else what if kept else "series_unkept"
    figures: dict[str, Word] = {"horizon": Counted("step", horizon)}
    if groups:
        figures["parts"] = Counted("group", len(groups))
    own: dict[str, tuple[Paragraph, ...]] = {"what": ((f"what.{what}",),), "charged": (("stream.charged_series",),)}
    if numbers:
        own["joint"] = (("accuracy.series_joint",),)
    else:
        own["error"] = (("accuracy.series_none",),)
    facts: dict[str, Word] = {}
    if isinstance(said.mechanism, SeriesNoise):
        facts["noise"] = _series_noise(said, said.mechanism)
    moved = said.sensitivity
    if moved.l0 is not None and moved.linf is not None:
        facts["sensitivity"] = phrase(
            "fact.sensitivity_stream",
            steps=Counted("step", int(moved.l0.count)),
            each=fraction_text(moved.linf.value),
        )
    return Description(
        form=Form.SERIES,
        numbers=numbers,
        asked=phrase("page.running_total_groups" if groups else "page.running_total"),
        measure=None,
        figures=_figures(query) | figures,
        roles=_roles(query, said.unit),
        together=_together(query, said.unit),
        paragraphs=_paragraphs(query, said) | own,
        facts=_facts(query, said) | facts,
        counts=False,
        plot="series",
        scattered=SCATTERED,
    )


def alarms(
    query: SteppedQuery, said: "Statement", *, watched: str, drift: int, threshold: int, most: int
) -> Description:
    """Alarms, raised where a noisy number reached a noisy threshold."""
    raised = len(said.values) // 2
    facts: dict[str, Word] = {}
    if isinstance(said.mechanism, SparseVector):
        facts["noise"] = phrase(
            "fact.noise_alarms",
            threshold=fraction_text(said.mechanism.threshold_scale),
            query=fraction_text(said.mechanism.query_scale),
        )
    if said.sensitivity.l1 is not None:
        facts["sensitivity"] = phrase("fact.sensitivity_rows_l1", l1=fraction_text(said.sensitivity.l1.value))
    figures: dict[str, Word] = {
        "raised": Counted("alarm", raised) if raised else phrase("stream.raised_none"),
        "watched": phrase(f"stream.watched_{watched}", drift=f"{drift:,}"),
        "threshold": f"{threshold:,}",
        "most": Counted("alarm", most),
        "slack": f"{slack_of(said.mechanism):,}",
    }
    own: dict[str, tuple[Paragraph, ...]] = {
        "what": (("what.alarms",),),
        "error": (("*alarms", "accuracy.alarms_gap"),),
        "charged": (("stream.charged_alarms",),),
    }
    return Description(
        form=Form.ALARMS,
        numbers=raised,
        asked=phrase("page.alarms"),
        measure=None,
        figures=_figures(query) | figures,
        roles=_roles(query, said.unit),
        together=_together(query, said.unit),
        paragraphs=_paragraphs(query, said) | own,
        facts=_facts(query, said) | facts,
        counts=False,
        plot="alarms",
    )


def cut_steps(unit: Unit, limit: Limit | None) -> LimitCut:
    """How a stream is cut where persons are protected: by how much one counts in a step, and in how many steps."""
    if limit is None:
        return LimitCut()
    words = phrase(
        "cut.steps",
        each=f"{limit.rows_per_group:,}",
        steps=Counted("step", limit.groups),
        person=person_word(unit),
    )
    return LimitCut(words=words, cuts=True, most=(limit,))


def slack_of(mechanism: Mechanism) -> int:
    """Within what the noise of one comparison stays, 95 times in 100: the threshold's and the number's together.

    >>> slack_of(SparseVector.calibrated(sensitivity=1, alarms=1, epsilon=1, monotone=True))
    14
    """
    if not isinstance(mechanism, SparseVector):
        raise Unsupported(f"a {mechanism.KIND} raises no alarms; no text was made.")
    scales = (mechanism.threshold_scale, mechanism.query_scale)
    return sum(int(laws.DiscreteLaplace(scale=scale).margin(ONE_SIDE)) for scale in scales)


def level_of(query: SteppedQuery, unit: Unit) -> str:
    """Who is protected: an event, the events of several steps in a row, or a person."""
    return "person" if isinstance(unit, User) else "window" if query.times > 1 else "event"


def _apart(query: SteppedQuery) -> bool:
    """Whether a person's steps are held apart."""
    return query.separation > 1 and query.times > 1


def _roles(query: SteppedQuery, unit: Unit) -> dict[str, Word]:
    """What stands for the unit in a sentence, where it is the events of several steps in a row."""
    if level_of(query, unit) != "window":
        return {}
    return {role: phrase(f"window.{role}", width=Counted("step", query.times)) for role in ROLES}


def _together(query: SteppedQuery, unit: Unit) -> str | None:
    return "window.together" if level_of(query, unit) == "window" else None


def _figures(query: SteppedQuery) -> dict[str, Word]:
    """What sentences about streams need."""
    return {
        "steps": Counted("step", query.told),
        "each": f"{query.each:,}",
        "width": Counted("step", query.times),
        "separation": Counted("step", query.separation),
        "lower": f"{query.lower:,}",
        "upper": f"{query.upper:,}",
    }


def _paragraphs(query: SteppedQuery, said: "Statement") -> dict[str, tuple[Paragraph, ...]]:
    """What one unit may do in a stream, what a guarantee about single events leaves open, and what was not counted."""
    level = level_of(query, said.unit)
    apart = "_apart" if level == "person" and _apart(query) else ""
    open_ends = () if level == "person" else (f"stream.weeks_{level}",)
    limits = (("limit.steps", *(() if said.limit is None else ("limit.steps_person",))),)
    return {
        "risk": ((f"stream.unit_{level}{apart}", *open_ends),),
        "limits": limits,
        "patient_limit": limits,
        "again": (("manager.tenfold_stream",),),
    }


def _facts(query: SteppedQuery, said: "Statement") -> dict[str, Word]:
    """Who is protected where that is more than the unit alone says, and how much of each person counts."""
    facts: dict[str, Word] = {}
    if level_of(query, said.unit) == "window":
        facts["unit"] = phrase("window.unit", width=Counted("step", query.times))
    if said.limit is not None:
        facts["limit"] = phrase(
            f"fact.limit_stream{'_apart' if _apart(query) else ''}",
            width=Counted("step", query.times),
            separation=Counted("step", query.separation),
            each=f"{query.each:,}",
        )
    return facts


def _series_noise(said: "Statement", mechanism: SeriesNoise) -> Word:
    """The noise of a stream in units of one, and what it was put on."""
    size = mechanism.noise / 2**mechanism.strategy.bits
    kind, name = ("laplace", "scale") if mechanism.norm == "l1" else ("gaussian", "sigma")
    return phrase(
        "fact.noise_series",
        noise=phrase(f"noise.{kind}", **{name: decimal_up(size)}),
        numbers=Counted("number", len(said.values)),
        strategy=phrase(_strategy(mechanism)),
    )


def _strategy(mechanism: SeriesNoise) -> str:
    """The message that says what a strategy measures."""
    match mechanism.strategy:
        case Toeplitz(form="increments" | "totals" as form):
            return f"strategy.{form}"
        case Tree():
            return "strategy.tree"
    return "strategy.mixed"
