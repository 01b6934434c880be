"""What each reader is told: complete, in one language, without a promise that nobody can keep, all saying the same."""

import re
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core import units
from sfumato.core.adversary import accuracy, belief
from sfumato.core.description import Description, Form
from sfumato.core.exact import rational
from sfumato.core.guarantees import GDP, Approximate, Pure
from sfumato.core.query import Dataset
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.reports.words import AUDIENCES, Explanation, Facts, Margins, write
from sfumato.reports.words.figures import exact, figures
from tests.core.truth import mp, number
from tests.reports.readers import DELTA, NAMES, every, facts, out_of_thousand, units_of
from tests.reports.test_explain_messages import FORBIDDEN

ALL = list(every())
LANGUAGES = ("en", "zh")
READERS = tuple(AUDIENCES)
CONSTANTS = {"1,000", "10,000", "100", "95", "0", "2026", "10"}  # denominators, the confidence, the dataset's version
HAN = r"[\u4e00-\u9fff]"


@cache
def text_of(place: int, language: str, reader: str) -> str:
    return str(write(ALL[place], language, reader))


def texts(language: str, reader: str) -> list[str]:
    return [text_of(place, language, reader) for place in range(len(ALL))]


def numbers_in(text: str) -> set[str]:
    return set(re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text))


@pytest.mark.few(1)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("reader", READERS)
def test_every_text_is_whole_and_promises_nothing_absolute(language: str, reader: str) -> None:
    for text in texts(language, reader):
        assert "{" not in text
        assert not re.search(FORBIDDEN[language], text, re.IGNORECASE), text
        assert "  " not in text


@pytest.mark.parametrize("reader", READERS)
def test_no_english_is_left_in_chinese(reader: str) -> None:
    for text in texts("zh", reader):
        assert set(re.findall(r"[A-Za-z]+", text)) <= NAMES


@pytest.mark.parametrize("reader", READERS)
def test_chinese_is_set_as_chinese(reader: str) -> None:
    """Full-width signs beside Chinese, and a space between Chinese and figures or Latin letters."""
    for text in texts("zh", reader):
        assert not re.search(rf"{HAN} ?[,;:!?()\".]|[,;:!?()\"]{HAN}", text), text
        assert not re.search(rf"{HAN}[A-Za-z0-9εδ±]|[A-Za-z0-9εδ%]{HAN}", text), text
        assert not re.search(r" [，。；：！？、（）]|[，。；：！？、（）] ", text), text


@pytest.mark.parametrize("reader", READERS)
def test_the_languages_say_the_same_figures(reader: str) -> None:
    for english, chinese in zip(texts("en", reader), texts("zh", reader), strict=True):
        words = CONSTANTS | {"1", "2"}  # "one", "both" and 1, 2
        assert numbers_in(english) - words == numbers_in(out_of_thousand(chinese)) - words


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_has_a_figure_that_another_contradicts(language: str) -> None:
    """Every figure of every text stands in the one table that all texts are filled in from."""
    for place, given_facts in enumerate(ALL):
        table = figures(given_facts, language)
        known = CONSTANTS.union(*(numbers_in(figure) for figure in table.values()))
        for reader in READERS:
            assert numbers_in(text_of(place, language, reader)) <= known


@pytest.mark.claim("S1-33")
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_reader_gets_risk_error_and_budget_in_words_and_order_of_their_own(language: str) -> None:
    for given_facts in ALL:
        told = {reader: write(given_facts, language, reader) for reader in READERS}
        for point in ("risk", "budget"):
            assert len({getattr(text, point) for text in told.values()}) == len(READERS)
        # A model has no margin to put into words; the public and the board share the sentence about it.
        if given_facts.margins is not None:
            assert len({text.error for text in told.values()}) >= len(READERS) - 1
        for text in told.values():
            assert all(getattr(text, point) for point in ("what", "risk", "error", "budget"))
    orders = {reader: told[reader].order[0] for reader in READERS}
    assert orders == {"public": "risk", "patient": "risk", "clinician": "error", "manager": "budget", "board": "risk"}
    lengths = {reader: len(str(text)) for reader, text in told.items()}
    assert max(lengths, key=lambda reader: lengths[reader]) == "board"


