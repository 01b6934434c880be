"""Weights as bytes: their digest, which a certificate states, and the body of a checkpoint."""

import hashlib
import io

import torch
from torch import nn

from sfumato.learning.given import RunState

__all__ = ["packed", "unpacked", "weights_digest"]

LENGTH = 8  # bytes that say how many of the others count


def weights_digest(model: nn.Module) -> str:
    """The SHA-256 of the weights of a model: names, types, shapes and numbers, in the order of its state.

    Whoever holds a model and a certificate can tell whether they belong together.

    >>> len(weights_digest(nn.Linear(2, 1)))
    64
    """
    found = hashlib.sha256()
    for name, value in model.state_dict().items():
        flat = value.detach().cpu().contiguous().reshape(-1)
        found.update(f"{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
        found.update(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    return found.hexdigest()


def packed(parts: RunState) -> bytes:
    """Numbers and tensors as bytes, filled up to a power of two. How many there are must be public: filled up as they
    are, one more can still double the length.

    >>> len(packed({"weight": torch.zeros(1000)}))
    8192
    """
    room = io.BytesIO()
    torch.save(parts, room)
    own = room.getvalue()
    size = len(own) + LENGTH
    return len(own).to_bytes(LENGTH, "big") + own + bytes((1 << (size - 1).bit_length()) - size)


def unpacked(body: bytes) -> RunState:
    """What was packed; nothing but numbers and tensors is read."""
    size = int.from_bytes(body[:LENGTH], "big")
    own = io.BytesIO(body[LENGTH : LENGTH + size])
    parts: RunState = torch.load(own, weights_only=True, map_location="cpu")
    return parts
