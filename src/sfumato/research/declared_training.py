"""Models that a script has trained: a declaration goes in, and the noisy weights come out beside their certificate.

A declaration is a few public facts (:class:`sfumato.federated.DeclaredNetwork`), never code, a pickle or a graph: what
runs on the rows is the network of this package, through the trainer that everybody uses.
"""

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.federated.training.declared_network import DeclaredNetwork
from sfumato.research.messages import TrainingRequest
from sfumato.tables.schema import Schema

if TYPE_CHECKING:
    from sfumato.tables.table import Table
    from sfumato.vault import Vault

__all__ = ["MOST_NETWORK", "TrainedNetwork", "bytes_of", "checked_network", "fitted", "text_of"]

MOST_NETWORK = 2**18
MOST_EPOCHS, MOST_UNITS, MOST_STEPS = 100, 10_000_000, 20_000
BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedNetwork:
    """A model that was trained in the environment: its release, whose certificate states the digest of these weights.

    ``weights`` are a safetensors file with the declaration of the network, and hold numbers alone. Public: all of it.
    """

    release: Release
    weights: bytes

    def save(self, path: str | Path) -> Path:
        """Write the weights; :func:`sfumato.federated.training.weights_file.read_network` reads them."""
        Path(path).write_bytes(self.weights)
        return Path(path)


def checked_network(request: TrainingRequest, schema: Schema) -> DeclaredNetwork:
    """The network of a request; refused where it is not made of columns as this schema declares them. Reads nothing."""
    if len(request.network) > MOST_NETWORK:
        raise InvalidInput(f"a network is declared in at most {MOST_NETWORK:,} characters; nothing was done.")
    natural(request.n_units, "n_units", most=MOST_UNITS)
    natural(request.epochs, "epochs", most=MOST_EPOCHS)
    if request.epochs * request.n_units > MOST_STEPS * BATCH:
        raise InvalidInput(
            f"{request.epochs} epochs over {request.n_units:,} units are more than {MOST_STEPS:,} steps; nothing was "
            "read and nothing was spent. Ask for fewer epochs."
        )
    if not request.spend.delta:
        raise NotDeclared("training needs a δ above 0; nothing was read and nothing was spent. Say delta=….")
    try:
        network = DeclaredNetwork.from_json(request.network)
    except RecursionError:
        raise InvalidInput("the network is nested too deeply; nothing was done.") from None
    inputs = [column.name for column in network.inputs]
    own = DeclaredNetwork.of_schema(schema, inputs=inputs, target=network.target.name, hidden=network.hidden)
    if own.digest != network.digest:
        raise Refused(
            "the columns of the network are not declared here as it says; nothing was read and nothing was spent. "
            "Declare it from the schema of the connection."
        )
    return network


def fitted(vault: "Vault", table: "Table", network: DeclaredNetwork, request: TrainingRequest) -> tuple[Release, bytes]:
    """Train through the vault: one charge for the whole run, before a row is read; the release and the weights."""
    from sfumato.federated.training.weights_file import weights_bytes
    from sfumato.learning.layered import class_loss
    from sfumato.learning.units import Units

    data = Units.of_table(
        table,
        inputs=[column.name for column in network.inputs],
        targets=network.target.name,
        n_units=request.n_units,
    )
    trainer = vault.trainer(network.model(), class_loss, data=data)
    trained = trainer.fit(
        epsilon=request.spend.epsilon,
        delta=request.spend.delta,
        epochs=request.epochs,
        batch=min(BATCH, request.n_units),
        progress=False,
    )
    return trained.release, weights_bytes(network, trained.model)


def text_of(weights: bytes) -> str:
    """Weights as they travel.

    >>> bytes_of(text_of(b"weights"))
    b'weights'
    """
    return base64.b64encode(weights).decode()


def bytes_of(text: str) -> bytes:
    """Weights as they came; refused where they are none."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("what came are no weights; they were not believed.") from None
