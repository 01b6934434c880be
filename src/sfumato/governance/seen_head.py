"""What stands in for the anchor where a reader may not read it: the newest signed head that this reader knows."""

from sfumato.governance.anchor import SignedHead

__all__ = ["SeenHead"]


class SeenHead:
    """A head that was published and given to a reader, or else none; from then on the newest one that was proven.

    Guarantee: what is shown never goes back behind it. Assumes: without a head that was given, an old copy of the
    database passes for the ledger, as nothing else says how far the record had come.
    """

    def __init__(self, given: SignedHead | None = None) -> None:
        self.given = given is not None
        self._newest = given

    @property
    def name(self) -> str:
        """What messages call it."""
        return "(the head that was given)"

    def last(self) -> SignedHead | None:
        """The newest head that is known."""
        return self._newest

    def readable(self) -> SignedHead | None:
        """The same: a head that is known can be read."""
        return self._newest

    def saw(self, head: SignedHead) -> None:
        """Remember a head that was proven; one that came later than what is known."""
        if self._newest is None or self._newest.head.number < head.head.number:
            self._newest = head

    def witnessed(self) -> str | None:
        """None: what a witness countersigned is kept beside an anchor."""
        return None

    def keep_witnessed(self, text: str) -> None:
        """Nothing is kept, by whoever reads."""

    def close(self) -> None:
        """Nothing is held."""
