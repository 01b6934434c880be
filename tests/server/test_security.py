"""What must not be possible from outside: other sites, planted sessions, tokens beyond their scope, spoofed headers."""

import json
import logging
import secrets
from collections.abc import Iterator

import pytest

from sfumato.errors import Refused
from sfumato.server.app import areas
from sfumato.server.identity.passwords import product_hasher
from sfumato.server.identity.people import charges
from sfumato.server.identity.secrets import digest_of
from sfumato.server.identity.tokens import PREFIX
from sfumato.server.rendering import FORM_FIELD, SESSION_COOKIE
from sfumato.server.roles import ServiceRole, by_token, matrix_of, routes_of
from sfumato.server.service import Service
from sfumato.server.settings import ServiceSettings
from sfumato.server.watching import LOGGER, RequestLines
from tests.server.conftest import PASSWORD
from tests.server.visiting import HOST, ORIGIN, Visiting

FACTS = {"event", "route", "method", "status", "seconds", "who", "error", "place"}
SIGN_OUT = "/account/sign-out-everywhere"


@pytest.fixture(autouse=True)
def patient(service: Service) -> Iterator[None]:
    """Every test has all its tries."""
    yield
    for login in ("ada", "nobody", "board"):
        service.sign_ins.forget(f"login {login}")
    service.addresses.forget("from 127.0.0.1")


def posted(browser: Visiting, address: str, data: dict[str, str], **headers: str) -> int:
    return browser.ask("POST", address, data=data, headers={"origin": ORIGIN, **headers}).status_code


# ------------------------------------------------------------------------------------------------------ other sites


def test_a_form_needs_the_token_of_this_browser_and_this_session(browser: Visiting) -> None:
    browser.sign_in("analyst")
    mine, other = browser.form_token("/account"), browser.other().sign_in("analyst").form_token("/account")
    stranger = browser.other().form_token()
    for token in ("", "none", other, stranger, mine[:-1]):
        assert posted(browser, SIGN_OUT, {FORM_FIELD: token}) == 403
    assert posted(browser, SIGN_OUT, {}) == 403
    assert browser.ask("GET", "/account").status_code == 200
    assert posted(browser, SIGN_OUT, {FORM_FIELD: mine}) == 303
    assert browser.ask("GET", "/account").status_code == 303


def test_the_token_of_the_sign_in_form_is_worth_nothing_after_it(browser: Visiting) -> None:
    before = browser.form_token()
    browser.sign_in("analyst")
    assert posted(browser, SIGN_OUT, {FORM_FIELD: before}) == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "https://elsewhere.example"},
        {"origin": f"http://{HOST}.elsewhere.example"},
        {"origin": f"https://{HOST}"},  # another scheme
        {"origin": "http://127.0.0.1:8401"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://elsewhere.example", "sec-fetch-site": "same-origin"},
    ],
)
def test_a_form_comes_from_this_service(headers: dict[str, str], browser: Visiting) -> None:
    browser.sign_in("analyst")
    token = browser.form_token("/account")
    assert browser.ask("POST", SIGN_OUT, data={FORM_FIELD: token}, headers=headers).status_code == 403
    assert browser.ask("POST", SIGN_OUT, data={FORM_FIELD: token}, headers={"origin": ORIGIN}).status_code == 303


def test_json_without_a_token_does_nothing_either(browser: Visiting) -> None:
    browser.sign_in("analyst")
    token = browser.form_token("/account")
    sent = {"content-type": "application/json", "origin": ORIGIN}
    assert browser.ask("POST", SIGN_OUT, content=json.dumps({FORM_FIELD: token}), headers=sent).status_code == 403
    assert browser.ask("POST", SIGN_OUT, content="{}", headers=sent | {"x-form-token": token}).status_code == 303


# --------------------------------------------------------------------------------------------------------- sessions


def test_signing_in_gives_a_session_that_nobody_planted(browser: Visiting, service: Service) -> None:
    planted = service.sessions.begin("analyst", how="password")
    browser.cookies[SESSION_COOKIE] = planted
    answer = browser.post("/sign-in", {"login": "ada", "password": PASSWORD})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert browser.cookies[SESSION_COOKIE] != planted
    assert service.sessions.find(planted) is None
    cookie = next(each for each in answer.headers.get_list("set-cookie") if each.startswith(SESSION_COOKIE))
    assert SESSION_COOKIE.startswith("__Host-")
    for word in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/"):
        assert f"; {word}" in cookie
    assert "Domain" not in cookie


