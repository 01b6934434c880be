"""What each reader is told, and in which order: public, patient, clinician, manager, board.

The same facts for all, since all are filled in from one table of figures; the words, the order and the length differ.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sfumato.core.guarantees import Approximate, Pure
from sfumato.core.units import Family, Relation, User
from sfumato.errors import Unsupported
from sfumato.reports.words.choices import Found
from sfumato.reports.words.facts import Facts, Kind, Subject
from sfumato.reports.words.figures import figures, told_alone
from sfumato.reports.words.streams import Course
from sfumato.reports.words.text import Text
from sfumato.reports.words.voice import Voice, paragraph

__all__ = ["AUDIENCES", "write"]


def write(facts: Facts, language: str, audience: str) -> Text:
    """Explain the facts to one reader.

    Guarantee: beliefs and guesses are those of everything charged to the account, up to this release. Where the account
    has spent a δ no bound on a belief is given, but how often a guess from even odds is right. Figures are rounded
    against us.
    """
    if audience not in AUDIENCES:
        raise Unsupported(
            f"there is no text for {audience!r}; the audiences are {', '.join(AUDIENCES)}. Nothing was written."
        )
    told = _Told(facts=facts, voice=Voice(language=language, figures=figures(facts, language)))
    return AUDIENCES[audience](told)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """The facts, the voice, and the choices between messages that all readers share."""

    facts: Facts
    voice: Voice

    def say(self, *identifiers: str) -> str:
        return self.voice.say(*identifiers)

    @property
    def relation(self) -> str:
        return {Relation.ADD_REMOVE: "add_remove", Relation.REPLACE: "replace"}[self.facts.unit.relation]

    @property
    def own(self) -> str:
        return f"{self.relation}_{_kind(self.facts.guarantee)}"

    @property
    def all(self) -> str:
        return f"{self.relation}_{_kind(self.facts.cumulative)}"

    @property
    def has_delta(self) -> bool:
        return _kind(self.facts.cumulative) == "delta"

    @property
    def derived(self) -> bool:
        return self.facts.subject.kind is Kind.DERIVED

    @property
    def filter(self) -> list[str]:
        """What an account adds up, where that is not ε and δ themselves."""
        method = self.facts.account.method
        return [] if method == "basic" else [self.say(f"account.filter_{method}")]

    @property
    def photograph(self) -> str:
        person = isinstance(self.facts.unit, User | Family)
        return self.say(f"photograph.{'' if person else 'thing_'}{self.relation}")

    @property
    def alone(self) -> list[str]:
        """What δ says about a value that is found although it is one person's alone."""
        return [self.say("found.alone")] if self.facts.subject.kind is Kind.FOUND else []

    @property
    def vouched(self) -> list[str]:
        """What the steward vouches for and nobody could check."""
        return [self.say("vouched.rows")] if self.facts.vouched else []

    def what(self) -> tuple[str, ...]:
        subject = self.facts.subject
        if subject.course is not None:
            return (self.say(self._told_of(subject.course)),)
        if subject.lesson is not None:
            return (self.say("what.trained_all" if subject.lesson.way == "all" else "what.trained"),)
        if subject.choice is not None:
            return (self.say(*self._choice(subject)),)
        if told_alone(subject, self.voice.language):
            return (self.say(f"network.{subject.measure}"),)
        where = "_where" if subject.kind is Kind.MODEL and subject.condition is not None else ""
        return (self.say(f"what.{subject.kind.value}{where}"),)

    @staticmethod
    def _told_of(course: Course) -> str:
        """Which words say what a stream told."""
        if course.watch:
            return "what.alarms"
        if not course.told:
            return "what.series_empty"
        if not course.kept:
            return "what.series_unkept"
        return "what.series_groups" if course.groups else "what.series"

    @property
    def stream(self) -> list[str]:
        """What one unit may do in a stream, and what a promise about single events leaves open."""
        course = self.facts.subject.course
        if course is None:
            return []
        apart = "_apart" if course.level == "person" and course.apart else ""
        open_ends = [] if course.level == "person" else [f"stream.weeks_{course.level}"]
        return [self.say(f"stream.unit_{course.level}{apart}", *open_ends)]

    @property
    def lesson(self) -> list[str]:
        """What one unit can do in a training run, what may be done with the model, and what is not promised."""
        if self.facts.subject.lesson is None:
            return []
        return [self.say("lesson.why", "lesson.open"), self.say("lesson.not")]

    @property
    def method(self) -> list[str]:
        """How a model was trained, for those who answer for it."""
        lesson = self.facts.subject.lesson
        if lesson is None:
            return []
        return [self.say(f"lesson.method_{lesson.way}", *(["lesson.follows"] if lesson.follows else []))]

    @property
    def charged(self) -> list[str]:
        """When a stream or a training run was charged."""
        course, lesson = self.facts.subject.course, self.facts.subject.lesson
        if lesson is not None:
            return [self.say("lesson.charged", *(["lesson.early"] if lesson.early else []))]
        return [] if course is None else [self.say(f"stream.charged_{'alarms' if course.watch else 'series'}")]

    @staticmethod
    def _choice(subject: Subject) -> Iterator[str]:
        counted = isinstance(subject.choice, Found) and subject.choice.counted
        yield f"what.{subject.kind.value}{'' if subject.numbers else '_none'}"
        if subject.condition is not None:
            yield "what.rows_where"
        if counted and subject.numbers:
            yield "what.found_counted"

    def error(self, group: str, *more: str) -> Iterator[str]:
        """The margin in the words of ``group``, what it does not cover, and ``more`` behind it."""
        margins, choice, course = self.facts.margins, self.facts.subject.choice, self.facts.subject.course
        if course is not None and (course.watch or not course.numbers):
            yield self.say(*([f"{group}alarms", "accuracy.alarms_gap"] if course.watch else ["accuracy.series_none"]))
            return
        if course is not None and margins is None and course.joint is not None:
            more = ("accuracy.series_joint", *more)
        if choice is not None:
            yield self.say(f"{group}{self.facts.subject.kind.value}")
            if isinstance(choice, Found) and choice.counted:
                yield self.say(f"{group}found_counts", "accuracy.noise")
            return
        if self.facts.spans:
            if all(span.chosen and span.rank is None for span in self.facts.spans):
                yield self.say(
                    f"accuracy.{'synthetic' if self.facts.subject.measure == 'synthetic_graph' else 'named'}"
                )
            elif any(span.chosen for span in self.facts.spans):
                yield self.say("accuracy.chosen")
            elif "spans" in self.voice.figures:
                yield self.say(f"{group}spans", "accuracy.noise", *more)
            if "opens" in self.voice.figures:
                yield self.voice.figures["opens"]
            return
        if margins is None:
            yield self.say("accuracy.none")
            return
        simulated = ("accuracy.simulated",) if margins.simulated else ()
        number = "one" if self.facts.subject.numbers == 1 else "many"
        yield self.say(f"{group}{number}", "accuracy.noise", *simulated, *more)

    def limits(self) -> Iterator[str]:
        """What was not counted."""
        subject = self.facts.subject
        if subject.course is not None:
            yield self.say("limit.steps", *(["limit.steps_person"] if self.facts.limit is not None else []))
            return
        if subject.lesson is not None:
            person = subject.lesson.limited
            yield self.say("limit.trained", *([] if person is None else [f"limit.trained_{person}"]))
            return
        if subject.kind is Kind.FOUND:
            yield self.say(*(["limit.found"] if self.facts.limit is not None else []), "limit.found_missing")
            return
        if subject.kind in (Kind.TABLE, Kind.TOP) and not subject.rest:
            yield self.say("limit.keys" if subject.kind is Kind.TABLE else "limit.candidates")
        yield from self.clips()
        yield from self.held_back()
        if subject.listed:
            yield self.say("limit.nodes")
        if self.facts.limit is not None and subject.number is None:
            kept = any(span.chosen for span in self.facts.spans)
            yield self.say("limit.kept" if kept else "limit.scaled" if subject.measures else "limit.person")
        if self.facts.cut_differently:
            yield self.say("limit.different")

    def held_back(self) -> Iterator[str]:
        """What of a network did not count."""
        subject = self.facts.subject
        if subject.pointing is not None:
            yield self.say(f"limit.links_{subject.pointing}")
        limits = {"degree": subject.cap, "corners": subject.corners, "weight": subject.bound, "flow": subject.flow}
        yield from (self.say(f"limit.{name}") for name, limit in limits.items() if limit is not None)

    def clips(self) -> Iterator[str]:
        """Which values were held to a range, and what became of those that are missing."""
        if "clips" not in self.voice.figures:
            return
        person = isinstance(self.facts.unit, User | Family)
        missing = "missing" if self.facts.subject.number is None else f"everyone_{'person' if person else 'row'}"
        words = [self.voice.figures["clips"], self.say("limit.clip_bias"), self.say(f"limit.{missing}")]
        yield paragraph(words, self.voice.language)

    def notes(self) -> Iterator[str]:
        """What is special about the account or this delivery."""
        if self.facts.account.ledger.startswith("none"):
            yield self.say("account.memory")
        if self.facts.repeated:
            yield self.say("account.repeated")


