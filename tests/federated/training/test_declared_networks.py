"""Models that reach sites as declarations: what they compute, what sites decline, and their weights in a file."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from sfumato.core.query import Dataset
from sfumato.errors import InvalidInput, NotDeclared, Refused, SfumatoError
from sfumato.federated import DeclaredNetwork, FederatedTraining, FedSGD
from sfumato.federated.training.weights_file import check_certified, read_network, weights_bytes
from sfumato.learning.vault_tables import VaultRows
from sfumato.tables.feature_columns import FeatureColumn
from tests.federated.hospitals import without_noise
from tests.federated.training.networks import SPEND, training_network
from tests.federated.training.tables import network, stays, table_network


def test_a_declared_network_is_trained_and_its_certificate_names_it(tmp_path: Path) -> None:
    sites = table_network()
    trained = sites.trainer().fit(**SPEND, rounds=2, lr=1.0)
    assert sites.spent == [3, 3, 3]
    said = trained.release.statement.query
    assert isinstance(said, FederatedTraining)
    assert said.model == network().digest
    file = tmp_path / "model.safetensors"
    file.write_bytes(weights_bytes(network(), trained.model))
    declared, model = read_network(file)
    check_certified(declared, model, trained.release.statement)
    with torch.no_grad():
        next(model.parameters())[0, 0] += 1
    with pytest.raises(Refused, match="not the weights"):
        check_certified(declared, model, trained.release.statement)
    with pytest.raises(Refused, match="not the weights"):
        check_certified(network(hidden=[2]), trained.model, trained.release.statement)


def test_without_noise_a_round_is_the_plain_mean_of_the_rows_as_the_network_reads_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_noise(monkeypatch)
    sites = table_network()
    trained = sites.trainer(clip=2).fit(**SPEND, rounds=1, optimizer=FedSGD(lr=1.0))
    model, total = network().model(), torch.zeros(8)
    for seed in range(3):
        rows = stays(30, seed)
        inputs = torch.from_numpy(network().features(rows))
        targets = torch.tensor(rows["died"], dtype=torch.int64)
        lost = torch.nn.functional.cross_entropy(model(inputs), targets, reduction="sum")
        total += torch.cat([one.flatten() for one in torch.autograd.grad(lost, list(model.parameters()))])
    found = torch.cat([one.detach().flatten() for one in trained.model.parameters()])
    torch.testing.assert_close(found, -total / 90, atol=1e-3, rtol=0)


HOSTILE: dict[str, Any] = {
    "other bounds": replace(network(), inputs=(replace(network().inputs[0], bounds=(Fraction(0), Fraction(50))),)),
    "other keys": replace(network(), target=FeatureColumn(name="died", keys=(True, False))),
    "numbers for truth values": replace(network(), target=FeatureColumn(name="died", keys=(0, 1))),
    "no such column": replace(network(), inputs=(FeatureColumn(name="weight", bounds=(Fraction(0), Fraction(9))),)),
    "who it is": replace(network(), inputs=(FeatureColumn(name="patient", bounds=(Fraction(0), Fraction(99))),)),
    "who it is, as the target": replace(network(), target=FeatureColumn(name="patient", keys=(1, 2))),
    "a column without facts": replace(network(), inputs=(FeatureColumn(name="note", keys=("x", "y")),)),
    "more parameters than allowed": replace(network(), hidden=(2000,)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_network_that_a_site_did_not_declare_is_declined_before_anything_is_charged_or_read(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites, read = table_network(most_parameters=1000), []
    monkeypatch.setattr(VaultRows, "opened", lambda self: read.append(1))
    with pytest.raises(Refused, match="too few sites take part"):
        sites.trainer(HOSTILE[name]).fit(**SPEND, rounds=1)
    assert {why for site in sites.sites.values() for why in site.declined.values()} == {"declaration"}
    assert sites.spent == [0, 0, 0]
    assert read == []


def test_a_site_of_declared_networks_takes_no_model_by_its_form_and_the_other_way_round() -> None:
    with pytest.raises(Refused, match="too few sites take part"):
        table_network().trainer(network().model()).fit(**SPEND, rounds=1)
    with pytest.raises(Refused, match="too few sites take part"):
        training_network().consortium.trainer(network(), n_units=90, name="stays").fit(**SPEND, rounds=1)


@pytest.mark.parametrize(
    "said",
    [
        {"hidden": (10**9,)},
        {"hidden": (1000, 2000)},
        {"hidden": (1,) * 9},
        {"hidden": (0,)},
        {"inputs": ()},
        {"inputs": network().inputs[::-1]},
        {"inputs": (*network().inputs, network().inputs[0])},
        {"inputs": (network().target,)},
        {"target": FeatureColumn(name="stage", bounds=(Fraction(0), Fraction(9)))},
        {"target": FeatureColumn(name="stage", keys=("one",))},
    ],
)
def test_sizes_and_columns_of_a_network_are_checked_before_a_model_is_made(said: dict[str, Any]) -> None:
    with pytest.raises(SfumatoError):
        replace(network(), **said)


@pytest.mark.parametrize("bounds", [(0, 0), (1, 0), (0, 10**400), (0, Fraction(1, 10**320))])
def test_bounds_that_floats_do_not_tell_apart_are_no_feature(bounds: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidInput):
        FeatureColumn(name="age", bounds=(Fraction(bounds[0]), Fraction(bounds[1])))


def test_a_proposal_about_another_model_than_it_declares_is_no_proposal() -> None:
    plan = table_network().trainer().plan(**SPEND, rounds=1)
    with pytest.raises(InvalidInput, match="another model"):
        replace(plan, network=network(hidden=[2]))
    with pytest.raises(InvalidInput, match="another model"):
        replace(plan, training=replace(plan.training, parameters=9))
    assert type(plan).from_json(plan.to_json()) == plan


def test_a_schema_says_which_columns_a_network_may_read() -> None:
    declared = network(hidden=[4])
    assert [column.name for column in declared.inputs] == ["age", "sex"]
    assert declared.target.keys == (False, True)
    assert DeclaredNetwork.from_json(declared.to_json()) == declared
    with pytest.raises(NotDeclared, match="whose rows"):
        network(inputs=["patient"])
    with pytest.raises(NotDeclared, match="public facts"):
        network(inputs=["note"])
    with pytest.raises(InvalidInput, match="no column"):
        network(target="dead")


def test_rows_that_are_no_numbers_or_out_of_bounds_count_as_declared_and_end_no_run() -> None:
    rows = stays(30, 0)
    rows["age"][:4] = [float("nan"), float("inf"), -(10.0**300), None]
    rows["sex"][:2] = ["?", None]
    rows["died"][5] = None
    sites = table_network({"north": rows})
    trained = sites.trainer(network(hidden=[3])).fit(**SPEND, rounds=1, lr=1.0)
    assert trained.rounds == 1
    assert trained.votes["north"] == "joins"
    assert all(bool(torch.isfinite(one).all()) for one in trained.model.parameters())
    inputs = network().features({"age": rows["age"][:3], "sex": rows["sex"][:3]})
    assert np.abs(inputs).max() <= 1


def test_a_veto_in_the_ledger_takes_a_site_out_of_a_run_that_has_begun_and_the_others_go_on() -> None:
    sites = table_network()

    def watch(number: int, votes: object) -> None:
        if number == 1:
            sites.vaults["west"]._notary.ledger.close([Dataset(name="stays", edition="1")], {})

    trained = sites.trainer().fit(**SPEND, rounds=2, lr=1.0, watch=watch)
    assert trained.rounds == 2
    assert trained.votes == {"north": "joins", "south": "joins", "west": "left"}
    assert [max(site.runs.values()) for site in sites.sites.values()] == [2, 2, 1]
    assert sites.spent == [3, 3, 3]


@pytest.mark.parametrize("foul", ["cut", "longer", "other shape", "no network", "pickle", "empty", "huge header"])
def test_a_file_that_is_not_the_weights_of_a_network_is_not_read(foul: str, tmp_path: Path) -> None:
    whole, file = weights_bytes(network(), network().model()), tmp_path / "model.safetensors"
    file.write_bytes(
        {
            "cut": whole[:-1],
            "longer": whole + b"\0",
            "other shape": whole.replace(b'"shape":[2]', b'"shape":[3]'),
            "no network": whole.replace(b"sfumato.network", b"somebody.elses0"),
            "pickle": b"\x80\x04N." + bytes(100),
            "empty": b"",
            "huge header": (2**62).to_bytes(8, "little") + whole[8:],
        }[foul]
    )
    with pytest.raises(InvalidInput):
        read_network(file)


def test_the_table_of_another_vault_is_no_site_of_this_one() -> None:
    one, other = table_network(), table_network()
    table = other.sites["north"]._models._table  # type: ignore[attr-defined]  # a test may look
    with pytest.raises(Refused, match="another vault"):
        one.vaults["north"].declared_training_site(table, agreement=one.sites["north"]._agreement)


def test_heads_need_code_of_the_site() -> None:
    with pytest.raises(NotDeclared, match="heads"):
        table_network().sites["north"].head_trainer(network().model(), "0")
