"""Mechanisms: one file each; a declaration with its loss, its law and its sampling."""

from sfumato.mechanisms.laplace import Laplace

__all__ = ["MECHANISMS", "Laplace"]

MECHANISMS = (Laplace,)