def _kind(guarantee: Pure | Approximate) -> str:
    return "delta" if isinstance(guarantee, Approximate) and guarantee.delta > 0 else "pure"


def _public(told: _Told) -> Text:
    risk = [
        told.photograph,
        told.say(f"promise.{told.own}"),
        told.say(f"public.risk_{told.all}"),
        *([told.say("delta.meaning")] if told.has_delta else []),
        *told.alone,
        *told.stream,
        *told.lesson,
        *told.vouched,
        told.say("public.scope"),
    ]
    return Text(
        what=told.what(),
        risk=tuple(risk),
        error=(*told.error("accuracy."), *told.limits()),
        budget=(*told.charged, told.say("account.composition"), *told.filter, *told.notes()),
    )


def _patient(told: _Told) -> Text:
    risk = [
        told.photograph,
        told.say(f"patient.promise_{told.own}"),
        told.say(f"patient.risk_{told.all}"),
        *([told.say("delta.brief")] if told.has_delta else []),
        *told.alone,
        *told.stream,
        *told.lesson,
        *told.vouched,
        told.say("patient.scope"),
    ]
    name = "patient.limit_found" if told.facts.subject.kind is Kind.FOUND else "patient.limit"
    own = bool(told.stream or told.lesson)  # streams and training say themselves what of a person counts
    limit = [told.say(name)] if told.facts.limit is not None and not own else []
    limit += told.limits() if own else ()
    limit += told.held_back()
    return Text(
        what=told.what(),
        risk=tuple(risk),
        error=(*told.error("patient.error_"), *told.clips(), *limit),
        budget=(*told.charged, told.say("patient.budget")),
    )


