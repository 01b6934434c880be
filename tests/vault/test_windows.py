"""A budget for each window of time, through a vault: tables, graphs, streams and training charge the days they read."""

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.certificate import Certificate
from sfumato.core.query import Dataset
from sfumato.core.release import Release, presenter_of
from sfumato.core.signature import SigningKey
from sfumato.core.units import Unit
from sfumato.governance.board import Action, Board, Reasons
from sfumato.governance.ledger import Ledger
from sfumato.governance.overview import overview
from sfumato.governance.periods import Cadence
from sfumato.governance.time_windows import TimeWindows, WindowCharge
from sfumato.reports.evidence import Scope, pack
from sfumato.reports.particulars import particulars
from sfumato.reports.verify import verify
from tests.governance.conftest import home
from tests.governance.homes import Home
from tests.governance.signers import key_of, keyed

__all__ = ["home"]

PATIENT = sf.user("id", relation="add/remove")
ROW = sf.record(relation="add/remove")
NODE = sf.node(max_degree=4, relation="add/remove")
ENTRY = sf.event(relation="add/remove")
ROOMY = sf.Budget(epsilon=1000, delta="1/1000000")
ONE = sf.Budget(epsilon=1, delta="1/10000000")
DATA = Dataset(name="visits", edition="1")
JANUARY, FEBRUARY = ("2026-01-01", "2026-01-31"), ("2026-02-01", "2026-02-28")


def furnished(home: Home, unit: Unit, **windows: Any) -> Ledger:
    """A ledger whose one account has monthly windows of ε = 1, where no others are said."""
    ledger = home.create()
    ledger.open_account("clinic", unit=unit, cap=ROOMY, reason="decided by the tests")
    ledger.declare_population("patients", unit=unit, cap=ROOMY, reason="decided by the tests")
    ledger.declare_dataset(DATA, population="patients", cap=ROOMY)
    said: dict[str, Any] = {"unit": unit, "every": Cadence.MONTHLY, "cap": ONE, **windows}
    if not {"lifetime", "most_windows"} & set(windows):
        said["lifetime"] = ROOMY
    ledger.set_windows("clinic", TimeWindows(**said))
    return ledger


def vault(ledger: Ledger, unit: Unit, reads: tuple[str, str] | None = None) -> sf.Vault:
    return sf.Vault(unit=unit, ledger=ledger, account="clinic", reads=reads)


def rows(given: sf.Vault) -> Any:
    data = pa.table({"id": [1, 1, 2, 3], "ward": ["a", "b", "a", "a"]})
    return given.table(data, name="visits", version="1", limit=sf.Limit(groups=1, rows_per_group=2))


def table(given: sf.Vault, epsilon: Fraction) -> None:
    rows(given).sql("SELECT COUNT(*) FROM visits").release(epsilon=epsilon, fresh=True, even_if_useless=True)


def graph(given: sf.Vault, epsilon: Fraction) -> None:
    edges = given.graph([(0, 1), (1, 2), (2, 3)], name="visits", version="1", nodes=range(6))
    edges.edges().release(epsilon=epsilon, fresh=True, even_if_useless=True)


def stream(given: sf.Vault, epsilon: Fraction) -> None:
    declared = given.stream(name="visits", version="1", horizon=3, limit=sf.Limit(groups=3, rows_per_group=1))
    running = declared.running_total().open(epsilon=epsilon)
    for people in (["a", "b"], [], ["a"]):
        running.add(people=people)
    running.close()


def training(given: sf.Vault, epsilon: Fraction) -> None:
    torch = pytest.importorskip("torch")
    from sfumato.learning import Units

    torch.set_num_threads(1)
    inputs = torch.sin(torch.arange(60, dtype=torch.float32).reshape(20, 3))
    data = Units(inputs, (inputs.sum(1) > 0).long(), n_units=20, name="visits", version="1")
    trainer = given.trainer(torch.nn.Linear(3, 2), torch.nn.functional.cross_entropy, data=data, clip=1)
    trainer.fit(epsilon=epsilon, delta="1/1000000000", steps=2, batch=10, optimizer=torch.optim.SGD, lr=0.1)


KINDS = [(table, PATIENT), (graph, NODE), (stream, PATIENT), (training, ROW)]
Ask = Callable[[sf.Vault, Fraction], None]
all_kinds = pytest.mark.parametrize(("ask", "unit"), KINDS, ids=[ask.__name__ for ask, _ in KINDS])


def lost(ledger: Ledger) -> dict[str, Fraction]:
    return {label: spent.epsilon for label, spent in ledger.window_standing("clinic").windows}


