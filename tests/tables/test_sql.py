"""SQL becomes the very question that the methods of a table build; nothing is read and nobody is asked."""

from datetime import date, datetime, timedelta
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.core.question import Question
from sfumato.engines.expressions import Expression, Named, Term, coalesce, col, greatest, least, when
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.tables.keys import Keys
from tests.tables.sql_table import ROWS, VISITS, document, table

# ruff: noqa: S608 - the texts are put together to be parsed; no engine sees them

AGE, SBP, SEX, WARD = col("age"), col("sbp"), col("sex"), col("ward")
OLD = AGE >= 65
YOUNG = AGE < 65


def truth(holds: Expression, fails: Expression) -> Term:
    """A truth value that is missing where neither holds."""
    return when(holds).then(True).when(fails).then(False)


DX = col("dx").startswith("J")
STARTS = truth(DX, ~DX & ~col("dx").isnull())
ONE_OR_TWO = when(SEX == "F").then(1).when(SEX == "M").then(2)
BAND = when(AGE < 40).then("young").otherwise("old")


def test_the_example_of_the_design() -> None:
    asked = VISITS.sql("SELECT sex, COUNT(*) AS n, AVG(sbp) AS sbp FROM visits GROUP BY sex")
    assert isinstance(asked, Question)
    assert asked._gate is VISITS._gate
    assert document(asked) == document(VISITS.group_by("sex").agg(n=sf.count(), sbp=sf.mean("sbp")))
    assert VISITS.where("diagnosis = 'ILI'") == VISITS.where(col("diagnosis") == "ILI")


