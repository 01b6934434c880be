"""Requests that a coordinator signed, each for one site: whatever carries them, a site knows who asks."""

from collections.abc import Mapping
from hashlib import blake2b

from sfumato.core.signature import SigningKey, signature_holds
from sfumato.errors import Refused
from sfumato.federated.transports import Transport, ask_all

__all__ = ["SignedRequests", "opened_request", "signed_request"]

MAGIC = b"sfumato request to a site 1\n"
_SIGNATURE, _KEY = 64, 32


def signed_request(key: SigningKey, site: str, request: bytes) -> bytes:
    """A request to the site with this public key, signed.

    >>> key, site = SigningKey.new(), SigningKey.new().public_text
    >>> opened_request(signed_request(key, site, b"vote"), site=site, coordinator=key.public_text)
    b'vote'
    """
    own = bytes.fromhex(site)
    return MAGIC + own + bytes.fromhex(key.sign(_said(own, request))) + request


def opened_request(data: bytes, *, site: str, coordinator: str) -> bytes:
    """What the site is asked; refused where the coordinator did not sign that for this site.

    Where no ``coordinator`` is known, what nobody signed is taken too: sites of one process.
    """
    if not data.startswith(MAGIC):
        if coordinator:
            raise Refused("this request is not signed by the coordinator of the agreement; nothing was sent.")
        return data
    rest = memoryview(data)[len(MAGIC) :]
    own, signature, request = bytes(rest[:_KEY]), rest[_KEY : _KEY + _SIGNATURE], bytes(rest[_KEY + _SIGNATURE :])
    if own.hex() != site:
        raise Refused("this request is for another site; nothing was sent.")
    if coordinator and not signature_holds(coordinator, signature.hex(), _said(own, request)):
        raise Refused("this request is not signed by the coordinator of the agreement; nothing was sent.")
    return request


class SignedRequests:
    """A transport whose requests are signed with a coordinator's key before another one carries them."""

    def __init__(self, transport: Transport, key: SigningKey) -> None:
        self._transport, self._key = transport, key

    def ask(self, site: str, request: bytes) -> bytes | None:
        """What a site answers; None where it does not."""
        return self._transport.ask(site, signed_request(self._key, site, request))

    def ask_all(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        """What each site answers to its own request."""
        signed = {site: signed_request(self._key, site, request) for site, request in requests.items()}
        return ask_all(self._transport, signed)


def _said(site: bytes, request: bytes) -> bytes:
    return MAGIC + site + blake2b(request, digest_size=32).digest()
