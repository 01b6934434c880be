"""Whatever is not the canonical JSON of a declaration is refused by name."""

import dataclasses
import json
from enum import Enum
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.core.documents import LEFT_OUT, Registry, _Odd, canonical, encode, parse
from sfumato.core.events import Composed, DiscreteLaplace, Stated
from sfumato.core.guarantees import Pure
from sfumato.core.query import Dataset
from sfumato.core.units import Record, Relation, User, user
from sfumato.errors import InvalidInput, SfumatoError, Unsupported
from sfumato.reports.declarations import DECLARATIONS
from tests.documents import CLASSES, built

# ------------------------------------------------------------------------------------ refusals, for every declaration


@cache
def a(kind: str) -> dict:
    """Some document of this kind, always the same."""
    found = []

    @settings(max_examples=1, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(built(CLASSES[kind]))
    def first(value):
        found.append(encode(value))

    first()
    return json.loads(canonical(found[0]))


def fields(kind: str) -> list[str]:
    return [name for name in a(kind) if name not in ("kind", "version")]


every_kind = pytest.mark.parametrize("kind", sorted(DECLARATIONS.kinds))


@pytest.mark.few(40)
@every_kind
def test_a_field_that_is_missing_foreign_or_of_the_wrong_type_is_named(kind):
    body = a(kind)
    left_out = {field.name for field in dataclasses.fields(CLASSES[kind]) if LEFT_OUT in field.metadata}
    for name in fields(kind):
        without = {key: value for key, value in body.items() if key != name}
        if name in left_out:
            assert getattr(DECLARATIONS.decode(without), name) is None
        else:
            with pytest.raises(InvalidInput, match=rf"^document\.{name} is missing; the document was not read"):
                DECLARATIONS.decode(without)
        for wrong in (0.5, {"kind": "no.such.kind", "version": 1}, {"nested": 1}, [[[]]]):
            with pytest.raises((InvalidInput, Unsupported), match=rf"^document\.{name}\b"):
                DECLARATIONS.decode(body | {name: wrong})
    with pytest.raises(InvalidInput, match=rf"^document\.remark is not a field of '{kind}'"):
        DECLARATIONS.decode(body | {"remark": "hello"})


@pytest.mark.few(40)
@every_kind
def test_a_newer_version_asks_for_an_update_and_what_is_no_version_is_refused(kind):
    newest = CLASSES[kind].VERSION
    with pytest.raises(Unsupported, match=rf"^document\.version = {newest + 1} of '{kind}' is newer .*Update sfumato"):
        DECLARATIONS.decode(a(kind) | {"version": newest + 1})
    for version in (0, -1, True, "1", None, [1]):
        with pytest.raises(InvalidInput, match=r"^document\.version = .* is not a version number"):
            DECLARATIONS.decode(a(kind) | {"version": version})


def test_every_kind_but_those_without_parameters_has_fields_to_spoil():
    assert sum(map(len, map(fields, DECLARATIONS.kinds))) > 3 * len(DECLARATIONS.kinds)


@pytest.mark.parametrize("kind", ["no.such.kind", "Pure", "sfumato.core.guarantees.Pure", "", None, 1, True, ["unit"]])
def test_an_unknown_kind_is_refused_with_those_that_are_known(kind):
    with pytest.raises(Unsupported, match=r"^document\.kind = .* is unknown; known are account, budget"):
        DECLARATIONS.decode({"kind": kind, "version": 1})


@pytest.mark.parametrize("body", [None, True, 1, "text", [], [{"kind": "unit.record"}]])
def test_what_is_no_object_is_no_document(body):
    with pytest.raises(InvalidInput, match=r"^document is not a document"):
        DECLARATIONS.decode(body)


PURE = {"kind": "guarantee.pure", "version": 1}


@pytest.mark.parametrize(
    "text",
    [
        *("2/4", "1/0", "-0/1", "0/2", "1", "1/", "/2", "+1/2", "1/-2", " 1/2", "1/2 ", "01/2", "1_0/3", "0.5"),
        *("", "nan", "1e3/1", "١/٢", "½", "1/2/3", "--1/2", "1" * 5000 + "/1"),
    ],
)
def test_a_rational_has_one_spelling(text):
    with pytest.raises(InvalidInput, match=r"^document\.epsilon is not a rational 'p/q' in lowest terms"):
        DECLARATIONS.decode(PURE | {"epsilon": text})


@pytest.mark.parametrize("wrong", [1, True, None, ["1/2"], {}])
def test_a_rational_is_text(wrong):
    with pytest.raises((InvalidInput, Unsupported), match=r"^document\.epsilon"):
        DECLARATIONS.decode(PURE | {"epsilon": wrong})


def test_a_value_out_of_range_is_refused_with_its_place():
    with pytest.raises(InvalidInput, match=r"^document: epsilon = -1/2 must not be below 0"):
        DECLARATIONS.decode(PURE | {"epsilon": "-1/2"})
    inner = {"kind": "event.stated", "version": 1, "guarantee": PURE | {"epsilon": "-1/2"}}
    with pytest.raises(InvalidInput, match=r"^paper\.events\[1\]\.guarantee: epsilon = -1/2"):
        DECLARATIONS.decode(
            {
                "kind": "event.composed",
                "version": 1,
                "events": [inner | {"guarantee": PURE | {"epsilon": "1/2"}}, inner],
            },
            "paper",
        )


@pytest.mark.parametrize("wrong", ["add", "ADD_REMOVE", "Add/Remove", "", 1, True, None, ["replace"]])
def test_a_word_outside_its_list_is_refused_with_the_list(wrong):
    with pytest.raises(InvalidInput, match=r"^document\.relation must be one of 'add/remove', 'replace'"):
        DECLARATIONS.decode({"kind": "unit.record", "version": 1, "relation": wrong})


@pytest.mark.parametrize(
    ("kind", "name", "inner"),
    [
        ("event.stated", "guarantee", "unit.record"),
        ("event.stated", "guarantee", "budget"),
        ("sensitivity", "l1", "sensitivity.l2"),
        ("sensitivity", "l2", "sensitivity.l1"),
        ("statement", "unit", "guarantee.pure"),
        ("statement", "guarantee", "unit.record"),
        ("statement", "mechanism", "law.discrete_laplace"),
        ("statement", "law", "mechanism.laplace"),
        ("statement", "query", "dataset"),
        ("statement", "event", "guarantee.pure"),
        ("statement", "spend", "limit"),
        ("expression.not", "part", "literal.text"),
        ("expression.compare", "constant", "expression.missing"),
    ],
)
def test_a_document_of_another_kind_does_not_pass_for_a_field(kind, name, inner):
    with pytest.raises(InvalidInput, match=rf"^document\.{name} has the wrong type"):
        DECLARATIONS.decode(a(kind) | {name: a(inner)})


def test_entries_of_a_fixed_number_are_counted():
    with pytest.raises(InvalidInput, match=r"^document\.curve\[0\] must have 2 entries"):
        DECLARATIONS.decode({"kind": "guarantee.rdp", "version": 1, "curve": [["2/1"]]})
    with pytest.raises(InvalidInput, match=r"^document\.curve\[1\]\[0\] is not a rational"):
        DECLARATIONS.decode({"kind": "guarantee.rdp", "version": 1, "curve": [["2/1", "1/1"], ["2", "1/1"]]})


def test_a_truth_value_is_no_whole_number():
    with pytest.raises(InvalidInput, match=r"^document\.count has the wrong type"):
        DECLARATIONS.decode({"kind": "sensitivity.l0", "version": 1, "count": True})
    with pytest.raises(InvalidInput, match=r"^document\.value has the wrong type"):
        DECLARATIONS.decode({"kind": "literal.truth", "version": 1, "value": 1})


# --------------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize("token", ["0.5", "1.0", "1e3", "1E-5", "-0.0", "NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("around", ["{}", '{{"a": {}}}', "[1, [{}]]"])
def test_a_floating_point_number_is_refused_with_the_number(token, around):
    with pytest.raises(InvalidInput, match=f"holds the floating-point number {token}; rationals are written 'p/q'"):
        parse(around.format(token))


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '{"b": {"a": 1, "c": 2, "a": 3}}', '[{"": 1, "": 2}]'])
def test_a_field_named_twice_is_refused(text):
    with pytest.raises(InvalidInput, match="names a field twice"):
        parse(text)


