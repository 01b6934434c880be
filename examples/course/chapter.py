"""A chapter of the course as it is written: words in two languages around code that both share.

A line that starts with ``%%`` begins a part, and its first word says what the part is:

==============  =============================================================================================
``en``, ``zh``  words in Markdown; each stands in both languages, one after the other
``code``        code that runs as it stands
``task NAME``   code that a reader has to complete
``solution``    what may take its place
``wrong WHY``   a plausible mistake in its place, which the check must notice; no reader sees it
``check``       code that accepts the solution and nothing else
==============  =============================================================================================
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sfumato.errors import InvalidInput

__all__ = ["CHAPTERS", "LANGUAGES", "Chapter", "Code", "Task", "Words", "read"]

FOLDER = Path(__file__).parent
CHAPTERS = ("health", "gaussian", "networks", "learning", "streams")
LANGUAGES = ("en", "zh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A passage in Markdown, in English and in Chinese."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """Code that runs as it stands."""

    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a reader completes: where to begin, a solution, mistakes by their reasons, and the check."""

    name: str
    start: str
    solution: str
    wrong: tuple[tuple[str, str], ...]
    check: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A chapter by its name, with its parts in order."""

    name: str
    parts: tuple[Words | Code | Task, ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks, in order."""
        return tuple(part for part in self.parts if isinstance(part, Task))


def read(name: str, folder: Path = FOLDER) -> Chapter:
    """Read a chapter; a part that is missing or out of place is refused.

    >>> [task.name for task in read("gaussian").tasks][:2]
    ['delta', 'calibrate']
    """
    return Chapter(name=name, parts=tuple(_parts(name, (folder / f"{name}.chapter").read_text("utf-8"))))


def _parts(name: str, text: str) -> Iterator[Words | Code | Task]:
    pieces = list(_pieces(text))
    while pieces:
        kind, said, body = pieces.pop(0)
        match kind:
            case "code":
                yield Code(body=body)
            case "en":
                yield Words(en=body, zh=_taken(name, pieces, "zh")[1])
            case "task":
                solution = _taken(name, pieces, "solution")[1]
                wrong = []
                while pieces and pieces[0][0] == "wrong":
                    wrong.append(_taken(name, pieces, "wrong"))
                if not wrong:
                    raise InvalidInput(f"Task {said} of chapter {name} has no wrong answer. Add a %% wrong part.")
                check = _taken(name, pieces, "check")[1]
                yield Task(name=said, start=body, solution=solution, wrong=tuple(wrong), check=check)
            case _:
                raise InvalidInput(f"Chapter {name} has a part '%% {kind}' where none can stand. Move or rename it.")


def _taken(name: str, pieces: list[tuple[str, str, str]], kind: str) -> tuple[str, str]:
    if not pieces or pieces[0][0] != kind:
        stands = pieces[0][0] if pieces else "the end"
        raise InvalidInput(f"Chapter {name} needs '%% {kind}' where {stands} stands. Add it.")
    _, said, body = pieces.pop(0)
    return said, body


def _pieces(text: str) -> Iterator[tuple[str, str, str]]:
    for piece in f"\n{text}".split("\n%% ")[1:]:
        head, _, body = piece.partition("\n")
        kind, _, said = head.partition(" ")
        yield kind, said, body.strip("\n")
