"""Flower carries the bytes of a secure sum: its messages, its client app and its grid, and none of its SecAgg+.

``FlowerTransport`` is a transport as ``sf.consortium(transport=…)`` takes one. Every message is signed by its site and
bound to its round, so that Flower is trusted with nothing: it may lose a message, and an altered one is as none. Run it
in an environment with Flower: ``PYTHONPATH=src python examples/with_flower.py``; NumPy and cryptography come with it.
"""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.core.signature import SigningKey
from sfumato.errors import SfumatoError
from sfumato.federated import Parties, RoundTerms, ServerTrust, SumPhase, SumServer, SumSite
from sfumato.federated.messages import packed, unpacked
from sfumato.noise.sampler import IntArray

RECORD, FIELD = "sfumato", "bytes"


def flower() -> Any:
    """The names of Flower that are used here; ImportError where it is absent."""
    return importlib.import_module("flwr.app"), importlib.import_module("flwr.clientapp")


@dataclass(kw_only=True)
class FlowerTransport:
    """Asks sites over a grid of Flower: ``nodes`` are the numbers of its nodes by the public keys of sites."""

    grid: Any
    nodes: Mapping[str, int]
    timeout: float | None = 60.0

    def ask(self, site: str, request: bytes) -> bytes | None:
        """What a site answers; None where it does not."""
        return self.ask_all({site: request})[site]

    def ask_all(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        """What each site answers to its own request; None where it does not."""
        app, _ = flower()
        sent = [
            app.Message(with_bytes(app, request), dst_node_id=self.nodes[site], message_type="query")
            for site, request in requests.items()
        ]
        answers = {
            one.metadata.src_node_id: bytes_in(one.content)
            for one in self.grid.send_and_receive(sent, timeout=self.timeout)
            if not one.has_error()
        }
        return {site: answers.get(self.nodes[site]) for site in requests}


def client_app(site: Any) -> Any:
    """A client app of Flower that hands requests to a site, such as ``vault.training_site(…)``, and sends answers."""
    app, clients = flower()
    made = clients.ClientApp()

    @made.query()  # type: ignore[untyped-decorator]  # Flower may be absent where types are checked
    def answered(message: Any, context: Any) -> Any:
        del context
        return app.Message(with_bytes(app, site.answer(bytes_in(message.content))), reply_to=message)

    return made


def with_bytes(app: Any, data: bytes) -> Any:
    """A record of Flower that holds some bytes."""
    return app.RecordDict({RECORD: app.ConfigRecord({FIELD: data})})


def bytes_in(content: Any) -> bytes:
    """The bytes that a record holds."""
    return bytes(content.config_records[RECORD][FIELD])


@dataclass(kw_only=True)
class OneSum:
    """A site in one secure sum, as something that answers bytes: the phase, and what the server says in it."""

    terms: RoundTerms
    key: SigningKey
    values: IntArray
    _site: SumSite | None = field(default=None, init=False)

    def answer(self, request: bytes) -> bytes:
        """One step."""
        phase, told = unpacked(request)
        site = self._site or SumSite.begin(self.terms, self.key)
        match SumPhase(phase.decode()):
            case SumPhase.SHARE:
                self._site, message = site.share(told)
            case SumPhase.MASK:
                self._site, message = site.mask(told, self.values)
            case SumPhase.AGREE:
                self._site, message = site.agree(told)
            case SumPhase.REVEAL:
                self._site, message = site.reveal(told)
            case _:
                self._site, message = site, site.sent[0]
        return message


def summed(transport: FlowerTransport, terms: RoundTerms) -> SumServer:
    """A whole round over a transport; the server at its end."""
    server, told = SumServer(terms=terms), b""
    for phase in list(SumPhase)[:-1]:
        asked = {terms.roster[place - 1]: packed([phase.value.encode(), told]) for place in server.awaited}
        for answer in transport.ask_all(asked).values():
            server = server if answer is None else _received(server, answer)
        server, told = server.close()
    return server


def _received(server: SumServer, answer: bytes) -> SumServer:
    """The server with one more message; a foul one is as none."""
    try:
        return server.receive(answer)
    except SfumatoError:
        return server


class LocalGrid:
    """A grid of Flower in one process; messages go through the bytes that Flower sends. ``silent`` nodes are away."""

    def __init__(self, apps: Mapping[int, Any], silent: Sequence[int] = ()) -> None:
        self._apps, self._silent = dict(apps), set(silent)

    def send_and_receive(self, messages: Sequence[Any], *, timeout: float | None = None) -> list[Any]:
        """The answers of all nodes that are there."""
        del timeout
        there = [one for one in messages if one.metadata.dst_node_id not in self._silent]
        return [_carried(self._answer(_carried(one))) for one in there]

    def _answer(self, message: Any) -> Any:
        app, _ = flower()
        node = message.metadata.dst_node_id
        own = app.Context(run_id=1, node_id=node, node_config={}, state=app.RecordDict(), run_config={}, series_id=0)
        return self._apps[node](message, own)


def _carried(message: Any) -> Any:
    serde, proto = (importlib.import_module(name) for name in ("flwr.common.serde", "flwr.proto.message_pb2"))
    read = proto.Message()
    read.ParseFromString(serde.message_to_proto(message).SerializeToString())
    return serde.message_from_proto(read)


def example(silent: Sequence[int] = ()) -> list[int]:
    """The sum of four sites, over Flower."""
    identity = importlib.import_module("flwr.supercore.task_identity").TaskIdentity
    identity.task_id, identity.run_id, identity.node_id = 1, 1, 1 << 20  # as the server app's process has them
    keys = [SigningKey.new() for _ in range(4)]
    terms = RoundTerms(
        run="over Flower",
        number=1,
        roster=tuple(key.public_text for key in keys),
        parties=Parties(sites=4, missing=1, colluding=0, server=ServerTrust.LYING),
        length=3,
        bits=32,
    )
    sites = [OneSum(terms=terms, key=key, values=np.array([place, 10, -place])) for place, key in enumerate(keys)]
    nodes = {key.public_text: 100 + place for place, key in enumerate(keys)}
    apps = {100 + place: client_app(site) for place, site in enumerate(sites)}
    transport = FlowerTransport(grid=LocalGrid(apps, silent), nodes=nodes)
    found: list[int] = summed(transport, terms).result().total.tolist()
    return found


def main() -> None:
    """Add up over Flower, or say why not."""
    try:
        flower()
    except ImportError:
        print("skipped: Flower is not installed (pip install flwr, in an environment of its own)")  # noqa: T201 - a script that is run by hand
        return
    print(f"all four sites: {example()}; without the last: {example(silent=[103])}")  # noqa: T201 - a script that is run by hand


if __name__ == "__main__":
    main()
