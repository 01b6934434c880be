"""Plans of Polars: whether a lazy frame takes stored rows one by one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.foreign import Frame
from sfumato.engines.logged_folders import check_no_logs
from sfumato.engines.row_wise import not_row_wise, not_the_stored_unit
from sfumato.engines.stored_files import local_path, named_twice
from sfumato.errors import EngineFailed

if TYPE_CHECKING:
    import polars as pl

__all__ = ["check_lazy_frame", "collected"]

Plan = Any  # a plan, a step or a type in it, as Polars lets one look into it without a word on types

FILES = ("parquet", "ipc")  # of other files Polars works the types out from many rows
# What is not said of a plain scan: rows are numbered, cut off, deleted or filled in, or columns stand for others.
OPTIONS = ("row_index", "n_rows", "include_file_paths", "column_mapping", "default_values", "deletion_files")
PLAIN = (type(None), bool, int, float, str, bytes, date, time, timedelta, Decimal)
FUNCTIONS = {
    *(f"BooleanFunction.{name}" for name in ("IsNull", "IsNotNull", "Not", "IsNan", "IsNotNan", "IsFinite")),
    *(f"StringFunction.{name}" for name in ("Uppercase", "Lowercase", "LenBytes", "LenChars", "StartsWith")),
    "StringFunction.EndsWith",
    "fill_null",
}
MEMBER = "BooleanFunction.IsIn"
# Of values of any one type; every other operator computes, and only with whole numbers and floats does it never fail.
COMPARING = {f"Operator.{name}" for name in ("Eq", "EqValidity", "NotEq", "NotEqValidity", "Lt", "LtEq", "Gt", "GtEq")}
COMPARING |= {f"Operator.{name}" for name in ("And", "Or", "Xor", "LogicalAnd", "LogicalOr")}
STRICT = 0  # the option of a cast that raises where a value has no place in the new type


def check_lazy_frame(lazy: pl.LazyFrame, label: str, *, unit: Sequence[str] = ()) -> None:
    """Refuse a lazy frame with a step that is not known to look at one row at a time; no row is read.

    Known are scans of Parquet and IPC files and of frames, filters, and columns computed from columns, constants,
    comparisons, arithmetic of whole numbers and floats, casts between these, truth values and text, and when/then:
    steps that fail on no row, whatever it holds (a decimal overflows, a day may have no text). What this version of
    Polars does not let us see is refused too, and so are columns of the ``unit`` that are not the stored ones.
    """
    import polars

    try:
        # As it was written: an optimizer may already have taken the first rows of a frame.
        nodes = lazy._ldf.with_optimizations(polars.QueryOptFlags.none()._pyoptflags).visit()
    except (AttributeError, NotImplementedError, TypeError):
        nodes = None
    _check_plan(nodes, label, unit)


def collected(lazy: Frame, label: str, *, unit: Sequence[str] = ()) -> Frame:
    """The rows of a lazy frame, by a plan that is looked at again when it is about to run.

    A function of the steward's may stand in a frame and give another plan each time: what runs is what is checked. Only
    columns and rows that are not needed are left out beforehand; what takes the first rows is still seen as a step.
    """
    import polars

    looked: list[bool] = []

    def look(nodes: Plan, *_: object) -> None:
        looked.append(False)
        _check_plan(nodes, label, unit)
        looked[-1] = True

    flags = polars.QueryOptFlags.none()
    flags.projection_pushdown = flags.predicate_pushdown = True
    try:
        frame = lazy.collect(engine="in-memory", optimizations=flags, post_opt_callback=look)
    except polars.exceptions.PolarsError:
        if not looked or all(looked):
            raise
    if not looked or not all(looked):
        raise EngineFailed(
            f"the plan by which {label} would be read is not the one that was declared, and cannot be shown to be "
            "row-wise; nothing was released. Leave your own functions out of the frame, or collect it first."
        )
    return frame


def scanned(lazy: pl.LazyFrame) -> list[Path]:
    """The files of this machine that a lazy frame scans; none where its plan cannot be looked into."""
    import polars

    try:
        nodes = lazy._ldf.with_optimizations(polars.QueryOptFlags.none()._pyoptflags).visit()
        return _Plan(nodes).files()
    except (AttributeError, NotImplementedError, TypeError):
        return []


def _check_plan(nodes: Plan, label: str, unit: Sequence[str]) -> None:
    import polars

    seen: str | None
    made: str | None
    try:
        plan = _Plan(nodes)
        root = plan.place()
        seen = plan.odd()
        made = None if seen is not None else next((name for name in unit if not plan.keeps(root, name)), None)
    except (AttributeError, NotImplementedError, TypeError, polars.exceptions.PolarsError):
        seen, made = "a step that cannot be looked into", None
    if seen is not None:
        raise not_row_wise(label, f"has {seen}")
    if made is not None:
        raise not_the_stored_unit(label, made)


class _Plan:
    """The plan that would run, node by node."""

    def __init__(self, nodes: Plan) -> None:
        self._nodes = nodes
        self._below: int = nodes.get_node()  # the node whose columns the parts of a step are computed from

    def place(self) -> int:
        """Where the plan is looked at now."""
        return int(self._nodes.get_node())

    def files(self) -> list[Path]:
        """The files that are scanned from here on."""
        node, inputs = self._nodes.view_current_node(), self._nodes.get_inputs()
        named = [str(each) for each in node.paths] if type(node).__name__ == "Scan" else []
        found = [path for name in named if (path := local_path(name)) is not None]
        for each in inputs:
            self._nodes.set_node(each)
            found += self.files()
        return found

    def keeps(self, place: int, name: str) -> bool:
        """Whether a column is the one that is stored under this name, as it is; for a plan of listed steps."""
        held = name
        while True:
            self._nodes.set_node(place)
            node, inputs = self._nodes.view_current_node(), self._nodes.get_inputs()
            match type(node).__name__:
                case "Scan":
                    by_folder = node.file_options.hive_options is not None and node.file_options.hive_options["enabled"]
                    return held == name and not (by_folder and any(f"/{name}=" in str(path) for path in node.paths))
                case "DataFrameScan":
                    return held == name
                case "Select" | "HStack" as kind:
                    made = {part.output_name: part.node for part in (node.expr if kind == "Select" else node.exprs)}
                    if held in made:
                        part = self._nodes.view_expression(made[held])
                        while type(part).__name__ == "Alias":
                            part = self._nodes.view_expression(part.expr)
                        if type(part).__name__ != "Column":
                            return False
                        held = part.name
            (place,) = inputs

    def odd(self) -> str | None:
        """The first step that is not on the list, in words; None where there is none."""
        node, inputs = self._nodes.view_current_node(), self._nodes.get_inputs()
        self._below = inputs[0] if inputs else self.place()
        wrong = self._odd_step(node)
        if wrong is not None:
            return wrong
        for place in inputs:
            self._nodes.set_node(place)
            wrong = self.odd()
            if wrong is not None:
                return wrong
        return None

    def _odd_step(self, node: Plan) -> str | None:
        kind = type(node).__name__
        match kind:
            case "Scan":
                options, files = node.file_options, node.scan_type[0]
                plain = all(getattr(options, name) is None for name in OPTIONS)
                if files not in FILES or not plain:
                    return f"a scan of {files} files with options, or of files without types"
                paths = [path for each in node.paths if (path := local_path(str(each))) is not None]
                if len(paths) != len(node.paths):
                    return "a scan of files that are not on this machine"
                if named_twice(paths):
                    return "a file twice"
                check_no_logs(paths)
                return self._odd_parts([node.predicate])
            case "DataFrameScan":
                return self._odd_parts([node.selection])
            case "Filter":
                return self._odd_parts([node.predicate])
            case "Select":
                return self._odd_parts(node.expr)
            case "HStack":
                return self._odd_parts(node.exprs)
            case "SimpleProjection":
                return None
        return f"a step {kind}"

    def _odd_parts(self, parts: list[Plan]) -> str | None:
        return next((wrong for part in parts if part is not None and (wrong := self._odd_part(part.node))), None)

    def _odd_part(self, place: int) -> str | None:
        part = self._nodes.view_expression(place)
        kind = type(part).__name__
        inner: list[int]
        match kind:
            case "Column":
                inner = []
            case "Literal":
                return None if isinstance(part.value, PLAIN) else "a list of values in a column"
            case "BinaryExpr":
                inner = [part.left, part.right]
                left, right = map(self._type, inner)
                if left != right or (str(part.op) not in COMPARING and not left.is_integer() and not left.is_float()):
                    return f"{part.op} of {left} and {right}, which may fail on a row"
            case "Cast" if part.options == STRICT:
                return "a strict cast, which may fail on a row (say strict=False)"
            case "Cast" if not (_is_simple(self._type(part.expr)) and _is_simple(self._type(place))):
                return f"a cast of {self._type(part.expr)} to {self._type(place)}, which may fail on a row"
            case "Cast" | "Alias":
                inner = [part.expr]
            case "Ternary":
                inner = [part.predicate, part.truthy, part.falsy]
            case "Function" if str(part.function_data[0]) in FUNCTIONS:
                inner = list(part.input)
                if any(self._type(each) != self._type(inner[0]) for each in inner):
                    return "a function of two types, of which one is cast"
            case "Function" if str(part.function_data[0]) == MEMBER and self._is_list(part.input[1]):
                inner = [part.input[0]]
                if self._type(part.input[1]).inner != self._type(part.input[0]):
                    return "a list of another type than its column, of which one is cast"
            case "Function":
                return f"the function {part.function_data[0]}"
            case _:
                return f"a column by {kind}"
        return next((wrong for each in inner if (wrong := self._odd_part(each))), None)

    def _type(self, place: int) -> Plan:
        """The type of a part, worked out from the columns below its step."""
        here = self.place()
        self._nodes.set_node(self._below)
        try:
            return self._nodes.get_dtype(place)
        finally:
            self._nodes.set_node(here)

    def _is_list(self, place: int) -> bool:
        """Whether something is a constant list."""
        part = self._nodes.view_expression(place)
        if type(part).__name__ != "Literal":
            return False
        return isinstance(part.value, list) and all(isinstance(value, PLAIN) for value in part.value)


def _is_simple(kind: Plan) -> bool:
    """Whether values of a type are cast to others of these without a failure: what has no place becomes null."""
    import polars

    return bool(kind.is_integer() or kind.is_float() or kind in (polars.Boolean, polars.String, polars.Null))
