"""What somebody may have meant by a name that does not exist: looked for among public names alone, never in data."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

__all__ = ["did_you_mean", "no_attribute"]

ELSEWHERE: Mapping[str, str] = {
    "aggregate": "agg",
    "average": "mean",
    "avg": "mean",
    "corr": "correlation",
    "count_distinct": "persons",
    "cov": "covariance",
    "filter": "where",
    "hist": "histogram",
    "len": "count",
    "merge": "join",
    "nunique": "persons",
    "percentile": "quantiles",
    "query": "sql",
    "select": "agg",
    "share": "proportion",
    "size": "count",
    "std": "standard_deviation",
    "stddev": "standard_deviation",
    "to_xlsx": "to_excel",
    "total": "sum",
    "var": "variance",
    "write_csv": "to_csv",
    "write_excel": "to_excel",
}
"""What other libraries call the same."""


def did_you_mean(name: object, names: Iterable[str], *, of_functions: bool = False) -> str:
    """A question to put after an error, with the names that are closest; nothing where none is close.

    ``names`` must be public: declared columns and keys, names of methods, of commands. Those ``of_functions`` are also
    known by what other libraries call the same.

    >>> did_you_mean("regoin", ["region", "sex"]), did_you_mean("colour", ["region", "sex"])
    (" Did you mean 'region'?", '')
    """
    known = list(names)
    there = ELSEWHERE.get(name.casefold()) if of_functions and isinstance(name, str) else None
    close = [there] if there in known else _close(name, known)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


def no_attribute(holder: object, name: str) -> AttributeError:
    """The error for a method or an attribute that does not exist; it names those that sound like it.

    >>> no_attribute("text", "casefolds")
    AttributeError("'str' object has no attribute 'casefolds'. Did you mean 'casefold'?")
    """
    kind = type(holder)
    known = (each for each in dir(kind) if not each.startswith("_"))
    meant = "" if name.startswith("_") else did_you_mean(name, known, of_functions=True)
    # With a name and without the object, Python does not add a guess of its own.
    return AttributeError(f"{kind.__name__!r} object has no attribute {name!r}.{meant}", name=name)


def _close(name: object, names: Iterable[str]) -> list[str]:
    """The names that differ by capital letters and underscores alone; else up to three that are written nearly so."""
    if not isinstance(name, str):
        return []
    known = {_plain(each): each for each in names if isinstance(each, str) and each != name}
    same = known.get(_plain(name))
    return [same] if same is not None else [known[each] for each in get_close_matches(_plain(name), known, 3, 0.6)]


def _plain(name: str) -> str:
    return name.casefold().replace("_", "")
