"""What looks at other rows, or says more than is understood, is refused by its name; hostile texts do no harm."""

import logging
import time

import pytest

from sfumato.errors import InvalidInput, SfumatoError, Unsupported
from tests.tables.sql_table import VISITS

# ruff: noqa: S608 - the texts are put together to be parsed; no engine sees them

FROM = "FROM visits"
NAMED = [
    ("SELECT COUNT(*) FROM visits, other", "JOIN"),
    ("SELECT COUNT(*) FROM visits NATURAL JOIN visits v", "JOIN"),
    ("SELECT COUNT(*) FROM (visits JOIN other USING (a))", "JOIN"),
    ("SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM visits", "UNION"),
    ("SELECT COUNT(*) FROM visits INTERSECT SELECT 1", "INTERSECT"),
    ("SELECT COUNT(*) FROM visits EXCEPT SELECT 1", "EXCEPT"),
    ("SELECT COUNT(*) FROM (SELECT age FROM visits UNION SELECT sbp FROM visits) s", "UNION"),
    ("SELECT DISTINCT sex FROM visits", "DISTINCT"),
    ("SELECT DISTINCT ON (sex) sex FROM visits", "DISTINCT"),
    ("SELECT SUM(DISTINCT age) FROM visits", "DISTINCT"),
    ("SELECT COUNT(DISTINCT age) FROM visits", "DISTINCT"),
    ("SELECT COUNT(DISTINCT patient_id, age) FROM visits", "DISTINCT"),
    ("SELECT COUNT(DISTINCT patient_id) FILTER (WHERE age > 3) FROM visits", "COUNT(DISTINCT …) with FILTER"),
    ("SELECT COUNT(*) OVER () FROM visits", "OVER"),
    ("SELECT COUNT(*) FILTER (WHERE age > 3) OVER (PARTITION BY sex) FROM visits", "OVER"),
    ("SELECT MEDIAN(age) OVER () FROM visits", "OVER"),
    ("SELECT COUNT(*) FROM visits WHERE ROW_NUMBER() OVER (ORDER BY age) < 3", "OVER"),
    ("SELECT COUNT(*) FROM visits WINDOW w AS (PARTITION BY sex)", "WINDOW"),
    (
        "SELECT COUNT(*) FROM visits WHERE age IN (SELECT age FROM visits GROUP BY 1 HAVING COUNT(*) > 1)",
        "IN (SELECT …)",
    ),
    ("SELECT COUNT(*) FROM visits WHERE age = (SELECT 1)", "a subquery inside an expression"),
    ("SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits)", "EXISTS"),
    ("SELECT COUNT(*) FROM visits WHERE age = ANY (SELECT 1)", "ANY"),
    ("SELECT COUNT(*) FROM visits WHERE age > ALL (SELECT 1)", "ALL"),
    ("SELECT (SELECT COUNT(*) FROM visits) FROM visits", "a subquery inside an expression"),
    ("SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits GROUP BY sex) s", "GROUP BY in a subquery"),
    ("SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM visits) s", "an aggregate inside a row-wise value"),
    ("SELECT COUNT(*) FROM (SELECT age FROM visits HAVING TRUE) s", "HAVING in a subquery"),
    ("SELECT COUNT(*) FROM (SELECT DISTINCT age FROM visits) s", "DISTINCT"),
    ("SELECT COUNT(*) FROM (SELECT age FROM visits LIMIT 5) s", "LIMIT"),
    ("WITH RECURSIVE r AS (SELECT age FROM visits) SELECT COUNT(*) FROM r", "WITH RECURSIVE"),
    ("WITH r AS (SELECT COUNT(*) AS n FROM visits) SELECT SUM(n) FROM r", "an aggregate inside a row-wise value"),
    ("SELECT COUNT(*) FROM (WITH r AS (SELECT age FROM visits) SELECT age FROM r) s", "WITH inside a subquery"),
    ("SELECT COUNT(*) FROM visits TABLESAMPLE SYSTEM (10)", "TABLESAMPLE"),
    ("SELECT COUNT(*) INTO other FROM visits", "INTO"),
    ("SELECT COUNT(*) FROM visits FOR UPDATE", "FOR UPDATE"),
    ("SELECT COUNT(*) FROM READ_CSV('/etc/passwd')", "READ_CSV as a table"),
    ("SELECT COUNT(*) FROM public.visits", "a name with dots"),
    ("SELECT COUNT(*) FROM visits AS v(a, b)", "a list of columns after an alias"),
    ("SELECT COUNT(*) FROM (VALUES (1)) AS v", "VALUES"),
    ("SELECT COUNT(*) FROM LATERAL (SELECT 1) s", "LATERAL"),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY ROLLUP (sex)", "ROLLUP"),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY CUBE (sex)", "CUBE"),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY GROUPING SETS ((sex), ())", "GROUPING SETS"),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY ALL", "GROUP BY ALL"),
    ("SELECT COUNT(*) AS n FROM visits GROUP BY n", "an aggregate in GROUP BY"),
    ("SELECT COUNT(*) FROM visits GROUP BY COUNT(*)", "an aggregate in GROUP BY"),
    ("SELECT COUNT(*) FROM visits GROUP BY 1", "an aggregate in GROUP BY"),
    ("SELECT COUNT(*) FROM visits WHERE COUNT(*) > 10", "an aggregate inside a row-wise value"),
    ("SELECT AVG(SUM(age)) FROM visits", "an aggregate inside a row-wise value"),
    ("SELECT VAR_SAMP(age) FROM visits", "VAR_SAMP"),
    ("SELECT STDDEV_SAMP(age) FROM visits", "STDDEV_SAMP"),
    ("SELECT COVAR_SAMP(age, sbp) FROM visits", "COVAR_SAMP"),
    ("SELECT MIN(age) FROM visits", "MIN"),
    ("SELECT max(age) FROM visits", "MAX"),
    ("SELECT STRING_AGG(sex, ',') FROM visits", "STRING_AGG"),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age DESC) FROM visits", "WITHIN GROUP in descending order"),
    ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age, sbp) FROM visits", "WITHIN GROUP by several values"),
    ("SELECT MODE() WITHIN GROUP (ORDER BY age) FROM visits", "WITHIN GROUP"),
    ("SELECT COUNT(visits.*) FROM visits", "SELECT *"),
    ("SELECT * FROM visits", "SELECT *"),
    ("SELECT UPPER(sex) FILTER (WHERE age > 3) FROM visits", "UPPER"),
    ("SELECT SUM(age) FILTER (WHERE MAX(age) > 3) FROM visits", "an aggregate inside a row-wise value"),
    ("DROP TABLE visits", "DROP is no question"),
    ("INSERT INTO visits VALUES (1)", "INSERT is no question"),
    ("EXPLAIN SELECT COUNT(*) FROM visits", "EXPLAIN is no question"),
    ("COPY visits TO 'x'", "COPY is no question"),
    ("PRAGMA database_list", "PRAGMA is no question"),
    ("SELECT COUNT(*) FROM visits; DROP TABLE visits", "2 statements"),
    ("SELECT COUNT(*) FROM visits;; SELECT COUNT(*) FROM visits;", "2 statements"),
]
CONDITIONS = [
    ("dx ILIKE '%j1%'", "LIKE"),
    ("day > NOW()", "NOW is not supported: a question means the same tomorrow"),
    ("day > CURRENT_DATE", "a question means the same tomorrow"),
    ("AGE(day) > 3", "Instead: |instead, write DATE_DIFF"),
    ("day - born > INTERVAL '1 month'", "INTERVAL in months by itself"),
    ("day AT TIME ZONE 'UTC' > DATE '2026-01-01'", "declare zones"),
    ("EXTRACT(SECOND FROM day) > 3", "EXTRACT(EPOCH FROM"),
    ("TRIM(BOTH 'x' FROM dx) = 'a'", "REPLACE"),
    ("CONCAT(dx, 'x') = 'a'", "a || b"),
    ("dx ~ '^J1'", "SUBSTRING"),
    ("CAST(dx AS VARCHAR(3)) = 'a'", "EXPRESSIONS"),
    ("age = NULL", "NULL"),
    ("age IN (1, NULL)", "NULL"),
    ("age IN (stay, 1)", "COLUMN where a constant is needed"),
    ("CASE WHEN age > 3 THEN NULL ELSE 1 END = 1", "NULL"),
    ("dx LIKE '%J1'", "LIKE"),
    ("dx LIKE 'J_1%'", "LIKE"),
    ("dx LIKE 'J\\%%'", "LIKE"),
    ("dx LIKE other", "LIKE"),
    ("dx LIKE 'J!%%' ESCAPE '!'", "ESCAPE"),
    ("dx SIMILAR TO 'J1%'", "SIMILAR TO"),
    ("dx ~ '^J1'", "a regular expression"),
    ("age IS DISTINCT FROM 3", "IS DISTINCT FROM"),
    ("age IS NOT DISTINCT FROM 3", "IS NOT DISTINCT FROM"),
    ("(age + 3) IS FALSE", "IS with something else"),
    ("age % 2 = 0", "%"),
    ("age ^ 2 = 4", "^"),
    ("day > CURRENT_DATE", "CURRENTDATE"),
    ("day > NOW()", "NOW"),
    ("RANDOM() < 0.5", "RANDOM"),
    ("PG_SLEEP(10) = 1", "PG_SLEEP"),
    ("EXTRACT(CENTURY FROM day) = 20", "EXTRACT(CENTURY …)"),
    ("a.b.c.d = 1", "a name with dots"),
    ("codes[1] = 1", "an element of a list"),
    ("(age, sbp) = (1, 2)", "a row of several values"),
    ("age = :x", "a placeholder"),
    ("age = ?", "a placeholder"),
    ("age = $1", "a placeholder"),
    ("dx = $$a$$", "a text between dollar signs"),
    ("dx = E'a\\n'", "a text with escapes"),
    ("age = x'1f'", "a number in another notation"),
    ("dx COLLATE \"C\" = 'a'", "COLLATE"),
    ("TRUE", "a condition that is always the same"),
    ("age BETWEEN SYMMETRIC 3 AND 1", "SYMMETRIC after BETWEEN"),
    ('"COUNT"(*) = 1', "COUNT|a function of that name"),
]


