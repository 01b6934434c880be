"""Which strategy a stream runs: the one of the least mean squared error, or one that was named."""

from sfumato.core.exact import natural
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.steps.buffers import Buffers, buffers_for, searched
from sfumato.mechanisms.matrix.steps.doubling import BLOCKS, FIRST, Doubling
from sfumato.mechanisms.matrix.steps.pattern import ADDED, Pattern
from sfumato.mechanisms.matrix.steps.rows import MOST, Rows, optimal
from sfumato.mechanisms.matrix.steps.toeplitz import LONGEST, Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree

__all__ = ["STRATEGIES", "strategy_for"]

STRATEGIES = ("best", "buffers", "square root", "optimal", "tree", "increments", "totals", "doubling")
BITS = 20
ARITIES = (2, 3, 4, 6, 8, 12, 16, 24, 32)


def strategy_for(
    name: str,
    *,
    horizon: int,
    pattern: Pattern,
    largest: int,
    pure: bool,
    unknown: bool = False,
    reading: int | None = None,
) -> Toeplitz | Buffers | Tree | Rows | Doubling:
    """The strategy of a name; ``best`` looks at what the noise of each would be, from public facts alone.

    With ``reading`` it is best for sums of that many steps in a row, and else for totals from the start.

    >>> one = Pattern(times=1, separation=1, change="added")
    >>> strategy_for("best", horizon=4096, pattern=one, largest=1, pure=True).arity
    24
    """
    bits = _bits(horizon, largest)
    match name:
        case "best":
            if not pure and unknown:
                return strategy_for("doubling", horizon=horizon, pattern=pattern, largest=largest, pure=pure)
            return _pure(horizon, pattern, reading) if pure else _gaussian(horizon, pattern, largest, reading)
        case "buffers":
            return _buffers(horizon, largest)
        case "square root" | "totals" | "increments":
            if horizon > LONGEST:
                raise InvalidInput(
                    f"{name!r} is for up to {LONGEST:,} steps; nothing was done. Say strategy='buffers'."
                )
            return Toeplitz(form=name, horizon=horizon, bits=0 if pure and name != "square root" else bits)
        case "optimal":
            if horizon > MOST:
                raise InvalidInput(f"the optimum is computed for up to {MOST:,} steps; nothing was done.")
            return optimal(horizon)
        case "doubling":
            found = Doubling(first=FIRST, blocks=BLOCKS, bits=bits)
            if horizon != found.horizon:
                raise InvalidInput(
                    f"doubling is for {found.horizon:,} steps or an end that nobody knows; nothing was done."
                )
            return found
        case "tree":
            return Tree(arity=2, horizon=horizon, bits=0 if pure else bits)
    raise InvalidInput(f"strategy is one of {', '.join(STRATEGIES)}; nothing was done.")


def _gaussian(horizon: int, pattern: Pattern, largest: int, reading: int | None) -> Toeplitz | Buffers:
    """Buffers, or where a unit counts in many steps or few steps are read at once perhaps the increments."""
    mixed = _buffers(horizon, largest)
    if (pattern.times == 1 and reading is None) or horizon > LONGEST:
        return mixed
    import numpy as np

    from sfumato.mechanisms.matrix.steps.inverse import mean_error
    from sfumato.streams.window import window_squares

    plain = Toeplitz(form="increments", horizon=horizon, bits=mixed.bits)
    theirs = (reading or (horizon + 1) / 2) * plain.squared(pattern) / 4**plain.bits
    if reading is None:
        decays, weights = (np.array([float(one) for one in part]) for part in (mixed.decays, mixed.weights))
        alone = mixed.squared(Pattern(times=1, separation=1, change=ADDED))
        ours = mean_error(decays, weights, horizon) ** 2 * mixed.squared(pattern) / alone
    else:
        ours = float(window_squares(mixed, horizon, reading)[0][0]) * mixed.squared(pattern) / 4**mixed.bits
    return plain if theirs < ours else mixed


def _pure(horizon: int, pattern: Pattern, reading: int | None) -> Toeplitz | Tree:
    """A tree of the arity with the least error, or the increments. Sums of a few steps are a difference of two totals.

    Those of a tree may share no block, and then the errors of both count.
    """
    found: list[tuple[float, Toeplitz | Tree]] = []
    for arity in ARITIES:
        tree = Tree(arity=arity, horizon=horizon, bits=0)
        top = horizon // arity ** (tree.levels - 1)
        blocks = (tree.levels - 1) * (arity - 1) / 2 + top / 2
        twice = 1 if reading is None else 2
        found.append((twice * blocks * tree.absolute(pattern) ** 2, tree))
    if horizon <= LONGEST:
        plain = Toeplitz(form="increments", horizon=horizon, bits=0)
        found.append(((reading or (horizon + 1) / 2) * plain.absolute(pattern) ** 2, plain))
    return min(found, key=lambda pair: pair[0])[1]


def _buffers(horizon: int, largest: int) -> Buffers:
    decays, weights = searched(natural(horizon, "horizon"), buffers_for(horizon))
    return Buffers(horizon=horizon, decays=decays, weights=weights, bits=_bits(horizon, largest), largest=largest)


def _bits(horizon: int, largest: int) -> int:
    """A lattice as fine as 64 bits allow: exact sums and noise stay far within them."""
    room = 50 - largest.bit_length() - (horizon.bit_length() + 1) // 2
    return max(0, min(BITS, room))