@pytest.mark.parametrize(
    "text", ["", "{", "nothing", "{'a': 1}", '{"a": 1}}', "[1,]", "[" * 10**5, '"\n"', '{"a": 1} x']
)
def test_what_is_not_json_is_not_read(text):
    with pytest.raises(InvalidInput, match="not a JSON document; it was not read"):
        parse(text)


def test_a_whole_number_of_thousands_of_digits_is_not_read():
    with pytest.raises(InvalidInput, match="it was not read"):
        parse("7" * 5000)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=50, deadline=None)
@given(value=json_values)
def test_canonical_text_is_read_as_what_was_written_and_is_the_same_whatever_the_order(value):
    text = canonical(value)
    assert parse(text) == value
    assert canonical(parse(text)) == text
    if isinstance(value, dict):
        assert canonical(dict(reversed(value.items()))) == text


@pytest.mark.parametrize(
    ("value", "path"), [(0.5, "document"), ({"a": [1, 0.5]}, r"document\.a\[1\]"), ([[1.0]], r"document\[0\]\[0\]")]
)
def test_floats_are_not_written_either(value, path):
    with pytest.raises(InvalidInput, match=f"^{path} is a floating-point number"):
        canonical(value)


@pytest.mark.parametrize("value", [0.5, object(), {"a": 1}, {1}, 1j, b"bytes"])
def test_what_has_no_place_in_a_document_is_not_encoded(value):
    with pytest.raises(InvalidInput, match=f"a {type(value).__name__} cannot be written"):
        encode(value)
    with pytest.raises(InvalidInput, match="cannot be written"):
        encode((1, value))


