"""A question: a query at a gate, which is what an analyst holds.

The query is a declaration without data; the gate alone can answer it. Asking for the price, the margin or the least
ε never opens the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, NoReturn, Protocol

from sfumato.core.budget import Budget
from sfumato.core.deprecation import withdrawn
from sfumato.core.exact import Exact, decimal_down, decimal_up
from sfumato.core.limits import Limit
from sfumato.core.notebook_card import card
from sfumato.core.query import Mechanism, Query
from sfumato.core.release import Release, viewed
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.suggestion import no_attribute
from sfumato.core.units import Unit
from sfumato.core.view import View
from sfumato.errors import InvalidInput

__all__ = ["Gate", "Intended", "Preview", "Question", "question_text"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Preview:
    """The error to expect of a release, worked out from public facts alone."""

    spend: Budget
    unit: Unit
    limit: Limit | None
    sensitivity: Sensitivity
    mechanism: Mechanism
    numbers: int
    confidence: Fraction
    margins: Mapping[str, Fraction]
    joint_margins: Mapping[str, Fraction]
    by_rows: tuple[str, ...] = ()
    """Columns whose error depends on how many rows a group has: ``rows=`` tells it."""
    untold: tuple[str, ...] = ()
    """Columns whose error depends on the data in other ways."""
    limited: str = ""
    """What of one person counts; empty where all of it does."""
    cuts: bool = False
    """Whether the limit can cut something off."""

    @property
    def margin(self) -> int | Fraction:
        """The margin of each number of the only column."""
        return _only(self.margins)

    @property
    def joint_margin(self) -> int | Fraction:
        """The margin of all numbers of the only column at once."""
        return _only(self.joint_margins)

    def __str__(self) -> str:
        percent = decimal_down(100 * self.confidence)
        if len(self.margins) == 1 and not self.by_rows and not self.untold:
            error = decimal_up(self.mechanism.law.mean_absolute_error)
            within = f"each within ±{_short(self.margin)} with {percent}% confidence, all at once within ±"
            exact = isinstance(self.margin, int)
            return (
                f"{self.numbers} number(s) at {self.spend}: {within}{_short(self.joint_margin)}"
                f"{f'; mean absolute error {error}' if exact else ''}. {self._outside}Nothing was read or spent."
            )
        lines = [f"{self.numbers} group(s) at {self.spend}, with {percent}% confidence:"]
        for name, margin in self.margins.items():
            joint = self.joint_margins[name]
            lines.append(f"  {name}: each within ±{_short(margin)}, all at once within ±{_short(joint)}")
        lines += [f"  {name}: depends on how many rows a group has; say rows=…" for name in self.by_rows]
        lines += [f"  {name}: depends on the data" for name in self.untold]
        return "\n".join([*lines, f"{self._outside}Nothing was read or spent."])

    @property
    def _outside(self) -> str:
        """What the margins do not cover."""
        if not self.limited:
            return ""
        return f"Counted: {self.limited}{'; what that cuts is not in the margin' if self.cuts else ''}. "

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            (name, f"each ±{_short(each)}, all at once ±{_short(self.joint_margins[name])}")
            for name, each in self.margins.items()
        ]
        rows += [(name, "depends on how many rows a group has; say rows=…") for name in self.by_rows]
        rows += [(name, "depends on the data") for name in self.untold]
        title = f"{self.numbers} number(s) at {self.spend}, with {decimal_down(100 * self.confidence)}% confidence"
        return card(title, rows, f"{self._outside}Nothing was read or spent.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Intended:
    """One of several questions that are about to be released, as each of them will be."""

    query: Query
    spend: Budget
    fresh: bool = False
    """Whether it is charged though the same may have been asked before."""
    idempotency: str | None = None
    known: bool = True
    """False where an answer before it decides what is asked exactly: then all of its spend counts."""


class Gate(Protocol):
    """The one way to data: whoever charges, reads, draws, signs and stores."""

    def release(
        self,
        query: Query,
        spend: Budget,
        *,
        fresh: bool,
        idempotency: str | None,
        reads: tuple[str, str] | None,
        even_if_useless: bool,
    ) -> Release:
        """Charge, then read; store, then deliver."""
        ...

    def check_fits(self, questions: Sequence[Intended], *, reads: tuple[str, str] | None) -> Budget:
        """What several questions would cost; refused where that does not fit together, before the first is charged."""
        ...

    def preview(self, query: Query, spend: Budget, *, confidence: Exact, rows: int | None) -> Preview:
        """Say what error to expect, from public facts alone."""
        ...

    def epsilon_for(
        self,
        query: Query,
        *,
        margin: Exact | None,
        mse: Exact | None,
        confidence: Exact,
        joint: bool,
        delta: Exact,
        rows: int | None,
        column: str | None,
    ) -> Fraction:
        """Find the least ε that reaches a margin or a mean squared error, from public facts alone."""
        ...

    def limited(self, limit: Limit) -> "Gate":
        """The same way to the same data, of each person of whom this much counts."""
        ...


@withdrawn(gate="release, preview and epsilon_for")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Question:
    """A query, and behind it the gate that can answer it; ``view`` says how the answer is shown."""

    query: Query
    view: View | None = None
    gate: InitVar[Gate]
    _gate: Gate = field(init=False, repr=False)

    def __post_init__(self, gate: Gate) -> None:
        object.__setattr__(self, "_gate", gate)

    def release(
        self,
        *,
        epsilon: Exact,
        delta: Exact = 0,
        fresh: bool = False,
        idempotency: str | None = None,
        reads: tuple[str, str] | None = None,
        even_if_useless: bool = False,
    ) -> Release:
        """Publish the answer for ε, and at most δ, which is the whole cost.

        Where a δ is allowed and makes the error smaller the noise is Gaussian; else it is Laplace and no δ is charged.
        The same question at the same cost gives the stored answer, charged 0, unless ``fresh`` asks (and pays) for a
        new draw.

        With a durable ledger a retry under the same ``idempotency`` key is charged once and gets the same answer;
        ``reads`` are the first and the last day of the data, where the account has windows of time.

        An answer whose margin is wider than all that it can be, as far as public facts tell, is refused before anything
        is charged; ``even_if_useless`` pays for it all the same.
        """
        spend = Budget.asked(epsilon=epsilon, delta=delta)
        release = self._gate.release(
            self.query, spend, fresh=fresh, idempotency=idempotency, reads=reads, even_if_useless=even_if_useless
        )
        return viewed(release, self.view)

    def preview(
        self,
        *,
        epsilon: Exact,
        delta: Exact = 0,
        confidence: Exact = Fraction(19, 20),
        rows: int | None = None,
    ) -> Preview:
        """Say what error to expect; opens no data and spends nothing.

        ``rows`` is how many rows you expect in a group: the error of a mean, a share or a variance depends on it.
        """
        spend = Budget.asked(epsilon=epsilon, delta=delta)
        return self._gate.preview(self.query, spend, confidence=confidence, rows=rows)

    def epsilon_for(
        self,
        *,
        margin: Exact | None = None,
        mse: Exact | None = None,
        confidence: Exact = Fraction(19, 20),
        joint: bool = False,
        delta: Exact = 0,
        rows: int | None = None,
        column: str | None = None,
    ) -> Fraction:
        """Find the least ε, to four digits and rounded up, that keeps each number (or all) within ±``margin``.

        With ``mse`` in its place: the least ε whose noise has at most this mean squared error in each number.
        ``rows`` is how many rows you expect in a group, for means, shares and variances; ``column`` says which column
        is meant where there are several.
        """
        return self._gate.epsilon_for(
            self.query,
            margin=margin,
            mse=mse,
            confidence=confidence,
            joint=joint,
            delta=delta,
            rows=rows,
            column=column,
        )

    def __repr__(self) -> str:
        return (
            f"Question: {question_text(self.query)}. Nothing was read or spent. Call preview(epsilon=…) for the error "
            "to expect, release(epsilon=…) for the answer."
        )

    def _repr_html_(self) -> str:
        where = getattr(self.query, "where", None)
        facts = [
            ("asks", ", ".join(self.query.names)),
            ("of", f"{self.query.dataset.name}, version {self.query.dataset.edition}"),
            ("by", ", ".join(self.query.labels())),
            ("where", "" if where is None else str(where)),
        ]
        note = "Nothing was read or spent. preview(epsilon=…) tells the error to expect, release(epsilon=…) the answer."
        return card("Question", [(name, said) for name, said in facts if said], note)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name)


def question_text(query: Query) -> str:
    """What a query asks, in one line: the names of its columns, the groups, the condition, the data."""
    by, where = ", ".join(query.labels()), getattr(query, "where", None)
    return (
        f"{', '.join(query.names)} of {query.dataset.name}{f' by {by}' if by else ''}"
        f"{'' if where is None else f', where {where}'}"
    )


def _only(margins: Mapping[str, Fraction]) -> int | Fraction:
    if len(margins) != 1:
        raise InvalidInput(f"there are {len(margins)} margins, by name of the column: look at margins.")
    (margin,) = margins.values()
    return int(margin) if margin.denominator == 1 else margin


def _short(margin: int | Fraction) -> str:
    return str(int(margin)) if margin == int(margin) else decimal_up(Fraction(margin))