def test_a_cookie_that_this_service_did_not_make_is_nobody(browser: Visiting) -> None:
    for value in ("", "x", secrets.token_urlsafe(32), digest_of("x"), "a" * 5000, '"'):
        browser.cookies[SESSION_COOKIE] = value
        assert browser.ask("GET", "/account").status_code == 303


def test_signing_out_ends_the_session_and_not_only_the_cookie(browser: Visiting) -> None:
    browser.sign_in("analyst")
    kept = browser.cookies[SESSION_COOKIE]
    browser.post("/sign-out", {}, page="/account")
    assert SESSION_COOKIE not in browser.cookies
    browser.cookies[SESSION_COOKIE] = kept
    assert browser.ask("GET", "/account").status_code == 303


def test_who_is_shut_out_is_signed_out_at_once(service: Service, application: Visiting) -> None:
    service.people.add("mallory", shown="Mallory", roles=[ServiceRole.ANALYST], accounts=["hospital/heart"])
    browser = application.other().sign_in("mallory")
    person = service.people.get("mallory")
    assert person is not None
    secret, _ = service.tokens.make(person, label="x", roles=[ServiceRole.ANALYST], accounts=[], days=1)
    assert browser.ask("GET", "/account").status_code == 200
    service.people.change("mallory", roles=[ServiceRole.ANALYST], accounts=[], closed=True)
    assert browser.ask("GET", "/account").status_code == 303
    assert application.other().ask("GET", "/", headers={"authorization": f"Bearer {secret}"}).status_code == 401