@all_kinds
@pytest.mark.claim("S1-19")
def test_every_kind_of_data_is_charged_by_its_days_and_the_next_month_is_open(home: Home, ask: Ask, unit: Unit) -> None:
    ledger = furnished(home, unit)
    ask(vault(ledger, unit, JANUARY), Fraction(3, 4))
    first = lost(ledger)["2026-01"]
    assert lost(ledger) == {"2026-01": first}
    assert Fraction(1, 2) < first <= Fraction(3, 4)  # a run of training may cost less than it was allowed
    before = (ledger.head(), ledger.balances())
    with pytest.raises(errors.BudgetExceeded, match="window clinic 2026-01"):
        ask(vault(ledger, unit, ("2026-01-31", "2026-02-01")), Fraction(3, 4))
    assert (ledger.head(), ledger.balances()) == before  # February, which had room, was not charged either
    ask(vault(ledger, unit, FEBRUARY), Fraction(3, 4))
    assert lost(ledger) == {"2026-01": first, "2026-02": first}
    assert ledger.window_standing("clinic").lifetime.epsilon == 2 * first
    assert ledger.balance("clinic").spent.epsilon == 2 * first
    assert ledger.verify() == ()


@all_kinds
def test_what_does_not_say_its_days_is_refused_before_anything_is_read(home: Home, ask: Ask, unit: Unit) -> None:
    ledger = furnished(home, unit)
    before = ledger.head()
    with pytest.raises(errors.NotDeclared, match="does not say which days it reads") as refusal:
        ask(vault(ledger, unit), Fraction(1, 2))
    assert "--reads 2026-01-01/2026-01-31" in str(refusal.value)
    assert ledger.head() == before


def test_the_days_of_a_release_stand_before_those_of_the_vault_and_both_must_be_days(home: Home) -> None:
    ledger = furnished(home, PATIENT)
    question = rows(vault(ledger, PATIENT, JANUARY)).count()
    question.release(epsilon="1/2", even_if_useless=True)
    question.release(epsilon="1/4", reads=FEBRUARY, even_if_useless=True)
    assert lost(ledger) == {"2026-01": Fraction(1, 2), "2026-02": Fraction(1, 4)}
    assert question.release(epsilon="1/2", reads=JANUARY).repeated  # a stored answer costs no window anything
    with pytest.raises(errors.Refused, match="one of the two is wrong"):
        question.release(epsilon="1/2", reads=FEBRUARY)
    for wrong in (("2026-01-31", "2026-01-01"), ("2026-02-30", "2026-03-01"), ["2026-01-01", "2026-01-31"], "2026"):
        with pytest.raises(errors.InvalidInput):
            vault(ledger, PATIENT, wrong)  # type: ignore[arg-type]  # what people try
        with pytest.raises(errors.InvalidInput):
            question.release(epsilon="1/8", reads=wrong)
    with pytest.raises(errors.NotDeclared, match="days belong to a ledger"):
        sf.Vault(unit=PATIENT, budget=ONE, name="alone", reads=JANUARY)
    assert sum(lost(ledger).values()) == Fraction(3, 4)


def test_what_is_left_is_that_of_the_windows_that_would_be_read(home: Home) -> None:
    ledger = furnished(home, PATIENT, lifetime=sf.Budget(epsilon="3/2", delta="1/1000000"))
    january = vault(ledger, PATIENT, JANUARY)
    assert january.left == ONE
    table(january, Fraction(3, 4))
    assert january.left.epsilon == Fraction(1, 4)
    assert vault(ledger, PATIENT, FEBRUARY).left.epsilon == Fraction(3, 4)  # of the lifetime
    assert vault(ledger, PATIENT).left.epsilon == ROOMY.epsilon - Fraction(3, 4)


@pytest.mark.claim("S1-19")
def test_without_a_limit_of_windows_a_lifetime_is_the_sum_of_all_and_ends(home: Home) -> None:
    ledger = furnished(home, PATIENT, lifetime=sf.Budget(epsilon=2))
    for month in (1, 2):
        table(vault(ledger, PATIENT, (f"2026-0{month}-01", f"2026-0{month}-28")), Fraction(1))
    table_of_march = vault(ledger, PATIENT, ("2026-03-01", "2026-03-31"))
    with pytest.raises(errors.BudgetExceeded, match="lifetime clinic"):
        table(table_of_march, Fraction(1, 100))
    assert ledger.window_standing("clinic").words == (
        "A person who was there all along has lost ε = 2: windows do not give anything back."
    )
    assert ledger.verify() == ()