@pytest.mark.claim("S1-33")
@pytest.mark.parametrize("point", ["what", "risk", "error", "budget"])
@pytest.mark.parametrize("hole", [(), ("",), (" \n",), ("A sentence.", "")])
def test_a_text_with_an_empty_point_is_refused(point: str, hole: tuple[str, ...]) -> None:
    whole = {"what": ("w",), "risk": ("r",), "error": ("e",), "budget": ("b",)}
    assert Explanation(**whole).paragraphs == ("w", "r", "e", "b")  # type: ignore[arg-type]
    with pytest.raises(Refused, match=f"nothing under '{point}'.*nothing is published"):
        Explanation(**whole | {point: hole})  # type: ignore[arg-type]


def test_a_text_names_each_point_once() -> None:
    with pytest.raises(Refused, match="each once"):
        Explanation(what=("w",), risk=("r",), error=("e",), budget=("b",), order=("risk", "risk", "error"))


@pytest.mark.few(3)
@pytest.mark.parametrize("reader", READERS)
def test_with_a_delta_no_belief_is_bounded_and_delta_is_explained(reader: str) -> None:
    for promise in ("delta", "pure in an account with delta"):
        for unit in (*units_of("add/remove"), *units_of("replace")):
            told = facts(Form.NUMBER, unit, promise)
            english, chinese = (str(write(told, language, reader)) for language in LANGUAGES)
            assert not re.search(r"belief .{0,80}(rise|fall|at most|at least)", english)
            assert not re.search("判断.{0,30}(升至|降至)", chinese)
            assert "It is not the chance that something goes wrong" in english
            assert "不是出错的概率" in chinese
            assert "1/1,000,000 for all releases together" in english
            assert "合计为 1/1,000,000" in chinese
            assert "500" in numbers_in(english)
            assert "623" in numbers_in(english)  # (e^(1/2) + 1e-6)/(1 + e^(1/2)) = 0.62246


@pytest.mark.parametrize("reader", READERS)
def test_under_replace_nobody_is_said_to_be_absent_or_present(reader: str) -> None:
    for promise in ("pure", "delta"):
        for unit in units_of("replace"):
            english, chinese = (str(write(facts(Form.NUMBER, unit, promise), each, reader)) for each in LANGUAGES)
            assert not re.search(r"without (that|those|you|a given)|empty place|is not in it|being in", english)
            assert not re.search(r"is in (this data|it)\b|whether .* in the data", english)
            assert not re.search("即使没有|不在数据中|在数据中的可能性|是否在数据中|本来就没有", chinese)


@pytest.mark.parametrize("reader", ["public", "patient", "clinician", "board"])
def test_under_add_remove_a_trait_of_someone_present_counts_twice(reader: str) -> None:
    told = facts(Form.NUMBER)
    for language in LANGUAGES:
        text = out_of_thousand(str(write(told, language, reader)))
        assert {"155", "63", "845", "937", "232", "39"} <= numbers_in(text)
    under_replace = facts(Form.NUMBER, units.user("id", relation="replace"))
    for language in LANGUAGES:
        found = numbers_in(out_of_thousand(str(write(under_replace, language, reader))))
        assert {"155", "63", "845", "937"} <= found
        assert not {"232", "39"} & found


def test_the_figures_speak_of_the_whole_account() -> None:
    for language in LANGUAGES:
        for reader in READERS:
            text = numbers_in(out_of_thousand(str(write(facts(spent=Fraction(1)), language, reader))))
            assert {"232", "39"} <= text  # ε = 1 in all, though this release has 1/2
            assert "155" not in text


