"""Chinese as the house writes it: the words of the field, full-width signs, and one rule for spaces.

One space stands between a Chinese character and a Latin or Greek letter, a figure or a mathematical sign; none stands
beside a full-width sign or between two Chinese characters. Percentages are figures with a % sign.
"""

import re
import string
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.reports.chinese import fill
from sfumato.reports.page import page
from sfumato.reports.plots import draw
from sfumato.reports.words import AUDIENCES
from sfumato.reports.words.what_if import what_if

PACKAGE = Path(sf.__file__).parent
ROOT = Path(__file__).parents[2]

HAN, WIDE = r"[\u3400-\u9fff]", "，。；：？！、（）《》“”‘’"
LATIN = r"[A-Za-z0-9Α-Ωα-ω%±√−≤≥]"
FACT = "\ufffc"  # stands for what a message is filled with

FORMULAS = {"reports/explanations. amount.rdp"}  # ε(α) has half-width brackets

# What is not said, and what is said instead.
BANNED = {
    "千分之|百分之(?!百)": "10%",
    "承诺": "隐私保证",
    "额度": "隐私预算",
    "可能性最多相差|最多相差 .* 倍": "任一结果的概率之比不超过",
    "存档": "直接返回已存结果",
    "按理": "理论上最多升至",
    "遗忘": "程序退出后不保留",
    "由人记录|记录在案": "须由责任人书面记录",
    "所比较的是|增减": "相邻关系：增加或删除",
    "位次": "秩误差",
    "受隐私保护的发布": "差分隐私统计发布",
    "真实(值|计数|数字|总数)": "限额内的准确值",
    "受?保护单位": "保护对象",
    "95% 区间": "95% 置信区间",
    "(?<!隐私)账本": "隐私账本",
    "(?<!发布)证书": "发布证书",
    "(?<!数据)管理员": "数据管理员",
    "(?<!数据)(?<!伦理)委员会": "数据委员会",
    "计入限制": "贡献上限",
    "灵敏度": "敏感度",
}

# Where English has the word, so has Chinese.
TERMS = {
    r"differential(ly)? priva": "差分隐私",
    r"privacy budget": "隐私预算",
    r"privacy loss": "隐私损失",
    r"privacy guarantee": "隐私保证",
    r"contribution (limit|bound)": "贡献上限",
    r"neighbouring relation|^neighbours$": "相邻关系",
    r"\bintervals?\b": "置信区间",
    r"margins? of error|\bmargins?\b": "误差范围",
    r"\bsensitivity\b": "敏感度",
    r"\bmechanism\b": "机制",
    r"\bstewards?\b": "数据管理员",
    r"(?<!ethics )\bboard\b": "数据委员会",
    r"\bledger\b": "隐私账本",
    r"\bcertificate\b": "发布证书",
    r"\bsynthetic\b": "合成",
    r"federated learning": "联邦学习",
    r"secure aggregation": "安全聚合",
    r"trusted research environment": "可信研究环境",
    r"membership inference": "成员推断",
}


@cache
def catalogue(language: str) -> dict[str, str]:
    """Every message of the package, by file, group and name."""
    found = {}
    for path in sorted(PACKAGE.glob(f"*/messages/*{language}.toml")):
        place = f"{path.parts[-3]}/{path.name.removesuffix(f'{language}.toml')}"
        for group, named in tomllib.loads(path.read_text("utf-8")).items():
            found |= {f"{place} {group}.{name}": words for name, words in named.items()}
    return found


def bare(words: str) -> str:
    return re.sub(r"\{\w+\}", FACT, words)


def banned(text: str) -> Iterator[str]:
    """What of a text is not the house's Chinese, with what to say instead."""
    for wrong, right in BANNED.items():
        yield from (f"{hit[0]}: say {right}" for hit in re.finditer(wrong, text))


def misset(text: str) -> Iterator[str]:
    """Half-width signs and wrong spaces; a separating dot has a space on both sides."""
    text = text.replace(" · ", "·")
    rules = (
        rf"(?:{HAN}|[{WIDE}{FACT}]) ?[,;:?!()\"'](?!\w)|[,;:?!()\"'](?:{HAN}|[{WIDE}])|{HAN}\.|\.{HAN}",
        rf"{HAN}{LATIN}|{LATIN}{HAN}",
        rf"{HAN} +{HAN}",
        rf" [{WIDE}]|[{WIDE}] ",
        r"\S {2,}",
    )
    for rule in rules:
        yield from (text[max(0, hit.start() - 8) : hit.end() + 8] for hit in re.finditer(rule, text))


# ------------------------------------------------------------------------------------------------------- messages


def test_both_languages_are_read_whole() -> None:
    english, chinese = catalogue("en"), catalogue("zh-Hans")
    assert english.keys() == chinese.keys()
    assert len(chinese) > 800


def test_no_message_has_a_word_that_the_field_does_not_use() -> None:
    found = {name: hits for name, words in catalogue("zh-Hans").items() if (hits := list(banned(words)))}
    assert found == {}


@pytest.mark.long
def test_no_other_chinese_of_the_product_or_its_documents_has_one_either() -> None:
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html"), *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    found = {str(path.relative_to(ROOT)): hits for path in files if (hits := list(banned(path.read_text("utf-8"))))}
    assert found == {}


def test_every_message_has_full_width_signs_and_the_spaces_of_the_rule() -> None:
    found = {
        name: hits
        for name, words in catalogue("zh-Hans").items()
        if name not in FORMULAS and (hits := list(misset(bare(words))))
    }
    assert found == {}


