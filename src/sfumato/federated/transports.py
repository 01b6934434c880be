"""How a coordinator reaches sites: bytes to a site, and its answer or nothing."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from sfumato.errors import SfumatoError

__all__ = ["InProcess", "ReachedSite", "Transport", "TransportToAll", "ask_all"]


class ReachedSite(Protocol):
    """A site: for questions about tables, or for training runs."""

    @property
    def public_key(self) -> str:
        """The key that it is known by."""
        ...

    def answer(self, request: bytes) -> bytes:
        """What it answers to what a coordinator sent."""
        ...


class Transport(Protocol):
    """Carries bytes to sites and back; sites are named by their public keys."""

    def ask(self, site: str, request: bytes) -> bytes | None:
        """What a site answers; None where it does not."""
        ...


@runtime_checkable
class TransportToAll(Transport, Protocol):
    """A transport that asks several sites at the same time, which need not wait for each other."""

    def ask_all(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        """What each site answers to its own request; None where it does not."""
        ...


def ask_all(transport: Transport, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
    """Ask each site its own request: all at once where the transport can, else one after the other."""
    if isinstance(transport, TransportToAll):
        return transport.ask_all(requests)
    return {site: transport.ask(site, request) for site, request in requests.items()}


class InProcess:
    """All sites in one process, for tests, teaching and planning.

    ``silent`` says of which sites, by public key, how many answers arrive before they fall silent.
    """

    def __init__(self, sites: Sequence[ReachedSite], *, silent: Mapping[str, int] | None = None) -> None:
        self._sites = {site.public_key: site for site in sites}
        self._silent = dict(silent or {})

    def ask(self, site: str, request: bytes) -> bytes | None:
        """What a site answers; None where it refuses, or has fallen silent."""
        if site not in self._sites or self._silent.get(site) == 0:
            return None
        if site in self._silent:
            self._silent[site] -= 1
        try:
            return self._sites[site].answer(request)
        except SfumatoError:
            return None
