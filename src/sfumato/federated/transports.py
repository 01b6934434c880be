"""How a coordinator reaches sites: bytes to a site, and its answer or nothing."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sfumato.errors import SfumatoError
from sfumato.federated.hospital import Hospital

__all__ = ["InProcess", "Transport"]


class Transport(Protocol):
    """Carries bytes to sites and back; sites are named by their public keys."""

    def ask(self, site: str, request: bytes) -> bytes | None:
        """What a site answers; None where it does not."""
        ...


class InProcess:
    """All sites in one process, for tests, teaching and planning.

    ``silent`` says of which sites, by public key, how many answers arrive before they fall silent.
    """

    def __init__(self, sites: Sequence[Hospital], *, silent: Mapping[str, int] | None = None) -> None:
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
