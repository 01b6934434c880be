"""What a reader must know of a model that a search found: how many were tried, how it was judged, what that cost."""

import math
from typing import TYPE_CHECKING

from sfumato.core.description import Counted, Description, Form, Paragraph, Word, phrase
from sfumato.core.exact import decimal_up, fraction_text
from sfumato.learning.describe import SCATTERED, SHOWN

if TYPE_CHECKING:
    from sfumato.core.statement import Statement
    from sfumato.learning.best_of_runs import BestOfRuns
    from sfumato.learning.tuning import Tuning

__all__ = ["tuned"]


def tuned(said: "Statement", query: "Tuning", noise: "BestOfRuns") -> Description:
    """A model that did best in a search; by a statement of one that has ended."""
    run, sums = query.candidates[query.chosen - 1], noise.runs[query.chosen - 1]
    figures: dict[str, Word] = {
        "weights": Counted("weight", run.parameters),
        "steps": Counted("step", run.steps),
        "members": phrase(f"lesson.members_{query.units}", n=f"{run.number:,}"),
        "batch": f"{math.ceil(run.rate * run.number):,}",
        "clip": fraction_text(run.clip),
        "multiplier": decimal_up(sums.multiplier),
        "digest": query.weights[:SHOWN],
        "candidates": f"{len(query.candidates):,}",
        "chosen": f"{query.chosen:,}",
        "score": f"{query.score:,}",
        "judges": f"{math.ceil(query.judges):,}",
        "chance": decimal_up(100 * query.held_out, 3),
        "sigma": decimal_up(noise.score.sigma),
        "average": decimal_up(noise.expected, 3),
        "most": f"{noise.most:,}",
        "eta": fraction_text(noise.eta),
        "gamma": decimal_up(noise.gamma),
    }
    person = () if said.limit is None else ("limit.trained_user",)
    limits: tuple[Paragraph, ...] = (("limit.trained", *person), ("limit.tuned",))
    return Description(
        form=Form.MODEL,
        numbers=0,
        asked=phrase("page.tuning"),
        figures=figures,
        paragraphs={
            "what": (("what.tuned",),),
            "risk": (("lesson.why", "lesson.open"), ("lesson.not",)),
            "method": (("search.method", "search.runs"),),
            "charged": (("search.charged",),),
            "limits": limits,
            "patient_limit": limits,
            "manager_limit": limits,
            "again": (("manager.tenfold_training",),),
        },
        facts={
            "noise": phrase("fact.noise_tuned", **figures),
            "sensitivity": phrase("fact.sensitivity_tuned", **figures),
        },
        scattered=SCATTERED,
        glance=((f"{run.parameters:,}", "page.glance_weights"),),
    )
