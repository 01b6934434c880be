"""The settings of a service: how it is reached and what it allows, in one small TOML file in its folder."""

import ipaddress
import json
import os
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any  # values of TOML

from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.server.datasets.databases import check_database

__all__ = ["FILE", "OidcSettings", "ServiceSettings"]

FILE = "service.toml"
KIND, VERSION = "service", 1
WRITTEN = (
    *("host", "port", "database", "demo", "title", "publisher", "licence", "access", "region", "proxied", "workers"),
    "slot_seconds",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcSettings:
    """A provider of sign-ins: its issuer, and as whom this service is known there."""

    issuer: str
    client: str
    secret_file: Path | None = None
    """A file with the secret of this client, where it has one."""
    label: str = "OpenID Connect"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How a service is reached, and its limits.

    Guarantee: an address that other machines reach is refused without TLS. ``names`` are the hosts (with their port)
    under which people reach it; any other Host header is refused. ``proxied`` says that a proxy on this machine speaks
    TLS for it. Times in minutes.
    """

    host: str = "127.0.0.1"
    port: int = 8400
    names: tuple[str, ...] = ()
    certificate: Path | None = None
    private_key: Path | None = None
    proxied: bool = False
    database: str = field(default="service.db", repr=False)
    """The service's own tables: a file, or the address of a PostgreSQL database, which may hold a password."""
    databases: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Databases whose tables stewards may declare, each by a name; addresses may hold passwords."""
    demo: bool = False
    title: str = "Sfumato"
    publisher: str | None = None
    licence: str | None = None
    access: str | None = None
    region: str | None = None
    """What the public registry states of whoever publishes, where it is said."""
    idle_minutes: int = 60
    session_minutes: int = 12 * 60
    confirmed_minutes: int = 10
    form_bytes: int = 2**20
    upload_bytes: int = 2**28
    workers: int = 2
    """Processes that read data and answer questions."""
    slot_seconds: int = 10
    """Answers appear at the end of a slot of this length, whatever they took."""
    oidc: OidcSettings | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.private_key is None):
            raise NotDeclared("TLS needs certificate and private_key; the service was not started. Give both.")
        if not self.loopback and self.certificate is None:
            raise Refused(
                f"{self.host} can be reached by other machines, and passwords would cross the network in the open; the "
                "service was not started. Give certificate and private_key, or listen on 127.0.0.1 behind a proxy that "
                "speaks TLS (proxied = true)."
            )
        if not 0 < self.port < 65_536:
            raise InvalidInput("a port is a number from 1 to 65,535; the service was not started.")
        for name, address in self.databases:
            check_database(name, address)
        if not self.names:
            local = ("127.0.0.1", "localhost") if self.loopback else (self.host,)
            object.__setattr__(self, "names", tuple(f"{name}:{self.port}" for name in local))

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def scheme(self) -> str:
        """What people write in front of its name."""
        return "https" if self.proxied or self.certificate is not None else "http"

    @property
    def origins(self) -> frozenset[str]:
        """Where forms of this service come from."""
        return frozenset(f"{self.scheme}://{name}" for name in self.names)

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"{self.scheme}://{self.names[0]}/"

    @classmethod
    def load(cls, folder: Path, **instead: object) -> "ServiceSettings":
        """Read the settings of a folder; ``instead`` holds where no file says otherwise it does."""
        place = folder / FILE
        try:
            said: dict[str, Any] = tomllib.loads(place.read_text("utf-8"))
        except OSError as wrong:
            raise NotDeclared(
                f"there is no service in {folder} ({wrong.strerror}); nothing was started. Make one: sfumato serve "
                "FOLDER --new, or look at one: sfumato serve --demo"
            ) from None
        except ValueError:
            raise InvalidInput(f"{place} is not TOML in UTF-8; the service was not started.") from None
        if (said.pop("kind", None), said.pop("version", None)) != (KIND, VERSION):
            raise InvalidInput(f"{place} is no settings file of this version; the service was not started.")
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(said) - known):
            raise InvalidInput(f"{place} says {unknown[0]!r}, which is no setting; the service was not started.")
        said |= {name: value for name, value in instead.items() if value is not None}
        for name in ("certificate", "private_key"):
            if said.get(name) is not None:
                said[name] = folder / said[name]
        if "oidc" in said:
            provider = dict(said["oidc"])
            if "secret_file" in provider:
                provider["secret_file"] = folder / provider["secret_file"]
            said["oidc"] = OidcSettings(**provider)
        try:
            databases = tuple(dict(said.get("databases", {})).items())
            return cls(**{**said, "names": tuple(said.get("names", ())), "databases": databases})
        except (TypeError, AttributeError):
            raise InvalidInput(f"{place} holds a setting of the wrong type; the service was not started.") from None

    def write(self, folder: Path) -> None:
        """Write what differs from the defaults into a folder; never overwrite a file."""
        lines = [f'kind = "{KIND}"', f"version = {VERSION}"]
        for name in WRITTEN:
            value = getattr(self, name)
            if name in ("host", "port") or value != type(self).__dataclass_fields__[name].default:
                lines.append(f"{name} = {json.dumps(value, ensure_ascii=False)}")
        place = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(place, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