@pytest.mark.claim("S1-19")
def test_a_release_over_a_year_is_one_loss_to_a_person_and_the_whole_loss_of_each_window(home: Home) -> None:
    ledger = furnished(home, PATIENT, lifetime=sf.Budget(epsilon=1))
    table(vault(ledger, PATIENT, ("2026-01-01", "2026-12-31")), Fraction(1, 2))
    assert lost(ledger) == {f"2026-{month:02}": Fraction(1, 2) for month in range(1, 13)}
    assert ledger.window_standing("clinic").lifetime.epsilon == Fraction(1, 2)


@pytest.mark.claim("S1-19")
def test_who_has_data_in_few_windows_loses_no_more_than_their_caps(home: Home) -> None:
    ledger = furnished(home, PATIENT, most_windows=2)
    months = [(f"2026-{month:02}-01", f"2026-{month:02}-28") for month in range(1, 7)]
    for place, days in enumerate(months):
        table(vault(ledger, PATIENT, days), Fraction(1, 2 if place % 2 else 1))
    standing = ledger.window_standing("clinic")
    assert (standing.lifetime.epsilon, standing.all_along.epsilon) == (Fraction(2), Fraction(9, 2))
    assert standing.words == (
        "A person with data in at most 2 windows has lost at most ε = 2; one who was there all along has lost ε = 9/2."
    )
    (shown,) = overview(ledger).windows
    assert shown.life.balance.cap.epsilon == shown.life.balance.spent.epsilon == 2
    assert [level.name for level in shown.charged] == [f"2026-{month:02}" for month in range(1, 7)]
    assert shown.life.open_epsilon == 0
    with pytest.raises(errors.BudgetExceeded, match="window clinic 2026-01"):
        table(vault(ledger, PATIENT, JANUARY), Fraction(1, 100))
    assert ledger.verify() == ()


def test_a_board_cannot_raise_one_window_where_the_caps_of_all_bound_a_life(home: Home) -> None:
    ledger = furnished(home, PATIENT, most_windows=2)
    table(vault(ledger, PATIENT, JANUARY), Fraction(1, 2))
    members = ("ada", "ben", "cho")
    ledger.seat(keyed(Board(members=members, quorum=2)), by="director", reason="the statute of 2026")
    reasons = Reasons(benefit="sharper figures", risk="more is known of each", choice="half is too blunt")
    before = ledger.head()
    with pytest.raises(errors.Refused, match="loses at most ε = 2, δ = 1/5000000, since each"):
        ledger.propose(
            by="ada",
            subject="January",
            action=Action.RAISE,
            account="window clinic 2026-01",
            amount=sf.Budget(epsilon=1),
            reasons=reasons,
            key=key_of("ada"),
        )
    assert ledger.head() == before
    assert ledger.propose(
        by="ada",
        subject="January",
        action=Action.RAISE,
        account="clinic",
        amount=sf.Budget(epsilon=1),
        reasons=reasons,
        key=key_of("ada"),
    )


def test_entries_of_a_stream_are_charged_as_before(home: Home) -> None:
    """An event unit: a lifetime is that of all entries a stream read, by group privacy."""
    ledger = furnished(home, ENTRY, stretch=Cadence.DAILY, lifetime=sf.Budget(epsilon=40))
    running = vault(ledger, ENTRY, JANUARY).stream(name="visits", version="1", horizon=2).running_total()
    running.open(epsilon=1)
    assert lost(ledger) == {"2026-01": 1}
    assert ledger.window_standing("clinic").lifetime.epsilon == 31
    with pytest.raises(errors.BudgetExceeded, match="lifetime clinic"):
        vault(ledger, ENTRY, FEBRUARY).stream(name="visits", version="1", horizon=2).running_total().open(epsilon=1)
    assert ledger.verify() == ()


def test_a_stream_goes_on_under_the_days_that_it_was_charged_for(home: Home, tmp_path: Any) -> None:
    ledger = furnished(home, ENTRY, stretch=Cadence.MONTHLY)
    said = {"epsilon": 1, "state": tmp_path / "state", "idempotency": "winter"}

    def question(reads: tuple[str, str]) -> Any:
        return vault(ledger, ENTRY, reads).stream(name="visits", version="1", horizon=4).running_total()

    running = question(JANUARY).open(**said)
    running.add(1)
    running._stack.close()  # the process is gone, and with it its lock
    with pytest.raises(errors.SfumatoError, match="idempotency"):
        question(FEBRUARY).resume(**said)
    assert question(JANUARY).resume(**said).steps == 1
    assert lost(ledger) == {"2026-01": 1}


