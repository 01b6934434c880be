"""How large and how deep an expression becomes when it is compiled, known from the expression alone.

On an engine each value is two things: what it is, and whether it is missing. Both are written out wherever they are
used, so a condition inside a condition may be written twice, and nesting such doubles the text. The size counts that.
Engines and the programs that write for them recurse, so there is a limit on the depth as well; a product is several
operations deep, since each is held.
"""

from sfumato.engines.expressions.grammar import (
    AllOf,
    AnyOf,
    Arithmetic,
    CaseWhen,
    Cast,
    Coalesce,
    Compare,
    Cut,
    DatePart,
    DaysBetween,
    Expression,
    Floor,
    Missing,
    Named,
    Nearest,
    Not,
    OneOf,
    Rounded,
    Seconds,
    Shifted,
    StartsWith,
    Truncated,
    UnitsBetween,
    Value,
    ValueCompare,
    ValueMissing,
    ValueOneOf,
    inside,
)
from sfumato.engines.expressions.types import Sign, Type

__all__ = ["DEEPEST", "LARGEST", "depth_of", "size_of"]

LARGEST = 2_000  # on Spark, the slowest, that is half a minute of planning at most
DEEPEST = 500
DEPTHS: dict[type, int] = {
    Floor: 30,
    Cast: 20,
    DatePart: 20,
    DaysBetween: 20,
    Not: 4,
    Nearest: 40,
    Rounded: 60,
    Truncated: 30,
    UnitsBetween: 30,
    Shifted: 60,
    Seconds: 20,
}
PRODUCT, TOTAL, STEP = 44, 24, 6  # of more than eleven products the parser of Spark ran out of stack, now and then


def size_of(node: Value | Expression) -> int:
    """How many operations the compiled form has, roughly.

    >>> from sfumato.engines.expressions import col
    >>> size_of(col("age") >= 65), size_of((col("a") + col("b")) * 2 >= 7)
    (4, 26)
    """
    return _predicate(node) if isinstance(node, Expression) else sum(_value(node))


def depth_of(node: Value | Expression) -> int:
    """How deeply the compiled form is nested, roughly; totals of many summands stay shallow.

    >>> from sfumato.engines.expressions import col
    >>> total, product = col("a") + col("b") + col("c"), col("a") * col("b") * col("c")
    >>> depth_of(total.node), depth_of(product.node)
    (36, 88)
    """
    return _depth(node, within=False)


def _depth(node: Value | Expression, *, within: bool) -> int:
    """``within`` a total, its next addition or subtraction is one step and not another total."""
    adds = isinstance(node, Arithmetic) and node.sign in (Sign.PLUS, Sign.MINUS)
    inner = max((_depth(part, within=adds) for part in inside(node)), default=0)
    match node:
        case Arithmetic() if adds:
            return inner + STEP + (0 if within else TOTAL)
        case Arithmetic():
            return inner + PRODUCT
        case Cast() if node.to in (Type.DATE, Type.TIME):
            return inner + 30
        case AllOf() | AnyOf():
            return inner + 6 * len(node.parts).bit_length()
    return inner + (DEPTHS.get(type(node), 10) if inside(node) else 0)


def _predicate(node: Expression) -> int:
    match node:
        case Compare() | OneOf() | Missing():
            return 4
        case ValueCompare():
            return 2 + sum(_value(node.left)) + sum(_value(node.right))
        case ValueOneOf():
            return 2 + sum(_value(node.part))
        case ValueMissing():
            return 1 + _value(node.part)[1]
        case StartsWith():
            what, gone = _value(node.part)
            return 4 + 2 * what + gone
        case Not():
            return 1 + _predicate(node.part)
        case AllOf() | AnyOf():
            return sum(map(_predicate, node.parts)) + len(node.parts)


def _value(node: Value) -> tuple[int, int]:
    """The sizes of what a value is, and of whether it is missing; 0 for one that never is."""
    parts = [_value(part) for part in inside(node) if not isinstance(part, Expression)]
    what, gone = sum(size for size, _ in parts), sum(size for _, size in parts)
    match node:
        case Named():
            return 2, 2
        case Arithmetic():
            by = parts[1][0] + 6 if node.sign is Sign.OVER else 0
            return what + 6, gone + by
        case Floor():
            return 3 * what + 6, gone
        case Cast() if node.to in (Type.WHOLE, Type.NUMBER):  # of a text, which is the longest
            return 3 * what + 5, gone + 2 * what + 4
        case Cast() if node.to in (Type.DATE, Type.TIME):  # of a text too
            return 3 * what + 12, gone + 2 * what + 8
        case Nearest():
            return 8 * what + 10, gone + 2 * what + 4
        case Rounded():
            return 3 * what + 20, gone
        case Truncated() | UnitsBetween():
            return 2 * what + 8, gone
        case DatePart() | DaysBetween() | Seconds():
            return what + 6, gone
        case Shifted():
            return 3 * what + 12, gone + 3 * what + 12
        case Coalesce():
            return what + gone, 0 if any(not size for _, size in parts) else gone
        case CaseWhen():
            asked = sum(_predicate(branch.when) for branch in node.branches)
            whole = node.otherwise is not None and not gone
            return what + asked, 0 if whole else gone + asked
        case Cut():
            outside = (not node.below) + (not node.above)
            return len(node.edges) * (what + 2), gone + outside * (what + 1)
    return what + 2, gone
