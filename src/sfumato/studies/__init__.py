"""Studies: methods of a statistician on releases; they cost nothing, and noise is in every standard error."""

from sfumato.core.data_kind import DataKind

__all__ = ["KIND"]

KIND = DataKind(name="studies", declarations=(), messages="sfumato.studies", plots={})