QUESTIONS = [
    ("SELECT COUNT(*) FROM visits", VISITS.count()),
    ("SELECT COUNT(*) AS count FROM visits", VISITS.count()),
    ("SELECT COUNT(1) FROM visits", VISITS.count()),
    ("(SELECT COUNT(*) FROM visits);", VISITS.count()),
    ("select count(*) as n from visits", VISITS.agg(n=sf.count())),
    ("SELECT COUNT(*), SUM(age) FROM visits", VISITS.agg(count=sf.count(), sum=sf.sum("age"))),
    ("SELECT COUNT(age) FROM visits", VISITS.agg(count=sf.count(~AGE.isnull()))),
    ("SELECT COUNT(*) FILTER (WHERE age >= 65) FROM visits", VISITS.agg(count=sf.count(OLD))),
    ("SELECT COUNT(sbp) FILTER (WHERE age >= 65) FROM visits", VISITS.agg(count=sf.count(OLD & ~SBP.isnull()))),
    ("SELECT COUNT(DISTINCT patient_id) FROM visits", VISITS.persons()),
    ("SELECT COUNT(DISTINCT (v.patient_id)) AS who FROM visits v", VISITS.agg(who=sf.persons())),
    ("SELECT SUM(sbp) FROM visits", VISITS.sum("sbp")),
    ("SELECT SUM(sbp) FILTER (WHERE sex = 'F') FROM visits", VISITS.sum(when(SEX == "F").then(SBP))),
    ("SELECT AVG(sbp) FROM visits", VISITS.mean("sbp")),
    ("SELECT AVG(sbp - 2 * age) FROM visits", VISITS.mean(SBP - 2 * AGE)),
    ("SELECT VAR_POP(sbp) FROM visits", VISITS.variance("sbp")),
    ("SELECT VARIANCE(sbp) FROM visits", VISITS.variance("sbp")),
    ("SELECT STDDEV_POP(sbp) FROM visits", VISITS.standard_deviation("sbp")),
    ("SELECT STDDEV(sbp) FROM visits", VISITS.standard_deviation("sbp")),
    ("SELECT COVAR_POP(sbp, age) FROM visits", VISITS.covariance("sbp", "age")),
    ("SELECT CORR(sbp, age) FROM visits", VISITS.correlation("sbp", "age")),
    (
        "SELECT CORR(sbp, age) FILTER (WHERE ward = 1) AS r FROM visits",
        VISITS.agg(r=sf.correlation(when(WARD == 1).then(SBP), AGE)),
    ),
    ("SELECT SUM(sbp) / SUM(age) FROM visits", VISITS.ratio("sbp", "age")),
    ("SELECT (SUM(sbp) / SUM(age)) AS r FROM visits", VISITS.agg(r=sf.ratio("sbp", "age"))),
    (
        "SELECT AVG(CASE WHEN age >= 65 THEN 1 ELSE 0 END) AS old FROM visits",
        VISITS.agg(old=sf.mean(when(OLD).then(1).otherwise(0))),
    ),
    (
        "SELECT AVG(CAST(age >= 65 AS INTEGER)) AS old FROM visits",
        VISITS.agg(old=sf.mean(when(OLD).then(1).when(YOUNG).then(0))),
    ),
    ("SELECT MEDIAN(sbp) FROM visits", VISITS.median("sbp")),
    ("SELECT (MEDIAN(sbp)) FROM visits", VISITS.median("sbp")),
    ("SELECT QUANTILE(sbp, 0.5) AS median FROM visits", VISITS.median("sbp")),
    ("SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY sbp) FROM visits", VISITS.agg(p90=sf.quantile("sbp", 0.9))),
    (
        "SELECT sex, PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY sbp + 1), QUANTILE(sbp + 1, 0.25) AS p25 "
        "FROM visits WHERE age >= 65 GROUP BY sex",
        VISITS.where(OLD).group_by("sex").agg(p75=sf.quantile(SBP + 1, 0.75), p25=sf.quantile(SBP + 1, 0.25)),
    ),
    ("SELECT MEDIAN(sbp) FILTER (WHERE age >= 65) FROM visits", VISITS.median(when(OLD).then(SBP))),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY sex", VISITS.group_by("sex").count()),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY 1", VISITS.group_by("sex").count()),
    ("SELECT COUNT(*), sex FROM visits GROUP BY 2", VISITS.group_by("sex").count()),
    ("SELECT v.sex, COUNT(*) FROM visits AS v GROUP BY v.sex", VISITS.group_by("sex").count()),
    ("SELECT visits.sex, COUNT(*) FROM visits GROUP BY sex", VISITS.group_by("sex").count()),
    ("SELECT sex, ward, COUNT(*) FROM visits GROUP BY ward, sex", VISITS.group_by("ward", "sex").count()),
    ('SELECT "Postcode", COUNT(*) FROM visits GROUP BY "Postcode"', VISITS.group_by("Postcode").count()),
    ("SELECT Postcode, COUNT(*) FROM visits GROUP BY 1", VISITS.group_by("Postcode").count()),
    (
        "SELECT sex, COUNT(*) FROM visits WHERE age >= 65 AND ward IN (1, 2) GROUP BY sex",
        VISITS.where(OLD & WARD.isin([1, 2])).group_by("sex").count(),
    ),
    (
        "SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS band, COUNT(*) FROM visits GROUP BY band",
        VISITS.group_by(band=BAND).count(),
    ),
    (
        "SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS band, sex, AVG(sbp) FROM visits GROUP BY 1, sex",
        VISITS.group_by(band=BAND).group_by("sex").mean("sbp"),
    ),
    (
        "SELECT CASE WHEN age < 40 THEN 'young' ELSE 'old' END AS band, COUNT(*) FROM visits "
        "GROUP BY CASE WHEN age < 40 THEN 'young' ELSE 'old' END",
        VISITS.group_by(band=BAND).count(),
    ),
    (
        "SELECT EXTRACT(MONTH FROM day) AS m, COUNT(*) FROM visits GROUP BY m",
        VISITS.group_by(m=col("day").month()).count(),
    ),
    (
        "SELECT DATE_PART('isodow', day) AS m, COUNT(*) FROM visits GROUP BY m",
        VISITS.group_by(m=col("day").weekday()).count(),
    ),
    (
        "SELECT age >= 65 AS old, COUNT(*) FROM visits GROUP BY old",
        VISITS.group_by(old=truth(OLD, YOUNG)).count(),
    ),
    (
        "SELECT WIDTH_BUCKET(age, 0, 100, 2) AS part, COUNT(*) FROM visits GROUP BY part",
        VISITS.group_by(
            part=when(AGE < 0).then(0).when(AGE < 50).then(1).when(AGE < 100).then(2).when(AGE >= 100).then(3)
        ).count(),
    ),
    (
        "SELECT AVG(decade) AS d FROM (SELECT age / 10 AS decade FROM visits WHERE ward = 1) AS s WHERE decade > 2",
        VISITS.where(WARD == 1).where(AGE / 10 > 2).agg(d=sf.mean(AGE / 10)),
    ),
    (
        "SELECT sex, COUNT(*) FROM (SELECT *, age >= 65 AS old FROM visits) WHERE old GROUP BY sex",
        VISITS.where(truth(OLD, YOUNG) == True).group_by("sex").count(),  # noqa: E712 - a predicate
    ),
    (
        "WITH a AS (SELECT sex, age + 1 AS next FROM visits), b AS (SELECT sex, next * 2 AS n FROM a) "
        "SELECT sex, SUM(n) AS n FROM b AS c WHERE c.n > 3 GROUP BY c.sex",
        VISITS.where((AGE + 1) * 2 > 3).group_by("sex").agg(n=sf.sum((AGE + 1) * 2)),
    ),
    ("SELECT COUNT(DISTINCT id) FROM (SELECT patient_id AS id FROM visits) s", VISITS.persons()),
]


