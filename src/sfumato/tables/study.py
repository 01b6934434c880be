"""A study: a question about a table, and the method that makes a result of its release."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from sfumato.core.exact import Exact, natural
from sfumato.core.question import Preview, Question
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Unsupported
from sfumato.studies.result import StudyResult

__all__ = ["Study", "StudyPreview"]

Result = TypeVar("Result", bound=StudyResult)
LADDER = tuple(Fraction(digits, 10**places) for places in (4, 3, 2, 1, 0) for digits in range(10, 100))
"""The values of ε that are tried: two digits, from 0.001 to 99."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StudyPreview:
    """What to expect of a study before anything is spent: the noise in its numbers, and what the method needs."""

    numbers: Preview
    notes: tuple[str, ...]
    """Where the method has no verdict, and how many rows it needs to have one."""
    told: str = ""
    """What the noise does to the figures that are read, where these are not the numbers that are released."""

    def __str__(self) -> str:
        return "\n".join([self.told or str(self.numbers), *self.notes])

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Study(Generic[Result]):
    """A question, and what its release becomes: nothing is read and nothing is spent until it is released.

    Guarantee: the release is charged and certified as any other; the result is computed from it alone and costs
    nothing more.
    """

    question: Question
    made: Callable[[Release], Result]
    foreseen: Callable[[Preview, int | None], tuple[str, ...]] = lambda preview, rows: ()
    """What the method needs at this spend, with the rows that are expected in each group where they are told."""
    told: Callable[[Preview, int | None], str] | None = None
    """What a preview says of the noise, in the place of that in the numbers that are released."""
    enough: Callable[[Preview, int], bool] | None = None
    """Whether noise is small beside chance with so many rows expected: in each group of survival, else in all."""

    def epsilon_for(self, *, rows: int, delta: Exact = 0) -> Fraction:
        """Find the least ε, to two digits and rounded up, at which noise is small beside chance for ``rows``.

        Small is: intervals of a regression at most a tenth wider than without noise, for the outcomes that its preview
        assumes; numbers at risk of a survival study at least six standard deviations of their noise. ``rows`` is a
        public number: of the rows in each group of a survival study, else of all. Reads nothing and spends nothing.

        >>> import sfumato as sf
        >>> from sfumato.demo.clinic import visits
        >>> one = visits().with_limit(sf.Limit(groups=1, rows_per_group=1))
        >>> study = one.linear_regression(outcome="sbp", covariates=["age"])
        >>> few, many = study.epsilon_for(rows=1_000), study.epsilon_for(rows=10_000)
        >>> few > many, study.enough(study.question.preview(epsilon=many), 10_000)
        (True, True)
        """
        natural(rows, "rows")
        if self.enough is None:
            raise Unsupported("this study does not say at which ε its noise is small; nothing was done. Say epsilon=….")
        enough = self.enough

        def small(epsilon: Fraction) -> bool:
            return enough(self.question.preview(epsilon=epsilon, delta=delta), rows)

        place = bisect_left(LADDER, 1, key=lambda epsilon: int(small(epsilon)))
        if place == len(LADDER):
            raise InvalidInput(
                f"with {rows:,} rows noise is not small at any ε up to {LADDER[-1]}; nothing was done. Expect more "
                "rows, use fewer columns or coarser steps, or say what the study may cost."
            )
        return LADDER[place]

    def preview(
        self, *, epsilon: Exact, delta: Exact = 0, confidence: Exact = Fraction(19, 20), rows: int | None = None
    ) -> StudyPreview:
        """Say what to expect, from public facts alone; ``rows`` is how many are expected in each group."""
        numbers = self.question.preview(epsilon=epsilon, delta=delta, confidence=confidence, rows=rows)
        told = "" if self.told is None else self.told(numbers, rows)
        return StudyPreview(numbers=numbers, notes=self.foreseen(numbers, rows), told=told)

    def release(
        self,
        *,
        epsilon: Exact,
        delta: Exact = 0,
        fresh: bool = False,
        idempotency: str | None = None,
        reads: tuple[str, str] | None = None,
        even_if_useless: bool = False,
    ) -> Result:
        """Charge, release the numbers, and make the result of them; parameters as for a question."""
        release = self.question.release(
            epsilon=epsilon,
            delta=delta,
            fresh=fresh,
            idempotency=idempotency,
            reads=reads,
            even_if_useless=even_if_useless,
        )
        return self.made(release)

    def __repr__(self) -> str:
        return f"Study of {self.question!r}"
