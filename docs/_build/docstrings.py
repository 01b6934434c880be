"""Makes docstrings readable as Markdown: doctests become code, cross-reference roles become names."""

import re
from typing import Any

import griffe

ROLE = re.compile(r":(?:meth|class|mod|func|attr|data):`~?([^`]+)`")
PROOF = re.compile(r"docs/proofs/(\w+)\.md")
DOUBLE_COLON = re.compile(r"^::\n", re.MULTILINE)


def readable(text: str) -> str:
    """Fence each run of doctest lines, with its output; write roles as plain code; link proofs from the reference."""
    text = PROOF.sub(r"[docs/proofs/\1.md](../proofs/\1.html)", ROLE.sub(r"`\1`", text))
    lines, inside = [], False
    for line in DOUBLE_COLON.sub("", text).split("\n"):
        if line.startswith(">>>") and not inside:
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class Readable(griffe.Extension):
    """Rewrites every docstring when it is collected."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