@pytest.mark.parametrize(("text", "name"), NAMED, ids=lambda value: value[:70])
def test_a_select_is_refused_by_name(text: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Unsupported) as refusal, caplog.at_level(logging.WARNING):
        VISITS.sql(text)
    assert name in str(refusal.value)
    assert "othing was done" in str(refusal.value)
    assert caplog.records == []


@pytest.mark.parametrize(("text", "name"), CONDITIONS, ids=lambda value: value[:70])
def test_a_condition_is_refused_by_name(text: str, name: str) -> None:
    for ask in (lambda: VISITS.where(text), lambda: VISITS.sql(f"SELECT COUNT(*) {FROM} WHERE {text}")):
        with pytest.raises(Unsupported) as refusal:
            ask()
        assert any(each in str(refusal.value) for each in name.split("|"))
        assert "othing was done" in str(refusal.value)


WRONG = [
    ("SELECT sex FROM visits GROUP BY sex", "no aggregate is selected"),
    ("SELECT sex, COUNT(*) FROM visits", "'sex' is neither grouped by nor inside an aggregate"),
    ("SELECT age + 1, COUNT(*) FROM visits", "'ADD' is neither grouped by"),
    ("SELECT COUNT(*) FROM visits GROUP BY sex", "is not selected"),
    ("SELECT age > 3, COUNT(*) FROM visits GROUP BY 1", "Give it one with AS"),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY 3", "a place beyond the 2"),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY 0", "a place beyond the 2"),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY sex, sex", "once only"),
    ("SELECT AVG(age), AVG(sbp) FROM visits", "the same name"),
    ("SELECT AVG(age) AS self FROM visits", "cannot be called 'self'"),
    ("SELECT QUANTILE(age, 2) FROM visits", "quantile"),
    ("SELECT QUANTILE(age, 'x') FROM visits", "a number between 0 and 1"),
    ("SELECT PERCENTILE_CONT(0.5) FROM visits", "needs WITHIN GROUP"),
    ("SELECT MEDIAN(age, 2) FROM visits", "takes 1"),
    ("SELECT SUM(age, sbp) FROM visits", "takes 1"),
    ("SELECT SUM() FROM visits", "takes 1"),
    ("SELECT CORR(age) FROM visits", "takes 2"),
    ("SELECT COUNT() FROM visits", "takes \\* or one value"),
    ("SELECT COUNT(*)", "Say FROM visits"),
    ("SELECT COUNT(*) FROM Visits", "no table 'Visits' here.*Say FROM visits"),
    ("SELECT COUNT(*) FROM visits v WHERE visits.age > 3", "no table 'visits' here"),
    ("SELECT COUNT(*) FROM (SELECT age FROM visits) s WHERE sbp > 3", "no column 'sbp' here.*'age'"),
    ("SELECT COUNT(*) FROM (SELECT age + 1 FROM visits) s", "a value in a subquery has no name"),
    ("SELECT COUNT(*) FROM (SELECT age, sbp AS age FROM visits) s", "names 'age' twice"),
    ("WITH a AS (SELECT age FROM visits), a AS (SELECT sbp FROM visits) SELECT COUNT(*) FROM a", "'a' twice"),
    ("WITH a AS (SELECT age FROM b), b AS (SELECT age FROM a) SELECT COUNT(*) FROM b", "no table 'b' here"),
    ("WITH a AS (SELECT age FROM a) SELECT COUNT(*) FROM a", "no table 'a' here"),
    ("SELECT CASE WHEN age > 3 THEN 1 ELSE 0 END AS age, COUNT(*) FROM visits GROUP BY age", "could be the column"),
    ("SELECT ward AS sex, COUNT(*) FROM visits GROUP BY sex", "could be the column"),
    ("SELECT sex AS a, ward AS a, COUNT(*) FROM visits GROUP BY a", "two selected values are called 'a'"),
    ("SELECT COUNT(*) FROM visits WHERE age = 1e999999999", "too many digits"),
    ("SELECT COUNT(*) FROM visits WHERE age = 99999999999999999999", "fit 64 bits"),
    ("SELECT COUNT(*) FROM visits WHERE d = DATE '2026-02-30'", "DATE '2026-01-31'"),
    ("SELECT COUNT(*) FROM visits WHERE d = DATE '20260228'", "DATE '2026-01-31'"),
    ("SELECT COUNT(*) FROM visits WHERE dx LIKE '%'", "empty prefix"),
    ("SELECT COUNT(*) FROM visits WHERE ABS(age, 1) > 3", "ABS was given 2 values.*takes one"),
    ("SELECT COUNT(*) FROM visits WHERE WIDTH_BUCKET(age, 10, 1, 3) = 1", "a higher high"),
    ("SELECT COUNT(*) FROM visits WHERE WIDTH_BUCKET(age, 1, 10, 1000000) = 1", "from 1 to 1,000"),
    ("SELECT COUNT(*) FROM visits WHERE STARTS_WITH(dx, other)", "a text in quotes"),
    ("SELECT COUNT(*) FROM visits WHERE COALESCE() = 1", "COALESCE was given 0 values"),
    ("", "empty"),
    (" ;; -- nothing", "empty"),
    ("SELECT", "could not be read|Say FROM"),
    ("SELECT COUNT(*) FROM visits WHERE", "could not be read"),
    ("SELECT COUNT(*) FROM visits WHERE a = 'x", "could not be read"),
    ("SELECT COUNT(*) FROM visits WHERE (a = 1", "could not be read near line 1, column"),
    ("SELECT COUNT(*) FROM visits /* never closed", "could not be read|nothing was done"),
    ("SELECT COUNT(*) FROM visits WHERE a = '\0'", "null character"),
    ("SELECT COUNT(*) FROM visits WHERE a = '\ud800'", "surrogate"),
    (3, "SQL is a text and not int"),
    (b"SELECT COUNT(*) FROM visits", "SQL is a text and not bytes"),
]


