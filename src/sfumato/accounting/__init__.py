"""Accounting: accountants read events, never mechanisms."""

from sfumato.accounting.basic import compose
from sfumato.accounting.filters import BasicFilter

__all__ = ["BasicFilter", "compose"]
