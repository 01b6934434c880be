"""Mutants of the functions that state privacy facts: one operator or constant changed in each.

A function is *watched* if its name is in ``PRIVACY_FUNCTIONS`` or its full name in ``EXTRA``. All of it is
mutated, default arguments included; annotations, decorators and docstrings are not.
"""

import ast
import copy
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

__all__ = [
    "EQUIVALENT",
    "EXTRA",
    "PRIVACY_FUNCTIONS",
    "Mutant",
    "Watched",
    "module_files",
    "mutants_of",
    "mutants_under",
    "watched_functions",
    "watched_in",
    "watched_under",
]

PRIVACY_FUNCTIONS = frozenset({"sensitivity", "loss"})

# Full names of further functions to watch, such as "sfumato.core.guarantees.Pure.group".
#
# Of the accountants everything is watched that decides with exact numbers, and the closed formulas of Rényi orders.
# Not watched, since most of their mutants are equivalent by design:
# - windows, the searches of calibrate, lattice.enumerable: they choose where to look, and a poor choice costs tightness
#   or time, never validity;
# - optimal._pure_delta: what its operators round, they round in the last of more than 192 bits;
# - floats.normal_up and normal_down, rdp._raised and _summed, dots, tilted, lattice.tails and smoothed, and the float
#   formulas of profiles: half of their operators make a bound larger than it must be by a few units, which no value of
#   moderate size can show. test_pld_never_below_the_truth.py compares what comes out of them with the truth, from both
#   sides, and test_float_assumptions.py what goes into them.
EXTRA: tuple[str, ...] = (
    "sfumato.core.guarantees.Approximate.delta_at",
    "sfumato.core.guarantees.Approximate.epsilon_at",
    "sfumato.core.guarantees.Approximate.group",
    "sfumato.core.guarantees.Pure.delta_at",
    "sfumato.core.guarantees.Pure.epsilon_at",
    "sfumato.core.guarantees.Pure.group",
    "sfumato.core.guarantees.RDP.delta_at",
    "sfumato.core.guarantees.RDP.epsilon_at",
    "sfumato.core.guarantees.RDP.group",
    "sfumato.core.guarantees.ZCDP.delta_at",
    "sfumato.core.guarantees.ZCDP.epsilon_at",
    "sfumato.core.guarantees.ZCDP.group",
    "sfumato.core.guarantees.GDP.delta_at",
    "sfumato.core.guarantees.GDP.epsilon_at",
    "sfumato.core.guarantees.GDP.group",
    "sfumato.core.guarantees._renyi_delta",
    "sfumato.core.guarantees._renyi_epsilon",
    "sfumato.core.conversions.convert",
    "sfumato.core.conversions._steps",
    "sfumato.core.budget.Budget.covers",
    "sfumato.core.budget.Budget.__add__",
    "sfumato.core.budget.Budget.__sub__",
    "sfumato.core.sensitivity.Sensitivity.joint",
    "sfumato.core.sensitivity.L1.as_l2",
    "sfumato.graphs.block_models.edge_move",
    "sfumato.graphs.pagerank.half_moves",
    "sfumato.graphs.pagerank.leftover",
    "sfumato.graphs.pagerank.rounding_error",
    "sfumato.graphs.pagerank.textbook_bound",
    "sfumato.learning.noisy_sums.NoisySums.pitch",
    "sfumato.learning.noisy_sums.pitch_for",
    "sfumato.learning.adaptive.AdaptiveClip.multiplier",
    "sfumato.learning.adaptive.AdaptiveClip.for_sums",
    "sfumato.learning.adaptive.AdaptiveClip.squared",
    "sfumato.learning.adaptive.together",
    "sfumato.learning.adaptive.units_moved",
    "sfumato.learning.correlated.Cycle.pattern",
    "sfumato.learning.correlated.CorrelatedSums.squared",
    "sfumato.learning.correlated.CorrelatedSums.after",
    "sfumato.learning.correlated.CorrelatedSums.pitch",
    "sfumato.learning.correlated.CorrelatedSums.active",
    "sfumato.learning.correlated.CorrelatedSums._room",
    "sfumato.learning.correlated._squared",
    "sfumato.learning.paradigms.attention_release._records",
    "sfumato.learning.paradigms.contrastive_training.ContrastiveTraining.reach",
    "sfumato.learning.paradigms.distillation.CloserModel.exact",
    "sfumato.learning.paradigms.output_perturbation.LogisticWeights.moved",
    "sfumato.learning.paradigms.output_perturbation.LogisticWeights.pitch",
    "sfumato.learning.paradigms.persons.persons",
    "sfumato.learning.paradigms.student_choice.CloserStudent.reach",
    "sfumato.learning.paradigms.voting.moved_teachers",
    "sfumato.learning.rounding_error.rounded_l2",
    "sfumato.learning.training.Training._check_protected",
    "sfumato.learning.training.Training.limit",
    "sfumato.mechanisms.top_set.set_range",
    "sfumato.graphs.moves.degree_moves",
    "sfumato.graphs.moves.edge_moves",
    "sfumato.graphs.node_level.by_chosen_cap.ByChosenCap.noise",
    "sfumato.graphs.node_level.by_chosen_cap.ChosenEdges.moves",
    "sfumato.graphs.node_level.by_chosen_cap.ChosenHistogram.moves",
    "sfumato.graphs.node_level.extension.most_at_a_node",
    "sfumato.graphs.node_level.triangles.ChosenTriangles.moves",
    "sfumato.graphs.node_level.triangles.triangle_moves",
    "sfumato.mechanisms.chosen_cap.ChosenCap.scale",
    "sfumato.mechanisms.noisy_local_sensitivity.NoisyLocalSensitivity.bound",
    "sfumato.mechanisms.noisy_local_sensitivity.NoisyLocalSensitivity.guides",
    "sfumato.mechanisms.noisy_local_sensitivity.NoisyLocalSensitivity.scale",
    "sfumato.mechanisms.noisy_local_sensitivity._shift",
    "sfumato.graphs.queries.histogram.histogram_moves",
    "sfumato.graphs.queries.stars.Stars._moved",
    "sfumato.graphs.queries.degrees.SortedDegrees.one_edge",
    "sfumato.graphs.queries.edges.EdgeCount.one_edge",
    "sfumato.mechanisms.matrix.steps.buffers.Buffers.absolute",
    "sfumato.mechanisms.matrix.steps.buffers.Buffers.squared",
    "sfumato.mechanisms.matrix.steps.buffers.Buffers._groups",
    "sfumato.mechanisms.matrix.steps.buffers.Buffers._linear",
    "sfumato.mechanisms.matrix.steps.doubling.Doubling.absolute",
    "sfumato.mechanisms.matrix.steps.doubling.Doubling.squared",
    "sfumato.mechanisms.matrix.steps.pattern.Pattern.squares",
    "sfumato.mechanisms.matrix.steps.pattern.Pattern.sums",
    "sfumato.streams.people.People.counted",
    "sfumato.streams.people.People._room",
    "sfumato.streams.protected.check_protected",
    "sfumato.mechanisms.matrix.steps.rows.Rows.absolute",
    "sfumato.mechanisms.matrix.steps.rows.Rows.squared",
    "sfumato.mechanisms.matrix.steps.rows.Rows._steps",
    "sfumato.mechanisms.matrix.steps.toeplitz.Toeplitz.absolute",
    "sfumato.mechanisms.matrix.steps.toeplitz.Toeplitz.squared",
    "sfumato.mechanisms.matrix.steps.toeplitz.moves",
    "sfumato.mechanisms.matrix.steps.tree.Tree.absolute",
    "sfumato.mechanisms.matrix.steps.tree.Tree.squared",
    "sfumato.graphs.queries.histogram.DegreeHistogram.one_edge",
    "sfumato.graphs.queries.histogram.EdgesAndDegrees.one_edge",
    "sfumato.graphs.queries.stars.Stars.one_edge",
    "sfumato.mechanisms.quantile.RankChoice.weight",
    "sfumato.mechanisms.quantile.QuantileChoice.moved",
    "sfumato.mechanisms.quantile.QuantileChoice.rate",
    "sfumato.mechanisms.quantile._levels",
    "sfumato.accounting._equal_steps",
    "sfumato.accounting.advanced._spread",
    "sfumato.accounting.advanced._sums",
    "sfumato.accounting.advanced.compose",
    "sfumato.accounting.advanced.delta",
    "sfumato.accounting.advanced.epsilon",
    "sfumato.accounting.advanced.textbook",
    "sfumato.accounting.basic._curve",
    "sfumato.accounting.composition.stated",
    "sfumato.accounting.composition.compose",
    "sfumato.accounting.composition.loss_of",
    "sfumato.accounting.basic.guarantee_of",
    "sfumato.accounting.calibrate._shortened",
    "sfumato.accounting.calibrate.plan",
    "sfumato.accounting.event_counts._count",
    "sfumato.accounting.event_counts._samples",
    "sfumato.accounting.event_counts.event_counts",
    "sfumato.accounting.filters.BasicFilter.admits",
    "sfumato.accounting.filters.BasicFilter.after",
    "sfumato.accounting.filters.RDPFilter._cost",
    "sfumato.accounting.filters.RDPFilter.admits",
    "sfumato.accounting.filters.RDPFilter.after",
    "sfumato.accounting.filters.ZCDPFilter.admits",
    "sfumato.accounting.filters.ZCDPFilter.after",
    "sfumato.accounting.filters._largest",
    "sfumato.accounting.floats.float_down",
    "sfumato.accounting.floats.float_up",
    "sfumato.accounting.floats.transform_error",
    "sfumato.accounting.odometer.BasicOdometer.after",
    "sfumato.accounting.odometer.ZCDPOdometer.after",
    "sfumato.accounting.odometer.ZCDPOdometer.level",
    "sfumato.accounting.odometer.ZCDPOdometer.shown",
    "sfumato.accounting.optimal.delta",
    "sfumato.accounting.optimal.epsilon",
    "sfumato.accounting.parallel._delta",
    "sfumato.accounting.parallel._joined",
    "sfumato.accounting.parallel._largest",
    "sfumato.accounting.parallel._worse",
    "sfumato.accounting.parallel.parallel",
    "sfumato.accounting.pld._above_floor",
    "sfumato.accounting.pld._cover",
    "sfumato.accounting.pld._delta",
    "sfumato.accounting.pld._directions",
    "sfumato.accounting.pld._epsilon",
    "sfumato.accounting.pld._merged",
    "sfumato.accounting.pld._plain",
    "sfumato.accounting.pld._pure",
    "sfumato.accounting.pld._readings",
    "sfumato.accounting.pld.delta",
    "sfumato.accounting.pld.epsilon",
    "sfumato.accounting.profiles._inner",
    "sfumato.accounting.profiles._stated",
    "sfumato.accounting.rdp._fixed_size",
    "sfumato.accounting.rdp._laplace",
    "sfumato.accounting.rdp._log",
    "sfumato.accounting.rdp._log_binomials",
    "sfumato.accounting.rdp._log_expm1",
    "sfumato.accounting.rdp._log_moments",
    "sfumato.accounting.rdp._mirrored",
    "sfumato.accounting.rdp._most",
    "sfumato.accounting.rdp._poisson",
    "sfumato.accounting.rdp._response",
    "sfumato.accounting.rdp._sampled",
    "sfumato.accounting.rdp._skellam",
    "sfumato.accounting.rdp._stated",
    "sfumato.accounting.rdp._whole",
    "sfumato.accounting.rdp._whole_skellam",
    "sfumato.accounting.rdp._without_delta",
    "sfumato.accounting.rdp.compose",
    "sfumato.accounting.rdp.delta",
    "sfumato.accounting.rdp.epsilon",
    "sfumato.accounting.rdp.loss_at",
    "sfumato.accounting.subsampling._amplified",
    "sfumato.accounting.subsampling.fixed_size",
    "sfumato.accounting.zcdp._has_loss",
    "sfumato.accounting.zcdp.compose",
    "sfumato.accounting.zcdp.delta",
    "sfumato.accounting.zcdp.epsilon",
    "sfumato.accounting.zcdp.rho_of",
    "sfumato.local.collection.Collection.charged",
    "sfumato.local.collection.Collection.cost",
    "sfumato.local.hadamard.HadamardResponse.report",
    "sfumato.local.kary.KaryResponse.report",
    "sfumato.local.local_hash.LocalHash.report",
    "sfumato.local.means.DuchiMean.report",
    "sfumato.local.means.HybridMean.report",
    "sfumato.local.means.PiecewiseMean.report",
    "sfumato.local.projective.ProjectiveResponse.report",
    "sfumato.local.shuffling._share",
    "sfumato.local.subset.SubsetSelection.report",
    "sfumato.local.unary._Bits.report",
    "sfumato.tables.statistic_plan._across",
    "sfumato.tables.statistic_plan._along",
    "sfumato.tables.statistic_plan._reach",
    "sfumato.tables.contribution._in_cells",
    "sfumato.tables.contribution.contribution",
    "sfumato.tables.contribution.joint_reach",
    "sfumato.tables.contribution.one_cell_each",
    "sfumato.tables.contribution.tails_of_one",
    "sfumato.tables.queries.layered_count.LayeredCount.steps",
)

