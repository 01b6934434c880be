"""A vault and a connection to a service are asked in the same words, and give the same kind of answer."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import httpx
import pytest

import sfumato as sf
from sfumato.client.connection import connect
from sfumato.core.budget import Budget
from sfumato.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidInput,
    NotDeclared,
    Refused,
    SfumatoError,
    Unsupported,
)
from sfumato.reports.verify import parsed, verify
from tests.server import trial_services
from tests.server.asked_services import ACCOUNT, CAP, OTHER, PERSON, ROWS, SCHEMA, AskedService, asked
from tests.server.quick_line import Quick
from tests.server.trial_services import TRIAL, declare
from tests.server.visiting import ORIGIN


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedService]:
    with asked(tmp_path_factory.mktemp("asked") / "service") as found:
        declare(found)
        yield found


@pytest.fixture(scope="module")
def line(made: AskedService) -> Quick:
    return Quick(made)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.client.connection.time.sleep", lambda seconds: None)


@pytest.fixture(params=["vault", "service"])
def home(request: pytest.FixtureRequest, made: AskedService, line: Quick) -> Any:
    """What users hold: a vault over the rows, or a connection to a service that has them."""
    if request.param == "service":
        return connect(ORIGIN, token=made.token(), transport=line)
    vault = sf.Vault(unit=PERSON, budget=CAP, name="local")
    tables = {"visits": vault.table(ROWS, schema=SCHEMA), "trial": vault.table(trial_services.ROWS, schema=TRIAL)}

    class Local:
        budget, public_key = vault.budget, vault.public_key

        @property
        def left(self) -> Budget:
            return vault.left

        def table(self, name: str) -> Any:
            return tables[name]

    return Local()


def key_of(home: Any) -> str:
    return str(getattr(home, "key", None) or home.public_key)


def test_a_count_by_group_has_its_certificate_and_is_charged_once(home: Any) -> None:
    before = home.left.epsilon
    question = home.table("visits").group_by("ward").count()
    assert question.preview(epsilon="1/10").margin == 30
    answer = question.release(epsilon="1/10")
    assert (answer.charged, answer.repeated) == (Budget(epsilon="1/10"), False)
    assert answer.labels == {"ward": ["east", "west"]}
    assert verify(parsed(answer.certificate.text), key=key_of(home)).authenticated
    again = question.release(epsilon="1/10")
    assert (again.charged, again.repeated, again.values) == (Budget.none(), True, answer.values)
    assert before - home.left.epsilon == Fraction(1, 10)


def test_accuracy_comes_first(home: Any) -> None:
    question = home.table("visits").where("age >= 50").count()
    epsilon = question.epsilon_for(margin=20)
    assert question.preview(epsilon=epsilon).margin <= 20
    assert question.release(epsilon=epsilon).charged.epsilon == epsilon


def test_sql_and_methods_are_one_question(home: Any) -> None:
    table = home.table("visits")
    first = table.sql("SELECT ward, AVG(age) AS mean FROM visits GROUP BY ward").release(epsilon="1/4")
    second = table.group_by("ward").agg(mean=sf.mean("age")).release(epsilon="1/4")
    assert (second.repeated, second.values) == (True, first.values)
    assert set(first.to_arrow().column_names) >= {"ward", "mean"}
    assert "differential privacy" in first.explain()


def test_another_limit_is_another_question(home: Any) -> None:
    table = home.table("visits").with_limit(sf.Limit(groups=1, rows_per_group=2))
    answer = table.count().release(epsilon="1/20")
    assert answer.statement.limit == sf.Limit(groups=1, rows_per_group=2)


def test_a_study_is_one_charge_with_its_certificate(home: Any) -> None:
    before = home.left.epsilon
    trial = home.table("trial").with_limit(sf.Limit(groups=1, rows_per_group=1))
    study = trial.survival("week", "relapsed", by="arm")
    assert study.epsilon_for(rows=600) > study.epsilon_for(rows=6_000)
    result = study.release(epsilon="1/5")
    assert result.log_rank().table().columns["df"] == [1]
    assert verify(parsed(result.sources[0].certificate.text), key=key_of(home)).authenticated
    again = study.release(epsilon="1/5")
    assert (again.sources[0].repeated, str(again)) == (True, str(result))
    assert before - home.left.epsilon == Fraction(1, 5)
    fitted = trial.linear_regression(outcome="sbp", covariates=["age"]).release(epsilon="1/5")
    assert fitted.names == ("Intercept", "age")


def test_synthetic_rows_are_one_charge_with_its_certificate(home: Any) -> None:
    before = home.left.epsilon
    trial = home.table("trial").with_limit(sf.Limit(groups=1, rows_per_group=1))
    asked = trial.synthesis(["arm", "age"], bins={"age": 4}, rows=50)
    assert asked.preview(epsilon="1/5").cells >= 8
    made, again = (asked.release(epsilon="1/5") for _ in range(2))
    assert (made.rows.num_rows, made.rows.equals(again.rows)) == (50, True)
    assert before - home.left.epsilon == Fraction(1, 5)


def test_a_fresh_draw_is_paid_for(home: Any) -> None:
    question = home.table("visits").persons()
    for _ in range(2):
        assert question.release(epsilon="1/50", fresh=True).charged.epsilon == Fraction(1, 50)


@pytest.mark.parametrize(
    ("ask", "wrong"),
    [
        (lambda table: table.count().release(epsilon=9), BudgetExceeded),
        (lambda table: table.count().release(epsilon=0), InvalidInput),
        (lambda table: table.count().release(epsilon="much"), InvalidInput),
        (lambda table: table.sql("SELECT * FROM visits"), Unsupported),
        (lambda table: table.group_by("age").count(), NotDeclared),
        (lambda table: table.where("diagnosis = 'x'").count().release(epsilon="1/10"), SfumatoError),
        (lambda table: table.count().epsilon_for(margin=-1), InvalidInput),
    ],
)
def test_what_is_refused_is_refused_as_the_same_error_and_costs_nothing(
    home: Any, ask: Any, wrong: type[SfumatoError]
) -> None:
    before = home.left
    with pytest.raises(wrong):
        ask(home.table("visits"))
    assert home.left == before


# ------------------------------------------------------------------------------------------------- the client by itself


def test_a_retry_under_a_key_is_one_question(made: AskedService, line: Quick) -> None:
    seen, spent = connect(ORIGIN, token=made.token(), transport=line), made.spent
    question = seen.table("visits").where("age < 50").count()
    first, second = (question.release(epsilon="1/30", idempotency="monday") for _ in range(2))
    assert first.values == second.values
    assert made.spent - spent == Fraction(1, 30)
    with pytest.raises(Refused, match="under this key"):
        question.release(epsilon="1/31", idempotency="monday")


def test_a_token_charges_the_accounts_that_it_was_made_for(made: AskedService, line: Quick) -> None:
    seen = connect(ORIGIN, token=made.token("ben", OTHER), transport=line)
    assert (seen.account, repr(seen)) == (OTHER, f"<Connection to a service, charged to {OTHER!r}: trial, visits>")
    for account in (ACCOUNT, "no/such/account"):
        with pytest.raises(Refused, match="whether or not there is one"):
            connect(ORIGIN, token=made.token("ben", OTHER), account=account, transport=line)


def test_a_token_that_is_none_is_refused(line: Quick) -> None:
    with pytest.raises(Refused, match="token"):
        connect(ORIGIN, token="sfumato_none", transport=line)  # noqa: S106 - of nobody


@pytest.mark.parametrize(
    ("address", "said", "wrong", "words"),
    [
        ("http://hospital.example", {"token": "x"}, Refused, "in the open"),
        ("ftp://hospital.example", {"token": "x"}, InvalidInput, "https://"),
        ("https://hospital.example", {}, NotDeclared, "token="),
    ],
)
def test_what_is_no_service_is_not_spoken_to(
    address: str, said: dict[str, str], wrong: type[SfumatoError], words: str
) -> None:
    with pytest.raises(wrong, match=words):
        connect(address, **said)  # type: ignore[arg-type]


def test_a_service_that_is_gone_says_what_may_have_been_charged() -> None:
    def gone(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no", request=request)

    with pytest.raises(EngineFailed, match="if it was, it counts"):
        connect("https://hospital.example", token="x", transport=httpx.MockTransport(gone))  # noqa: S106


@pytest.mark.parametrize("body", ["<html>", "[]", "{}", '{"error": 1, "error_class": "SystemExit"}', "null"])
def test_what_is_no_answer_of_a_service_is_not_believed(body: str) -> None:
    def odd(request: httpx.Request) -> httpx.Response:
        return httpx.Response(418, text=body, request=request)

    with pytest.raises(SfumatoError):
        connect("https://hospital.example", token="x", transport=httpx.MockTransport(odd))  # noqa: S106


def test_a_forged_certificate_is_not_believed(made: AskedService, line: Quick) -> None:
    class Forging(Quick):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = super().handle_request(request)
            if request.url.path.endswith("/certificate"):
                other = sf.Vault(unit=PERSON, budget=CAP, name="forger").table(ROWS, schema=SCHEMA)
                return httpx.Response(200, text=other.count().release(epsilon="1/40").certificate.text)
            return answer

    seen = connect(ORIGIN, token=made.token(), transport=Forging(made))
    with pytest.raises(Refused, match="does not verify"):
        seen.table("visits").where("age > 55").count().release(epsilon="1/40")


def test_sf_connect_goes_to_the_service_by_its_address() -> None:
    with pytest.raises(NotDeclared, match="token="):
        sf.connect("https://hospital.example")
    with pytest.raises(InvalidInput, match="account="):
        sf.connect("https://hospital.example", project="wards", token="x")  # noqa: S106
    with pytest.raises(InvalidInput, match="go with a service"):
        sf.connect("unix:/nowhere", token="x")  # noqa: S106