def test_where_english_has_a_term_chinese_has_the_term_for_it() -> None:
    english, chinese = catalogue("en"), catalogue("zh-Hans")
    found = [
        (name, term)
        for name, words in english.items()
        for word, term in TERMS.items()
        if re.search(word, bare(words), re.IGNORECASE) and term not in chinese[name]
    ]
    assert found == []


@pytest.mark.parametrize("fact", ["甲", "n", "12", "±3", "“甲”", "（n）", "甲 n"])
def test_whatever_a_message_is_filled_with_stands_as_the_rule_has_it(fact: str) -> None:
    figures = re.compile(r"[±√%=] ?\{|\{\w+\} ?%")  # what belongs to a sign is a figure
    for name, words in catalogue("zh-Hans").items():
        if name in FORMULAS or (figures.search(words) and not fact.isdigit()):
            continue
        fields = {field for _, field, _, _ in string.Formatter().parse(words) if field is not None}
        text = fill(words, dict.fromkeys(fields, fact))
        assert not list(misset(text)), (name, text)


def test_a_name_is_not_touched() -> None:
    assert fill("按 {columns} 分组", {"columns": "年龄age 段"}) == "按年龄age 段分组"


@pytest.mark.parametrize(
    "words",
    [
        "人数,比率",
        "人数 (含噪声)",
        "95%误差",
        "共 3个",
        "按 年龄段 分组",
        "人数， 比率",
        "人数 ：3",
        "人数  3",
        "人数.",
    ],
)
def test_the_search_finds_what_is_misset(words: str) -> None:
    assert list(misset(words))


@pytest.mark.parametrize(
    "words",
    ["千分之 100", "百分之 25", "本次发布的承诺", "总额度", "受保护单位", "保存证书", "须由委员会决定", "真实值"],
)
def test_the_search_finds_what_is_not_said(words: str) -> None:
    assert list(banned(words))


# ------------------------------------------------------------------------------------------------- what users read


@cache
def released(kind: str) -> Release:
    """A release whose data, columns and keys have Chinese names."""
    delta, groups = ("1/10000000", 40) if kind == "delta" else (0, 2)
    ages = [f"第 {place} 组" for place in range(groups)]
    rows = pa.table({"编号": [1, 2, 3], "年龄段": [ages[0], ages[1], ages[0]], "再入院": [1, 0, 1]})
    vault = sf.Vault(
        unit=sf.user("编号", relation="replace" if kind == "replace" else "add/remove"),
        budget=sf.Budget(epsilon=40, delta=delta),
        name="某医院",
    )
    visits = vault.table(
        rows,
        name="住院",
        version="2026 年 10 月",
        limit=sf.Limit(groups=groups, rows_per_group=1),
        keys={"年龄段": ages},
        bounds={"再入院": (0, 1)},
    )
    if kind == "quantiles":
        return visits.group_by("年龄段").quantiles("再入院", ["1/2"]).release(epsilon=20)
    grouped = visits.where(sf.col("再入院") >= 0).group_by("年龄段")
    if kind == "columns":
        return grouped.agg(人次=sf.count(), 再入院率=sf.mean("再入院")).release(epsilon=20)
    return grouped.count().release(epsilon=1, delta=delta)


@pytest.mark.few(10)
@pytest.mark.parametrize("audience", AUDIENCES)
@pytest.mark.parametrize("kind", ["add/remove", "replace", "delta", "columns", "quantiles"])
def test_every_reader_gets_the_chinese_of_the_house(kind: str, audience: str) -> None:
    text = released(kind).explain("zh", audience)
    assert not list(banned(text))
    assert not list(misset(text)), text


def test_a_list_of_names_is_joined_as_chinese_joins_them() -> None:
    assert "按年龄段的人次、再入院率及 95% 误差范围" in str(draw(released("columns"), "intervals", "zh").to_dict())
    assert "median 的秩误差不超过 " in released("quantiles").explain("zh")


def test_a_belief_is_a_percentage_and_an_allowance_too() -> None:
    text = released("add/remove").explain("zh")  # ε = 1
    assert "可能性是 10%。看过本账户截至本次的全部发布后，这一判断理论上最多升至 23.2%，最低降至 3.9%" in text
    assert "无论此人是否在内，任一结果的概率之比不超过 2.719" in text
    assert "隐私预算已用去 3%" in released("add/remove").explain("zh", "patient")
    assert "相邻关系：增加或删除此人" in released("add/remove").explain("zh", "board")


def test_a_release_that_is_only_thought_of_is_told_in_the_same_chinese() -> None:
    for delta in (0, 1e-6):
        for relation in ("add/remove", "replace"):
            unit = sf.user("id", relation=relation)
            text = what_if(unit=unit, epsilon=1, delta=delta, language="zh")
            assert not [*banned(text), *misset(text)], text


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["add/remove", "delta", "columns"])
def test_the_page_and_its_facts_are_set_as_chinese(kind: str) -> None:
    text = page(released(kind), ["zh"])
    words = re.sub(r"<(style|pre|code|svg)\b.*?</\1>", "", text, flags=re.DOTALL)
    parts = [part for part in re.split(r"<[^>]*>|\n", words) if re.search(HAN, part)]
    assert len(parts) > 60
    for part in parts:
        assert not list(banned(part)), part
        assert not list(misset(part.strip())), part


@pytest.mark.long
def test_a_picture_of_beliefs_counts_in_percent() -> None:
    chart = str(draw(released("add/remove"), "belief", "zh").to_dict())
    assert "'text': '23.2%'" in chart
    assert "'domain': [0, 1]" in chart