# Mutants that no test can kill since they behave like the original: key (the id without its line) → why so.
# Each is still run: an entry that matches no mutant fails, and so does one whose mutant is killed.
EQUIVALENT: dict[str, str] = {
    "sfumato.local.local_hash:LocalHash.report:+→-#4": "a uniform shift other than 0 is as uniform backwards",
    "sfumato.core.guarantees:GDP.delta_at:0→-1#3": "what is compared with 0 bounds a positive δ from above",
    "sfumato.core.guarantees:GDP.epsilon_at:1→2": "the first halving of a search from 2 asks at 1, as doubling would",
    "sfumato.core.guarantees:GDP.epsilon_at:>→>=": "the doubling too many is taken back by the first halving",
    "sfumato.tables.contribution:_in_cells:0→-1#3": "the largest move is taken, and none is below 0",
    "sfumato.tables.contribution:_in_cells:0→-1#4": "the largest move is taken, and none is below 0",
    "sfumato.core.guarantees:Approximate.epsilon_at:<=→<": "at a ratio of 1 the logarithm that follows is 0 as well",
}

AnyOperator = type[ast.operator] | type[ast.unaryop] | type[ast.cmpop] | type[ast.boolop]

SYMBOLS: Mapping[AnyOperator, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
    ast.And: "and", ast.Or: "or", ast.USub: "-", ast.Not: "not", ast.Invert: "~",
}  # fmt: skip