@pytest.mark.parametrize(
    ("unit", "promise", "together", "epsilon", "delta"),
    [
        (units.user("id", relation="add/remove"), "pure", "household of 4", "ε = 2", None),
        (units.user("id", relation="replace"), "pure", "household of 4", "ε = 2", None),
        (units.family(3, "id", relation="add/remove"), "pure", "6 persons", "ε = 1", None),
        (units.record(relation="add/remove"), "pure", "person with 5 rows", "ε = 5/2", None),
        (units.user("id", relation="add/remove"), "delta", "household of 4", "ε = 2", 4),
        (units.family(3, "id", relation="replace"), "delta", "6 persons", "ε = 1", 2),
    ],
)
def test_a_household_gets_the_promise_of_a_group(
    unit: units.Unit, promise: str, together: str, epsilon: str, delta: int | None
) -> None:
    text = str(write(facts(unit=unit, promise=promise), "en", "board"))
    found = re.search(rf"For a? ?{together}[^:]*: {epsilon}, δ (= 0|at most 1/([\d,]+))\.", text)
    assert found
    if delta is None:
        assert found[1] == "= 0"
    else:
        stated = Fraction(1, int(found[2].replace(",", "")))
        truth = Approximate(epsilon=Fraction(1, 2), delta=DELTA).group(delta).delta
        assert truth <= stated <= truth * Fraction(101, 100)


def test_only_persons_stand_in_the_photograph_as_persons() -> None:
    for unit in units_of("add/remove"):
        text = str(write(facts(unit=unit), "en", "public"))
        person = isinstance(unit, units.User | units.Family)
        assert ("with one face for each" in text) is not person


@pytest.mark.claim("S2-15")
@pytest.mark.parametrize("relation", ["add/remove", "replace"])
@pytest.mark.parametrize("reader", ["public", "patient"])
def test_the_blurred_group_photograph_explains_and_promises_nothing_absolute(relation: str, reader: str) -> None:
    for unit in units_of(relation):
        english, chinese = (str(write(facts(unit=unit), language, reader)) for language in LANGUAGES)
        (picture,) = (part for part in english.split("\n\n") if "photograph" in part)
        (drawn,) = (part for part in chinese.split("\n\n") if "合影" in part)
        assert "blurred on purpose" in picture
        assert ("an empty place" in picture) is (relation == "add/remove")  # each person could as well be absent
        assert ("没有" in drawn.partition("模糊减少了")[0]) is (relation == "add/remove")
        assert "does not lower it to nothing" in picture
        assert "没有减少到零" in drawn
        for text, language in ((picture, "en"), (drawn, "zh")):
            assert not re.search(FORBIDDEN[language], text, re.IGNORECASE)


@pytest.mark.claim("S1-26")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_board_is_told_the_limits_of_the_promise(language: str) -> None:
    said = {
        "en": [
            "and for nothing larger",
            "depend on one another",
            "conclusions about groups",
            "small, diseases are rare",
        ],
        "zh": ["不包括更大的范围", "数据彼此相关", "对群体得出结论", "计数较小、疾病罕见"],
    }[language]
    readers = {"en": "About the readers nothing is assumed", "zh": "对读者则不作任何假定"}[language]
    text = str(write(facts(), language, "board"))
    for words in (*said, readers):
        assert words in text
    for reader in ("public", "patient", "clinician", "manager"):  # each is told that groups are not covered
        assert re.search("groups|a group|群体", str(write(facts(), language, reader)))


def test_the_board_is_told_what_it_has_to_decide_on() -> None:
    text = str(write(facts(promise="delta", spent=Fraction(1), limited=True), "en", "board"))
    for part in (
        "Privacy guarantee for this release (differential privacy): ε = 1/2, δ = 1/1,000,000.",
        "Protected: one person, with all rows of that person.",
        "(add/remove)",
        "All releases of the account “patients” together, up to this one: 2 charges, ε = 1, δ = 1/1,000,000.",
        "This rests on assumptions",
        "Used: ε = 1, δ = 1/1,000,000, out of ε = 2, δ = 3/1,000,000; that is 50 of 100 parts.",
        "Left: ε = 1, δ = 1/500,000.",
        "why this ε (and δ) and not less; the legal basis; who decided",
        "not a legal opinion",
    ):
        assert part in text


