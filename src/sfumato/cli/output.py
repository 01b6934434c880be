"""What the commands print: text that came from a file is made harmless to a terminal first."""

import typer

__all__ = ["harmless", "say"]


def harmless(text: str) -> str:
    r"""Spell out control characters, line breaks aside: a certificate must not move the cursor or hide a word.

    >>> harmless("ε = 1\n\x1b[2J")
    'ε = 1\n\\x1b[2J'
    """
    return "".join(sign if sign == "\n" or sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def say(text: str, *, error: bool = False) -> None:
    """Print a text, on the stream of errors if it is one."""
    typer.echo(harmless(text), err=error)
