"""What a reader must know where one row a person was made, or rows stand beside what others of the same person say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.core.description import Description, Joined, Listed, OneLine, Paragraph, Word, phrase
from sfumato.core.query import Dataset
from sfumato.engines.person_values import Fold, PersonValue
from sfumato.tables.conditions import condition, value
from sfumato.tables.persons import PerPerson, PersonJoin, Step, made_of_cut_rows

if TYPE_CHECKING:
    from sfumato.core.statement import Statement

__all__ = ["about_persons"]


def about_persons(said: "Statement", description: Description) -> Description:
    """The same description, with the steps about persons in words; unchanged where there are none."""
    steps: Sequence[Step] = getattr(said.query, "joins", ())
    made = next((step for step in steps if isinstance(step, PerPerson)), None)
    beside = [step for step in steps if isinstance(step, PersonJoin)]
    figures: dict[str, Word] = dict(description.figures)
    told: list[Paragraph] = []
    if made is not None:
        figures["data"] = phrase("persons.data", data=_named(said.dataset))
        figures["person_rows"] = _made(made, steps)
        told.append(("persons.made",))
    if beside:
        figures["person_beside"] = Listed(tuple(_beside(step) for step in beside))
        told.append(("persons.beside",))
    if not told:
        return description
    paragraphs, facts = dict(description.paragraphs), dict(description.facts)
    place = "limits" if "limits" in paragraphs else "uncounted"
    paragraphs[place] = (*told, *paragraphs.get(place, ()))
    if made is not None:
        own = "one_row_cut" if made_of_cut_rows(steps) else "one_row"
        facts["limit"] = phrase(f"fact.limit_{own}")
        paragraphs["patient_limit"] = ((f"patient.limit_{own}",),)
    return replace(
        description,
        figures=figures,
        paragraphs=paragraphs,
        facts=facts,
        one_row=description.one_row or ("" if made is None else own),
    )


def _made(step: PerPerson, steps: Sequence[Step]) -> Word:
    """Which rows were made into one, and into what; of those that a private join before it leaves, no others."""
    of = "persons.rows_cut" if made_of_cut_rows(steps) else "persons.rows"
    of = of if step.where is None else f"{of}_where"
    met = {} if step.where is None else {"condition": OneLine(condition(step.where))}
    if not step.values:
        return phrase(of, **met)
    return phrase("persons.into", rows=phrase(of, **met), values=_columns(step.values))


def _beside(step: PersonJoin) -> Word:
    inner = next(each for each in step.steps if isinstance(each, PerPerson))
    return phrase(
        "persons.beside_one", name=OneLine(step.name), data=_named(step.dataset), rows=_made(inner, step.steps)
    )


def _columns(values: Sequence[PersonValue]) -> Word:
    listed = tuple(phrase("persons.column", name=OneLine(each.name), what=_what(each)) for each in values)
    return Joined("value.between", listed)


def _what(each: PersonValue) -> Word:
    """One value of a person in words."""
    met = None if each.where is None else OneLine(condition(each.where))
    if each.fold in (Fold.ANY, Fold.EVERY) and met is not None:
        return phrase(f"persons.{each.fold.value}", condition=met)
    if each.value is None:
        return phrase("measure.rows") if met is None else phrase("measure.rows_where", condition=met)
    own = {Fold.SUM: "measure.sum", Fold.MEAN: "measure.mean"}.get(each.fold, f"persons.{each.fold.value}")
    by: dict[str, Word] = {} if each.by is None else {"by": OneLine(value(each.by))}
    if each.place is not None:
        own, by["place"] = f"{own}_place", f"{each.place:,}"
    words = phrase(own, value=OneLine(value(each.value)), **by)
    return words if met is None else phrase("persons.of", what=words, condition=met)


def _named(dataset: Dataset) -> Word:
    return phrase("data.named", dataset=OneLine(dataset.name), edition=OneLine(dataset.edition))
