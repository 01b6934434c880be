"""Signing in at an institution's provider: OpenID Connect, code flow with PKCE.

Who somebody is follows from issuer and subject of a signed token alone. Names, roles and addresses of mail that a
provider states are not looked at: what people may do is said here.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any  # documents of a provider
from urllib.parse import urlsplit

from sfumato.errors import Refused, SfumatoError
from sfumato.server.identity.secrets import new_secret, same
from sfumato.server.settings import OidcSettings

__all__ = ["Begun", "Proven", "Provider", "ProviderFailed"]

ALGORITHMS = ["RS256", "PS256", "ES256", "ES384", "EdDSA"]
"""Signatures by a key of the provider's own: none that is shared with clients, and not "none"."""
MOST_BEGUN, LASTS, LEEWAY = 1_000, 600.0, 60
PATIENCE = 10.0


class ProviderFailed(SfumatoError):
    """The provider did not answer, or not as the protocol has it; nobody was signed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in that was begun in a browser: what has to come back, and where that browser goes afterwards."""

    browser: str
    nonce: str
    verifier: str
    to: str
    again: bool
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """Whom the provider vouches for, and when they proved it there, if it says so."""

    issuer: str
    subject: str
    proven_at: float | None
    begun: Begun


class Provider:
    """One provider. Safe for threads.

    Guarantee: a sign-in comes back once, to the browser that began it, within ten minutes, with a token that the
    provider signed for this client and this sign-in. Assumes: the issuer is reached by TLS, or on this machine.
    """

    def __init__(self, settings: OidcSettings, *, back: str, now: Callable[[], float]) -> None:
        self._settings, self._back, self._now = settings, back, now
        self._begun: OrderedDict[str, Begun] = OrderedDict()
        self._turn = threading.Lock()
        place = urlsplit(settings.issuer)
        if place.scheme != "https" and place.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise Refused("the issuer of sign-ins is not reached by https; the service was not started.")

    def begin(self, *, browser: str, to: str, again: bool) -> str:
        """Where a browser goes to sign in; ``again`` asks the provider for a new proof."""
        state, begun = new_secret(), self._new(browser, to, again=again)
        with self._turn:
            self._begun[state] = begun
            while len(self._begun) > MOST_BEGUN:
                self._begun.popitem(last=False)
        with self._client() as client:
            fresh = {"prompt": "login", "max_age": "0"} if again else {}
            address, _ = client.create_authorization_url(
                self._told(client)["authorization_endpoint"],
                state=state,
                nonce=begun.nonce,
                code_verifier=begun.verifier,
                **fresh,
            )
        return str(address)

    def finish(self, *, browser: str, state: str, code: str) -> Proven:
        """Whom the provider vouches for, from what came back."""
        with self._turn:
            begun = self._begun.pop(state, None)
        if begun is None or not same(begun.browser, browser) or begun.at < self._now() - LASTS:
            raise ProviderFailed("this sign-in was not begun in this browser, or too long ago; nobody was signed in.")
        with self._client() as client:
            told = self._told(client)
            answer = self._asked(
                lambda: client.fetch_token(
                    told["token_endpoint"], code=code, code_verifier=begun.verifier, grant_type="authorization_code"
                )
            )
            keys = self._document(client, told["jwks_uri"])
        return self._proven(str(answer.get("id_token", "")), keys, begun)

    def _new(self, browser: str, to: str, *, again: bool) -> Begun:
        return Begun(
            browser=browser,
            nonce=new_secret(),
            verifier=new_secret() + new_secret(),
            to=to,
            again=again,
            at=self._now(),
        )

    def _client(self) -> Any:
        from authlib.integrations.httpx_client import OAuth2Client

        file = self._settings.secret_file
        secret = None if file is None else file.read_text("utf-8").strip()
        return OAuth2Client(
            self._settings.client,
            secret,
            scope="openid",
            redirect_uri=self._back,
            code_challenge_method="S256",
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            timeout=PATIENCE,
            follow_redirects=False,
            trust_env=False,
        )

    def _told(self, client: Any) -> Mapping[str, Any]:
        """What the provider says of itself; one that names itself otherwise is not believed."""
        told = self._document(client, f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration")
        wanted = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        own = urlsplit(self._settings.issuer).scheme
        if told.get("issuer") != self._settings.issuer or any(
            urlsplit(str(told.get(name, ""))).scheme != own for name in wanted
        ):
            raise ProviderFailed("the provider does not describe itself as its issuer; nobody was signed in.")
        return told

    def _document(self, client: Any, address: str) -> Mapping[str, Any]:
        def asked() -> Mapping[str, Any]:
            answer = client.request("GET", address, withhold_token=True)
            answer.raise_for_status()
            found: Mapping[str, Any] = answer.json()
            return found

        return self._asked(asked)

    def _asked(self, work: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Ask the provider; whatever goes wrong is told in words of our own."""
        import httpx
        from authlib.integrations.base_client import OAuthError

        try:
            found = work()
        except (httpx.HTTPError, OAuthError, ValueError):
            raise ProviderFailed("the provider of sign-ins gave no usable answer; nobody was signed in.") from None
        if not isinstance(found, dict):
            raise ProviderFailed("the provider of sign-ins gave no usable answer; nobody was signed in.")
        return found

    def _proven(self, token: str, keys: Mapping[str, Any], begun: Begun) -> Proven:
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        now = int(self._now())
        rules = jwt.JWTClaimsRegistry(
            now=now,
            leeway=LEEWAY,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.client},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": begun.nonce},
        )
        try:
            known = KeySet.import_key_set({"keys": list(keys["keys"])})
            claims = jwt.decode(token, known, algorithms=ALGORITHMS).claims
            rules.validate(claims)
        except (JoseError, ValueError, KeyError, TypeError):
            raise ProviderFailed("the token of the provider does not hold; nobody was signed in.") from None
        audiences = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if len(audiences) > 1 and claims.get("azp") != self._settings.client:
            raise ProviderFailed("the token of the provider is for several clients; nobody was signed in.")
        proven_at = claims.get("auth_time")
        if proven_at is not None and not isinstance(proven_at, int):
            raise ProviderFailed("the token of the provider does not hold; nobody was signed in.")
        if begun.again and (proven_at is None or proven_at < begun.at - LEEWAY):
            raise ProviderFailed("the provider did not ask for a new proof; nobody was signed in.")
        return Proven(
            issuer=self._settings.issuer,
            subject=str(claims["sub"]),
            proven_at=None if proven_at is None else float(proven_at),
            begun=begun,
        )
