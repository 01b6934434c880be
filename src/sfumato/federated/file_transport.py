"""Files for sites without a network: signed requests in an outbox, signed answers in an inbox, carried by people.

A request names its site and is signed by the coordinator; an answer names its request and its site and is signed by
that site. A file that was changed, is old or lies where another one belongs is refused in words.
"""

from collections.abc import Collection, Mapping
from hashlib import blake2b
from pathlib import Path

from sfumato.core.signature import SigningKey, signature_holds
from sfumato.errors import InvalidInput, Refused
from sfumato.federated.http_server import LARGEST
from sfumato.federated.mailbox import request_number

__all__ = ["AnswersAwaited", "FileTransport", "read_request", "signed_answer"]

ASKED, ANSWERED = b"sfumato request file 1\n", b"sfumato answer file 1\n"
_NUMBER, _KEY, _SIGNATURE = 32, 32, 64


class AnswersAwaited(Refused):
    """Answers of sites are still to be brought: the round stands where it is, and goes on once they are there."""


class FileTransport:
    """Reaches sites by files: requests lie in ``folder/outbox``, and answers are awaited in ``folder/inbox``.

    ``sites`` are public keys by name, for the names of files; ``left`` names sites that are waited for no more. Ask
    again, with the same question, whenever answers were brought: a round goes on as far as they reach.
    """

    def __init__(self, folder: str | Path, *, sites: Mapping[str, str], left: Collection[str] = ()) -> None:
        self._names = {key: name for name, key in sites.items()}
        unknown = sorted(set(left) - set(sites))
        if unknown:
            raise InvalidInput(f"{', '.join(unknown)}: no such site is in the agreement; nothing was asked.")
        self._left = set(left)
        self._outbox, self._inbox = Path(folder) / "outbox", Path(folder) / "inbox"
        for place in (self._outbox, self._inbox):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)

    def ask(self, site: str, request: bytes) -> bytes | None:
        """What one site answers; refused as long as its file is not there."""
        return self.ask_all({site: request})[site]

    def ask_all(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        """What the files of sites answer; None for those that left, refused as long as one is awaited."""
        found, awaited = dict[str, bytes | None](), list[str]()
        for site, request in requests.items():
            stem = self._stem(site, request)
            paper, answer = self._outbox / f"{stem}.request", self._inbox / f"{stem}.answer"
            if answer.exists():
                found[site] = _opened_answer(answer, site, request)
                paper.unlink(missing_ok=True)
            elif self._names[site] in self._left:
                found[site] = None
            else:
                paper.write_bytes(ASKED + request)
                awaited.append(f"{stem}.request")
        if awaited:
            raise AnswersAwaited(
                f"{len(awaited)} of {len(requests)} sites have not answered; nothing is lost. Carry each of these "
                f"files from {self._outbox} to its site: {', '.join(awaited)}. Bring the answers to {self._inbox}, and "
                "ask the same again."
            )
        return found

    def _stem(self, site: str, request: bytes) -> str:
        name = "".join(sign if sign.isalnum() else "-" for sign in self._names[site])
        return f"{name}-{request_number(site, request)[:16]}"


def read_request(file: str | Path) -> bytes:
    """What a request file asks; whether the coordinator signed it for this site, the site says."""
    data = _bytes(Path(file))
    if not data.startswith(ASKED):
        raise InvalidInput(f"{file} is not a request of a consortium; nothing was answered.")
    return data[len(ASKED) :]


def signed_answer(key: SigningKey, request: bytes, answer: bytes) -> bytes:
    """The file of an answer: to which request, of which site, and signed by it."""
    number = bytes.fromhex(request_number(key.public_text, request))
    head = number + bytes.fromhex(key.public_text)
    return ANSWERED + head + bytes.fromhex(key.sign(_said(head, answer))) + answer


def _opened_answer(file: Path, site: str, request: bytes) -> bytes:
    """The answer in a file; refused unless this site signed it for this request."""
    data = _bytes(file)
    if not data.startswith(ANSWERED):
        raise InvalidInput(f"{file} is not an answer of a site; it was not used. Bring the file that the site wrote.")
    rest = data[len(ANSWERED) :]
    head, signature = rest[: _NUMBER + _KEY], rest[_NUMBER + _KEY : _NUMBER + _KEY + _SIGNATURE]
    answer = rest[_NUMBER + _KEY + _SIGNATURE :]
    if head[_NUMBER:].hex() != site:
        raise Refused(f"{file} is the answer of another site; it was not used. The files were swapped: put them right.")
    if head[:_NUMBER].hex() != request_number(site, request):
        raise Refused(f"{file} answers another request; it was not used. It is an old file, or one of another round.")
    if not signature_holds(site, signature.hex(), _said(head, answer)):
        raise Refused(f"{file} was changed on its way: the signature of its site does not hold. It was not used.")
    return answer


def _said(head: bytes, answer: bytes) -> bytes:
    return ANSWERED + head + blake2b(answer, digest_size=32).digest()


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST + 1)
    except OSError as wrong:
        raise InvalidInput(f"{file} cannot be read: {wrong.strerror}. Nothing was used.") from None
    if len(data) > LARGEST:
        raise InvalidInput(f"{file} has more than {LARGEST:,} bytes; it was not used.")
    return data