def test_the_manager_is_told_cost_rest_and_price_of_another() -> None:
    text = str(write(facts(total=Fraction(2)), "en", "manager"))
    assert "This release cost ε = 1/2." in text
    assert "used ε = 1/2 out of its privacy budget of ε = 2, which is 25 of 100 parts; ε = 3/2 is left" in text
    assert "enough left for 3." in text
    assert "10 releases like this one cost 10 times as much, ε = 5." in text
    assert "enough left for one." in str(write(facts(total=Fraction(1)), "en", "manager"))
    assert "not enough left" in str(write(facts(total=Fraction(3, 4)), "en", "manager"))
    with_delta = str(write(facts(promise="delta", total=Fraction(9)), "en", "manager"))
    assert "enough left for 2." in with_delta  # by δ, though ε would do for 17
    assert "10 times as much, ε = 5, δ = 1/100,000." in with_delta
    assert "first time it cost ε = 1/2" in str(write(facts(repeated=True), "en", "manager"))
    assert "half the margin" in text
    assert "half the margin" not in with_delta
    derived = str(write(facts(Form.DERIVED), "en", "manager"))
    assert "This cost nothing: it was computed from releases that are paid for." in derived
    assert "like it" not in derived


def test_the_clinician_is_told_what_noise_means_for_small_groups_and_rates() -> None:
    text = str(write(facts(margin=Fraction(36)), "en", "clinician"))
    assert "as large in a small group as in a large one" in text
    assert "Beside a count of 360 the margin is a tenth, beside 3,600 a hundredth. A count below 36" in text
    assert "Out of a known 1,000 it is ±36 per 1,000, out of a known 10,000 it is ±3.6 per 1,000" in text
    assert "expect errors up to ±39 when you look at all 12 numbers at once" in text
    assert "Beside a count" not in str(write(facts(margin=Fraction(0)), "en", "clinician"))


def test_a_model_has_no_margin_and_a_simulated_one_says_so() -> None:
    for reader in READERS:
        assert "±" not in str(write(facts(Form.MODEL), "en", reader))
        assert "simulating" in str(write(facts(Form.DERIVED, simulated=True), "en", reader))
        assert "simulating" not in str(write(facts(Form.DERIVED), "en", reader))


def test_what_was_released_is_named() -> None:
    said = {kind: write(facts(kind, filtered=True), "en", "public").what[0] for kind in Form}
    condition = "“visits” (version 2026-10) meet the condition diagnosis = “ILI”"
    assert said[Form.NUMBER] == f"One number: how many rows of {condition}."
    assert said[Form.NUMBERS] == f"A list of 12 numbers: how many rows of {condition}."
    assert said[Form.TABLE] == f"A table of 12 numbers: how many rows of {condition}, for each value of region."
    assert said[Form.CURVE] == f"A curve of 12 points: how many rows of {condition}, step by step along region."
    assert said[Form.MODEL].startswith("A model that was trained on those rows")
    assert said[Form.DERIVED] == (
        "Computed from release 11111111 of “visits” (version 2026-10) and release 22222222 of “visits” "
        "(version 2026-10): 12 numbers. The data was not asked again, so this cost nothing further."
    )


