"""What ran: the digest of a program, and how the box was shut that it ran in. It is written into certificates."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.exact import natural, positive
from sfumato.core.query import check_name
from sfumato.errors import InvalidInput

__all__ = ["SealedProgram"]

LEVELS = ("A", "B")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedProgram:
    """A program in boxes: ``code`` is the SHA-256 of its text, ``level`` how boxes are shut, from A, the strongest.

    A block has ``seconds`` of time, which are waited out, and ``memory`` in MiB; ``control_groups`` says whether the
    host holds a box to that by a control group besides. ``interpreter`` and ``libraries`` are what it ran with, each
    library with the SHA-256 of its files, ``imported`` those of them that were there before the rows came, and
    ``not_hidden`` is what a box of this level does not hide. Public: every field; another one makes another question.
    """

    KIND: ClassVar[str] = "program.sealed"
    VERSION: ClassVar[int] = 1
    code: str
    level: str
    seconds: Fraction
    memory: int
    interpreter: str
    imported: tuple[str, ...]
    libraries: tuple[str, ...]
    not_hidden: str
    control_groups: bool = False

    def __post_init__(self) -> None:
        if not _DIGEST.fullmatch(self.code):
            raise InvalidInput("the code of a program is said by its SHA-256, 64 hexadecimal digits; nothing was done.")
        if self.level not in LEVELS:
            raise InvalidInput("the level of a box is A or B; nothing was done.")
        object.__setattr__(self, "seconds", positive(self.seconds, "seconds"))
        natural(self.memory, "memory")
        for text in (self.interpreter, self.not_hidden, *self.imported, *self.libraries):
            check_name(text, "what a program ran with")
