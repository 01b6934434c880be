"""Regressions of a table: formulas over declared columns, and the questions that they become."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.extras import need
from sfumato.core.question import Preview
from sfumato.core.release import Release
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import Named
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.laws import RoundedGaussian
from sfumato.studies.regression.design import Design
from sfumato.studies.regression.foreseen import NoiseForeseen, foreseen_in_products
from sfumato.studies.regression.linear import fit_linear
from sfumato.studies.regression.result import RegressionResult, excess_of
from sfumato.tables.clamped import Clamped
from sfumato.tables.independent_rows import check_independent
from sfumato.tables.keys import Keys
from sfumato.tables.queries.gram import HEIGHT, GramMatrix
from sfumato.tables.studies_foreseen import SPREAD, Assumed, little_noise, said_of_noise
from sfumato.tables.study import Study

if TYPE_CHECKING:
    from sfumato.tables.table import Table

__all__ = ["Model", "factor_of", "kurtosis_of", "linear_regression", "model_of", "number_of", "single_rows"]

FACTOR = re.compile(r"^C\((?:`([^`]+)`|([^\s(),`]+))\)$")
POWER = re.compile(r"[\w.`]\s*(?:\*\*|\^)\s*\d+")
EVERYTHING = re.compile(r"(?<![\w.])\.(?![\w.])")
UNDERSTOOD = (
    "Understood is 'outcome ~ a + b': one declared column before the ~; after it names of declared columns, C(name) "
    "for a factor, a:b for a product, a*b for a + b + a:b, or 1 for an intercept alone."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What a formula says: the outcome, the terms, and which covariates are factors by ``C(…)``."""

    outcome: str
    terms: tuple[tuple[str, ...], ...]
    factors: frozenset[str] = frozenset()

    @property
    def covariates(self) -> tuple[str, ...]:
        """Every covariate once, in the order of the formula."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term))


def model_of(formula: str | None, outcome: str | None, covariates: Sequence[str] | None) -> Model:
    """The model that a formula, or an outcome and a list of covariates, asks for.

    >>> model_of("sbp ~ age * sex + C(ward)", None, None).terms
    ((), ('age',), ('sex',), ('ward',), ('age', 'sex'))
    """
    if (formula is None) == (outcome is None) or (outcome is None) != (covariates is None):
        raise InvalidInput(
            "a regression takes a formula such as 'sbp ~ age + sex', or outcome= and covariates=; nothing was done."
        )
    if formula is None:
        listed = [covariates] if isinstance(covariates, str) else list(covariates or ())
        if not all(isinstance(name, str) for name in (outcome, *listed)):
            raise InvalidInput("outcome= and covariates= are names of columns; nothing was done.")
        return Model(outcome=str(outcome), terms=((), *((name,) for name in listed)))
    return _parsed(formula)


def _parsed(formula: str) -> Model:
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise InvalidInput(f"a formula is a text such as 'sbp ~ age + sex', with one ~; nothing was done. {UNDERSTOOD}")
    strange = _not_offered(formula)
    if strange:
        raise InvalidInput(f"{formula!r} {strange}. Nothing was done. {UNDERSTOOD}")
    formulaic = need("formulaic", "pip install 'sfumato[studies]', or give outcome= and covariates=")
    try:
        read = formulaic.Formula(formula)
        left, right = ([list(term.factors) for term in side] for side in (read.lhs, read.rhs))
    except (AttributeError, TypeError, ValueError, formulaic.errors.FormulaicError, SyntaxError) as cause:
        told = (str(cause).splitlines() or [""])[0].rstrip(".")  # the lines after it mark a place in colours
        raise InvalidInput(
            f"{formula!r} could not be read as a formula: {told}. Nothing was done. {UNDERSTOOD}"
        ) from None
    if len(left) != 1 or len(left[0]) != 1:
        raise InvalidInput(f"{formula!r} needs one column before the ~; nothing was done. {UNDERSTOOD}")
    factors: set[str] = set()
    outcome = _column(str(left[0][0].expr), set())
    terms = []
    for term in right:
        exprs = [str(factor.expr) for factor in term]
        names = () if exprs == ["1"] else tuple(sorted({_column(expr, factors) for expr in exprs}))
        terms.append(names)
    if () not in terms:
        raise InvalidInput(
            "a regression here has an intercept: without one the coefficients would depend on where each column has "
            "its 0, which public bounds decide. Nothing was done. Leave 0 and -1 out of the formula."
        )
    ordered = sorted(dict.fromkeys(terms), key=len)
    return Model(outcome=outcome, terms=tuple(ordered), factors=frozenset(factors))


def _not_offered(formula: str) -> str:
    """What a formula asks for that other software has and this has not, in words; nothing where it asks for none."""
    bare = re.sub(r"`[^`]*`", "x", formula)  # a name in backticks may hold any sign
    left, right = (side.strip() for side in bare.split("~"))
    if not left:
        return "has no outcome before the ~"
    if not right:
        return "has nothing after the ~"
    if "|" in bare:
        return (
            "has a |, which asks for random effects, conditioning or two parts, none of which is offered: a group can "
            "stand beside the others as a factor, C(name)"
        )
    if EVERYTHING.search(bare):
        return "asks by a dot for all columns, and which these are must be said"
    if POWER.search(bare):
        return (
            "asks for a power, and ** is no power of values: in a formula it means products of different columns, and "
            "of one column it is that column. Make the power a column first, with per_person(...) or in the data"
        )
    return ""


def _column(expr: str, factors: set[str]) -> str:
    """The column that a part of a formula names; anything that is computed is refused."""
    found = FACTOR.match(expr)
    if found is not None:
        name = found[1] or found[2]
        factors.add(name)
        return name
    if re.search(r"[()\[\]{}+*/^<>=]", expr) or re.fullmatch(r"[\d.]+", expr):
        raise InvalidInput(
            f"{expr!r} is computed, and a transformation that looks at the data (a standardisation, the knots of a "
            "spline, levels that are read off) would tell of them what no budget was charged for. Nothing was done. "
            "Use names of declared columns, C(name) for a factor, a:b and a*b; other values can be made columns first, "
            "with per_person(...) or in the data."
        )
    return expr


def single_rows(table: "Table", study: str, *, cells: bool = False) -> None:
    """Refuse a table that is grouped, or in which a person may have several rows; in several ``cells``, too."""
    if table.by:
        raise InvalidInput(f"{study} takes a table that is not grouped; nothing was done. Name groups as covariates.")
    check_independent(table, study, cells=cells)


def number_of(table: "Table", column: str) -> Clamped:
    """A declared column of numbers with its bounds."""
    found = table.bounds.get(column)
    if found is None:
        numbers, factors = (", ".join(sorted(each)) or "none" for each in (table.bounds, table.keys))
        raise NotDeclared(
            f"the study needs the bounds of {column!r}, and reading them off the data would tell of people in them. "
            f"Nothing was done. Declare bounds={{{column!r}: (low, high)}} (declared: {numbers}), or its values as "
            f"keys if it is a factor (declared: {factors}).{did_you_mean(column, [*table.bounds, *table.keys])}"
        )
    low, high = found
    if isinstance(low, date) or isinstance(high, date):
        raise InvalidInput(f"{column!r} holds days, and a regression needs numbers or factors; nothing was done.")
    return Clamped(value=Named(column=column), low=Fraction(low), high=Fraction(high))


def factor_of(table: "Table", column: str) -> Keys:
    """A declared column of groups with its keys."""
    found = table.keys.get(column)
    if found is None:
        known = ", ".join(sorted(table.keys)) or "none"
        raise NotDeclared(
            f"the study needs the values of the factor {column!r}, and reading them off the data would reveal who "
            f"is in it. Nothing was done. Declare keys={{{column!r}: [...]}} (declared: {known})."
            f"{did_you_mean(column, table.keys)}"
        )
    return found


def linear_regression(table: "Table", model: Model) -> Study[RegressionResult]:
    """The study of a linear model: one release of all products that it needs."""
    single_rows(table, "a regression")
    factors = [
        name for name in model.covariates if name in model.factors or (name in table.keys and name not in table.bounds)
    ]
    query = GramMatrix(
        dataset=table.dataset,
        outcome=number_of(table, model.outcome),
        terms=model.terms,
        numbers=tuple(number_of(table, name) for name in model.covariates if name not in factors),
        factors=tuple(factor_of(table, name) for name in factors),
        where=table.predicate,
        joins=table.joins,
    )
    design = query.design

    def enough(preview: Preview, rows: int) -> bool:
        return little_noise(SPREAD, _linear_noise(design, preview, rows))

    return Study(question=table._question(query), made=_linear_result, foreseen=_linear_foreseen(design), enough=enough)


def _linear_result(release: Release) -> RegressionResult:
    import numpy as np

    query = release.statement.query
    assert isinstance(query, GramMatrix)  # noqa: S101 - the question that this was made for
    design = query.design
    sums = np.array([value / HEIGHT for value in release.statement.values])
    variance = float(release.statement.law.variance) / HEIGHT**2
    half = float(design.outcome.half)
    scale = half * design.to_natural
    fit = fit_linear(design, sums, variance, scale=scale)
    definite, total = bool(fit.definite), np.diagonal(fit.covariance)
    estimates = scale @ fit.estimates
    estimates[0] += float(design.outcome.middle)
    names = design.names
    return RegressionResult(
        release=release,
        model="linear",
        outcome=design.outcome.name,
        names=names,
        references=tuple((factor.name, factor.levels[0]) for factor in design.factors),
        estimates=estimates if definite else np.full(len(names), np.nan),
        covariance=fit.covariance if definite else None,
        rows=float(fit.rows),
        free=max(float(fit.rows) - len(names), 1.0),
        noise=fit.noise,
        excess=excess_of(fit.weights, variance, total, kurtosis_of(release)),
        residual_deviation=half * float(np.sqrt(fit.residual_variance)),
        clipped=(design.outcome.name, *(each.name for each in design.numbers)),
        doubt=fit.doubt,
        leaning=fit.leaning,
    )


def kurtosis_of(release: Release) -> float:
    """The excess kurtosis of the noise of one number; that of Laplace where it is not Gaussian."""
    return 0.0 if isinstance(release.statement.law, RoundedGaussian) else 3.0


def _linear_foreseen(design: Design) -> Callable[[Preview, int | None], tuple[str, ...]]:
    """How much of the error will be noise, from public facts alone; ``rows`` are those of the whole table."""

    def told(preview: Preview, rows: int | None) -> tuple[str, ...]:
        deviation = float(preview.mechanism.law.variance) ** 0.5 / HEIGHT
        first = (
            f"Each sum of products has noise of standard deviation {deviation:.3g} rows (a covariate at its bound in "
            "every row would have a sum of as many as there are rows)."
        )
        if rows is None:
            return (first, "Say rows=… to see how much of the standard errors will be noise.")
        said = said_of_noise(rows, SPREAD, _linear_noise(design, preview, rows))
        return (first, *said)

    return told


def _linear_noise(design: Design, preview: Preview, rows: int) -> Callable[[Assumed], NoiseForeseen]:
    variance = float(preview.mechanism.law.variance) / HEIGHT**2
    return lambda assumed: foreseen_in_products(design, assumed.shares, rows, variance)
