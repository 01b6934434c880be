"""What each reader reads, and in which order: public, patient, clinician, manager, board.

The same facts for all, since all are filled in from one table of figures; the words, the order and the length differ.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sfumato.core.description import Description, Form
from sfumato.core.guarantees import Approximate, Pure
from sfumato.core.units import Family, Relation, User
from sfumato.errors import Unsupported
from sfumato.reports.words.facts import Facts
from sfumato.reports.words.figures import figures
from sfumato.reports.words.population import population_words
from sfumato.reports.words.text import Explanation
from sfumato.reports.words.voice import Voice, paragraph

__all__ = ["AUDIENCES", "write"]


def write(facts: Facts, language: str, audience: str) -> Explanation:
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
    found = AUDIENCES[audience](told)
    if not facts.sampled:
        return found
    return replace(found, error=(population_words(facts, language), *found.error))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """The facts, the voice, and the choices between messages that all readers share."""

    facts: Facts
    voice: Voice

    def say(self, *identifiers: str) -> str:
        return self.voice.say(*identifiers)

    @property
    def description(self) -> Description:
        return self.facts.description

    def own_words(self, place: str) -> list[str]:
        """What the release says at a place in its own words."""
        return [self.say(*keys) for keys in self.description.at(place)]

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
        return self.description.form is Form.DERIVED

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
    def vouched(self) -> list[str]:
        """What the steward vouches for and nobody could check."""
        return [self.say("vouched.rows")] if self.facts.vouched else []

    def what(self) -> tuple[str, ...]:
        """What was released: in words of its own, or in those for its form."""
        return tuple(self.own_words("what")) or (self.say(f"what.{self.description.form.value}"),)

    @property
    def risk(self) -> list[str]:
        """What one unit may do in it, what the guarantee leaves open, and what nobody could check."""
        return [*self.own_words("risk"), *self.vouched]

    @property
    def charged(self) -> list[str]:
        """When it was charged, where that is not at the release."""
        return self.own_words("charged")

    def error(self, group: str, *more: str) -> Iterator[str]:
        """The margin in the words of ``group``, what it does not cover, and ``more`` behind it."""
        margins, own = self.facts.margins, self.description.at("error")
        if own:
            for keys in own:
                yield self.say(*(f"{group}{key[1:]}" if key.startswith("*") else key for key in keys))
            return
        if margins is None and self.facts.joint is not None:
            more = (*(key for keys in self.description.at("joint") for key in keys), *more)
        if self.facts.spans:
            if all(span.chosen and span.rank is None for span in self.facts.spans):
                yield from self.own_words("named") or [self.say("accuracy.named")]
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
        number = "one" if self.description.numbers == 1 else "many"
        yield self.say(f"{group}{number}", "accuracy.noise", *simulated, *more)

    def limits(self) -> Iterator[str]:
        """What was not counted."""
        own = self.own_words("limits")
        if own:
            yield from own
            return
        yield from self.own_words("uncounted")
        yield from self.clips()
        yield from self.own_words("held_back")
        yield from self.own_words("listed")
        if self.description.one_row:
            yield self.say(f"limit.{self.description.one_row}")
        elif self.facts.limit is not None and not self.description.once:
            computed = "measures" in self.description.figures
            kept = self.description.kept or any(span.chosen for span in self.facts.spans)
            yield self.say("limit.kept" if kept else "limit.scaled" if computed else "limit.person")
        if self.facts.cut_differently:
            yield self.say("limit.different")

    def clips(self) -> Iterator[str]:
        """Which values were held to a range, and what became of those that are missing."""
        if "clips" not in self.voice.figures:
            return
        person = isinstance(self.facts.unit, User | Family)
        once = self.description.once
        missing = f"{once}_{'person' if person else 'row'}" if once else "missing"
        words = [self.voice.figures["clips"], self.say("limit.clip_bias"), self.say(f"limit.{missing}")]
        yield paragraph(words, self.voice.language)

    def notes(self) -> Iterator[str]:
        """What is special about the account or this delivery."""
        if self.facts.account.ledger.startswith("none"):
            yield self.say("account.memory")
        if self.facts.account.custody is not None:
            yield self.say("account.owner")
        if self.facts.account.witness is not None:
            yield self.say("account.witness")
        if self.facts.repeated:
            yield self.say("account.repeated")


def _kind(guarantee: Pure | Approximate) -> str:
    return "delta" if isinstance(guarantee, Approximate) and guarantee.delta > 0 else "pure"


def _public(told: _Told) -> Explanation:
    risk = [
        told.photograph,
        told.say(f"promise.{told.own}"),
        told.say(f"public.risk_{told.all}"),
        *([told.say("delta.meaning")] if told.has_delta else []),
        *told.risk,
        told.say("public.scope"),
    ]
    return Explanation(
        what=told.what(),
        risk=tuple(risk),
        error=(*told.error("accuracy."), *told.limits()),
        budget=(*told.charged, told.say("account.composition"), *told.filter, *told.notes()),
    )


def _patient(told: _Told) -> Explanation:
    risk = [
        told.photograph,
        told.say(f"patient.promise_{told.own}"),
        told.say(f"patient.risk_{told.all}"),
        *([told.say("delta.brief")] if told.has_delta else []),
        *told.risk,
        told.say("patient.scope"),
    ]
    limit = told.own_words("patient_limit")
    if not limit and told.facts.limit is not None:
        limit = [told.say("patient.limit")]
    limit += told.own_words("held_back")
    return Explanation(
        what=told.what(),
        risk=tuple(risk),
        error=(*told.error("patient.error_"), *told.clips(), *limit),
        budget=(*told.charged, told.say("patient.budget")),
    )


def _clinician(told: _Told) -> Explanation:
    margins = told.facts.margins
    further = []
    measured = "measures" in told.description.figures and not told.description.counts
    if told.facts.spans and measured and not any(span.chosen for span in told.facts.spans):
        further.append(told.say("clinician.groups"))
    elif margins is not None and margins.each and told.description.counts:
        further += [told.say("clinician.small"), told.say("clinician.rate")]
    risk = [
        told.say(f"clinician.risk_{told.all}"),
        *([told.say("delta.brief")] if told.has_delta else []),
        *told.risk,
        told.say("clinician.scope"),
    ]
    return Explanation(
        what=told.what(),
        error=(*told.error("clinician.error_"), *further, *told.limits()),
        risk=tuple(risk),
        budget=(*told.charged, told.say("clinician.budget"), *told.filter),
        order=("error", "risk", "budget"),
    )


def _manager(told: _Told) -> Explanation:
    facts = told.facts
    if told.derived:
        budget = [told.say("manager.cost_derived", "manager.state")]
    else:
        fits = {"0": "none", "1": "one"}.get(told.voice.figures["fits"], "many")
        cost = "manager.cost_repeated" if facts.repeated else "manager.cost"
        again = told.description.at("again") or (("manager.tenfold",),)
        budget = [
            told.say(cost, "manager.state"),
            *told.charged,
            told.say(f"manager.another_{fits}", *again[0]),
        ]
    budget += told.filter
    if facts.account.ledger.startswith("none"):
        budget.append(told.say("account.memory"))
    if facts.account.custody is not None:
        budget.append(told.say("account.owner"))
    if facts.account.witness is not None:
        budget.append(told.say("account.witness"))
    # Only pure noise has one price for all: with a δ, half the margin can take up to four times the ε.
    priced = facts.margins is not None and facts.margins.each > 0 and not told.derived and told.own.endswith("pure")
    risk = [
        told.say(f"manager.risk_{told.all}", *(["delta.brief"] if told.has_delta else []), "manager.scope"),
        *told.risk,
    ]
    return Explanation(
        what=told.what(),
        budget=tuple(budget),
        error=(
            *told.error("manager.error_", *(["manager.price"] if priced else [])),
            *(told.own_words("manager_limit") or told.clips()),
        ),
        risk=tuple(risk),
        order=("budget", "error", "risk"),
    )


def _board(told: _Told) -> Explanation:
    own, together = _kind(told.facts.guarantee), _kind(told.facts.cumulative)
    guarantee = "board.guarantee_derived" if told.derived else f"board.guarantee_{own}"
    budget = "board.budget_filter" if told.filter else "board.budget"
    risk = [
        told.say(guarantee, f"board.unit_{told.relation}"),
        told.say("board.cumulative"),
        told.say(f"board.risk_{told.all}"),
        *([told.say("delta.meaning")] if told.has_delta else []),
        *told.risk,
        *told.own_words("method"),
        told.say(f"board.together_{together}"),
        told.say("board.assumptions"),
        told.say("limits.unit", "limits.groups", "limits.elsewhere"),
        told.say("limits.advice"),
    ]
    return Explanation(
        what=told.what(),
        risk=tuple(risk),
        budget=(*told.charged, told.say(budget), *told.filter, *told.notes(), told.say("board.reasons")),
        error=(*told.error("accuracy."), *told.limits()),
        order=("risk", "error", "budget"),
    )


AUDIENCES: dict[str, Callable[[_Told], Explanation]] = {
    "public": _public,
    "patient": _patient,
    "clinician": _clinician,
    "manager": _manager,
    "board": _board,
}
