"""The Python client of a service: the feel of a vault, over HTTP."""

from sfumato.client.connection import ServiceConnection, connect

__all__ = ["ServiceConnection", "connect"]