@pytest.mark.parametrize(("text", "asked"), QUESTIONS, ids=lambda value: str(value)[:60])
def test_a_select_is_the_same_question(text: str, asked: Question) -> None:
    assert document(VISITS.sql(text)) == document(asked)


CONDITIONS: list[tuple[str, Expression]] = [
    ("age = 65", AGE == 65),
    ("65 <= age", AGE >= 65),
    ("age <> 65", AGE != 65),
    ("age != 65", AGE != 65),
    ("age > -1", AGE > -1),
    ("age < 1.5", AGE < 1.5),
    ("age < .5e1", Fraction(5) > AGE),
    ("age >= 65.0", AGE >= 65.0),
    ("sbp < age", SBP < AGE),
    ("visits.age = 65", AGE == 65),
    ("sex = 'F' AND age >= 65 AND ward = 1", (SEX == "F") & OLD & (WARD == 1)),
    ("sex = 'F' OR age >= 65 AND ward = 1", (SEX == "F") | (OLD & (WARD == 1))),
    ("(sex = 'F' OR age >= 65) AND ward = 1", ((SEX == "F") | OLD) & (WARD == 1)),
    ("NOT age >= 65", AGE < 65),
    ("NOT (sex = 'F' OR age >= 65)", (SEX != "F") & (AGE < 65)),
    ("NOT NOT age >= 65", OLD),
    ("age BETWEEN 18 AND 65", AGE.between(18, 65)),
    ("age NOT BETWEEN 18 AND 65", (AGE < 18) | (AGE > 65)),
    ("age BETWEEN stay AND stay * 2", AGE.between(col("stay"), col("stay") * 2)),
    ("sex IN ('F', 'M')", SEX.isin(["F", "M"])),
    ("ward NOT IN (1, -2)", ~WARD.isin([1, -2]) & ~WARD.isnull()),
    ("age + 1 IN (3)", (AGE + 1).isin([3])),
    ("age IS NULL", AGE.isnull()),
    ("age IS NOT NULL", ~AGE.isnull()),
    ("age ISNULL", AGE.isnull()),
    ("age + 1 IS NULL", (AGE + 1).isnull()),
    ("dx LIKE 'J1%'", col("dx").startswith("J1")),
    ("dx NOT LIKE 'J1%'", ~col("dx").startswith("J1") & ~col("dx").isnull()),
    ("dx LIKE 'J10'", col("dx") == "J10"),
    ("STARTS_WITH(dx, 'J_%')", col("dx").startswith("J_%")),
    ("STARTS_WITH(dx, 'J') = TRUE", STARTS == True),  # noqa: E712
    ("smoker", col("smoker") == True),  # noqa: E712 - a predicate
    ("NOT smoker", col("smoker") == False),  # noqa: E712 - a predicate
    ("(age >= 65) IS NOT TRUE", ~OLD),
    ("(age >= 65) IS FALSE", YOUNG),
    ("smoker = FALSE", col("smoker") == False),  # noqa: E712 - a predicate
    ("smoker IS TRUE", col("smoker") == True),  # noqa: E712 - a predicate
    ("smoker IS NOT FALSE", ~(col("smoker") == False)),  # noqa: E712 - a predicate
    ("day >= DATE '2026-01-31'", col("day") >= date(2026, 1, 31)),
    (
        "day IN ('2026-01-31'::date, CAST('2026-02-01' AS DATE))",
        col("day").isin([datetime(2026, 1, 31), datetime(2026, 2, 1)]),
    ),
    ("EXTRACT(YEAR FROM day) = 2026", col("day").year() == 2026),
    ("DATE_PART('quarter', day) = 2", col("day").quarter() == 2),
    ("EXTRACT(DAY FROM day) = 2", col("day").day() == 2),
    ("DATE_DIFF('day', arrived, gone) > 3", col("gone").days_since(col("arrived")) > 3),
    ("CAST(stay AS DOUBLE PRECISION) > 1.5", col("stay").cast("number") > 1.5),
    ("day = DATE '2026-01-31'", col("day") == datetime(2026, 1, 31)),
    ("day < '2026-02-01'::date", col("day") < date(2026, 2, 1)),
    ("day::date = DATE '2026-01-31'", col("day").cast("date") == date(2026, 1, 31)),
    ("DATE '2026-01-31' < day", col("day") > datetime(2026, 1, 31)),
    (
        "day BETWEEN DATE '2026-01-01' AND DATE '2026-01-31'",
        (col("day") >= date(2026, 1, 1)) & (col("day") <= datetime(2026, 1, 31)),
    ),
    ("day > TIMESTAMP '2026-01-31 12:30'", col("day") > datetime(2026, 1, 31, 12, 30)),
    ("DATE_TRUNC('month', day) = DATE '2026-01-01'", col("day").truncate("month") == date(2026, 1, 1)),
    ("EXTRACT(HOUR FROM day) = 3", col("day").hour() == 3),
    ("EXTRACT(EPOCH FROM day - born) > 3", (col("day") - col("born")).seconds() > 3),
    ("day - born > INTERVAL '2 days'", col("day") - col("born") > timedelta(days=2)),
    ("day > born + INTERVAL '1 year 6 months'", col("day") > col("born").shift(months=18)),
    ("day > INTERVAL '30' DAY + born", col("day") > col("born").shift(days=30)),
    ("day > born - INTERVAL '36 hours'", col("day") > col("born").shift(seconds=-36 * 3600)),
    ("DATE_DIFF('years', born, day) > 65", col("day").since(col("born"), "year") > 65),
    ("CAST(stamp AS TIMESTAMP) < day", col("stamp").cast("time") < col("day")),
    ("LOWER(TRIM(dx)) LIKE 'flu%'", col("dx").strip().lower().startswith("flu")),
    ("dx ILIKE 'FLU%'", col("dx").lower().startswith("flu")),
    ("TRIM(LEADING FROM dx) || 'x' = 'ax'", col("dx").strip(side="start").concat("x") == "ax"),
    ("SUBSTRING(dx FROM 2 FOR 3) = 'abc'", col("dx").substring(2, 3) == "abc"),
    ("LEFT(dx, 2) = 'ab' OR RIGHT(dx, 1) = 'c'", (col("dx").left(2) == "ab") | (col("dx").right(1) == "c")),
    ("REPLACE(dx, '.', '') = 'J10'", col("dx").replace(".", "") == "J10"),
    ("ROUND(sbp, 1) > 3 AND CEIL(sbp) < 9", (SBP.round(1) > 3) & (SBP.ceil() < 9)),
    ("CAST(sbp AS NUMERIC(5, 2)) > 3", SBP.cast("number").round(2) > 3),
    ("CAST(ward AS TEXT) = '1'", WARD.cast("text") == "1"),
    ("smoker AND NOT died", col("smoker") & (col("died") == False)),  # noqa: E712
    ("stay::bigint > 1", col("stay").nearest() > 1),
    ("TRY_CAST(code AS INT) = 1", col("code").nearest() == 1),
    ("COALESCE(age, stay, 0) > 3", coalesce(AGE, col("stay"), 0) > 3),
    ("LEAST(age, 90) > stay", coalesce(least(AGE, 90), 90) > col("stay")),
    ("GREATEST(age, 0) = 3", coalesce(greatest(AGE, 0), 0) == 3),
    ("NULLIF(age, 99) > 3", when(~(AGE == 99)).then(AGE) > 3),
    ("ABS(age - 40) < 5", abs(AGE - 40) < 5),
    ("FLOOR(bmi) = 25", col("bmi").floor() == 25),
    ("LENGTH(dx) = 3 AND CHAR_LENGTH(sex) = 1", (col("dx").length() == 3) & (SEX.length() == 1)),
    ("-age < -3", -AGE < -3),
    ("age / stay * 2 - 1 > 0", AGE / col("stay") * 2 - 1 > 0),
    ("CASE WHEN sex = 'F' THEN age ELSE sbp END > 3", when(SEX == "F").then(AGE).otherwise(SBP) > 3),
    (
        "CASE sex WHEN 'F' THEN 1 WHEN 'M' THEN 2 ELSE NULL END = 1",
        when(SEX == "F").then(1).when(SEX == "M").then(2) == 1,
    ),
    ("CASE WHEN smoker THEN TRUE ELSE FALSE END", when(col("smoker") == True).then(True).otherwise(False) == True),  # noqa: E712
    ("CAST((age >= 65) AS INT) = (1)", when(OLD).then(1).when(YOUNG).then(0) == 1),
    ("(age >= 65) = (ward = 1)", truth(OLD, YOUNG) == truth(WARD == 1, WARD != 1)),
    ("\"Größe in cm\" > 3 AND 性别 = '女'", (col("Größe in cm") > 3) & (col("性别") == "女")),
    ("\"a\"\"b\" = 'it''s'", col('a"b') == "it's"),
    ("Age = 65 AND AGE = 65", (col("Age") == 65) & (col("AGE") == 65)),
    ("age >= 65 -- a word /* aside", OLD),
    ("/* a /* nested */ word */ age >= 65", OLD),
]


