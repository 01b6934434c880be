"""Offers of works: the price and the error to expect of a study or of synthetic rows, before anything is charged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any  # a study of any kind

from sfumato.core.budget import Budget
from sfumato.core.exact import non_negative
from sfumato.core.limits import Limit
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.server.asking.offers import Asker, Offer, Precision
from sfumato.server.works.forms import RegressionForm, SurvivalForm, WorkForm, whole_number
from sfumato.server.works.synthetic_form import SyntheticForm

if TYPE_CHECKING:
    from sfumato.synthesis.preview import SynthesisPreview
    from sfumato.tables.study import Study

__all__ = ["BY_ROWS", "WorkOffer", "offered"]

BY_ROWS = "rows"
SAY_ROWS = "rows=…"
"""In notes for programs; forms have a field for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOffer:
    """What a work would cost and how exact it would be.

    Guarantee: a function of declarations and of the ledger alone, as :class:`~sfumato.server.asking.offers.Offer` is.
    """

    form: WorkForm
    offer: Offer
    limit: Limit | None
    notes: tuple[str, ...]
    """What the method needs at this price; in English, as the library says it."""
    planned: "SynthesisPreview | None" = None
    """The tables that synthetic rows would be made of."""


def offered(asker: Asker, account: str, form: WorkForm, said: Mapping[str, str]) -> WorkOffer:
    """The offer for a form at the precision that fields say; refused in words that help where it cannot be asked."""
    schema = asker.held(form.dataset).schema
    table, limit = asker.table(account, form.dataset), form.chosen.limit(schema)
    if isinstance(form, SyntheticForm):
        precision = Precision.read({**said, "margin": "", "rows": ""})
        spend = Budget.asked(epsilon=precision.epsilon or 0, delta=precision.delta)
        asked = form.synthesis(table, schema)
        question = asked.question(epsilon=spend.epsilon, delta=spend.delta)
        planned = asked.preview(epsilon=spend.epsilon, delta=spend.delta)
        offer = asker.offer(account, form.dataset, question, precision, limit=limit)
        return WorkOffer(form=form, offer=offer, limit=limit, notes=(), planned=planned)
    if not isinstance(form, SurvivalForm | RegressionForm):
        raise InvalidInput(f"a {form.kind} is offered in another way; nothing was done.")
    study = form.study(table, schema)
    precision = _precision(study, said)
    offer = asker.offer(account, form.dataset, study.question, precision, limit=limit)
    preview = study.preview(epsilon=offer.epsilon, delta=offer.delta, rows=precision.rows)
    notes = tuple(note for note in (preview.told, *preview.notes) if note and SAY_ROWS not in note)
    return WorkOffer(form=form, offer=offer, limit=limit, notes=notes)


def _precision(study: "Study[Any]", said: Mapping[str, str]) -> Precision:
    """The ε that is said, or the least one at which noise is small beside chance for the rows that are expected."""
    if said.get("by") != BY_ROWS:
        return Precision.read({**said, "margin": ""})
    rows = whole_number(said.get("rows", ""), "the number of rows that you expect")
    if rows is None:
        raise NotDeclared(
            "say how many rows you expect, from public knowledge, so that the least price can be found; nothing was "
            "done."
        )
    delta = non_negative(said.get("delta") or "0", "δ")
    return Precision(epsilon=study.epsilon_for(rows=rows, delta=delta), delta=delta, rows=rows)