@pytest.mark.parametrize(("text", "words"), WRONG, ids=lambda value: repr(value)[:70])
def test_what_is_malformed_is_said_with_what_to_do(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        VISITS.sql(text)
    assert "\x1b" not in str(refusal.value)


HOSTILE = {
    "too long": "SELECT COUNT(*) FROM visits WHERE a = '" + "x" * 20_000 + "'",
    "brackets": "SELECT COUNT(*) FROM visits WHERE " + "(" * 9_000 + "a = 1" + ")" * 9_000,
    "nots": "SELECT COUNT(*) FROM visits WHERE " + "NOT " * 4_900 + "a = 1",
    "minuses": "SELECT SUM(" + "- " * 9_000 + "age) FROM visits",
    "sums": "SELECT SUM(" + "age + " * 3_000 + "age) FROM visits",
    "cases": "SELECT SUM(" + "CASE WHEN a = 1 THEN " * 800 + "age" + " END" * 800 + ") FROM visits",
    "subqueries": "SELECT COUNT(*) FROM " + "(SELECT * FROM " * 1_000 + "visits" + ")" * 1_000,
    "doubling": "WITH "
    + ", ".join(f"t{n + 1} AS (SELECT a + a AS a FROM {f't{n}' if n else 'visits'})" for n in range(60))
    + " SELECT COUNT(*) FROM t60 WHERE a = 1",
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", HOSTILE)
def test_endless_texts_are_refused_quickly(name: str) -> None:
    started = time.monotonic()
    with pytest.raises(InvalidInput, match=r"characters, more than|nested|has more than"):
        VISITS.sql(HOSTILE[name])
    assert time.monotonic() - started < 20  # seconds, on a busy machine; a slip would take hours


def test_a_long_run_of_conditions_is_understood() -> None:
    found = VISITS.where(" OR ".join(f"a = {number}" for number in range(800))).predicate
    assert len(found.parts) == 800  # type: ignore[union-attr]


def test_digits_of_other_scripts_are_no_numbers() -> None:
    for text in ("a > \uff11", "a > 1\u0662", "a > \u00b2"):
        try:
            predicate = VISITS.where(text).predicate
        except SfumatoError:
            continue
        assert predicate.KIND == "expression.value_compare"  # a name, letter by letter, and no number


@pytest.mark.parametrize("text", ["", "-- nothing", "a = 1; b = 2", "a = 1 GROUP BY b", "SELECT 1", "a AS b"])
def test_a_condition_is_one_text_and_no_more(text: str) -> None:
    with pytest.raises(InvalidInput, match="nothing was done"):
        VISITS.where(text)
