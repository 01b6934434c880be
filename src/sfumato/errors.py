"""The whole tree of errors.

::

    SfumatoError
    ├── InvalidInput      (also a ValueError)   a parameter is malformed or out of range
    │   └── WrongNorm     (also a TypeError)    a bound in one norm was given where another is needed
    ├── NotDeclared       a public fact is missing: a bound, a key, a unit, a limit
    ├── Unsupported       not supported; named, never guessed
    ├── BudgetExceeded    the account has less left than was asked for
    ├── Refused           well-formed, but would give a weaker guarantee than it seems to
    ├── EngineFailed      the data or its engine did not answer
    ├── LedgerError       the record of charges is missing, locked or inconsistent
    └── MissingExtra      (also an ImportError) an optional part is not installed

Every message says what happened with its numbers, what was *not* done, and the next thing to do. No message
holds a data value.
"""

__all__ = [
    "BudgetExceeded",
    "EngineFailed",
    "InvalidInput",
    "LedgerError",
    "MissingExtra",
    "NotDeclared",
    "Refused",
    "SfumatoError",
    "Unsupported",
    "WrongNorm",
]


class SfumatoError(Exception):
    """Whatever Sfumato raises on purpose."""


class InvalidInput(SfumatoError, ValueError):
    """A parameter is malformed or out of range."""


class WrongNorm(InvalidInput, TypeError):
    """A bound in one norm was given where another is needed."""


class NotDeclared(SfumatoError):
    """A public fact that the guarantee rests on is missing."""


class Unsupported(SfumatoError):
    """Something that is not supported."""


class BudgetExceeded(SfumatoError):
    """The account has less left than was asked for; nothing was read and nothing was spent."""


class Refused(SfumatoError):
    """A request that is well-formed, but whose guarantee would be weaker than it seems."""


class EngineFailed(SfumatoError):
    """The data or its engine did not answer; the message says what became of the charge."""


class LedgerError(SfumatoError):
    """The record of charges is missing, locked or inconsistent."""


class MissingExtra(SfumatoError, ImportError):
    """An optional part is not installed; the message names the command that installs it."""
