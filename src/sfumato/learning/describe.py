"""What a reader must know of a model or of a release about one: on whom, how, and what may be done with it."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core import enclosures
from sfumato.core.description import Counted, Description, Form, Paragraph, Word, phrase
from sfumato.core.exact import decimal_up, fraction_text
from sfumato.core.query import Query
from sfumato.errors import Unsupported

if TYPE_CHECKING:
    from sfumato.core.statement import Statement
    from sfumato.learning.clip_groups import Clips

__all__ = ["accuracies", "examined", "trained"]

SHOWN = 16  # signs of the digest of the weights
SCATTERED = "the noise of a model is in its weights"


def trained(
    said: "Statement",
    *,
    units: str,
    number: int,
    batch: Fraction,
    steps: int,
    done: int,
    parameters: int,
    clip: Fraction,
    multiplier: Fraction,
    weights: str,
    way: str,
    follows: bool,
    groups: int = 1,
    clips: "Clips | None" = None,
    canaries: int = 0,
    method: str = "method",
    own: Mapping[str, Word] | None = None,
) -> Description:
    """A trained model.

    ``way`` is how units come into steps: ``all``, ``sampled``, ``cycle``, or ``turns``, samples of one of ``groups``
    after the other. ``follows`` says that the clip followed a noisy count, ``clips`` are those of groups of layers,
    ``canaries`` how many invented units there were for an audit.
    ``method`` begins the key of how a step was made, and ``own`` are the figures of that method alone.
    """
    figures: dict[str, Word] = {
        "weights": Counted("weight", parameters),
        "steps": Counted("step", done),
        "planned": Counted("step", steps),
        "members": phrase(f"lesson.members_{units}", n=f"{number:,}"),
        "batch": f"{math.ceil(batch):,}",
        "clip": fraction_text(clip),
        "multiplier": decimal_up(multiplier),
        "digest": weights[:SHOWN],
        "chance": decimal_up(100 * groups * batch / number, 3),
        "turn": f"{groups if way == 'turns' else math.ceil(number / batch):,}",
        **({} if own is None else own),
    }
    if clips is not None:
        figures["layers"] = f"{len(clips):,}"
        figures["clips"] = ", ".join(f"{name or '*'}: {decimal_up(one)}" for name, one in clips)
    besides = (("lesson.follows",) if follows else ()) + (() if clips is None else ("lesson.layers",))
    if canaries:
        figures["canaries"] = f"{canaries:,}"
        besides = (*besides, "lesson.canaries")
    facts: dict[str, Word] = {
        "noise": phrase(f"fact.noise_{way if way in ('cycle', 'turns') else 'trained'}", **figures)
    }
    if said.sensitivity.l2 is not None:
        length = decimal_up(enclosures.sqrt(said.sensitivity.l2.squared).high)
        facts["sensitivity"] = phrase("fact.sensitivity_trained", clip=length)
    person = () if said.limit is None else (f"limit.trained_{'user' if units == 'user' else 'times'}",)
    limits: tuple[Paragraph, ...] = (("limit.trained", *person),)
    return Description(
        form=Form.MODEL,
        numbers=0,
        asked=phrase("page.training"),
        figures=figures,
        paragraphs={
            "what": (("what.trained_all" if way == "all" else "what.trained",),),
            "risk": (("lesson.why", "lesson.open"), ("lesson.not",)),
            "method": ((f"lesson.{method}_{way}", *besides),),
            "charged": (("lesson.charged", *(("lesson.early",) if done < steps else ())),),
            "limits": limits,
            "patient_limit": limits,
            "manager_limit": limits,
            "again": (("manager.tenfold_training",),),
        },
        facts=facts,
        plot="training",
        scattered=SCATTERED,
        glance=((f"{parameters:,}", "page.glance_weights"),),
    )


def accuracies(query: Query, said: "Statement", *, number: int, **facts: Word) -> Description:
    """How often models are right on held-out units."""
    if not said.values:
        raise Unsupported("no model was looked at, so that there is nothing to explain; no text was made.")
    return Description(
        form=Form.CURVE,
        numbers=len(said.values),
        asked=_asked(query),
        columns=tuple(query.labels()),
        measure="measure.accuracy",
        figures={"number": f"{number:,}"},
        facts=facts,
        counts=False,
        once="everyone",
    )


def examined(
    query: Query,
    said: "Statement",
    *,
    figures: Mapping[str, Word] | None = None,
    named: str | None = None,
    facts: Mapping[str, Word] | None = None,
) -> Description:
    """Releases about declared examples; each query has its own words, by its kind, filled with its ``figures``.

    ``named`` is the key for how exact something is that was chosen and not measured.
    """
    labels = query.labels()
    return Description(
        form=Form.TABLE if labels else Form.NUMBER,
        numbers=len(next(iter(labels.values()), ("one",))),
        asked=_asked(query),
        columns=tuple(labels),
        measure=f"measure.{query.KIND.removeprefix('query.')}",
        figures={} if figures is None else dict(figures),
        paragraphs={} if named is None else {"named": ((named,),)},
        facts={} if facts is None else dict(facts),
        counts=False,
    )


def _asked(query: Query) -> Word:
    return phrase(f"page.{query.KIND.removeprefix('query.')}")
