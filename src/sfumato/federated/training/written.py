"""Files that are whole after a crash, or were not touched, and are their owner's alone."""

import os
from pathlib import Path

__all__ = ["written"]


def written(path: Path, data: bytes) -> None:
    """Put a file in its place at once, for its owner alone."""
    beside = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
