"""How a coordinator on the command line reaches its sites, and opens its own ledger."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from sfumato.cli.federated_home import AGREEMENT, ROUNDS, FederatedHome
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.federated import Consortium
    from sfumato.federated.transports import Transport
    from sfumato.tables.table import Table
    from sfumato.vault import Vault

__all__ = ["opened", "reached"]


@contextmanager
def reached(home: FederatedHome, patience: float, left: list[str]) -> "Iterator[Transport]":
    """The way to the sites, for the length of a block."""
    from sfumato.federated.file_transport import FileTransport
    from sfumato.federated.http_server import HttpTransport
    from sfumato.federated.http_site import place_of

    paper = home.paper
    if not paper.address:
        yield FileTransport(home.folder, sites=paper.agreement.members, left=left)
        return
    if left:
        raise InvalidInput("--left goes with files; over a network a silent site leaves by itself. Nothing was asked.")
    host, port = place_of(paper.address)
    members = paper.agreement.members.values()
    with HttpTransport(key=home.key, sites=members, host=host, port=port, patience=patience) as transport:
        yield transport


@contextmanager
def opened(home: FederatedHome, way: "Transport | None") -> "Iterator[tuple[Vault, Consortium, Table]]":
    """The vault of a coordinator, its consortium, and the table that sites have in common."""
    from sfumato.engines.expressions import Type
    from sfumato.vault import Vault

    paper, facts = home.paper.agreement, home.schema
    if paper.coordinator != home.key.public_text:
        raise InvalidInput(f"{home.folder / AGREEMENT} names another coordinator; nothing was asked.")
    with home.opened() as book:
        vault = Vault(unit=home.unit, population=facts.population, ledger=book, account=home.account)
        network = vault.consortium(
            sites=paper.members,
            missing=paper.missing,
            colluding=paper.colluding,
            lying=paper.lying,
            sites_per_person=paper.sites_per_person,
            transport=way,
            folder=home.folder / ROUNDS,
        )
        with closing(network):
            whole = [name for name, kind in facts.types.items() if kind is Type.WHOLE]
            yield vault, network, network.table(schema=facts, whole=whole)