# `*` becomes `//` as well as `/`: among integers `/` may die of its float alone, whatever its value.
BINARY: Mapping[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div, ast.FloorDiv), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult, ast.Div), ast.Mod: (ast.Mult,), ast.Pow: (ast.Mult,), ast.MatMult: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.BitXor: (ast.BitOr,),
    ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,),
}  # fmt: skip

COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip

OPPOSITE_CALLS = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "floor": "ceil", "ceil": "floor", "any": "all", "all": "any",
}  # fmt: skip

OPPOSITE_MEMBERS = {("Relation", "ADD_REMOVE"): "REPLACE", ("Relation", "REPLACE"): "ADD_REMOVE"}

NUMBER_IN_QUOTES = re.compile(r"-?\d+(/[1-9]\d*|\.\d+)?")

NOT_MUTATED = frozenset({"annotation", "returns", "decorator_list", "type_params", "type_comment"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A function that states a privacy fact; a stub has no body but ``...``."""

    module: str
    qualname: str
    line: int
    stub: bool
    node: ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A module with one change; ``nth`` numbers equal changes inside one function."""

    module: str
    qualname: str
    line: int
    change: str
    nth: int
    before: str
    after: str
    source: str

    @property
    def id(self) -> str:
        """Where and what the change is: ``sfumato.tables.queries.count:Count.sensitivity:L42:*→/``."""
        return f"{self.module}:{self.qualname}:L{self.line}:{self._label}"

    @property
    def key(self) -> str:
        """The id without its line, so that it survives edits elsewhere in the file."""
        return f"{self.module}:{self.qualname}:{self._label}"

    @property
    def _label(self) -> str:
        return self.change if self.nth == 1 else f"{self.change}#{self.nth}"


def module_files(root: Path) -> dict[str, Path]:
    """Every module under the source root, by its dotted name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def watched_functions(tree: ast.Module, module: str, *, extra: tuple[str, ...] = EXTRA) -> list[Watched]:
    """The watched functions of one parsed module, stubs included."""
    return list(_watched(tree, module, (), extra))


def watched_in(source: str, module: str, *, extra: tuple[str, ...] = EXTRA) -> list[Watched]:
    """The watched functions of one module, stubs included."""
    return watched_functions(ast.parse(source), module, extra=extra)


def watched_under(root: Path, *, extra: tuple[str, ...] = EXTRA) -> list[Watched]:
    """The watched functions of every module under a source root, stubs included."""
    return [
        function
        for module, path in module_files(root).items()
        for function in watched_in(path.read_text("utf-8"), module, extra=extra)
    ]


def mutants_of(source: str, module: str, *, extra: tuple[str, ...] = EXTRA) -> list[Mutant]:
    """All mutants of one module's watched functions, in the order of the source."""
    tree = ast.parse(source)
    original = ast.unparse(tree)
    seen: Counter[tuple[str, str]] = Counter()
    mutants = []
    for function in _watched(tree, module, (), extra):
        if function.stub:
            continue
        for place in _places(function.node):
            for change, replacement in _rewrites(place.node):
                place.put(replacement)
                mutated = ast.unparse(tree)
                place.put(place.node)
                if mutated == original:  # such as inf + 1
                    continue
                seen[function.qualname, change] += 1
                before, after = _first_difference(original, mutated)
                mutants.append(
                    Mutant(
                        module=module,
                        qualname=function.qualname,
                        line=getattr(place.node, "lineno", function.line),
                        change=change,
                        nth=seen[function.qualname, change],
                        before=before,
                        after=after,
                        source=mutated,
                    )
                )
    return mutants


def mutants_under(root: Path, *, extra: tuple[str, ...] = EXTRA) -> dict[str, list[Mutant]]:
    """The mutants of every module under a source root that has any."""
    found = {
        module: mutants_of(path.read_text("utf-8"), module, extra=extra) for module, path in module_files(root).items()
    }
    return {module: mutants for module, mutants in found.items() if mutants}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A node together with where its parent holds it."""

    parent: ast.AST
    field: str
    index: int | None
    node: ast.AST

    def put(self, node: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.index] = node


def _watched(node: ast.AST, module: str, outer: tuple[str, ...], extra: tuple[str, ...]) -> Iterator[Watched]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                qualname = ".".join((*outer, name))
                if name in PRIVACY_FUNCTIONS or f"{module}.{qualname}" in extra:
                    stub = _is_stub(child)
                    yield Watched(module=module, qualname=qualname, line=child.lineno, stub=stub, node=child)
                else:
                    yield from _watched(child, module, (*outer, name), extra)
            case ast.ClassDef(name=name):
                yield from _watched(child, module, (*outer, name), extra)
            case _:
                yield from _watched(child, module, outer, extra)


def _is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return all(
        isinstance(line, ast.Expr)
        and isinstance(line.value, ast.Constant)
        and (line.value.value is ... or isinstance(line.value.value, str))
        for line in function.body
    )


def _places(node: ast.AST) -> Iterator[_Place]:
    for field, value in ast.iter_fields(node):
        if field in NOT_MUTATED:
            continue
        children = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if isinstance(child, ast.AST) and not _is_only_text(node, child):
                yield _Place(parent=node, field=field, index=index, node=child)
                yield from _places(child)


def _is_only_text(parent: ast.AST, child: ast.AST) -> bool:
    """Docstrings and the literal parts of f-strings."""
    return isinstance(parent, ast.Expr | ast.JoinedStr) and isinstance(child, ast.Constant)


def _rewrites(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Each change that can be made at the node itself, with the node that it gives."""
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            equals = "=" if isinstance(node, ast.AugAssign) else ""
            for other in BINARY[type(op)]:
                change = f"{SYMBOLS[type(op)]}{equals}→{SYMBOLS[other]}{equals}"
                yield change, _changed(node, op=other())
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert() as unary, operand=operand):
            yield f"drop {SYMBOLS[type(unary)]}", operand
        case ast.Compare(ops=ops):
            for at, comparison in enumerate(ops):
                for new in COMPARISONS[type(comparison)]:
                    change = f"{SYMBOLS[type(comparison)]}→{SYMBOLS[new]}"
                    yield change, _changed(node, ops=[*ops[:at], new(), *ops[at + 1 :]])
        case ast.BoolOp(op=ast.And()):
            yield "and→or", _changed(node, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield "or→and", _changed(node, op=ast.And())
        case ast.IfExp(body=body, orelse=orelse):
            yield "swap if/else", _changed(node, body=orelse, orelse=body)
        case ast.Constant(value=bool(value)) | ast.MatchSingleton(value=bool(value)):
            yield f"{value}→{not value}", _changed(node, value=not value)
        case ast.Constant(value=int(value) | float(value)):
            for number in (value + 1, value - 1):
                yield f"{value}→{number}", _number(number)
        case ast.Constant(value=str(text)) if NUMBER_IN_QUOTES.fullmatch(text):
            for step in (1, -1):
                new_text = str(Fraction(text) + step)
                yield f"'{text}'→'{new_text}'", _changed(node, value=new_text)
        case ast.Name(id=name) if name in OPPOSITE_CALLS:
            yield f"{name}→{OPPOSITE_CALLS[name]}", _changed(node, id=OPPOSITE_CALLS[name])
        case ast.Call(func=ast.Attribute(attr=name) as func) if name in OPPOSITE_CALLS:
            opposite = OPPOSITE_CALLS[name]
            yield f"{name}→{opposite}", _changed(node, func=_changed(func, attr=opposite))
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=member):
            if opposite_member := OPPOSITE_MEMBERS.get((owner, member)):
                yield f"{member}→{opposite_member}", _changed(node, attr=opposite_member)


def _changed(node: ast.AST, **fields: object) -> ast.AST:
    new = copy.copy(node)
    for field, value in fields.items():
        setattr(new, field, value)
    return new


def _number(value: float) -> ast.expr:
    """A literal; a negative one is spelled with a minus, so that ``0 ** x`` becomes ``(-1) ** x``."""
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _first_difference(original: str, mutated: str) -> tuple[str, str]:
    pairs = zip(original.splitlines(), mutated.splitlines(), strict=True)
    return next((old.strip(), new.strip()) for old, new in pairs if old != new)
