"""Plan files: what they come to, and that a wrong or hostile one is refused by name, before anything is opened."""

import dataclasses
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.core.documents import parse
from sfumato.core.units import family, record
from sfumato.errors import BudgetExceeded, InvalidInput, SfumatoError
from sfumato.governance.periods import Cadence, periods
from sfumato.governance.plans import FigureSource, Fixed, Margin, MeanError
from sfumato.runner.figures import expected_margin
from sfumato.runner.places import DataPath
from sfumato.runner.plan_file import PlanFile
from sfumato.tables.schema import Schema
from tests.runner.clinic import ACCOUNT, HEAD, MONTHS, PATIENT, QUARTERS, QUESTION, SCHEMA

WHOLE = HEAD + MONTHS + QUARTERS
COST = MONTHS.replace("months", "costs").replace("sex, COUNT(*)", "sex, SUM(cost) AS cost")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a schema in it, and no data."""
    (tmp_path / "visits.toml").write_text(SCHEMA, "utf-8")
    return tmp_path


def loaded(folder: Path, text: str) -> PlanFile:
    (folder / "plan.toml").write_text(text, "utf-8")
    return PlanFile.load(folder / "plan.toml")


def test_a_plan_file_says_everything_and_sensitivities_are_worked_out(folder: Path) -> None:
    text = WHOLE.replace("[unit]", 'purpose = "planning/beds"\nrecipient = "public"\n[unit]')
    file = loaded(folder, text)
    assert (file.account, file.purpose, file.recipient) == (ACCOUNT, "planning/beds", "public")
    assert (file.plan.name, file.plan.year, file.unit, file.plan.cap.epsilon) == ("dashboard", 2024, PATIENT, 60)
    monthly, quarterly = file.plan.releases
    assert (monthly.every, monthly.l1, monthly.l2_squared, monthly.numbers) == (Cadence.MONTHLY, 1, 1, 2)
    assert monthly.wanted == Margin(margin=3, confidence=Fraction(19, 20))
    assert quarterly.sums == "months"
    said = parse(str(monthly.question))
    assert isinstance(said, dict)
    assert said["sql"] == "SELECT sex, COUNT(*) FROM visits GROUP BY sex"
    assert (said["data"], said["purpose"], said["recipient"]) == ("data/{period}.parquet", "planning/beds", "public")
    assert file.solved().line("quarters").source is FigureSource.DERIVED


def test_sensitivity_follows_the_unit_the_question_and_the_limit(folder: Path) -> None:
    (folder / "visits.toml").write_text(SCHEMA.replace("groups = 1", "groups = 2"), "utf-8")
    assert loaded(folder, HEAD + MONTHS).plan.releases[0].l1 == 2
    whole = loaded(folder, HEAD + MONTHS.replace("sex, COUNT(*)", "COUNT(*)").replace(" GROUP BY sex", ""))
    assert (whole.plan.releases[0].l1, whole.plan.releases[0].numbers) == (1, 1)
    three = loaded(folder, WHOLE.replace('kind = "user"', 'kind = "family"\nsize = 3'))
    assert three.unit == family(3, "patient_id", relation="add/remove")
    assert three.plan.releases[0].l1 == 6
    swapped = loaded(folder, WHOLE.replace("add/remove", "replace"))
    assert swapped.plan.releases[0].l1 == 2
    rows = loaded(folder, WHOLE.replace('kind = "user"\ncolumn = "patient_id"', 'kind = "record"'))
    assert (rows.unit, rows.plan.releases[0].l1) == (record(relation="add/remove"), 1)


def test_every_way_to_say_how_exact_it_has_to_be(folder: Path) -> None:
    def wanted(text: str) -> object:
        return loaded(folder, HEAD + MONTHS.replace("{ margin = 3, confidence = 0.95 }", text)).plan.releases[0].wanted

    assert wanted("{ mean_error = 1.5 }") == MeanError(error=Fraction(3, 2))
    assert wanted('{ epsilon = "1/3" }') == Fixed(epsilon=Fraction(1, 3))
    assert wanted("{ margin = 9, confidence = 0.99 }") == Margin(margin=9, confidence=Fraction(99, 100))


def test_a_sum_is_priced_by_its_own_margin(folder: Path) -> None:
    file = loaded(folder, HEAD + COST.replace("margin = 3", "margin = 500"))
    amount = file.solved().line("costs").amount
    asked = file.entry("costs").asked
    assert asked.question.epsilon_for(margin=500, confidence="0.95", joint=True) == amount
    assert asked.question.preview(epsilon=amount).joint_margins["cost"] <= 500


def test_a_mean_is_priced_for_the_rows_that_are_expected(folder: Path) -> None:
    mean = COST.replace("SUM(cost)", "AVG(cost)")
    with pytest.raises(InvalidInput, match="rows"):
        loaded(folder, HEAD + mean).solved()
    file = loaded(folder, HEAD + mean.replace("0.95 }", "0.95, rows = 900 }"))
    more = loaded(folder, HEAD + mean.replace("0.95 }", "0.95, rows = 9000 }"))
    assert more.solved().total < file.solved().total
    assert more.digest != file.digest


def test_the_digest_covers_question_schema_path_and_target(folder: Path) -> None:
    changes = [
        (
            "SELECT sex, COUNT(*) FROM visits GROUP BY sex",
            "SELECT sex, COUNT(*) FROM visits WHERE cost > 1 GROUP BY sex",
        ),
        ("data/", "elsewhere/"),
        ("margin = 3", "margin = 4"),
        ("epsilon = 60", "epsilon = 61"),
        ("year = 2024", "year = 2025"),
        ("[unit]", 'purpose = "research"\n[unit]'),
    ]
    digests = {loaded(folder, WHOLE).digest} | {loaded(folder, WHOLE.replace(*change)).digest for change in changes}
    (folder / "visits.toml").write_text(SCHEMA.replace("[0, 100]", "[0, 101]"), "utf-8")
    digests.add(loaded(folder, WHOLE).digest)
    assert len(digests) == len(changes) + 2
    (folder / "visits.toml").write_text(SCHEMA, "utf-8")
    comment = loaded(folder, f"# a remark\n{WHOLE}")
    assert comment.digest in digests


def test_margins_of_derived_figures_are_those_of_the_noise_that_runs(folder: Path) -> None:
    schedule = loaded(folder, WHOLE).solved()
    assert expected_margin(schedule, "months", Fraction(19, 20)) == schedule.margin("months") == 3
    exact, wider = schedule.margin("quarters"), expected_margin(schedule, "quarters", Fraction(19, 20))
    assert exact <= wider <= exact + 1


@pytest.mark.long
def test_an_infeasible_plan_names_what_binds(folder: Path) -> None:
    with pytest.raises(
        BudgetExceeded, match=r"needs at least ε = 12\.192 in its year, and the plan's own cap is ε = 2"
    ):
        loaded(folder, WHOLE.replace("epsilon = 60", "epsilon = 2")).solved()


WRONG = {
    "no TOML": ("kind", "kind =", "this is not TOML"),
    "another kind": ('kind = "plan"', 'kind = "schema"', 'kind = "plan" is missing'),
    "a newer version": ("version = 1", "version = 2", "newer version"),
    "no version": ("version = 1", "", "does not say version"),
    "no name": ('name = "dashboard"', "", "does not say name"),
    "an empty name": ('name = "dashboard"', 'name = " "', "name must be a text"),
    "no year": ("year = 2024", "", "does not say year"),
    "a year that is none": ("year = 2024", 'year = "soon"', "year"),
    "no account": (f'account = "{ACCOUNT}"', "", "does not say account"),
    "an account that is none": (f'account = "{ACCOUNT}"', 'account = "/"', "not the path of an account"),
    "no aim": ('aim = "least cost"', "", "does not say aim"),
    "another aim": ("least cost", "least effort", "aim must be one of"),
    "another accounting": ("[unit]", 'accounting = "magic"\n[unit]', "accounting must be one of"),
    "no unit": ('kind = "user"\ncolumn = "patient_id"\nrelation = "add/remove"', "", "unit is missing"),
    "no relation": ('relation = "add/remove"', "", "does not say relation"),
    "a unit that no table has": ('kind = "user"', 'kind = "event"', "kind must be one of user, family, record"),
    "another column": ('column = "patient_id"', 'column = "name"', "the schema identifies persons"),
    "no cap": ("[cap]\nepsilon = 60", "", "cap is missing"),
    "an endless cap": ("epsilon = 60", "epsilon = inf", "not a finite number"),
    "a cap of nothing": ("epsilon = 60", "epsilon = 0", "above 0"),
    "an unknown field": ("[unit]", "fast = true\n[unit]", "unknown field 'fast'"),
    "an unknown field of a release": ("every", "l1 = 1\nevery", "unknown field 'l1'"),
    "no cadence": ('every = "monthly"', "", "does not say every"),
    "another cadence": ('every = "monthly"', 'every = "hourly"', "every must be one of"),
    "no question": ("question", "# question", "does not say question"),
    "a question that is none": ("SELECT sex, COUNT(*)", "DROP", "months"),
    "a question about other rows": ("FROM visits", "FROM wards", "no table 'wards'"),
    "a quantile": ("sex, COUNT(*)", "sex, MEDIAN(cost)", "not planned yet"),
    "no schema": ("schema", "# schema", "does not say schema"),
    "a schema that is not there": ("visits.toml", "absent.toml", "could not be read"),
    "a schema that is no path": ("visits.toml", "..\\u0000", "not the path of a file"),
    "no data": ("data =", "# data =", "does not say data"),
    "two targets": ("margin = 3,", "margin = 3, epsilon = 1,", "only one of them"),
    "half a target": (", confidence = 0.95", "", "only one of them"),
    "no target": ("{ margin = 3, confidence = 0.95 }", "{}", "wanted must be a table"),
    "a target that is none": ("{ margin = 3, confidence = 0.95 }", "3", "wanted must be a table"),
    "a margin of a half": ("margin = 3,", "margin = 0.5,", "whole number"),
    "a certainty": ("confidence = 0.95", "confidence = 1", "confidence"),
    "a weight of nothing": ("[releases.quarters]", "weight = 0\n[releases.quarters]", "above 0"),
    "rows of a count": ("confidence = 0.95", "confidence = 0.95, rows = 9", "not counts"),
    "a sum of nothing": ('sums = "months"', 'sums = "weeks"', "not a release of this plan"),
    "a sum of coarser ones": ('every = "quarterly"', 'every = "daily"', "do not fill it"),
    "a sum of other questions": (
        'every = "quarterly"\nquestion = "SELECT sex, COUNT(*) FROM visits',
        'every = "quarterly"\nquestion = "SELECT sex, COUNT(*) FROM visits WHERE cost > 5',
        "another question",
    ),
    "a sum of persons": ("COUNT(*)", "COUNT(DISTINCT patient_id) AS n", "do not add up"),
    "the same twice": (
        'every = "quarterly"',
        'every = "monthly"',
        "ask the same of the same periods",
    ),
    "one version, two files": (
        f'every = "quarterly"\n{QUESTION}\ndata = "data',
        f'every = "monthly"\n{QUESTION.replace("sex, ", "").replace(" GROUP BY sex", "")}\ndata = "other',
        "read different files as the same periods",
    ),
    "a folder twice": ("[releases.quarters]", "[releases.Months]", "one folder"),
    "a name that is a path": ("[releases.months]", '[releases."../../etc"]', "name of a release"),
    "a hidden name": ("[releases.months]", '[releases.".ssh"]', "name of a release"),
    "a name with a control character": ("[releases.months]", '[releases."a\\u001bb"]', "name of a release"),
    "out of the folder": ("data/{period}", "../data/{period}", "'..'"),
    "out of the folder inside": ("data/{period}", "data/../../{period}", "'..'"),
    "the home of somebody": ("data/{period}", "~root/{period}", "'~'"),
    "a pattern": ("data/{period}", "data/*{period}", "patterns"),
    "an address": ("data/{period}.parquet", "https://example.org/{period}.parquet", "addresses"),
    "a backslash": ("data/{period}", "data\\\\{period}", "control characters"),
    "a zero byte": ("data/{period}", "data\\u0000/{period}", "control characters"),
    "an attribute": ("{period}.parquet", "{period.__class__}.parquet", "braces that mean nothing"),
    "an index": ("{period}.parquet", "{period[0]}.parquet", "braces that mean nothing"),
    "a place": ("{period}.parquet", "{0}{period}.parquet", "braces that mean nothing"),
    "a format": ("{period}.parquet", "{period:>999999999}.parquet", "braces that mean nothing"),
    "a conversion": ("{period}.parquet", "{period!r}.parquet", "braces that mean nothing"),
    "an open brace": ("{period}.parquet", "{period.parquet", "braces that mean nothing"),
    "a doubled brace": ("{period}.parquet", "{{{period}}}.parquet", "braces that mean nothing"),
    "a day of a month": ("{period}.parquet", "{year}-{day}.parquet", "braces that mean nothing"),
    "one file for all": ("{period}.parquet", "all.parquet", "one file to several"),
    "one file for some": ("{period}.parquet", "{year}.parquet", "one file to several"),
    "no table": ("{period}.parquet", "{period}.xlsx", "must end in one of"),
    "a program": ("{period}.parquet", "{period}.py", "must end in one of"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_or_hostile_plan_is_refused_by_name(folder: Path, case: str) -> None:
    old, new, words = WRONG[case]
    assert old in WHOLE
    with pytest.raises(SfumatoError) as refusal:
        loaded(folder, WHOLE.replace(old, new))
    assert words in str(refusal.value)
    assert str(refusal.value).startswith("plan.toml: ")
    assert sorted(file.name for file in folder.iterdir()) == ["plan.toml", "visits.toml"]


def test_sums_and_errors_of_what_is_no_count_are_refused(folder: Path) -> None:
    for text, words in (
        (COST.replace("margin = 3, confidence = 0.95", "mean_error = 3"), "of counts alone"),
        (f'{COST}sums = "months"\n', "only counts of rows"),
    ):
        with pytest.raises(SfumatoError, match=words):
            loaded(folder, WHOLE + text.replace("monthly", "yearly"))
    with pytest.raises(SfumatoError, match="no common measure"):
        loaded(folder, HEAD.replace("least cost", "least variance") + COST)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "UTF-8"),
        (b"a" * (2**20 + 1), "longer than a plan"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "nested too deep"),
        (b"a = " + b"9" * 5000, "endless number"),
    ],
)
def test_a_file_that_is_no_text_or_endless_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "plan.toml").write_bytes(content)
    with pytest.raises(InvalidInput, match=words):
        PlanFile.load(tmp_path / "plan.toml")


def test_a_plan_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"'plan.toml' could not be read"):
        PlanFile.load(tmp_path / "plan.toml")


@pytest.mark.parametrize("cadence", Cadence)
def test_no_period_leads_out_of_its_folder_or_to_another_one(cadence: Cadence) -> None:
    path = DataPath(text="data/{year}/{period}.parquet", every=cadence, year=2024)
    found = {path.inside(Path("/srv"), period) for period in periods(cadence, 2024)}
    assert len(found) == len(periods(cadence, 2024))
    assert all(place.resolve().is_relative_to("/srv/data/2024") for place in found)


def test_every_part_of_a_question_is_public(folder: Path) -> None:
    """Solving opens no data: there is none in the folder, and the schema is all that is read."""
    file = loaded(folder, WHOLE)
    assert file.solved() == dataclasses.replace(file).solved()
    assert file.entry("months").asked.schema == Schema.from_toml(SCHEMA)