@pytest.mark.parametrize(("text", "predicate"), CONDITIONS, ids=lambda value: str(value)[:60])
def test_a_condition_is_the_same_predicate(text: str, predicate: Expression) -> None:
    assert VISITS.where(text).predicate == predicate
    whole = VISITS.sql(f"SELECT COUNT(*) FROM visits WHERE {text}\n")
    assert document(whole) == document(VISITS.where(predicate).count())


def test_a_condition_in_text_joins_those_before() -> None:
    assert VISITS.where(OLD).where("sex = 'F'") == VISITS.where(OLD & (SEX == "F"))
    asked = VISITS.where(OLD).sql("SELECT COUNT(*) FROM visits WHERE sex = 'F'")
    assert document(asked) == document(VISITS.where(OLD & (SEX == "F")).count())


def test_a_key_may_be_given_another_name() -> None:
    (key,) = VISITS.sql("SELECT sex AS s, COUNT(*) FROM visits GROUP BY s").query.by  # type: ignore[attr-defined]
    assert key == Keys(column="s", values=("F", "M"), value=Named(column="sex"))
    again = VISITS.sql("SELECT s, COUNT(*) FROM (SELECT sex AS s FROM visits) v GROUP BY v.s")
    assert again.query.by == (key,)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["other", "key", "columns"])
