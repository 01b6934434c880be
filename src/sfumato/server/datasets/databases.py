"""Databases that an administrator named: stewards declare their tables by name, and see no address and no password."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from sfumato.core.interrupts import attempt
from sfumato.engines.sources import stored_tables
from sfumato.errors import InvalidInput, NotDeclared, Refused

__all__ = ["SourceDatabases", "check_apart", "check_database", "is_table"]

SCHEME = "database:"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
KINDS = ("postgresql://", "postgres://", "duckdb:///")
POSTGRESQL = re.compile(r"(postgres|postgresql)(\+[a-z0-9]+)?://", re.IGNORECASE)
OWN = frozenset({"restated_datasets", "research_projects", "research_trials", "stream_points"})
"""Tables of every service, by names that no other database is likely to have."""
LEDGER = frozenset({"record", "head", "balance", "edition", "charge"})
"""Tables of every ledger, which a database of it has all of."""


class SourceDatabases:
    """The databases of ``service.toml``, by their names.

    Guarantee: a place names a database of the settings and a table, and nothing else; an address is put together for
    whoever reads, and is in no table of the service. Assumes: the administrator chose users that may read the tables
    that stewards may declare, and no others.
    """

    def __init__(self, named: Mapping[str, str]) -> None:
        self._named = dict(named)

    def __repr__(self) -> str:
        return f"SourceDatabases({', '.join(self._named)})"

    @property
    def names(self) -> tuple[str, ...]:
        """What stewards choose from."""
        return tuple(self._named)

    def tables(self, name: str) -> tuple[str, ...] | None:
        """The stored tables of a database, from its catalogue; None where it cannot be asked now. Reads no row."""
        address = self._address(name)
        found = attempt(lambda: stored_tables(address))
        return found if isinstance(found, tuple) else None

    def place(self, name: str, table: str) -> str:
        """How a table is kept in the service's tables: without an address."""
        parts = table.strip().split(".")
        if not 1 <= len(parts) <= 2 or not all(parts) or len(table) > 300 or not table.isprintable():
            raise InvalidInput("a table is named as it is in its database, such as public.visits; nothing was done.")
        self._address(name)
        return f"{SCHEME}{name}/{table.strip()}"

    def opened(self, place: str) -> str:
        """A place as an engine opens it: the address of the database with the table; a path is left as it is.

        A place of a database that the settings no longer name cannot be opened, which is said when it is read.
        """
        if not is_table(place):
            return place
        name, _, table = place.removeprefix(SCHEME).partition("/")
        address = self._named.get(name)
        if address is None:
            return place
        plain, _, asked = address.partition("?")
        return f"{plain}?{asked}&{_table(table)}" if asked else f"{plain}?{_table(table)}"

    def check_foreign(self, place: str) -> None:
        """Refuse a table of a database that holds tables of a service or of a ledger; its catalogue alone is asked.

        Assumes: the user that settings name sees there all the tables that it may read, and few of them.
        """
        name = place.removeprefix(SCHEME).partition("/")[0]
        there = {table.rpartition(".")[2] for table in stored_tables(self._address(name))}
        if there & OWN or there >= LEDGER:
            raise Refused(
                f"the database {name!r} holds tables of a service or of its ledger, and those are no data; nothing was "
                "declared. An administrator names a database of its own in the settings."
            )

    def _address(self, name: str) -> str:
        if name not in self._named:
            raise NotDeclared("there is no database of this name in the settings of the service; nothing was done.")
        return self._named[name]


def is_table(place: str) -> bool:
    """Whether a place is a table of a database that the settings name."""
    return place.startswith(SCHEME)


def check_database(name: object, address: object) -> None:
    """Refuse a name or an address that settings cannot have; the address is never quoted."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidInput("a database is named by letters, digits and hyphens; the service was not started.")
    if not isinstance(address, str) or not address.startswith(KINDS):
        raise InvalidInput(
            f"the address of the database {name!r} starts with {', '.join(KINDS)}; the service was not started."
        )
    if address.startswith(KINDS[:2]) and not _readable(address):
        raise InvalidInput(f"the address of the database {name!r} cannot be read; the service was not started.")
    if "table=" in address.partition("?")[2]:
        raise InvalidInput(
            f"the address of the database {name!r} names a table, which stewards do; the service was not started."
        )


def check_apart(named: Mapping[str, str], own: Iterable[str]) -> None:
    """Refuse a database of stewards that holds the tables of the service or of its ledger, by what addresses say.

    One that says it otherwise is found by its tables, when one of them is declared.
    """
    taken = {_whose(url) for url in own if POSTGRESQL.match(url)}
    for name, address in named.items():
        if address.startswith(KINDS[:2]) and _whose(address) in taken:
            raise Refused(
                f"the database {name!r} is the one that holds the service's own tables or its ledger, and stewards "
                "could declare them as data; the service was not started. Keep them in a database of their own."
            )


def _readable(address: str) -> bool:
    try:
        return bool(_whose(address)[2])
    except ValueError:
        return False


def _whose(address: str) -> tuple[str, int, str]:
    """The host, the port and the name of a database of PostgreSQL."""
    found = urlsplit(address)
    asked = {name: values[-1] for name, values in parse_qs(found.query).items()}
    host = asked.get("host") or unquote(found.hostname or "")
    port = asked.get("port") or found.port or 5432
    return host.lower().rstrip("."), int(port), asked.get("dbname") or unquote(found.path).strip("/")


def _table(table: str) -> str:
    return urlencode({"table": table}, quote_via=quote)
