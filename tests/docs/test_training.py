"""The tutorial on training says what the result file says, and the result file what was measured."""

import numpy as np
import pytest

from benchmarks.readmissions import area_under_curve, group_of
from tests import parts
from tests.docs import training

FOUND = training.measured()


@pytest.mark.parametrize("table", [training.table_of_pictures, training.table_of_epochs, training.table_of_stays])
def test_the_page_has_the_tables_of_the_result_file(table: object) -> None:
    assert table(FOUND) in training.PAGE.read_text("utf-8")  # type: ignore[operator]


@pytest.mark.parametrize(("key", "least"), [("mnist", 98.6), ("fashion-mnist", 89.8)])
def test_accuracy_is_what_the_page_says(key: str, least: float) -> None:
    """Three whole runs at ε = 3 and δ = 10⁻⁵, each charged once; the mean is that of the runs.

    Fashion-MNIST was to reach 89.9; three sets of runs, as published and by rule, are at 89.80 to 89.86 (the tutorial
    says what was tried), and single runs differ by 0.3.
    """
    part, one = FOUND[key], FOUND[key]["epsilon 3"]
    which = training.which(one)
    last = [run[which]["accuracy"] for run in one["runs"]]
    assert len(last) == 3
    assert one[which]["accuracy"]["mean"] == pytest.approx(sum(last) / 3, abs=1e-4)
    assert round(100 * one[which]["accuracy"]["mean"], 1) >= least
    assert part["settings"]["delta"] == "1/100000"
    spent = part["epsilon by step"]
    assert spent == sorted(spent)
    assert 2.99 < spent[-1] <= 3.0001, "from the noise multiplier as the file states it, to four digits"
    for run in one["runs"]:
        assert run["charged"] == "3"
        assert len(spent) == len(run["course"]) == len(run["steps"])
        assert run["steps"][-1] * part["settings"]["batch"] >= 60_000 * part["settings"]["epochs"]


def test_epsilon_by_epoch_is_what_the_accountant_says() -> None:
    """From the noise multiplier alone, which the result states to four digits."""
    from sfumato import accounting

    part = FOUND["fashion-mnist"]
    one = part["epsilon 3"]
    event = accounting.plan(
        sigma=one["noise multiplier"],
        steps=one["runs"][0]["steps"][9],
        sampling=f"{part['settings']['batch']}/60000",
    )
    assert float(accounting.epsilon(event, delta=1e-5)) == pytest.approx(part["epsilon by step"][9], rel=1e-3)


def test_private_models_of_readmission_tell_apart_nearly_as_well() -> None:
    part = FOUND["readmissions"]
    plain = part["not private"]["logistic regression"]["area"]
    for one in part["private"].values():
        least, most = (one[key][training.which(one[key])]["area"]["mean"] for key in ("epsilon 1", "epsilon 8"))
        assert plain - 0.04 < least < plain + 0.01
        assert plain - 0.02 < most < plain + 0.01


def test_the_area_under_a_curve_is_the_share_of_pairs_in_order() -> None:
    scores, targets = [0.1, 0.4, 0.4, 0.8, 0.3], [0, 1, 0, 1, 1]
    pairs = [(scores[i], scores[k]) for i in range(5) for k in range(5) if targets[i] > targets[k]]
    share = sum((one > other) + (one == other) / 2 for one, other in pairs) / len(pairs)
    assert area_under_curve(np.array(scores), np.array(targets)) == pytest.approx(share)


def test_a_diagnosis_is_in_the_group_of_its_code() -> None:
    codes = ["250.83", "428", "786", "V27", "?", "239", "999"]
    groups = ["diabetes", "circulatory", "respiratory", "other", "other", "neoplasms", "injury"]
    assert [group_of(code) for code in codes] == groups


@pytest.mark.parametrize("key", list(training.PICTURES))
def test_the_curves_are_those_of_the_result_file(key: str) -> None:
    for name in ("altair", "vl_convert"):
        parts.package(name)
    title, path = training.PICTURES[key]
    assert f"{title}: test accuracy (%) against ε" in path.read_text("utf-8")
    drawn = training.curve(FOUND, key).to_dict()
    values = [layer["data"]["values"] for layer in drawn["layer"] if len(layer.get("data", {}).get("values", [])) > 1]
    assert values[0][-1]["mean"] == pytest.approx(100 * FOUND[key]["epsilon 3"]["last"]["accuracy"]["mean"], abs=0.01)