def test_any_name_will_do_for_a_computed_key(name: str) -> None:
    (key,) = VISITS.sql(f'SELECT age > 3 AS "{name}", COUNT(*) FROM visits GROUP BY 1').query.by  # type: ignore[attr-defined]
    assert (key.column, key.values, key.other) == (name, (True, False), None)


HAVING = [
    ("sex = 'F'", {"sex": ("F",)}),
    ("sex <> 'F' AND ward >= 2", {"sex": ("M",), "ward": (2, 3)}),
    ("ward > 1.5 AND ward < 3", {"ward": (2,)}),
    ("ward IN (1, 3, 9)", {"ward": (1, 3)}),
    ("ward BETWEEN 1 AND 2", {"ward": (1, 2)}),
    ("NOT (ward = 1 OR ward = 3)", {"ward": (2,)}),
    ("sex LIKE 'F%' AND sex IS NOT NULL", {"sex": ("F",)}),
    ("sex < 'a'", {}),
    ("sex IN ('F', 'M') AND (ward = 1 OR ward >= 2 AND ward < 3)", {"ward": (1, 2)}),
    ("NOT sex IS NULL", {}),
]


@pytest.mark.parametrize(("text", "left"), HAVING)
def test_having_leaves_out_public_keys(text: str, left: dict[str, tuple[object, ...]]) -> None:
    asked = VISITS.sql(f"SELECT sex, ward, COUNT(*) FROM visits GROUP BY sex, ward HAVING {text}")
    found = {key.column: key.values for key in asked.query.by}  # type: ignore[attr-defined]
    assert found == {"sex": ("F", "M"), "ward": (1, 2, 3)} | left


