"""From a text to a tree: one statement of bounded size, in one dialect, or a refusal that says where it went wrong.

Functions are kept by the name that was written, so that none is taken for another on the way.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar  # functions of the parser, as it declares them

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import TokenType

from sfumato.errors import InvalidInput, Unsupported

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

__all__ = ["condition_tree", "select_tree", "shallow"]

LONGEST = 20_000
STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN)
KEPT = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING")  # written with words of their own between the brackets


def select_tree(text: str) -> exp.Expression:
    """The one statement of a text; it begins as a SELECT does."""
    _check(text)
    with _understood():
        dialect = _dialect()
        tokens = dialect.tokenize(text)
        first = next((token for token in tokens if token.token_type is not TokenType.SEMICOLON), None)
        if first is None:
            raise InvalidInput("the SQL is empty; nothing was done. Write SELECT … FROM the table.")
        if first.token_type not in STARTS:
            word = first.text.upper() if first.text.isidentifier() else "this"
            raise Unsupported(f"{word} is no question; nothing was done. A question begins with SELECT.")
        trees = dialect.parser(error_level=ErrorLevel.IMMEDIATE).parse(tokens, text)
    several = [tree for tree in trees if tree is not None]
    if len(several) != 1:
        raise Unsupported(f"the text holds {len(several)} statements; nothing was done. Ask one question at a time.")
    return several[0]  # type: ignore[return-value]  # the parser states a wider class of nodes


def condition_tree(text: str) -> exp.Expression:
    """A condition by itself, as it would stand after WHERE."""
    _check(text)
    with _understood():
        trees = _dialect().parse_into(exp.Condition, text, error_level=ErrorLevel.IMMEDIATE)
    several = [tree for tree in trees if tree is not None]
    if len(several) != 1:
        raise InvalidInput("a condition is one text such as \"diagnosis = 'ILI'\"; nothing was done.")
    return several[0]  # type: ignore[return-value]  # the parser states a wider class of nodes


@contextmanager
def shallow() -> Iterator[None]:
    """Refuse what is nested deeper than can be followed."""
    try:
        yield
    except RecursionError:
        raise InvalidInput("the SQL is nested too deeply; nothing was done. Ask a simpler question.") from None


@contextmanager
def _understood() -> Iterator[None]:
    """Say where a text could not be read, in our own words: the parser's could paint the terminal."""
    with shallow():
        try:
            yield
        except SqlglotError as wrong:
            places = getattr(wrong, "errors", None) or [{}]
            line, column = places[0].get("line"), places[0].get("col")
            where = f" near line {line}, column {column}" if line and column else ""
            raise InvalidInput(
                f"the SQL could not be read{where}; nothing was done. It is read as PostgreSQL writes it: "
                'a name with a blank or a hyphen stands in double quotes, "age group", and a text in single ones.'
            ) from None


@cache
def _dialect() -> "Dialect":
    from sqlglot.dialects.postgres import Postgres
    from sqlglot.parsers.postgres import PostgresParser

    class PlainParser(PostgresParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {name: PostgresParser.FUNCTION_PARSERS[name] for name in KEPT}

    class SfumatoSql(Postgres):
        """PostgreSQL without functions that the parser would translate."""

        Parser = PlainParser

    return SfumatoSql()


def _check(text: str) -> None:
    if not isinstance(text, str):
        raise InvalidInput(f"SQL is a text and not {type(text).__name__}; nothing was done.")
    if len(text) > LONGEST:
        raise InvalidInput(
            f"the SQL has {len(text):,} characters, more than {LONGEST:,}; nothing was done. Ask a shorter question."
        )
    if any(sign == "\0" or "\ud800" <= sign <= "\udfff" for sign in text):
        raise InvalidInput("the SQL holds a null character or half a surrogate pair; nothing was done.")
