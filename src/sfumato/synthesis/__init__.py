"""Synthesis: rows made of noisy tables; nothing here can reach data, and all of it costs nothing."""

from sfumato.core.data_kind import DataKind

__all__ = ["KIND"]

KIND = DataKind(name="synthesis", declarations=(), messages="sfumato.synthesis", plots={})