def test_having_knows_truth_values_dates_and_computed_keys() -> None:
    asked = VISITS.sql("SELECT smoker, COUNT(*) FROM visits GROUP BY 1 HAVING smoker = TRUE")
    assert asked.query.by[0].values == (True,)  # type: ignore[attr-defined]
    days = VISITS.with_keys(day=[date(2026, 1, 31), date(2026, 2, 1)])
    asked = days.sql("SELECT day, COUNT(*) FROM visits GROUP BY day HAVING day > DATE '2026-01-31'")
    assert asked.query.labels() == {"day": ["2026-02-01"]}
    asked = VISITS.sql("SELECT EXTRACT(MONTH FROM day) AS m, COUNT(*) FROM visits GROUP BY m HAVING m <= 3")
    assert asked.query.by[0].values == (1, 2, 3)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sex = 'X'", "HAVING leaves no value of 'sex'"),
        ("sex = 3", "another type"),
        ("ward = TRUE", "another type"),
        ("sex = 'F' OR ward = 1", "on several keys"),
        ("age = 3", "no column 'age' here"),
        ("ward + 1 = 2", "that computes something"),
    ],
)
def test_having_takes_nothing_else(text: str, words: str) -> None:
    with pytest.raises(sf.errors.SfumatoError, match=words):
        VISITS.sql(f"SELECT sex, ward, COUNT(*) FROM visits GROUP BY sex, ward HAVING {text}")


def test_what_is_not_declared_is_said_as_by_the_methods() -> None:
    for text, method in [
        ("SELECT zip, COUNT(*) FROM visits GROUP BY zip", lambda: VISITS.group_by("zip")),
        ("SELECT SUM(bmi) FROM visits", lambda: VISITS.sum("bmi")),
    ]:
        with pytest.raises(NotDeclared) as one:
            VISITS.sql(text)
        with pytest.raises(NotDeclared) as other:
            method()
        assert str(one.value) == str(other.value)
    with pytest.raises(NotDeclared, match="year"):
        VISITS.sql("SELECT EXTRACT(YEAR FROM day) AS y, COUNT(*) FROM visits GROUP BY y")


def test_persons_are_those_of_the_vault_alone() -> None:
    with pytest.raises(sf.errors.Unsupported, match="DISTINCT"):
        VISITS.sql("SELECT COUNT(DISTINCT sex) FROM visits")
    with pytest.raises(sf.errors.Unsupported, match="DISTINCT"):
        table(ROWS).sql("SELECT COUNT(DISTINCT patient_id) FROM visits")
    family = table(sf.family(3, "patient_id", relation="replace"))
    assert document(family.sql("SELECT COUNT(DISTINCT patient_id) FROM visits")) == document(family.persons())


def test_a_table_with_any_name_can_be_asked() -> None:
    odd = table(name='my "visits", 2026')
    assert document(odd.sql('SELECT COUNT(*) FROM "my ""visits"", 2026"')) == document(odd.count())
    with pytest.raises(InvalidInput, match='Say FROM "my ""visits"", 2026"'):
        odd.sql("SELECT COUNT(*) FROM visits")


def test_a_grouped_table_is_not_grouped_again() -> None:
    with pytest.raises(InvalidInput, match="grouped already"):
        VISITS.group_by("sex").sql("SELECT COUNT(*) FROM visits")
