"""A box for a script: no data, no network, no files; one pipe, on which questions leave and certificates come back.

The same box as that of blocks (:mod:`sfumato.boxes.box`), at any level: an empty environment, a list of allowed system
calls, limits. No socket is mounted and none is made: a script cannot connect to anything.
"""

import json
import os
import select
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import cast

import sfumato
from sfumato.boxes import box
from sfumato.boxes.levels import BoxLevel, check_level
from sfumato.boxes.packages import packages_of
from sfumato.boxes.started import StartedBox
from sfumato.boxes.view import PACKAGES, view_of
from sfumato.core.documents import Document, canonical, encode, parse
from sfumato.core.exact import natural
from sfumato.errors import InvalidInput, SfumatoError, Unsupported
from sfumato.research import inside_script
from sfumato.research.messages import AREA, RESEARCH_MESSAGES, RefusalReply

__all__ = ["ScriptBox", "ScriptLimits"]

MOST_FRAME = 16 * 2**20
_LONGEST_START = 120.0
_HEAD = struct.Struct("<Q")
_OURS, _START = "/ours", "/inside_script.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptLimits:
    """What one script gets: ``seconds`` from its start to its end, ``memory`` in MiB, ``questions`` it may ask."""

    seconds: int = 120
    memory: int = 4096
    questions: int = 200

    def __post_init__(self) -> None:
        natural(self.seconds, "seconds", most=86_400)
        natural(self.memory, "memory", least=1024)
        natural(self.questions, "questions", most=10_000)


@dataclass(slots=True, kw_only=True)
class ScriptBox:
    """Boxes for scripts, each used once.

    Guarantee, at the stated level: a script reaches nothing but ``answer``, which gets documents of the protocol and no
    others; what it prints, returns and raises goes nowhere. Assumes: the kernel keeps its word.
    """

    limits: ScriptLimits = field(default_factory=ScriptLimits)
    libraries: tuple[str, ...] = ()

    level: BoxLevel | None = None
    """How a box is shut; the strongest level that this host looks able to give if not said."""

    def __post_init__(self) -> None:
        self.level = check_level(self.level)

    def run(self, code: str, answer: Callable[[Document], Document]) -> bool:
        """Run a script to its end; whether it got there without failing. What it asks is answered by ``answer``."""
        try:
            program = code.encode()
        except UnicodeEncodeError:
            raise InvalidInput("the code is no text that can be written as UTF-8; no code was run.") from None
        own = [(inside_script.__file__, _START), (str(Path(sfumato.__file__).parent), f"{_OURS}/sfumato")]
        view = view_of(packages_of(self.libraries, of_sfumato=True), also=own, start=_START)
        usual = box.BoxLimits(memory=self.limits.memory, libraries=self.libraries)
        with box.opened_box(self.level, view, usual) as (started, setup):
            limits = {**cast("dict[str, int]", setup["limits"]), "CPU": self.limits.seconds + 5}
            readable = [*cast("list[str]", setup["readable"]), _OURS]
            told = {**setup, "packages": [_OURS, PACKAGES], "readable": readable, "limits": limits}
            return _Line(started, usual.place).talk(json.dumps(told).encode(), program, answer, self.limits)


class _Line:
    """Both pipes of a box, each read and written within the time that is left."""

    def __init__(self, process: StartedBox, core: int) -> None:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - they are pipes
        self._in, self._out = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._settle = partial(process.settle, [core])

    def talk(self, setup: bytes, program: bytes, answer: Callable[[Document], Document], limits: ScriptLimits) -> bool:
        start = time.monotonic() + _LONGEST_START
        self._send(setup, start)
        if self._read(1, start) != b"R":
            raise Unsupported("a box could not be shut on this host; no code was run and nothing was read.")
        self._settle()
        until = time.monotonic() + limits.seconds
        self._send(program, until)
        for _ in range(limits.questions + 2):  # a script says who it is, and when it ends
            body = self._frame(until)
            if body is None:
                return False
            if len(body) == 1:
                return body == b"\0"
            reply = _answered(body, answer)
            if reply is None:
                return False
            self._send(reply, until)
        return False

    def _frame(self, until: float) -> bytes | None:
        head = self._read(_HEAD.size, until)
        if len(head) != _HEAD.size:
            return None
        length = _HEAD.unpack(head)[0]
        if not 0 < length <= MOST_FRAME:
            return None
        body = self._read(length, until)
        return body if len(body) == length else None

    def _send(self, body: bytes, until: float) -> None:
        box.write_within(self._in, _HEAD.pack(len(body)) + body, until)

    def _read(self, length: int, until: float) -> bytes:
        parts = bytearray()
        while len(parts) < length and (rest := until - time.monotonic()) > 0:
            if not select.select([self._out], [], [], rest)[0]:
                break
            part = os.read(self._out, min(1 << 16, length - len(parts)))
            if not part:
                break
            parts += part
        return bytes(parts)


def _answered(body: bytes, answer: Callable[[Document], Document]) -> bytes | None:
    """The reply to what a script wrote, as bytes; None where it is no message of the protocol."""
    try:
        request = RESEARCH_MESSAGES.decode(parse(body.decode()), "message")
    except (SfumatoError, UnicodeDecodeError, RecursionError):
        return None
    if not request.KIND.startswith(AREA) or isinstance(request, RefusalReply):
        return None
    return canonical(encode(answer(request))).encode()
