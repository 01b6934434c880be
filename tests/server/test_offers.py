"""An offer says what a question would cost, how exact it is and whether it may be asked; nothing is read or charged."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.errors import InvalidInput, NotDeclared, Refused, SfumatoError
from sfumato.governance.ledger import Ledger
from sfumato.server.asking.offers import Asker, Offer, OfferDecision, Precision
from sfumato.server.service import Service
from tests.server.asked_services import ACCOUNT, BY_WARD, OTHER, SCHEMA, furnished


@pytest.fixture
def unread(tmp_path: Path) -> Iterator[Service]:
    """A service whose data are gone: whoever opened them would fail."""
    made = furnished(tmp_path / "service")
    (made.data / "visits.parquet").unlink()
    try:
        yield made
    finally:
        made.close()


def offered(service: Service, sql: str = BY_WARD, account: str = ACCOUNT, **said: object) -> Offer:
    asker = Asker(service.ledger, service.datasets)
    precision = Precision(**{"margin": Fraction(20), **said})  # type: ignore[arg-type]
    return asker.offer(account, "visits", asker.question(account, "visits", sql), precision, sql=sql)


def entries(ledger: Ledger) -> int:
    return ledger.head().head.number


def test_accuracy_comes_first_and_nothing_is_read_or_entered(unread: Service) -> None:
    before = entries(unread.ledger)
    made = offered(unread)
    assert (made.decision, made.numbers, made.columns[0].margin) == (OfferDecision.ALLOWED, 2, "20")
    assert 0 < made.epsilon < 1
    assert made.price == made.spend == Budget(epsilon=made.epsilon)
    assert made.left == Budget(epsilon=4, delta="1/1000000")
    assert entries(unread.ledger) == before
    half = offered(unread, margin=Fraction(10))
    assert half.epsilon > made.epsilon
    joint = offered(unread, joint=True)
    assert joint.epsilon > made.epsilon


def test_the_margin_of_an_offer_is_the_least_price_for_it(unread: Service) -> None:
    made = offered(unread)
    less = offered(unread, margin=None, epsilon=made.epsilon * Fraction(9, 10))
    assert int(str(less.columns[0].margin)) > 20


def test_what_does_not_fit_is_a_decision_with_what_would(unread: Service) -> None:
    made = offered(unread, margin=None, epsilon=Fraction(9))
    assert (made.decision, made.open) == (OfferDecision.OVER, False)
    assert "left; this release asks for ε = 9" in made.refusal
    assert [column.name for column in made.fitting] == ["count"]
    assert [row.fits for row in made.balances] == [False, True, True, True]
    assert [row.kind for row in made.balances] == ["account", "account", "dataset", "population"]


def test_a_mean_needs_the_rows_that_are_expected_and_says_so(unread: Service) -> None:
    sql = 'SELECT AVG("age") AS mean FROM "visits"'
    with pytest.raises(InvalidInput, match="how many rows a group has"):
        offered(unread, sql)
    assert offered(unread, sql, rows=400, margin=Fraction(1)).columns[0].margin == "1"
    by_price = offered(unread, sql, margin=None, epsilon=Fraction(1))
    assert (by_price.columns[0].margin, by_price.columns[0].unknown) == (None, "rows")


def test_a_closed_dataset_is_refused_before_it_is_asked_with_the_reason(unread: Service) -> None:
    held = unread.datasets["visits"]
    account = unread.ledger.account(ACCOUNT, unit=held.unit)
    dataset = offered(unread).dataset
    reserved = account.reserve(Budget(epsilon="1/100"), datasets=[dataset])
    assert reserved.number
    account.close([dataset], {})
    made = offered(unread)
    assert made.decision is OfferDecision.REFUSED
    assert "closed" in made.refusal


def test_whoever_makes_offers_releases_nothing(unread: Service) -> None:
    asker = Asker(unread.ledger, unread.datasets)
    asked = asker.question(ACCOUNT, "visits", BY_WARD)
    before = entries(unread.ledger)
    with pytest.raises(Refused, match="releases nothing"):
        asked.release(epsilon=1)
    decoded = asker.decoded(ACCOUNT, "visits", _document(asked.query))
    with pytest.raises(Refused, match="releases nothing"):
        decoded.release(epsilon=1)
    assert entries(unread.ledger) == before


def _document(query: object) -> object:
    from sfumato.core.documents import encode

    return encode(query)


def test_a_question_of_a_program_is_one_about_a_table_that_is_offered(unread: Service) -> None:
    asker = Asker(unread.ledger, unread.datasets)
    for document in (
        None,
        {},
        [],
        {"kind": "budget", "version": 1, "epsilon": "1", "delta": "0"},
        {"kind": "query.nope"},
    ):
        with pytest.raises(SfumatoError):
            asker.decoded(ACCOUNT, "visits", document)
    with pytest.raises(NotDeclared, match="no dataset of this name"):
        asker.question(ACCOUNT, "patients", BY_WARD)


def test_two_accounts_have_what_each_has_left(unread: Service) -> None:
    account = unread.ledger.account(ACCOUNT, unit=unread.datasets["visits"].unit)
    account.reserve(Budget(epsilon=3), datasets=[offered(unread).dataset])
    assert offered(unread).left.epsilon == 1
    assert offered(unread, account=OTHER).left.epsilon == 4


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"margin": "20", "epsilon": "1"}, (Fraction(20), None)),
        ({"margin": "20", "epsilon": "1", "by": "epsilon"}, (None, Fraction(1))),
        ({"margin": "20", "epsilon": "", "by": "epsilon"}, (Fraction(20), None)),
        ({"epsilon": " 1/3 "}, (None, Fraction(1, 3))),
    ],
)
def test_how_exact_it_is_to_be_is_said_by_one_of_two_fields(
    fields: dict[str, str], found: tuple[Fraction | None, Fraction | None]
) -> None:
    made = Precision.read(fields)
    assert (made.margin, made.epsilon) == found


@pytest.mark.parametrize(
    "fields", [{}, {"margin": "-1"}, {"epsilon": "much"}, {"margin": "1", "rows": "1.5"}, {"margin": "nan"}]
)
def test_what_says_nothing_about_it_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(SfumatoError):
        Precision.read(fields)


def test_an_offer_is_what_the_vault_itself_would_say(unread: Service) -> None:
    import pyarrow as pa

    vault = sf.Vault(unit=sf.user("patient_id", relation="add/remove"), budget=sf.Budget(epsilon=4), name="same")
    rows = pa.table({"patient_id": ["a"], "ward": ["east"], "age": [1]})
    asked = vault.table(rows, schema=SCHEMA).sql(BY_WARD)
    assert offered(unread).epsilon == asked.epsilon_for(margin=20)
