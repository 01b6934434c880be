"""The contract of measures: whatever is in the folder of measures is known everywhere, by its class alone."""

import inspect
import string
from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.documents import Registry, encode
from sfumato.engines.expressions import EXPRESSIONS, Expression
from sfumato.reports.catalogue import messages
from sfumato.tables.clamped import Clamped
from sfumato.tables.measure import Measure
from sfumato.tables.measures import ASKED, MEASURES
from sfumato.tables.measures.batch_mean import BatchMean
from sfumato.tables.sql.refusals import AGGREGATES

BOUNDS = {"x": (Fraction(1), Fraction(10)), "y": (Fraction(2), Fraction(5))}


def asked(name: str) -> Measure:
    """A measure, asked for with as many values and conditions as its function takes."""
    values = iter(("x", "y"))
    given = [
        next(values) if "Term" in str(each.annotation) else Fraction(9, 10) if each.name == "level" else sf.col("x") > 3
        for each in inspect.signature(ASKED[name]).parameters.values()
    ]
    return ASKED[name](*given).bound("it", BOUNDS)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_every_measure_can_be_asked_for_under_sf() -> None:
    by_method = {measure for measure in MEASURES if not measure.ASKED}
    assert by_method == {BatchMean}  # table.compare_batches(...) asks for it
    assert {type(asked(name)) for name in ASKED} == set(MEASURES) - by_method
    assert all(getattr(sf, name) is ask for name, ask in ASKED.items())
    with pytest.raises(AttributeError, match="no attribute 'harmonic_mean'"):
        _ = sf.harmonic_mean


@pytest.mark.parametrize("measure", MEASURES, ids=lambda each: each.__name__)
def test_a_measure_that_leaves_a_member_out_cannot_be_made(measure: type[Measure]) -> None:
    for member in Measure.__abstractmethods__:
        forgetful: Any = type("Forgetful", (measure,), {member: inspect.getattr_static(Measure, member)})
        with pytest.raises(TypeError, match=member):
            forgetful(name="it")


@pytest.mark.parametrize("name", ASKED)
def test_its_words_are_in_both_catalogues_and_name_its_parts(name: str) -> None:
    measure = asked(name)
    for language in ("en", "zh-Hans"):
        for key in (measure.words, measure.words_of_rows):
            assert placeholders(messages(language)[key]) == measure.parts.keys()


@pytest.mark.parametrize("name", ASKED)
def test_what_it_is_about_is_known_by_its_fields(name: str) -> None:
    measure = asked(name)
    assert all(isinstance(part, Clamped) for part in measure.ranges)
    assert all(isinstance(part, Expression) for part in measure.conditions)
    assert len(measure.ranges) + len(measure.conditions) == len(measure.parts) - ("percent" in measure.parts)
    assert measure.possible is None or measure.possible[0] < measure.possible[1]


@pytest.mark.parametrize("name", ASKED)
def test_it_is_read_from_a_document_as_it_was_written(name: str) -> None:
    measure = asked(name)
    assert Registry((Clamped, *MEASURES, *EXPRESSIONS)).decode(encode(measure)) == measure


def test_names_in_sql_are_aggregates_and_each_means_one_measure() -> None:
    names = [function for measure in MEASURES for function in measure.SQL]
    assert len(names) == len(set(names))
    assert set(names) <= AGGREGATES
    assert all(name in measure.ASKED for measure in MEASURES for name in measure.SQL.values())
