"""The catalogues: the same messages with the same facts in every language, none empty, none that promises too much."""

import re
import string

import pytest

from sfumato.errors import Refused, Unsupported
from sfumato.reports.catalogue import counted, message, messages, read
from sfumato.reports.words import AUDIENCES

# 隐私保证 is the term for a privacy guarantee, and 保证 stands nowhere else.
# A budget may be used up to 100%, and a bound on a belief may be as high.
FORBIDDEN = {
    "en": r"\b(un)?safe(r|ly|ty)?\b(?! Harbor)|\bleak|anonym|\bimpossibl|\bprobability of|\bcomplian|\bcompl(y|ies)\b"
    r"|\bguarantee[sd]? (that|of|against)|\b(no|zero|without|free of) risk|risk-free|\bsecure|untraceable"
    r"|\b(nobody|no one|none) can\b|\bcannot (be|ever)|\b(completely|perfectly|absolutely|fully|entirely) "
    r"(protect|hid|privat|secret)|\b(never|always)\b|\b100 ?%|\bde-?identif|\bcertain(ly)? protect|\bunbreakable",
    "zh": "安全(?!港)|泄露|泄漏|泄密|匿名|绝对(?!误差)|不可能|合规|符合.{0,8}(法律|法规|规定)|百分之百|万无一失"
    "|(零|无|没有)风险|完全(保护|隐藏|无法|不会)|(?<!隐私)保证|隐私保证(?=[^，。；：]{0,6}(不会|不被|没有人|无人|您))"
    "|确保|杜绝|永远|无法(识别|追踪|得知)|去标识|(没有人|任何人都不)能|(?<!已用去 )(?<!升至 )100%",
}
ALLOWED_LATIN = {"HIPAA"}  # the name of a law
MINE = (
    *("count", "list", "amount", "all", "item", "unit", "member", "this", "that", "another", "yours", "thing"),
    *("several", "together", "data", "measure", "what", "photograph", "promise", "delta", "limits", "accuracy"),
    *("found", *AUDIENCES),
    *("span", "map", "limit", "account", "icons", "what_if", "safe_harbor", "publication", "value"),
)


def facts_of(words: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(words) if field is not None}


def named(*groups: str, language: str = "en") -> dict[str, str]:
    return {name: words for name, words in messages(language).items() if name.partition(".")[0] in groups}


@pytest.mark.claim("S2-02")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_message_promises_too_much(language: str) -> None:
    found = {
        name: hit[0]
        for name, words in messages(language).items()
        if (hit := re.search(FORBIDDEN[language], words, re.IGNORECASE))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "Your data is safe."),
        ("en", "unsafe"),
        ("en", "the probability of a leak"),
        ("en", "fully anonymised"),
        ("en", "This release is compliant with the law."),
        ("en", "It complies with HIPAA."),
        ("en", "a guarantee that you stay hidden"),
        ("en", "Nobody can find you."),
        ("en", "It is impossible to tell."),
        ("en", "You cannot be found."),
        ("en", "You can never be found."),
        ("zh", "您的数据是安全的。"),
        ("zh", "泄露的概率"),
        ("zh", "符合有关法律"),
        ("zh", "本次发布合规。"),
        ("zh", "保证不会被识别"),
        ("zh", "隐私保证您不会被识别"),
        ("zh", "隐私保证任何人都不会被识别"),
        ("zh", "100% 受到保护"),
        ("zh", "绝对不会"),
        ("zh", "没有人能看出"),
    ],
)
def test_the_search_finds_what_it_is_for(language: str, words: str) -> None:
    assert re.search(FORBIDDEN[language], words, re.IGNORECASE)


def test_the_languages_have_the_same_messages_with_the_same_facts() -> None:
    english, chinese = messages("en"), messages("zh-Hans")
    assert {name: facts_of(words) for name, words in english.items()} == {
        name: facts_of(words) for name, words in chinese.items()
    }
    assert english.keys() == chinese.keys()


def test_chinese_messages_hold_no_english() -> None:
    for name, words in named(*MINE, language="zh").items():
        bare = re.sub(r"\{\w+\}", "", words)
        assert set(re.findall(r"[A-Za-z]+", bare)) <= ALLOWED_LATIN, name


def test_every_kind_of_unit_has_its_words() -> None:
    kinds = {"record", "user", "family", "event", "edge", "node", "weight", "client"}
    for role in ("unit", "member", "this", "that", "another", "yours", "thing", "several", "together"):
        assert {name.partition(".")[2] for name in named(role)} == kinds


@pytest.mark.claim("S1-30")
@pytest.mark.parametrize("reader", AUDIENCES)
@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_both_directions_of_a_belief_are_spelt_out(reader: str, relation: str) -> None:
    for language in ("en", "zh"):
        words = messages(language)[f"{reader}.risk_{relation}_pure"]
        assert {"prior", "high", "low", "opposite", "opposite_low", "opposite_high"} <= facts_of(words)
        assert ("trait_high" in facts_of(words)) is (relation == "add_remove" and reader != "manager")


@pytest.mark.claim("S1-30")
def test_no_message_for_delta_bounds_a_belief_and_none_for_replace_speaks_of_absence() -> None:
    beliefs = {"prior", "high", "low", "opposite", "opposite_low", "opposite_high", "trait_high", "trait_low"}
    for language in ("en", "zh"):
        for name, words in messages(language).items():
            if name.endswith("_delta") and name.partition(".")[0] in (*AUDIENCES, "promise"):
                assert not beliefs & facts_of(words), name
            if "replace" in name.partition(".")[2] and name.partition(".")[0] in MINE:
                assert not re.search(r"without \{(that|yours)\}|is in (this|the) data[^.]*chance", words), name
                assert "即使没有" not in words, name


def test_an_empty_missing_doubled_or_uneven_message_stops_every_text() -> None:
    good = '[unit]\nrow = "one {thing}"'
    assert read({"en": [good], "zh": [good]}) == {"en": {"unit.row": "one {thing}"}, "zh": {"unit.row": "one {thing}"}}
    for wrong, found in (
        ({"en": [good], "zh": ['[unit]\nrow = ""']}, r"unit\.row is empty in zh"),
        ({"en": [good], "zh": ['[unit]\nrow = " \\n"']}, r"unit\.row is empty in zh"),
        ({"en": ["[unit]\nrow = 1"], "zh": [good]}, r"unit\.row is empty in en"),
        ({"en": [good], "zh": [""]}, r"unit\.row is missing in zh"),
        ({"en": [""], "zh": [good]}, r"unit\.row is missing in en"),
        ({"en": [good, good], "zh": [good]}, r"unit\.row stands twice in en"),
        ({"en": [good], "zh": ['[unit]\nrow = "one"']}, r"unit\.row has other facts"),
        ({"en": [good], "zh": ['[unit]\nrow = "one {other}"']}, r"unit\.row has other facts"),
    ):
        with pytest.raises(Refused, match=f"{found}.*no text is made"):
            read(wrong)


def test_numbers_of_things() -> None:
    assert [counted("en", "row", number) for number in (1, 2, 1000)] == ["one row", "2 rows", "1,000 rows"]
    assert [counted("zh", "row", number) for number in (1, 2)] == ["1 行", "2 行"]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(Unsupported, match="zh-Hans"):
        message("fr", "unit.user")
