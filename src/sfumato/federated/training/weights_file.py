"""Weights of a declared network in a file that holds numbers and no code: the format of safetensors, version 0.4."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidInput, Refused
from sfumato.federated.training.declared_network import DeclaredNetwork
from sfumato.federated.training.federated_training import FederatedTraining
from sfumato.learning.layered import with_weights
from sfumato.learning.weights import weights_digest

if TYPE_CHECKING:
    from torch import nn

    from sfumato.core.statement import Statement

__all__ = ["check_certified", "read_network", "weights_bytes"]

NETWORK = "sfumato.network"
LARGEST = 64 << 20
MOST_HEAD = 16 << 20


def weights_bytes(network: DeclaredNetwork, model: "nn.Module") -> bytes:
    """The weights of a model and the declaration of its network, as a safetensors file. Public, as the weights are.

    >>> from sfumato.tables.feature_columns import FeatureColumn
    >>> sex, died = FeatureColumn(name="sex", keys=("F", "M")), FeatureColumn(name="died", keys=(False, True))
    >>> network = DeclaredNetwork(inputs=(sex,), target=died)
    >>> len(weights_bytes(network, network.model())) % 8
    0
    """
    head: dict[str, object] = {"__metadata__": {NETWORK: network.to_json()}}
    parts, at = [], 0
    for name, value in model.state_dict().items():
        part = value.detach().cpu().numpy().astype("<f4").tobytes()
        head[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + len(part)]}
        parts.append(part)
        at += len(part)
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def read_network(path: str | Path) -> "tuple[DeclaredNetwork, nn.Sequential]":
    """The network of a file and its model with the weights; what is not exactly such a file is refused.

    Nothing in the file is run, and its sizes are checked before anything is made of them. Whether a certificate says so
    of these weights: :func:`check_certified`.
    """
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST:
            raise InvalidInput(f"{file} is too large for the weights of a declared network; it was not read.")
        data = file.read_bytes()
    except OSError:
        raise InvalidInput(f"{file} cannot be read.") from None
    size = int.from_bytes(data[:8], "little")
    foul = InvalidInput(f"{file} is not the weights of a declared network; it was not read.")
    if not 2 <= size <= min(MOST_HEAD, len(data) - 8):
        raise foul
    try:
        head = json.loads(data[8 : 8 + size])
        network = DeclaredNetwork.from_json(head.pop("__metadata__")[NETWORK])
        model = network.model()
        state, at = dict[str, npt.NDArray[np.float32]](), 0
        for name, value in model.state_dict().items():
            end = at + 4 * value.numel()
            if head.pop(name) != {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, end]}:
                raise foul
            flat = np.frombuffer(data[8 + size + at : 8 + size + end], dtype="<f4").astype(np.float32)
            state[name] = flat.reshape(value.shape)
            at = end
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, RuntimeError):
        raise foul from None
    if head or len(data) != 8 + size + at:
        raise foul
    return network, with_weights(model, state)


def check_certified(network: DeclaredNetwork, model: "nn.Module", statement: "Statement") -> None:
    """Refuse a model that is not the one of a certificate: another network, or other weights."""
    query = statement.query
    if not isinstance(query, FederatedTraining):
        raise Refused("the certificate is not one of a training run across sites.")
    if (query.model, query.weights) != (network.digest, weights_digest(model)):
        raise Refused("these are not the weights that the certificate is about.")
