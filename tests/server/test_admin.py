"""People are let in and shut out, and why somebody may do something is said step by step."""

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.server.rendering import SESSION_COOKIE
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from tests.server.visiting import Visiting, fields_of

NEW = "a password of mine"


def administered(empty: Service) -> Visiting:
    empty.people.add("nils", shown="Nils", roles=[ServiceRole.ADMIN])
    return Visiting(empty).sign_in("nils")


def test_somebody_is_let_in_by_a_link_and_chooses_a_password(empty: Service) -> None:
    admin = administered(empty)
    form = {"login": "Ada", "shown": "Ada, heart unit", "roles": "analyst", "accounts": "hospital/heart"}
    answer = admin.post("/admin/people", form, page="/admin")
    assert (answer.status_code, answer.headers["location"]) == (303, "/admin/people/ada")
    shown = admin.post("/admin/people/ada/link", {}, page="/admin/people/ada")
    secret = shown.text.partition("enter?secret=")[2].partition("<")[0]
    ada = admin.other()
    assert fields_of(ada.get(f"/enter?secret={secret}").text)["secret"] == secret
    assert ada.post("/enter", {"secret": secret}, page=f"/enter?secret={secret}").status_code == 303
    assert ada.post("/account/password", {"new": "short"}, page="/account").status_code == 422
    assert ada.post("/account/password", {"new": NEW}, page="/account").status_code == 303
    again = admin.other()
    assert again.post("/sign-in", {"login": "ada", "password": NEW}).status_code == 303
    assert again.post("/account/password", {"new": NEW + "x"}, page="/account").status_code == 403


def test_a_person_is_changed_and_shut_out_but_nobody_shuts_themselves_out(empty: Service) -> None:
    admin = administered(empty)
    empty.people.add("ada", shown="Ada", roles=[ServiceRole.ANALYST])
    ada = admin.other().sign_in("ada")
    admin.post("/admin/people/ada", {"roles": ["board", "auditor"], "accounts": ""}, page="/admin")
    assert "board member" in ada.get("/account").text
    admin.post("/admin/people/ada", {"roles": "board", "closed": "true"}, page="/admin")
    assert ada.ask("GET", "/account").status_code == 303
    admin.post("/admin/people/nils", {"closed": "true"}, page="/admin")
    assert admin.get("/admin").status_code == 200


def test_adding_asks_for_a_sign_in_of_the_last_minutes(empty: Service) -> None:
    admin = administered(empty)
    session = empty.sessions.find(admin.cookies[SESSION_COOKIE])
    assert session is not None
    with empty.database.writing() as connection:
        connection.exec_driver_sql("UPDATE sessions SET confirmed = 0")
    answer = admin.post("/admin/people", {"login": "x", "shown": "X", "roles": "admin"}, page="/admin")
    assert answer.headers["location"].startswith("/confirm")
    assert empty.people.get("x") is None


def test_why_is_said_step_by_step(empty: Service) -> None:
    admin = administered(empty)
    empty.people.add("ada", shown="Ada", roles=[ServiceRole.ANALYST], accounts=["hospital/heart"])
    unit = sf.user("id", relation="add/remove")
    for path, epsilon in (("hospital", 4), ("hospital/heart", 2)):
        empty.ledger.open_account(path, unit=unit, cap=sf.Budget(epsilon=epsilon), reason="decided in the test")
    text = admin.get("/admin/why?login=ada&route=admin&account=hospital/heart").text
    assert text.count('<li class="fails">') == 1
    assert text.count('<li class="holds">') == 5
    assert "hospital/heart has ε = 2 left" in text
    assert "There is no account hospital/lungs" in admin.get("/admin/why?login=ada&account=hospital/lungs").text


def test_a_charge_that_was_cut_off_is_shown_once_its_slot_is_over(empty: Service) -> None:
    person = sf.user("patient_id", relation="add/remove")
    ledger = empty.ledger
    ledger.open_account("hospital", unit=person, cap=sf.Budget(epsilon=2), reason="decided in the test")
    visits = Dataset(name="visits", edition="1")
    whole = sf.Budget(epsilon=2)
    ledger.declare_population("patients", unit=person, cap=whole, reason="decided in the test")
    ledger.declare_dataset(visits, population="patients", cap=whole)
    ledger.account("hospital", unit=person).reserve(sf.Budget(epsilon="1/4"), datasets=[visits])
    admin = administered(empty)
    assert "Charges without an answer" not in admin.get("/admin/health").text
    object.__setattr__(empty.settings, "slot_seconds", -1)  # as if its slot were over
    shown = admin.other().sign_in("nils").get("/admin/health").text
    assert "Charges without an answer" in shown
    assert "<td>hospital</td><td>0.25</td><td>0:00:0" in shown


def test_health_is_shown_and_metrics_are_counted(empty: Service) -> None:
    admin = administered(empty)
    assert "Nothing needs attention" in admin.get("/admin/health").text
    text = admin.get("/metrics").text
    assert text.endswith("# EOF\n")
    assert text.count("# EOF") == 1
    assert 'sfumato_requests_total{route="admin.health",method="GET",status="200"} 1' in text
    assert admin.get("/health").json()["ledger"] == "up"
    assert admin.other().get("/alive").text == "ok\n"