def test_plain_values_are_encoded_as_they_are():
    assert encode((None, True, 1, "a", Fraction(-1, 2), Relation.REPLACE, [Fraction(3)])) == [
        None,
        True,
        1,
        "a",
        "-1/2",
        "replace",
        ["3/1"],
    ]
    assert encode(user("id", relation="replace")) == {
        "kind": "unit.user",
        "version": 1,
        "column": "id",
        "relation": "replace",
    }


class Level(str, Enum):  # noqa: UP042 - a text that is also a member must be written as plain text
    HIGH = "high"


def test_a_member_that_is_also_text_is_written_as_text():
    assert type(encode(Level.HIGH)) is str


def test_a_registry_holds_each_kind_once():
    with pytest.raises(InvalidInput, match=r"two declarations share the kind 'guarantee\.pure'"):
        Registry([Pure, Pure])
    assert Registry([Pure, Record]).kinds == {"guarantee.pure", "unit.record"}
    with pytest.raises(Unsupported, match=r"known are guarantee\.pure, unit\.record"):
        Registry([Pure, Record]).decode(encode(User(column="id", relation=Relation.REPLACE)))


def test_what_a_registry_does_not_list_is_not_read_however_deep():
    known = Registry([Composed, Stated, Pure])
    event = Composed(events=(Stated(guarantee=Pure(epsilon=Fraction(1))),))
    assert known.decode(encode(event)) == event
    with pytest.raises(Unsupported, match=r"^document\.events\[0\]\.kind = 'event\.discrete_laplace' is unknown"):
        known.decode(encode(Composed(events=(DiscreteLaplace(l1=Fraction(1), scale=Fraction(1)),))))


def test_datasets_and_limits_are_checked_when_read():
    with pytest.raises(InvalidInput, match=r"^document: the name of a dataset must be a non-empty text"):
        DECLARATIONS.decode({"kind": "dataset", "version": 1, "name": " ", "edition": "1"})
    with pytest.raises(InvalidInput, match=r"^document: groups = 0 must be a whole number of at least 1"):
        DECLARATIONS.decode({"kind": "limit", "version": 1, "groups": 0, "rows_per_group": 1})
    assert DECLARATIONS.decode(encode(Dataset(name="visits", edition="2024"))).edition == "2024"


# ------------------------------------------------------------------------------------------- the quick way of reading


@pytest.mark.few(60)
@every_kind
def test_the_quick_reader_and_the_strict_one_read_the_same(kind):
    """What the quick one reads is what the strict one reads; what is spoilt the quick one leaves to it."""
    body = a(kind)
    strict = DECLARATIONS._strictly(body, "document")
    assert DECLARATIONS._quickly(body) == strict
    assert DECLARATIONS._quickly(body, inside=True) == DECLARATIONS._quickly(body, inside=True) == strict
    for name in body:
        for wrong in (True, 1, None, "", "1/2", [], {}, body[name] == 1):
            spoilt = body | {name: wrong}
            try:
                expected = DECLARATIONS._strictly(spoilt, "document")
            except SfumatoError:
                with pytest.raises((_Odd, SfumatoError)):
                    DECLARATIONS._quickly(spoilt, inside=True)
            else:
                assert DECLARATIONS.decode(spoilt) == expected
                assert encode(DECLARATIONS.decode(spoilt)) == encode(expected)


def test_a_small_document_that_was_read_before_is_not_taken_for_one_of_other_types():
    reader = Registry((Composed, DiscreteLaplace, Stated, Pure, Dataset, Record, User))
    whole = {"kind": "unit.user", "version": 1, "column": "id", "relation": "replace"}
    assert reader._quickly(whole, inside=True) is reader._quickly(dict(whole), inside=True)
    for name, wrong in (("version", True), ("version", 2), ("column", 1), ("relation", "add"), ("kind", "unit.record")):
        with pytest.raises((InvalidInput, Unsupported)):
            reader.decode(whole | {name: wrong})