def _clinician(told: _Told) -> Text:
    margins = told.facts.margins
    further = []
    measured = bool(told.facts.subject.measures) and not told.facts.subject.counts
    if told.facts.spans and measured and not any(span.chosen for span in told.facts.spans):
        further.append(told.say("clinician.groups"))
    elif margins is not None and margins.each and told.facts.subject.counts:
        further += [told.say("clinician.small"), told.say("clinician.rate")]
    risk = [
        told.say(f"clinician.risk_{told.all}"),
        *([told.say("delta.brief")] if told.has_delta else []),
        *told.alone,
        *told.stream,
        *told.lesson,
        *told.vouched,
        told.say("clinician.scope"),
    ]
    return Text(
        what=told.what(),
        error=(*told.error("clinician.error_"), *further, *told.limits()),
        risk=tuple(risk),
        budget=(*told.charged, told.say("clinician.budget"), *told.filter),
        order=("error", "risk", "budget"),
    )


def _manager(told: _Told) -> Text:
    facts = told.facts
    if told.derived:
        budget = [told.say("manager.cost_derived", "manager.state")]
    else:
        fits = {"0": "none", "1": "one"}.get(told.voice.figures["fits"], "many")
        cost = "manager.cost_repeated" if facts.repeated else "manager.cost"
        kind = "_stream" if told.stream else "_training" if told.lesson else ""
        budget = [
            told.say(cost, "manager.state"),
            *told.charged,
            told.say(f"manager.another_{fits}", f"manager.tenfold{kind}"),
        ]
    budget += told.filter
    if facts.account.ledger.startswith("none"):
        budget.append(told.say("account.memory"))
    # Only pure noise has one price for all: with a δ, half the margin can take up to four times the ε.
    priced = facts.margins is not None and facts.margins.each > 0 and not told.derived and told.own.endswith("pure")
    risk = [
        told.say(f"manager.risk_{told.all}", *(["delta.brief"] if told.has_delta else []), "manager.scope"),
        *told.alone,
        *told.stream,
        *told.lesson,
        *told.vouched,
    ]
    return Text(
        what=told.what(),
        budget=tuple(budget),
        error=(
            *told.error("manager.error_", *(["manager.price"] if priced else [])),
            *(told.limits() if told.lesson else told.clips()),
        ),
        risk=tuple(risk),
        order=("budget", "error", "risk"),
    )


def _board(told: _Told) -> Text:
    own, together = _kind(told.facts.guarantee), _kind(told.facts.cumulative)
    guarantee = "board.guarantee_derived" if told.derived else f"board.guarantee_{own}"
    budget = "board.budget_filter" if told.filter else "board.budget"
    risk = [
        told.say(guarantee, f"board.unit_{told.relation}"),
        told.say("board.cumulative"),
        told.say(f"board.risk_{told.all}"),
        *([told.say("delta.meaning")] if told.has_delta else []),
        *told.alone,
        *told.stream,
        *told.lesson,
        *told.vouched,
        *told.method,
        told.say(f"board.together_{together}"),
        told.say("board.assumptions"),
        told.say("limits.unit", "limits.groups", "limits.elsewhere"),
        told.say("limits.advice"),
    ]
    return Text(
        what=told.what(),
        risk=tuple(risk),
        budget=(*told.charged, told.say(budget), *told.filter, *told.notes(), told.say("board.reasons")),
        error=(*told.error("accuracy."), *told.limits()),
        order=("risk", "error", "budget"),
    )


AUDIENCES: dict[str, Callable[[_Told], Text]] = {
    "public": _public,
    "patient": _patient,
    "clinician": _clinician,
    "manager": _manager,
    "board": _board,
}
