"""Signing in at a provider: only what it signed for this client, this browser and this sign-in counts."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import OctKey, RSAKey

from sfumato.errors import Refused
from sfumato.server.identity.oidc import Provider
from sfumato.server.rendering import SESSION_COOKIE
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.settings import FILE, OidcSettings
from tests.server.provider import CLIENT, LyingProvider, provider
from tests.server.visiting import Visiting


@pytest.fixture
def lying() -> Iterator[LyingProvider]:
    with provider() as made:
        yield made


@pytest.fixture
def browser(lying: LyingProvider, tmp_path: Path) -> Iterator[Visiting]:
    Service.create(tmp_path / "service").close()
    with (tmp_path / "service" / FILE).open("a", encoding="utf-8") as file:
        file.write(f'[oidc]\nissuer = "{lying.issuer}"\nclient = "{CLIENT}"\nlabel = "the university"\n')
    service = Service.open(tmp_path / "service")
    service.people.add("rosa", shown="Rosa", roles=[ServiceRole.BOARD], issuer=lying.issuer, subject=lying.subject)
    yield Visiting(service)
    service.close()


def gone(browser: Visiting, query: str = "") -> str:
    browser.get("/sign-in")
    answer = browser.ask("GET", f"/sign-in/provider{query}")
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def came_back(browser: Visiting, said: dict[str, str]) -> int:
    return browser.ask("GET", "/sign-in/back", params=said).status_code


def test_whom_the_provider_vouches_for_is_signed_in(browser: Visiting, lying: LyingProvider) -> None:
    assert "Continue with the university" in browser.get("/sign-in").text
    address = gone(browser, "?next=/account")
    asked = {name: said[-1] for name, said in parse_qs(urlsplit(address).query).items()}
    assert (asked["response_type"], asked["client_id"], asked["scope"]) == ("code", CLIENT, "openid")
    assert asked["redirect_uri"] == "http://127.0.0.1:8400/sign-in/back"
    assert asked["code_challenge_method"] == "S256"
    answer = browser.ask("GET", "/sign-in/back", params=lying.signed_in(address))
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    assert "Rosa" in browser.get("/account").text


def test_a_sign_in_comes_back_once_and_to_its_own_browser(browser: Visiting, lying: LyingProvider) -> None:
    said = lying.signed_in(gone(browser))
    other = browser.other()
    other.get("/sign-in")
    assert came_back(other, said) == 403
    assert came_back(browser, said) == 403  # it was used up
    said = lying.signed_in(gone(browser))
    assert came_back(browser, said) == 303
    assert came_back(browser, said) == 403


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://elsewhere.example"},
        {"aud": "another client"},
        {"aud": [CLIENT, "another"]},
        {"aud": None},
        {"nonce": "another"},
        {"nonce": None},
        {"exp": 1},
        {"exp": None},
        {"iat": None},
        {"sub": None},
        {"sub": ""},
        {"auth_time": "now"},
    ],
)
def test_a_token_that_does_not_hold_signs_nobody_in(
    claims: dict[str, object], browser: Visiting, lying: LyingProvider
) -> None:
    lying.claims = claims
    assert came_back(browser, lying.signed_in(gone(browser))) == 403
    assert SESSION_COOKIE not in browser.cookies


def test_a_token_of_another_key_or_of_a_shared_one_signs_nobody_in(browser: Visiting, lying: LyingProvider) -> None:
    own = lying.key
    lying.known, lying.key = own, RSAKey.generate_key(2048, {"kid": "one"}, auto_kid=False)
    assert came_back(browser, lying.signed_in(gone(browser))) == 403
    lying.key, lying.algorithm = OctKey.import_key(b"x" * 32, {"kid": "one"}), "HS256"
    assert came_back(browser, lying.signed_in(gone(browser))) == 403
    lying.key, lying.known, lying.algorithm = own, None, "RS256"
    assert came_back(browser, lying.signed_in(gone(browser))) == 303


def test_who_is_not_known_here_stays_out(browser: Visiting, lying: LyingProvider) -> None:
    lying.subject, lying.claims = "somebody-else", {"email": "rosa@example.org", "preferred_username": "rosa"}
    said = lying.signed_in(gone(browser))
    answer = browser.ask("GET", "/sign-in/back", params=said)
    assert answer.status_code == 403
    assert "not known here yet" in answer.text


def test_a_provider_that_names_itself_otherwise_is_not_believed(browser: Visiting, lying: LyingProvider) -> None:
    lying.as_issuer = "https://elsewhere.example"
    browser.get("/sign-in")
    assert browser.ask("GET", "/sign-in/provider").status_code == 503


def test_before_a_vote_the_provider_has_to_ask_anew(browser: Visiting, lying: LyingProvider) -> None:
    lying.claims = {"auth_time": 1_000_000}
    assert came_back(browser, lying.signed_in(gone(browser))) == 303
    session = browser.service.sessions.find(browser.cookies[SESSION_COOKIE])
    assert session is not None
    assert not browser.service.sessions.is_confirmed(session)  # an old proof is none of the last minutes
    assert "prompt=login" in (address := gone(browser, "?again=1&next=/account"))
    assert came_back(browser, lying.signed_in(address)) == 403  # it did not ask
    lying.claims = {}
    assert came_back(browser, lying.signed_in(gone(browser, "?again=1"))) == 303
    session = browser.service.sessions.find(browser.cookies[SESSION_COOKIE])
    assert session is not None
    assert browser.service.sessions.is_confirmed(session)


def test_an_issuer_elsewhere_is_reached_by_tls_alone() -> None:
    with pytest.raises(Refused, match="https"):
        Provider(OidcSettings(issuer="http://id.example", client="x"), back="x", now=lambda: 0.0)
