"""Safe Harbor beside a release with noise: what each does, bounds and leaves open. No legal opinion."""

from dataclasses import dataclass

from sfumato.reports.catalogue import message

__all__ = ["ASPECTS", "Aspect", "safe_harbor"]

ASPECTS = ("done", "bound", "reader", "small", "again", "kept", "open", "law")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aspect:
    """One aspect of the comparison."""

    aspect: str
    rule: str
    noise: str


def safe_harbor(language: str) -> tuple[Aspect, ...]:
    """The comparison, a row for each aspect, the last about the law.

    >>> safe_harbor("en")[-1].rule
    'It is a rule of law with a stated effect.'
    """
    return tuple(
        Aspect(
            aspect=message(language, f"safe_harbor.{aspect}"),
            rule=message(language, f"safe_harbor.{aspect}_rule"),
            noise=message(language, f"safe_harbor.{aspect}_noise"),
        )
        for aspect in ASPECTS
    )