def test_a_session_ends_after_a_while(service: Service, browser: Visiting, monkeypatch: pytest.MonkeyPatch) -> None:
    browser.sign_in("analyst")
    start = service.now()
    for seconds, status in ((3_500, 200), (7_000, 200), (11_000, 303)):
        monkeypatch.setattr(service.sessions, "_now", lambda seconds=seconds: start + seconds)
        assert browser.ask("GET", "/account").status_code == status, seconds
    longest = service.settings.session_minutes * 60
    monkeypatch.setattr(service.sessions, "_now", lambda: start)
    browser.sign_in("analyst")
    for step in range(1, longest // 3_000):
        monkeypatch.setattr(service.sessions, "_now", lambda step=step: start + step * 3_000)
        assert browser.ask("GET", "/account").status_code == 200
    monkeypatch.setattr(service.sessions, "_now", lambda: start + longest + 1)
    assert browser.ask("GET", "/account").status_code == 303


def test_what_cannot_be_undone_asks_for_a_sign_in_of_the_last_minutes(
    service: Service, browser: Visiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.sign_in("ada")
    form = {"label": "weekly", "roles": "analyst", "accounts": "", "days": "7"}
    start = service.now()
    monkeypatch.setattr(service.sessions, "_now", lambda: start + 1_200)
    answer = browser.post("/account/tokens", form, page="/account")
    assert (answer.status_code, answer.headers["location"]) == (303, "/confirm?next=%2Faccount%2Ftokens")
    assert service.tokens.of("ada") == ()
    before = browser.cookies[SESSION_COOKIE]
    assert browser.post("/confirm", {"password": "wrong"}, page="/confirm").status_code == 403
    assert browser.post("/confirm", {"password": PASSWORD}, page="/confirm").status_code == 303
    assert browser.cookies[SESSION_COOKIE] != before
    assert service.sessions.find(before) is None
    answer = browser.post("/account/tokens", form, page="/account")
    assert answer.status_code == 201
    assert answer.text.count(PREFIX) == 1
    assert PREFIX not in browser.get("/account").text
    service.tokens.revoke("ada", service.tokens.of("ada")[0].number)


# -------------------------------------------------------------------------------------------------- names and words


def test_a_wrong_name_and_a_wrong_password_look_alike(application: Visiting) -> None:
    texts = []
    for login, password in (("ada", "wrong password"), ("nobody", PASSWORD), ("board", PASSWORD)):
        browser = application.other()
        token = browser.form_token()
        answer = browser.post("/sign-in", {"login": login, "password": password})
        texts.append((answer.status_code, answer.text.replace(f'value="{login}"', "").replace(token, "")))
    assert len(set(texts)) == 1
    assert texts[0][0] == 403


def test_passwords_are_kept_by_argon2id() -> None:
    kept = product_hasher().hash(PASSWORD)
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=1$")
    assert product_hasher().verify(kept, PASSWORD)


def test_a_name_has_a_few_tries(application: Visiting) -> None:
    browser = application.other()
    statuses = [browser.post("/sign-in", {"login": "ada", "password": "wrong"}).status_code for _ in range(10)]
    assert statuses == [403] * 8 + [429] * 2
    assert browser.post("/sign-in", {"login": "ada", "password": PASSWORD}).status_code == 429


@pytest.mark.parametrize(
    "address", ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere.example", "javascript:x", "/\r\nx: y"]
)
def test_after_signing_in_one_stays_here(address: str, browser: Visiting) -> None:
    answer = browser.post("/sign-in", {"login": "ada", "password": PASSWORD, "next": address})
    assert answer.headers["location"] == "/"


def test_a_link_works_once_and_only_by_its_button(service: Service, browser: Visiting) -> None:
    secret = service.sessions.new_link("analyst")
    assert browser.get(f"/enter?secret={secret}").status_code == 200
    assert SESSION_COOKIE not in browser.cookies
    assert browser.post("/enter", {"secret": secret}).status_code == 303
    assert "The analyst" in browser.get("/account").text
    assert browser.other().post("/enter", {"secret": secret}).status_code == 403


# ----------------------------------------------------------------------------------------------------------- tokens


def test_a_token_opens_what_programs_may_open_and_nothing_else(service: Service, application: Visiting) -> None:
    admin = service.people.get("admin")
    assert admin is not None
    secret, _ = service.tokens.make(admin, label="monitor", roles=[ServiceRole.ADMIN], accounts=[], days=1)
    matrix, open_to = matrix_of(areas()), by_token(areas())
    for route in routes_of(areas()):
        if "GET" not in route.methods or ServiceRole.ADMIN not in matrix[route.name]:
            continue
        address = route.path_format.format(**dict.fromkeys(route.param_convertors, "1"))
        status = application.other().ask("GET", address, headers={"authorization": f"Bearer {secret}"}).status_code
        assert (status not in (401, 403)) is (route.name in open_to), route.name
    assert application.other().ask("GET", "/metrics").status_code == 303


def test_a_token_has_its_roles_and_never_more_than_its_owner(service: Service, application: Visiting) -> None:
    service.people.add("both", shown="Both", roles=[ServiceRole.ADMIN, ServiceRole.ANALYST], accounts=["hospital/*"])
    person = service.people.get("both")
    assert person is not None
    analyst, _ = service.tokens.make(
        person, label="a", roles=[ServiceRole.ANALYST], accounts=["hospital/heart"], days=1
    )
    admin, made = service.tokens.make(person, label="b", roles=[ServiceRole.ADMIN], accounts=[], days=1)

    def metrics(secret: str) -> int:
        return application.other().ask("GET", "/metrics", headers={"authorization": f"Bearer {secret}"}).status_code

    assert (metrics(analyst), metrics(admin)) == (403, 200)
    service.people.change("both", roles=[ServiceRole.ANALYST], accounts=["hospital/*"], closed=False)
    assert metrics(admin) == 403
    service.people.change("both", roles=[ServiceRole.ADMIN], accounts=[], closed=False)
    assert metrics(admin) == 200
    service.tokens.revoke("someone else", made.number)
    assert metrics(admin) == 200
    service.tokens.revoke("both", made.number)
    assert metrics(admin) == 401


def test_no_token_is_made_beyond_ones_own_rights(service: Service) -> None:
    person = service.people.get("ada")
    assert person is not None
    for said in (
        {"roles": [ServiceRole.BOARD]},
        {"roles": []},
        {"accounts": ["hospital"]},
        {"accounts": ["hospital/heart/stents"]},
        {"days": 0},
        {"days": 400},
    ):
        with pytest.raises((Refused, ValueError), match="none was made"):
            service.tokens.make(
                person,
                **({"label": "x", "roles": [ServiceRole.ANALYST], "accounts": [], "days": 1} | said),  # type: ignore[arg-type]
            )
    assert not charges(person.accounts, "hospital/heart/stents")


def test_a_token_ends(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    person = service.people.get("ada")
    assert person is not None
    secret, made = service.tokens.make(person, label="x", roles=[ServiceRole.ANALYST], accounts=[], days=1)
    assert service.tokens.find(secret) is not None
    monkeypatch.setattr(service.tokens, "_now", lambda: made.ends + 1)
    assert service.tokens.find(secret) is None


@pytest.mark.parametrize("said", ["Bearer", "Bearer x", "Basic YWRhOng=", "", f"Bearer {PREFIX}x"])
def test_a_bad_authorization_is_refused_also_where_a_session_would_do(said: str, browser: Visiting) -> None:
    browser.sign_in("admin")
    answer = browser.ask("GET", "/account", headers={"authorization": said})
    assert answer.status_code == 401


# --------------------------------------------------------------------------------------------- headers, sizes, paths


@pytest.mark.parametrize("host", ["elsewhere.example", "127.0.0.1", "127.0.0.1:8401", f"{HOST}.x", f"{HOST},x", ""])
def test_another_host_is_not_served(host: str, browser: Visiting) -> None:
    assert browser.ask("GET", "/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    "header",
    [
        *("x-remote-user", "remote-user", "x-forwarded-user", "x-authenticated-user", "x-user", "x-forwarded-email"),
        *("x-forwarded-for", "x-real-ip", "forwarded", "x-forwarded-host", "x-original-url", "x-rewrite-url"),
        *("x-http-method-override", "x-forwarded-prefix", "x-forwarded-proto"),
    ],
)
def test_who_asks_and_for_what_is_read_from_no_header(header: str, browser: Visiting) -> None:
    plain = browser.ask("GET", "/account")
    for value in ("admin", "127.0.0.1", "https", "/admin", "elsewhere.example", "for=127.0.0.1;host=elsewhere.example"):
        answer = browser.ask("GET", "/account", headers={header: value})
        assert (answer.status_code, answer.headers["location"]) == (303, plain.headers["location"])
        assert "elsewhere.example" not in browser.ask("GET", "/sign-in", headers={header: value}).text


def test_tries_are_not_counted_by_a_header(application: Visiting) -> None:
    browser = application.other()
    for place in range(8):
        headers = {"x-forwarded-for": f"10.0.0.{place}"}
        browser.post("/sign-in", {"login": "ada", "password": "wrong"}, headers=headers)
    answer = browser.post("/sign-in", {"login": "ada", "password": "x"}, headers={"x-forwarded-for": "10.9.9.9"})
    assert answer.status_code == 429


def test_a_body_that_is_too_large_is_not_read(browser: Visiting) -> None:
    browser.sign_in("ada")
    token = browser.form_token("/account")
    body = f"{FORM_FIELD}={token}&label=".encode() + b"x" * 2**20
    form = {"origin": ORIGIN, "content-type": "application/x-www-form-urlencoded"}
    assert browser.ask("POST", "/account/tokens", content=body, headers=form).status_code == 413

    async def chunks():  # type: ignore[no-untyped-def]
        for _ in range(40):
            yield b"x" * 2**15

    assert browser.ask("POST", "/account/tokens", content=chunks(), headers=form).status_code == 413
    for stated in ("-1", "1e9", "99999999999999999999", "x"):
        answer = browser.ask("POST", "/account/tokens", content=b"", headers=form | {"content-length": stated})
        assert answer.status_code == 413


def test_who_may_not_send_a_body_is_refused_before_it_is_read(browser: Visiting) -> None:
    read = []

    async def chunks():  # type: ignore[no-untyped-def]
        for place in range(1000):
            read.append(place)
            yield b"x" * 2**16

    headers = {"origin": ORIGIN, "content-type": "multipart/form-data; boundary=x"}
    browser.sign_in("analyst")
    assert browser.ask("POST", "/data/new", content=chunks(), headers=headers).status_code == 403
    assert len(read) <= 1


@pytest.mark.parametrize(
    "address",
    [
        *("/static/../service.toml", "/static/%2e%2e/%2e%2e/ledger.key", "/data/..%2f..%2fledger.key", "/%00", "/.git"),
        *("/ledger.key", "/data/%2e%2e", "//etc/passwd", "/admin/people/..", "/static/style.css/../../app.py"),
    ],
)
def test_no_path_leads_to_a_file(address: str, application: Visiting, service: Service) -> None:
    browser = application.other().sign_in("steward")
    answer = browser.ask("GET", address)
    assert answer.status_code in (303, 403, 404, 405), address
    for secret in ("PRIVATE KEY", "def make_app", "root:x"):
        assert secret not in answer.text
    assert str(service.folder) not in answer.text


@pytest.mark.parametrize("address", ["/", "/nowhere", "/account", "/static/style.css", "/alive", "/sign-in"])
def test_every_answer_has_the_headers(address: str, browser: Visiting) -> None:
    headers = browser.ask("GET", address).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "*" not in policy
    assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
    assert "server" not in headers


# ------------------------------------------------------------------------------------------------------ logs, errors


def test_secrets_and_what_was_typed_stand_in_no_log_and_no_page(
    service: Service, application: Visiting, caplog: pytest.LogCaptureFixture
) -> None:
    canary = f"canary{secrets.token_hex(8)}"
    browser = application.other()
    with caplog.at_level(logging.DEBUG):
        texts = [browser.post("/sign-in", {"login": "ada", "password": canary}).text]
        browser.ask("GET", f"/nowhere/{canary}?x={canary}")
        texts.append(browser.ask("GET", "/account", headers={"authorization": f"Bearer {canary}"}).text)
        texts.append(browser.other().post("/enter", {"secret": canary}).text)
        browser.sign_in("ada")
        texts.append(browser.post("/account/tokens", {"label": "", "roles": canary}, page="/account").text)
        texts.append(browser.post("/account/password", {"now": canary, "new": canary}, page="/account").text)
    assert not [text for text in texts if canary in text]
    shown = [RequestLines().format(record) for record in caplog.records if record.name == LOGGER.name]
    assert len(shown) >= 6
    assert canary not in "".join(shown)
    assert all(set(json.loads(line)) <= {"at", "level", *FACTS} for line in shown)
    stored = (service.folder / "service.db").read_bytes() + (service.folder / "service.db-wal").read_bytes()
    assert canary.encode() not in stored
    assert browser.cookies[SESSION_COOKIE].encode() not in stored
    assert PASSWORD.encode() not in stored


def test_a_bug_shows_neither_its_words_nor_a_row(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    from types import ModuleType

    from fastapi import APIRouter

    from sfumato.server.app import make_app

    canary = f"canary{secrets.token_hex(8)}"
    made, router = ModuleType("pages"), APIRouter()

    @router.get("/bug", name="bug")
    def bug() -> None:
        raise KeyError(canary)

    made.router, made.ROUTES = router, {"bug": frozenset(ServiceRole)}  # type: ignore[attr-defined]
    browser = Visiting(service, make_app(service, more=[made]))
    with caplog.at_level(logging.DEBUG):
        answer = browser.ask("GET", "/bug")
    assert answer.status_code == 500
    assert canary not in answer.text
    assert canary not in "".join(RequestLines().format(record) for record in caplog.records)
    assert "KeyError" in "".join(RequestLines().format(record) for record in caplog.records)


# --------------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "hospital.example"])  # noqa: S104 - refused
def test_other_machines_need_tls(host: str) -> None:
    with pytest.raises(Refused, match="in the open"):
        ServiceSettings(host=host)


def test_behind_tls_cookies_and_origins_are_those_of_https(tmp_path) -> None:  # type: ignore[no-untyped-def]
    settings = ServiceSettings(proxied=True, names=("hospital.example",))
    assert settings.origins == {"https://hospital.example"}
    assert settings.address == "https://hospital.example/"
    assert ServiceSettings(host="::1").loopback
