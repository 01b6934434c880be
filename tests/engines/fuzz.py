"""Random expressions of each type over the columns full of corners."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from sfumato.engines.expressions import Expression, Term, Type, coalesce, col, greatest, least, term, when
from sfumato.engines.expressions.measure import DEEPEST, LARGEST, depth_of, size_of
from sfumato.errors import InvalidInput
from tests.engines.corners import CODES, COLUMNS, CONSTANTS, DAYS, MOMENTS, NUMBERS, TEXTS, TYPES, WHOLES

OF = {kind: [name for name in COLUMNS if TYPES[name] is kind] for kind in set(TYPES.values())}
LITERALS: dict[Type, list[Any]] = {
    Type.TEXT: [*TEXTS, *CODES],
    Type.WHOLE: [*WHOLES, 7, -2],
    Type.NUMBER: [*NUMBERS, *(it for it in CONSTANTS["number"] if not isinstance(it, int))],
    Type.TRUTH: [True, False],
    Type.DATE: DAYS,
    Type.TIME: MOMENTS,
}
COMPARISONS: list[Callable[[Term, Any], Expression]] = [
    lambda one, two: one == two,
    lambda one, two: one != two,
    lambda one, two: one < two,
    lambda one, two: one <= two,
    lambda one, two: one > two,
    lambda one, two: one >= two,
]
SIGNS: list[Callable[[Term, Any], Term]] = [
    lambda one, two: one + two,
    lambda one, two: one - two,
    lambda one, two: one * two,
]


@st.composite
def terms(draw: st.DrawFn, kind: Type, depth: int) -> Term:
    """A value of a type, nested at most so deep."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(OF[kind]).map(col))

    def another(of: Type = kind) -> Term:
        return draw(terms(of, depth - 1))

    def other() -> Any:
        """Another value, or a constant; a whole-number constant may stand beside a number."""
        if draw(st.booleans()):
            return another()
        return draw(st.sampled_from(LITERALS[kind] + (WHOLES if kind is Type.NUMBER else [])))

    ways: list[Callable[[], Term]] = [
        lambda: coalesce(another(), other()),
        lambda: when(draw(predicates(depth - 1))).then(another()).otherwise(other()),
        lambda: when(draw(predicates(depth - 1))).then(other()).when(draw(predicates(depth - 1))).then(another()),
        lambda: term(draw(st.sampled_from(LITERALS[kind]))),
    ]
    if kind in (Type.WHOLE, Type.NUMBER):
        ways += [lambda: draw(st.sampled_from(SIGNS))(another(), other())] * 4
        ways += [lambda: -another(), lambda: abs(another())]
    if kind in (Type.WHOLE, Type.NUMBER, Type.DATE, Type.TIME):
        ways += [lambda: least(another(), other()), lambda: greatest(other(), another())]
    match kind:
        case Type.WHOLE:
            dated = draw(st.sampled_from(["year", "quarter", "month", "day", "weekday"]))
            ways += [
                lambda: another(draw(st.sampled_from([Type.NUMBER, Type.TEXT, Type.TRUTH]))).cast("whole"),
                lambda: getattr(another(Type.DATE), dated)(),
                lambda: another(Type.DATE).days_since(another(Type.DATE)),
                lambda: another(Type.TEXT).length(),
            ]
        case Type.NUMBER:
            ways += [lambda: another() / other(), lambda: another(Type.WHOLE) / another(Type.WHOLE)] * 2
            ways += [lambda: another().floor(), lambda: another(Type.WHOLE).cast("number")]
            ways += [
                lambda: another().round(draw(st.integers(0, 3))),
                lambda: (another(Type.TIME) - another(Type.TIME)).seconds(),
            ]
        case Type.TEXT:
            ways += [lambda: draw(cuts(depth))] * 2
            ways += [lambda: another().lower(), lambda: another().upper().strip(), lambda: another().concat(other())]
            ways += [lambda: another().substring(draw(st.integers(1, 3)), 2), lambda: another().replace("a", "bb")]
        case Type.DATE:
            unit = draw(st.sampled_from(["year", "quarter", "month", "week", "day"]))
            ways += [lambda: another(Type.TIME).truncate(unit), lambda: another(Type.TEXT).cast("date")]
        case Type.TIME:
            ways += [lambda: another(Type.DATE).shift(months=draw(st.sampled_from([-13, 1, 11])), seconds=3)]
            ways += [lambda: another(Type.TEXT).cast("time"), lambda: another().truncate("hour")]
    return draw(st.sampled_from(ways))()


@st.composite
def cuts(draw: st.DrawFn, depth: int) -> Term:
    """A value in bins."""
    kind = draw(st.sampled_from([Type.WHOLE, Type.NUMBER, Type.DATE]))
    edges = sorted(draw(st.lists(st.sampled_from(LITERALS[kind]), min_size=1, max_size=4, unique=True)))
    below = draw(st.booleans())
    above = draw(st.booleans()) or (len(edges) == 1 and not below)
    try:
        return draw(terms(kind, depth - 1)).cut(edges, below=below, above=above)
    except InvalidInput:  # two numbers that are one double make no bin
        return draw(terms(kind, depth - 1)).cut(edges[:1], below=below, above=True)


@st.composite
def predicates(draw: st.DrawFn, depth: int) -> Expression:
    """A predicate, nested at most so deep."""
    if depth > 0 and draw(st.booleans()):
        one = draw(predicates(depth - 1))
        match draw(st.integers(0, 2)):
            case 0:
                return ~one
            case 1:
                return one & draw(predicates(depth - 1))
        return one | draw(predicates(depth - 1))
    kind = draw(st.sampled_from(sorted(OF, key=lambda it: it.value)))
    one = draw(terms(kind, max(depth - 1, 0)))
    match draw(st.integers(0, 5)):
        case 0:
            return one.isnull()
        case 1:
            return one.isin(draw(st.lists(st.sampled_from(LITERALS[kind]), min_size=1, max_size=3)))
        case 2 if kind is Type.TEXT:
            return one.startswith(draw(st.sampled_from([text for text in TEXTS if text])))
        case 3 if kind is not Type.TRUTH:
            return one.between(draw(st.sampled_from(LITERALS[kind])), draw(terms(kind, max(depth - 1, 0))))
    compare = draw(st.sampled_from(COMPARISONS[:2] if kind is Type.TRUTH else COMPARISONS))
    if draw(st.booleans()):
        return compare(one, draw(st.sampled_from(LITERALS[kind])))
    return compare(one, draw(terms(kind, max(depth - 1, 0))))


def anything(depth: int) -> st.SearchStrategy[Expression | Term]:
    """A value of any type, or a predicate, of a size that is let through."""
    kinds = sorted(OF, key=lambda it: it.value)
    return st.one_of(predicates(depth), *(terms(kind, depth) for kind in kinds)).filter(_let_through)


def _let_through(one: Expression | Term) -> bool:
    node = one.node if isinstance(one, Term) else one
    return size_of(node) <= LARGEST and depth_of(node) <= DEEPEST
