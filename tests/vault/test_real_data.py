"""The spine on a real public table: 101,766 hospital stays of 71,518 patients with diabetes."""

import sfumato as sf
from tests.parts import dataset

AGES = [f"[{low}-{low + 10})" for low in range(0, 100, 10)]


def test_counts_by_age_lie_within_their_joint_margin() -> None:
    import pyarrow.parquet as pq

    path = dataset("diabetes-130-us-hospitals/diabetic_data.parquet")
    vault = sf.Vault(unit=sf.user("patient_nbr", relation="add/remove"), budget=sf.Budget(epsilon=2), name="diabetes")
    stays = vault.table(
        path, name="stays", version="1999-2008", limit=sf.Limit(groups=2, rows_per_group=40), keys={"age": AGES}
    )
    question = stays.group_by("age").count()
    release = question.release(epsilon=2)

    frame = pq.read_table(path, columns=["patient_nbr", "age"]).to_pandas()
    rows = frame.groupby(["patient_nbr", "age"]).size()
    assert rows.max() <= 40  # nobody is clipped, and
    assert rows.groupby("patient_nbr").size().max() <= 2  # nobody changes the age group twice: no bias to allow for
    truth = rows.groupby("age").sum()
    margin = release.statement.law.margin("999999999/1000000000", numbers=len(AGES))  # fails once in 10^9 runs
    for age, value in zip(AGES, release.values, strict=True):
        assert abs(value - int(truth.get(age, 0))) <= margin
    assert margin < truth.median() / 2  # the test would see a wrong group, a lost row group or a doubled count
