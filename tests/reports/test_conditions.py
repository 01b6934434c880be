"""Conditions as people read them: every node of the grammar, in both languages."""

import dataclasses
import datetime
from typing import Any, get_args

import pytest

import sfumato as sf
from sfumato.engines import expressions
from sfumato.engines.expressions import Expression, Value, coalesce, greatest, least, when
from sfumato.reports.words.rendering import render
from sfumato.tables.conditions import condition, value

COL = sf.col
CONDITIONS: list[tuple[Any, str, str]] = [
    (COL("id") == "a", "id = “a”", "id = “a”"),
    (COL("age") != 1, "age ≠ 1", "age ≠ 1"),
    (COL("at") > datetime.datetime(2026, 1, 31, 13, 5), "at > 2026-01-31 13:05:00", "at > 2026-01-31 13:05:00"),
    (COL("out") - COL("at") > datetime.timedelta(days=2), "out − at > 2 days", "out − at > 2 天"),
    (COL("age") <= 2.5, "age ≤ 2.5", "age ≤ 2.5"),
    (COL("sick") == True, "sick = true", "sick = 真"),  # noqa: E712
    (COL("day") >= datetime.date(2026, 11, 30), "day ≥ 2026-11-30", "day ≥ 2026-11-30"),
    (COL("age").isin([1, 2, 3]), "age is one of 1, 2, 3", "age 为 1、2、3 之一"),
    (COL("age").isnull(), "age is missing", "age 缺失"),
    (~(COL("age") < 5), "not (age < 5)", "并非（age < 5）"),
    (
        (COL("age") > 5) & ((COL("id") == "a") | (COL("id") == "b")),
        "age > 5 and (id = “a” or id = “b”)",
        "age > 5 并且（id = “a”或者 id = “b”）",
    ),
    (COL("out").days_since(COL("in")) > 7, "the days from in to out > 7", "从 in 到 out 的天数 > 7"),
    ((COL("a") - 1).isnull(), "a − 1 is missing", "a − 1 缺失"),
    (COL("a").length().isin([1, 2]), "the length of a is one of 1, 2", "a 的长度为 1、2 之一"),
    (COL("icd").startswith("J1"), "icd starts with “J1”", "icd 以“J1”开头"),
]
VALUES: list[tuple[Any, str, str]] = [
    ((COL("a") - 1) / COL("b"), "(a − 1) / b", "(a − 1) / b"),
    (-COL("a"), "−a", "−a"),
    (abs(COL("a") - COL("b")), "|a − b|", "|a − b|"),
    (COL("a").floor(), "⌊a⌋", "⌊a⌋"),
    (COL("a").round(2), "a rounded to 2 digits", "a 四舍五入到小数点后 2 位"),
    (COL("a").nearest(), "a as the nearest whole number", "最接近 a 的整数"),
    (COL("a").truncate("month"), "the first day of the month of a", "a 所在月份的第一天"),
    (COL("a").since(COL("b"), "hour"), "the hours that began from b to a", "从 b 到 a 开始的小时数"),
    ((COL("a") - COL("b")).seconds(), "(a − b) in seconds", "(a − b) 的秒数"),
    (COL("a").shift(months=2, days=3), "a + 2 months + 3 days", "a 加 2 个月 + 3 天"),
    (COL("a").lower(), "a in small letters", "a 的小写形式"),
    (COL("a").strip(), "a without spaces at its ends", "去掉两端空格的 a"),
    (COL("a").substring(2, 3), "3 characters of a from character 2 on", "a 从第 2 个字符起的 3 个字符"),
    (COL("a").right(3), "the last 3 characters of a", "a 的后 3 个字符"),
    (COL("a").replace("x", "y"), "a with “y” in place of “x”", "把 a 中的“x”换成“y”"),
    (COL("a").concat("-", COL("b")), "the texts a, “-”, b joined", "a、“-”、b 连接成的文本"),
    (least(COL("a"), COL("b")), "the least of a, b", "a、b 中的最小值"),
    (greatest(COL("a"), COL("b")), "the greatest of a, b", "a、b 中的最大值"),
    (coalesce(COL("a"), COL("b")), "the first of a, b that is not missing", "a、b 中首个不缺失的值"),
    (
        when(COL("age") < 18).then("minor").otherwise("adult"),
        "(“minor” where age < 18; otherwise “adult”)",
        "（当 age < 18 时为“minor”；否则为“adult”）",
    ),
    (when(COL("age") < 18).then(1), "(1 where age < 18)", "（当 age < 18 时为 1）"),
    (COL("a").cast("whole"), "a as a whole number", "a 的整数值"),
    (COL("a").cast("number"), "a as a number", "a 的数值"),
    (COL("d").year(), "the year of d", "d 的年份"),
    (COL("d").quarter(), "the quarter of d", "d 的季度"),
    (COL("d").month(), "the month of d", "d 的月份"),
    (COL("d").day(), "the day of d", "d 的日"),
    (COL("d").weekday(), "the weekday of d", "d 的星期"),
    (COL("age").cut([0, 18]), "the bin of age among “[0, 18)”", "age 在“[0, 18)”中所属的区间"),
]


@pytest.mark.parametrize(("asked", "english", "chinese"), CONDITIONS)
def test_a_condition_is_spelled_out(asked: Any, english: str, chinese: str) -> None:
    assert render(condition(asked), "en") == english
    assert render(condition(asked), "zh") == chinese


@pytest.mark.parametrize(("term", "english", "chinese"), VALUES)
def test_a_value_is_spelled_out(term: Any, english: str, chinese: str) -> None:
    assert render(value(term.node), "en") == english
    assert render(value(term.node), "zh") == chinese


def named_in(node: object) -> set[str]:
    """The classes of a node and of all that is inside it."""
    if isinstance(node, tuple):
        return {name for part in node for name in named_in(part)}
    if not dataclasses.is_dataclass(node):
        return set()
    inside = (getattr(node, field.name) for field in dataclasses.fields(node))
    return {type(node).__name__, *(name for part in inside for name in named_in(part))}


def test_every_node_of_the_grammar_is_among_the_examples() -> None:
    examples = [*(asked for asked, _, _ in CONDITIONS), *(term.node for term, _, _ in VALUES)]
    named = {name for each in examples for name in named_in(each)}
    nodes = {node.__name__ for node in (*get_args(Expression), *get_args(Value), expressions.Branch)}
    assert nodes <= named
