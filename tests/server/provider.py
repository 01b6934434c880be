"""A provider of sign-ins for tests: it knows one person, and can be told to do each step wrongly."""

import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

__all__ = ["CLIENT", "LyingProvider", "provider"]

CLIENT = "sfumato"


@dataclass
class LyingProvider:
    """What it says, and what it was asked; ``claims`` and ``key`` are what it states in place of the truth."""

    issuer: str = ""
    subject: str = "subject-17"
    key: Any = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}, auto_kid=False))
    known: Any = None
    claims: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    as_issuer: str | None = None
    asked: list[dict[str, str]] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def described(self) -> dict[str, str]:
        return {
            "issuer": self.as_issuer or self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def signed_in(self, address: str) -> dict[str, str]:
        """What the browser brings back after somebody signed in here."""
        asked = {name: said[-1] for name, said in parse_qs(urlsplit(address).query).items()}
        self.asked.append(asked)
        code = f"code-{len(self.asked)}"
        self.codes[code] = asked
        return {"state": asked["state"], "code": code}

    def token(self, form: dict[str, str]) -> dict[str, Any] | None:
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None:
            return None
        challenge = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if challenge != asked["code_challenge"] or asked["code_challenge_method"] != "S256":
            return None
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": self.subject, "iat": now, "exp": now + 300}
        claims |= {"nonce": asked["nonce"], "auth_time": now} | self.claims
        claims = {name: said for name, said in claims.items() if said is not None}
        token = jwt.encode({"alg": self.algorithm, "kid": "one"}, claims, self.key, algorithms=[self.algorithm])
        return {"access_token": "unused", "token_type": "Bearer", "id_token": token}

    def keys(self) -> dict[str, Any]:
        known = self.known or self.key
        return {"keys": [known.as_dict(private=False)]}


@contextmanager
def provider() -> Iterator[LyingProvider]:
    """The provider, on this machine, until the block ends."""
    lying = LyingProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = {"/.well-known/openid-configuration": lying.described, "/keys": lying.keys}.get(self.path)
            self._answer(None if said is None else said())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            self._answer(lying.token({name: said[-1] for name, said in parse_qs(body).items()}))

        def _answer(self, body: dict[str, Any] | None) -> None:
            text = json.dumps(body or {"error": "invalid_grant"}).encode()
            self.send_response(200 if body else 400)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    lying.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield lying
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