def test_windows_above_an_account_are_charged_by_what_is_below(home: Home) -> None:
    ledger = furnished(home, PATIENT)
    ledger.open_account("clinic/lab", unit=PATIENT, cap=ROOMY, reason="decided by the tests")
    question = rows(sf.Vault(unit=PATIENT, ledger=ledger, account="clinic/lab", reads=JANUARY)).count()
    question.release(epsilon=1)
    with pytest.raises(errors.BudgetExceeded, match="window clinic 2026-01"):
        question.release(epsilon="1/10", even_if_useless=True)
    assert lost(ledger) == {"2026-01": 1}


def test_the_days_stand_in_the_certificate_and_in_the_evidence(home: Home) -> None:
    ledger = furnished(home, PATIENT, most_windows=2)
    release = rows(vault(ledger, PATIENT, JANUARY)).count().release(epsilon="1/2", even_if_useless=True)
    assert release.statement.reads == JANUARY
    assert verify(release.certificate.document).consistent
    assert dict(particulars(release, "en"))["reads"] == "2026-01-01 to 2026-01-31, as the steward declared"
    assert "2026-01-31" in dict(particulars(release, "zh"))["reads"]
    document = copy.deepcopy(release.certificate.document)
    document["statement"]["reads"] = list(FEBRUARY)
    assert not verify(document).consistent
    signed = Certificate.sign(replace(release.statement, reads=("2026-02-30", "2026-03-01")), SigningKey.new())
    assert [finding.field for finding in verify(signed.document).findings] == ["statement.reads"]
    shown: Any = pack(ledger, Scope(release=release.statement.identifier)).evidence["sections"]
    lives = {row[0]: row[3] for row in shown[1]["rows"] if row[0].startswith(("window ", "lifetime "))}
    assert lives == {"window clinic 2026-01": "1/2", "lifetime clinic": "1/2"}
    plain = sf.Vault(unit=PATIENT, budget=ONE, name="alone")
    alone = rows(plain).count().release(epsilon=1)
    statement: Any = alone.certificate.document["statement"]
    assert "reads" not in statement  # as it was before there were days
    assert "reads" not in dict(particulars(alone, "en"))


@pytest.mark.claim("S1-19")
@pytest.mark.parametrize("most", [None, 1, 3])
def test_the_ledger_states_what_the_policy_works_out_from_all_charges(home: Home, most: int | None) -> None:
    """The same figures two ways, over random charges; the policy's are checked by brute force in test_policies.py."""
    said = {"lifetime": sf.Budget(epsilon=9, delta="1/10")} if most is None else {"most_windows": most}
    ledger = furnished(home, PATIENT, **said)
    account, chance = ledger.account("clinic", unit=PATIENT), random.Random(most)
    policy = ledger.decision_state().windows["clinic"]
    admitted: list[WindowCharge] = []
    for _ in range(25):
        first = date(2026, 1, 1) + timedelta(days=chance.randrange(300))
        last = first + timedelta(days=chance.choice([0, 6, 29, 100]))
        cost = sf.Budget(epsilon=Fraction(chance.randrange(1, 6), 7), delta=Fraction(chance.randrange(2), 10**8))
        charge = WindowCharge(first=first.isoformat(), last=last.isoformat(), cost=cost)
        try:
            account.reserve(cost, datasets=[DATA], reads=(charge.first, charge.last))
        except errors.BudgetExceeded:
            with pytest.raises(errors.BudgetExceeded):
                policy.admit(admitted, charge)
        else:
            policy.admit(admitted, charge)
            admitted.append(charge)
    assert len(admitted) > 3
    assert ledger.window_standing("clinic") == policy.standing(admitted)
    (shown,) = overview(ledger).windows
    assert shown.life.balance.spent == shown.standing.lifetime
    assert shown.life.open_epsilon == shown.standing.lifetime.epsilon  # none of them was answered yet
    assert ledger.verify() == ()


def test_an_answer_that_states_other_days_than_were_charged_is_not_stored(home: Home) -> None:
    ledger = furnished(home, PATIENT, most_windows=2)
    asked = rows(vault(ledger, PATIENT, JANUARY)).sql("SELECT COUNT(*) FROM visits")
    release: Release = asked.release(epsilon=Fraction(1, 2), even_if_useless=True)
    account = ledger.account("clinic", unit=PATIENT, reads=FEBRUARY)
    charge = account.reserve(release.statement.spend, datasets=[release.statement.dataset])

    def stating(days: tuple[str, str]) -> Release:
        statement = replace(release.statement, account=charge.account, reads=days)
        return replace(release, presenter=presenter_of(release), statement=statement)

    with pytest.raises(errors.Refused, match="does not state the charge"):
        account.commit(charge, "how many?", stating(JANUARY))
    account.commit(charge, "how many?", stating(FEBRUARY))