def test_names_cannot_add_paragraphs() -> None:
    evil = Dataset(name="visits\n\nAll is well.\u202e\x1b[2J", edition="1\r\n2")
    told = facts(Form.NUMBER)
    bad = Facts(
        description=told.description,
        dataset=evil,
        unit=told.unit,
        limit=None,
        guarantee=told.guarantee,
        cost=told.cost,
        account=told.account,
        margins=told.margins,
    )
    for reader in READERS:
        assert str(write(bad, "en", reader)).count("\n\n") == str(write(told, "en", reader)).count("\n\n")
        assert not set("\u202e\x1b\r") & set(str(write(bad, "en", reader)))


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.fractions(Fraction(1, 1000), 12, max_denominator=1000),
    relation=st.sampled_from(list(Relation)),
)
def test_figures_are_rounded_against_us(epsilon: Fraction, relation: Relation) -> None:
    unit = units.user("id", relation=relation)
    table = figures(facts(unit=unit, epsilon=epsilon, spent=epsilon, total=Fraction(13)), "en")
    shown = {name: float(table[name].replace(",", "")) for name in ("factor", "high", "low", "opposite_low")}
    e = mp.exp(number(epsilon))
    assert e <= shown["factor"] <= e * 1.001
    high = 1000 * e / (e + 9)
    assert high <= shown["high"] < high + 1 + 1e-9
    low = 1000 / (1 + 9 * e)
    assert low - 1 - 1e-9 < shown["low"] <= low
    assert shown["opposite_low"] == 1000 - shown["high"]
    assert rational(table["used"], "used") >= 100 * epsilon / 13
    if relation is Relation.ADD_REMOVE:
        trait = belief(Pure(epsilon=2 * epsilon), 0.1)
        assert float(table["trait_high"].replace(",", "")) >= 1000 * trait.high
        assert float(table["trait_low"]) <= 1000 * trait.low
    with_delta = figures(facts(unit=unit, promise="delta", epsilon=epsilon, spent=epsilon), "en")
    best = 1000 * accuracy(Approximate(epsilon=epsilon, delta=DELTA))
    assert best <= int(with_delta["guess"].replace(",", "")) < best + 1
    assert not {"high", "low", "prior", "opposite", "trait_high"} & set(with_delta)


@given(value=st.fractions(Fraction(1, 10**30), 10**3, max_denominator=10**30))
def test_amounts_are_exact_or_rounded_outward(value: Fraction) -> None:
    for up in (True, False):
        shown = Fraction(exact(value, up=up).replace(",", ""))
        assert shown >= value if up else shown <= value
        assert abs(shown - value) <= value / 900


def test_large_losses_stay_readable() -> None:
    text = str(write(facts(epsilon=Fraction(40), spent=Fraction(40), total=Fraction(100)), "en", "public"))
    assert "at most 10^18 times" in text  # e^40 = 2.4e17
    assert "at most 1,000 in 1,000 and fall to at least 0" in text


def test_facts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"'manger'.*public, patient, clinician, manager, board"):
        write(facts(), "en", "manger")
    with pytest.raises(Unsupported, match="'fr'"):
        write(facts(), "fr", "public")
    with pytest.raises(InvalidInput, match="margins"):
        Facts(**{**_fields(facts(Form.MODEL)), "margins": Margins(each=Fraction(1), joint=Fraction(1))})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="margins"):
        Facts(**{**_fields(facts()), "margins": None})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="closer"):
        Margins(each=Fraction(2), joint=Fraction(1))
    for wrong in (
        {"form": Form.NUMBER, "numbers": 2},
        {"form": Form.TABLE, "numbers": 2},
        {"form": Form.DERIVED, "numbers": 1},
        {"form": Form.NUMBERS, "numbers": 0},
    ):
        with pytest.raises(InvalidInput):
            Description(asked="what was asked", **wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="no such place"):
        Description(form=Form.NUMBER, numbers=1, asked="what was asked", paragraphs={"margins": (("limit.keys",),)})
    odd = Description(form=Form.NUMBER, numbers=1, asked="what was asked", measure="measure.kurtosis")
    with pytest.raises(Unsupported, match="kurtosis"):
        write(Facts(**{**_fields(facts(Form.NUMBER)), "description": odd}), "en", "public")  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match=r"guarantee\.gdp"):
        Facts(**{**_fields(facts()), "guarantee": GDP(mu=Fraction(1))})  # type: ignore[arg-type]


def _fields(given_facts: Facts) -> dict[str, object]:
    return {name: getattr(given_facts, name) for name in Facts.__dataclass_fields__}
