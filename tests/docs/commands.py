"""The reference of the commands, written from their own help: ``python -m tests.docs.commands``."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.main import get_command

from sfumato.cli.app import app
from sfumato.cli.exits import MEANING

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
EXAMPLE = re.compile(r"^Example: \$ (.*)$", re.MULTILINE)
HEAD = """\
# Commands

<!-- Written from the program's own help by: .venv/bin/python -m tests.docs.commands (a test compares the two) -->

The program is called `sfumato`. `sfumato --help` lists the commands, and each has its own `--help`.
`sfumato --version` prints the version. `sfumato --install-completion` teaches your shell (bash, zsh, fish, PowerShell)
to complete commands and options, and `sfumato --show-completion` prints what it would install. `--json` prints a result
for programs; numbers that must stay exact are fractions in text there.

| exit code | meaning |
|---|---|
"""
MIDDLE = """
Messages are in English. Control characters in text that came from a file are spelt out, so that a certificate cannot
play tricks with the terminal. No command but `demo`, `query`,
`suggest-limit`, `synthesize`, `graph`, `stream total` and `plan run` reads rows.
"""


def page() -> str:
    """The whole page."""
    codes = "".join(f"| {code.value} | {meaning} |\n" for code, meaning in MEANING.items())
    return HEAD + codes + MIDDLE + "".join(_section(path, command) for path, command in leaves(get_command(app)))


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its words."""
    children = getattr(command, "commands", {})
    if path and getattr(command, "invoke_without_command", not children):  # a group may be a command itself
        yield " ".join(path), command
    for name, child in children.items():
        yield from leaves(child, (*path, name))


def _section(path: str, command: Any) -> str:
    text = inspect.cleandoc(command.help)
    words = re.sub(r"\n{3,}", "\n\n", EXAMPLE.sub("", text)).strip()
    examples = "".join(f"$ {example}\n" for example in EXAMPLE.findall(text))
    table = f"| argument or option | meaning |\n|---|---|\n{_rows(command)}"
    return f"\n## {path}\n\n```console\n{examples}```\n\n{words}\n\n{table}"


def _rows(command: Any) -> str:
    """A line for each argument and option, read off the function that is the command."""
    function = inspect.unwrap(command.callback, stop=lambda inner: hasattr(inner, "__signature__"))
    return "".join(
        f"| {_named(parameter, parameter.annotation)} | {_meaning(parameter, parameter.annotation)} |\n"
        for parameter in inspect.signature(function, eval_str=True).parameters.values()
        if (said := get_args(parameter.annotation))
        and not getattr(said[1], "hidden", False)  # an old name of an option
    )


def _named(parameter: inspect.Parameter, hint: Any) -> str:
    kind, info = get_args(hint)[:2]
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return f"`{info.metavar}`"
    # In an annotation the first name given to typer.Option lands where its default would be.
    stated = [name for name in (info.default, *info.param_decls) if isinstance(name, str) and name.startswith("-")]
    names = ", ".join(
        f"`{each}`" for name in stated or [f"--{parameter.name.replace('_', '-')}"] for each in name.split("/")
    )
    plain = next((part for part in get_args(kind) if part is not type(None)), kind)  # X | None is X
    if plain is bool:
        return names
    choices = get_args(kind) if isinstance(plain, str) else get_args(plain) if get_origin(plain) is Literal else ()
    if choices:
        return f"{names} {', '.join(f'`{choice}`' for choice in choices)}"
    return f"{names} {info.metavar or {int: 'N', Path: 'PATH'}.get(plain, 'X')}"


def _meaning(parameter: inspect.Parameter, hint: Any) -> str:
    words = get_args(hint)[1].help
    words = words if words.endswith((".", "…")) else f"{words}."
    if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
        return words
    if parameter.default is inspect.Parameter.empty:
        return f"{words} Required."
    return words if parameter.default in (None, False) else f"{words} Default: `{parameter.default}`."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
