"""Every exit code of the program, in one place; the help and the documentation list them from here."""

from enum import IntEnum

__all__ = ["MEANING", "Exit", "in_words"]


class Exit(IntEnum):
    """What the program ends with."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    FOUND_WRONG = 3
    REFUTED = 4
    ATTENTION = 5
    INTERRUPTED = 130
    NOT_READ = 141


MEANING = {
    Exit.DONE: "done",
    Exit.REFUSED: "refused or failed, with the reason",
    Exit.USAGE: "wrong usage",
    Exit.FOUND_WRONG: "a certificate or a ledger does not verify",
    Exit.REFUTED: "an audit refuted a claim, or missed a deliberately broken mechanism",
    Exit.ATTENTION: "a ledger needs somebody's attention",
    Exit.INTERRUPTED: "stopped from the keyboard",
    Exit.NOT_READ: "whoever read the output went away",
}


def in_words() -> str:
    """All of them in one line.

    >>> in_words()[:44]
    '0 done; 1 refused or failed, with the reason'
    """
    return "; ".join(f"{code.value} {meaning}" for code, meaning in MEANING.items())
