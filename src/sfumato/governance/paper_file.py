"""Papers as files: words for people beside the fields that are signed, so that nobody signs what they did not read."""

import json
from pathlib import Path
from typing import ClassVar, Self

from sfumato.core.documents import Document, Json, Registry, canonical, encode, parse
from sfumato.errors import InvalidInput, Refused, SfumatoError

__all__ = ["PaperFile"]

MOST = 1_000_000  # signs of a file: a paper is a page or two


class PaperFile:
    """A document that travels as a file; reading is strict, and its words must be those of its fields."""

    __slots__ = ()
    PARTS: ClassVar[tuple[type[Document], ...]] = ()
    """The documents that may stand in it."""
    CALLED: ClassVar[str] = "a paper"

    @property
    def words(self) -> tuple[str, ...]:
        """What it says, in plain words: everything that whoever signs should read."""
        raise NotImplementedError

    def text(self) -> str:
        """The paper as a file holds it: its words for people, and its fields."""
        body = encode(self)
        fields: dict[str, Json] = body if isinstance(body, dict) else {}
        canonical(fields)  # what has no bytes is refused here
        return json.dumps({"words": list(self.words), **fields}, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def read(cls, text: str, name: str = "this file") -> Self:
        """Read a paper; one whose words are not those of its fields is refused."""
        try:
            body = parse(text) if len(text) <= MOST else None
            words = body.pop("words", None) if isinstance(body, dict) else None
            found = Registry((cls, *cls.PARTS)).decode(body, "paper")  # type: ignore[arg-type]  # each paper is a document
        except SfumatoError as wrong:
            raise InvalidInput(f"{name} is not {cls.CALLED}, and nothing was done: {wrong}") from None
        if not isinstance(found, cls):
            raise InvalidInput(f"{name} is not {cls.CALLED}; nothing was done. Ask for one: sfumato ballot write")
        if words != list(found.words):
            raise Refused(
                f"the words of {name} are not those of what would be signed: it was altered, or written by another "
                "version of sfumato. Nothing was done. Ask for a new paper."
            )
        return found

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a paper from a file."""
        try:
            with Path(path).open(encoding="utf-8") as file:
                text = file.read(MOST + 1)
        except (OSError, UnicodeDecodeError):
            raise InvalidInput(f"{path} cannot be read as {cls.CALLED}; nothing was done.") from None
        return cls.read(text, str(path))

    def save(self, path: str | Path) -> None:
        """Write the paper to a new file; nothing is ever overwritten."""
        text = self.text()
        try:
            with Path(path).open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            raise InvalidInput(f"{path} already exists and was not overwritten. Name another file with -o.") from None
