"""Draws of training runs across sites, through the calls that users make."""

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato import laws as error_laws
from sfumato.audit import added_noise
from sfumato.audit.added_noise import MOVE, masses
from sfumato.audit.fit import Played, numbers
from sfumato.audit.product import DELTA, LARGE, LEARNING, RECORD, needed, weak
from sfumato.audit.verdict import Attack, Drawn
from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import SfumatoError
from sfumato.federated.training.federated_training import FederatedTraining
from sfumato.federated.training.shared_rounds import SharedRounds
from sfumato.vault import Vault, consortium

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["FEDERATED", "WEAK_FEDERATED"]


def trained_across(size: int) -> Played:
    """The weights of one round of three sites without a row: noise alone, in steps of the lattice."""
    import numpy as np
    import torch

    from sfumato.federated import FedSGD, InProcess, SiteAgreement
    from sfumato.learning import Units

    vaults = [Vault(unit=RECORD, budget=LARGE, name=f"site {place}") for place in range(3)]
    members = {f"site {place}": vault.public_key for place, vault in enumerate(vaults)}
    paper = SiteAgreement(members=members, sites_per_person=1, missing=1)
    model = torch.nn.Linear(size, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    empty = Units(torch.zeros(0, size), torch.zeros(0), n_units=1, name="rows", version="1")
    sites = [vault.training_site(model, _square, data=empty, agreement=paper) for vault in vaults]
    network = consortium(
        name="audit",
        unit=RECORD,
        budget=LARGE,
        sites=members,
        sites_per_person=1,
        missing=1,
        transport=InProcess(sites),
    )
    told = network.trainer(model, n_units=1, name="rows").fit(
        epsilon=1, delta=DELTA, rounds=1, optimizer=FedSGD(lr=1.0)
    )
    said = told.release.statement
    if not isinstance(said.mechanism, SharedRounds) or not isinstance(said.query, FederatedTraining):
        raise SfumatoError("the certificate is not that of a run across sites; nothing was audited.")
    stated = enclosures.sqrt(said.mechanism.variance).high
    least = Fraction(needed(1.0, DELTA)) * said.query.clip / said.query.step  # Gaussian noise needs no more
    law = error_laws.RoundedGaussian(sigma=max(stated, least.limit_denominator(1000)))
    noise = -model.weight.detach().double().numpy().ravel() / float(said.query.step)
    return Played(cells=numbers(law), draws=np.rint(noise))


def _square(outputs: "Tensor", targets: "Tensor") -> "Tensor":
    """A loss, of which no row is asked."""
    return (outputs[:, 0] - targets).square().mean()


def _moved(name: str, mechanism: SharedRounds) -> Attack:
    """A number of one round that one person moves by 3, with the noise that honest sites leave in it."""
    law = error_laws.SkellamNoise(spread=mechanism.variance)
    return Attack(
        name=name,
        kind=SharedRounds.KIND,
        epsilon=1.0,
        delta=float(added_noise.DELTA),
        here=lambda _: masses(law, 0),
        there=lambda _: masses(law, MOVE),
        exact=True,
        share=0.8,
    )


_ROUND = SharedRounds.calibrated(
    Sensitivity.of(l1=MOVE, l2_squared=MOVE**2),
    Budget(epsilon=1, delta=added_noise.DELTA),
    rounds=1,
    rate=Fraction(1),
)

FEDERATED: tuple[Attack | Drawn, ...] = (
    _moved("training across sites: what honest sites leave in a round", _ROUND),
    weak(
        "training across sites: weights of a round",
        SharedRounds.KIND,
        trained_across,
        delta=DELTA,
        draws=1_500,
        needs=LEARNING,
    ),
)

WEAK_FEDERATED = (_moved("training across sites: half of the noise", replace(_ROUND, variance=_ROUND.variance / 2)),)
