"""Keys: lists of values that are public, written down once, with a name for the rest."""

from datetime import date, datetime
from itertools import count

import pytest

from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.engines.expressions import EXPRESSIONS, Date, col
from sfumato.errors import InvalidInput
from sfumato.tables.keys import MOST_KEYS, Keys, keys_of

READER = Registry([Keys, *EXPRESSIONS])
DAYS = (date(2026, 1, 31), date(1, 1, 1), date(9999, 12, 31))


def test_days_are_keys_and_are_called_by_their_usual_name() -> None:
    keys = keys_of("day", DAYS)
    assert keys.values == (Date("2026-01-31"), Date("0001-01-01"), Date("9999-12-31"))
    assert keys.labels == ("2026-01-31", "0001-01-01", "9999-12-31")
    assert keys.size == 3


def test_the_rest_is_a_last_group() -> None:
    keys = Keys(column="sex", values=("F", "M"), other="else")
    assert (keys.size, keys.labels) == (3, ("F", "M", "else"))
    assert Keys(column="sex", values=("F", "M")).size == 2


@pytest.mark.parametrize(
    ("values", "other"),
    [(("F", "M"), "F"), ((1, 2), "rest"), ((True,), "rest"), ((Date("2026-01-31"),), "rest"), (("F",), "\ud800")],
)
def test_the_rest_needs_a_name_of_its_own_among_texts(values: tuple[str, ...], other: str) -> None:
    with pytest.raises(InvalidInput, match=r"the rest of 'x' cannot be called .*Nothing was done"):
        Keys(column="x", values=values, other=other)


@pytest.mark.parametrize("values", [("a", date(2026, 1, 1)), (date(2026, 1, 1), 1), (datetime(2026, 1, 1),)])
def test_days_are_not_mixed_with_anything(values: tuple[object, ...]) -> None:
    with pytest.raises(InvalidInput):
        keys_of("x", values)  # type: ignore[arg-type]


def test_a_text_is_not_a_list_of_its_letters() -> None:
    with pytest.raises(InvalidInput, match="the keys of 'sex' are a list of values, not one alone"):
        keys_of("sex", "FM")


@pytest.mark.long
def test_an_endless_list_ends_at_a_million() -> None:
    assert keys_of("n", range(MOST_KEYS)).size == MOST_KEYS
    with pytest.raises(InvalidInput, match="'n' has more than 1,000,000 values; nothing was done"):
        keys_of("n", count())


def test_the_same_day_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="names a value twice"):
        keys_of("day", [*DAYS, DAYS[0]])


@pytest.mark.parametrize(
    "keys",
    [
        keys_of("day", DAYS),
        Keys(column="sex", values=("F", "M"), other="else"),
        Keys(column="band", values=("[0, 40)", "[40, 65)"), value=col("age").cut([0, 40, 65]).node),
        Keys(column="old", values=(False, True)),
    ],
    ids=lambda keys: keys.column,
)
def test_documents_are_read_back_as_they_were(keys: Keys) -> None:
    text = canonical(encode(keys))
    assert READER.decode(parse(text)) == keys
    assert canonical(encode(READER.decode(parse(text)))) == text
