"""The ledger's side of the wire: asks its witness, and believes no answer that the witness did not sign."""

import secrets
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from sfumato.core.documents import canonical, parse
from sfumato.errors import InvalidInput, LedgerError, Refused, SfumatoError
from sfumato.governance.anchor import SignedHead
from sfumato.governance.witness import Conflict
from sfumato.governance.witnessed import LastSeen, SignedExtension, WitnessedHead

__all__ = ["PATIENCE", "WitnessClient"]

PATIENCE = 10.0
"""Seconds to wait for the witness."""
LARGEST = 2**20
"""Bytes of an answer: heads are far shorter."""


class WitnessClient:
    """A witness at an address, known by its public key.

    ``ledger`` is the key that signs the heads of the ledger; None where keys have roles. Then a head is believed by the
    countersignature of the witness, which knows who charges: which keys those were may stand in entries that were lost.
    Guarantee: what it returns was signed by the owner of that key, for what was asked; anything else is an error that
    says that nothing was spent.
    """

    def __init__(self, address: str, key: str, ledger: str | None, *, patience: float = PATIENCE) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.path not in ("", "/"):
            raise InvalidInput("the address of a witness is http://HOST:PORT or https://HOST:PORT; nothing was asked.")
        try:
            port = parts.port
        except ValueError:
            raise InvalidInput("the address of a witness has a port up to 65535; nothing was asked.") from None
        self.address, self.key, self.ledger = f"{parts.scheme}://{parts.hostname}:{port or ''}".rstrip(":"), key, ledger
        self._secure, self._host, self._port, self._patience = parts.scheme == "https", parts.hostname, port, patience

    def extend(self, request: SignedExtension) -> WitnessedHead | Conflict:
        """The countersigned head; or, where the extension does not go on from it, the last one."""
        status, text = self._ask("/extend", request.text)
        name = SignedHead.read(request.extension.head).head.ledger
        try:
            if status == 409:
                said = parse(text)
                last = said.get("last") if isinstance(said, dict) else None
                if not isinstance(last, str):
                    raise InvalidInput("no last head")
                return Conflict(last=self._proven(WitnessedHead.read(last), name) if last else None)
            answer = self._proven(WitnessedHead.read(text), name)
        except SfumatoError as wrong:
            raise self._strange(wrong) from None
        if (answer.head, answer.lease) != (request.extension.head, request.extension.lease):
            raise self._strange("it is about another head")
        return answer

    def last(self, identifier: str, upto: int | None = None) -> WitnessedHead | None:
        """What the witness saw last of a ledger, now; None where it saw nothing up to that entry."""
        nonce = secrets.token_hex(16)
        _, text = self._ask("/last", canonical({"ledger": identifier, "nonce": nonce, "upto": upto}))
        try:
            said = LastSeen.read(text)
            asked = (said.ledger, said.nonce, said.upto) == (identifier, nonce, upto or 0)
            if not asked or not said.holds(self.key):
                raise InvalidInput("it is not signed for this question with the key that the record names")
            head = self._proven(WitnessedHead.read(said.witnessed), identifier) if said.witnessed else None
            if head is not None and upto is not None and head.signed.head.number > upto:
                raise InvalidInput("it is about an entry beyond the one that was asked for")
            return head
        except SfumatoError as wrong:
            raise self._strange(wrong) from None

    def _proven(self, head: WitnessedHead, identifier: str) -> WitnessedHead:
        signed = self.ledger is None or head.signed.holds(self.ledger)
        if not signed or not head.countersigned_by(self.key) or head.signed.head.ledger != identifier:
            raise InvalidInput("it is not signed with the key that the record names")
        return head

    def _ask(self, path: str, body: str) -> tuple[int, str]:
        """The status and the text of an answer; refusals of the witness are errors here."""
        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=self._patience)
        try:
            connection.request("POST", path, body.encode(), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read(LARGEST + 1).decode()
        except (OSError, HTTPException, UnicodeDecodeError) as wrong:
            why = getattr(wrong, "strerror", None) or str(wrong) or type(wrong).__name__
            raise LedgerError(
                f"the witness at {self.address} does not answer: {why}. Nothing was read and nothing was spent. Start "
                "it or mend the way to it, and try again."
            ) from None
        finally:
            connection.close()
        if len(text) > LARGEST:
            raise self._strange("it is too long")
        if answer.status in (200, 409):
            return answer.status, text
        raise Refused(
            f"the witness at {self.address} refused ({answer.status}): {_words(text)} Nothing was read and nothing was "
            "spent here."
        )

    def _strange(self, why: object) -> LedgerError:
        return LedgerError(
            f"what answers at {self.address} is not the witness that the record names: {why}. Nothing was read and "
            "nothing was spent. Compare the address and the key."
        )


def _words(text: str) -> str:
    try:
        said = parse(text)
    except SfumatoError:
        said = None
    words = said.get("error") if isinstance(said, dict) else None
    return (
        "".join(sign for sign in words[:300] if sign.isprintable()) if isinstance(words, str) else "without a reason."
    )
