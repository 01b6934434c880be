"""Draws of sums across sites, and of the hops of a graph network, through the calls that users make."""

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato import laws as error_laws
from sfumato.audit import added_noise
from sfumato.audit.added_noise import MOVE, masses
from sfumato.audit.fit import Played, numbers
from sfumato.audit.invented_table import invented_table
from sfumato.audit.product import DELTA, LEARNING, RECORD, needed, weak
from sfumato.audit.verdict import Attack, Drawn
from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.foreign import Array
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import SfumatoError
from sfumato.federated.shared_skellam import SharedSkellam, shared_variance
from sfumato.federated.training.federated_training import FederatedTraining
from sfumato.federated.training.shared_rounds import SharedRounds
from sfumato.learning.graph_networks.graph_training import GraphTraining, NoisyGraphSums
from sfumato.learning.noisy_sums import WIDTH
from sfumato.vault import Vault, consortium

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SITES", "WEAK_SITES"]

LARGE = Budget(epsilon=1_000, delta=1e-6)


def across(size: int) -> Played:
    """Counts of empty groups across three hospitals."""
    import numpy as np

    from sfumato.federated import Hospital, InProcess, SiteAgreement

    vaults = [Vault(unit=RECORD, budget=LARGE, name=f"site {place}") for place in range(3)]
    members = {f"site {place}": vault.public_key for place, vault in enumerate(vaults)}
    paper = SiteAgreement(members=members, sites_per_person=1, missing=1)
    tables = [invented_table(vault, {"g": []}, keys={"g": range(size)}) for vault in vaults]
    network = consortium(
        name="audit",
        unit=RECORD,
        budget=LARGE,
        sites=members,
        sites_per_person=1,
        missing=1,
        transport=InProcess([Hospital(table, agreement=paper) for table in tables]),
    )
    release = network.table(name="rows", keys={"g": range(size)}).group_by("g").count().release(epsilon=1, delta=DELTA)
    law, least = release.statement.law, Fraction(needed(1.0, DELTA) ** 2).limit_denominator(1000)
    if not isinstance(law, error_laws.SkellamNoise):
        raise SfumatoError("counts across sites were not told with the noise that sites share; nothing was audited.")
    believed = law if law.spread >= least else error_laws.SkellamNoise(spread=least)  # Gaussian noise needs no more
    return Played(cells=numbers(believed), draws=np.array(release.values, dtype=np.float64))


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


def passed_on(size: int) -> Played:
    """The sums of a hop where nobody sends anything, in steps of their lattice; steps too large are not believed."""
    import numpy as np

    from sfumato.learning import GraphNodes

    alone: Array = np.ones((1, 1), dtype=np.float32)
    nodes = GraphNodes(
        alone,
        np.array([-1]),
        names=[0],
        lists=[[]],
        roster=range(max(2, size // 2)),
        classes=2,
        n_units=1,
        name="node",
    )
    vault = Vault(unit=RECORD, budget=LARGE, name="audit")
    told = vault.graph_network(data=nodes, recipients=1).fit(epsilon=1, delta=DELTA, steps=1, progress=False)
    said = told.release.statement
    if not isinstance(said.query, GraphTraining) or not isinstance(said.mechanism, NoisyGraphSums):
        raise SfumatoError("the certificate is not that of a graph network; nothing was audited.")
    steps = min(said.query.message_steps(said.mechanism, RECORD), WIDTH / needed(1.0, DELTA))
    law = error_laws.RoundedGaussian(sigma=Fraction(WIDTH))
    return Played(cells=numbers(law), draws=np.rint(np.asarray(told.model.gathered, dtype=np.float64).ravel() * steps))


def _moved(name: str, mechanism: SharedSkellam | SharedRounds) -> Attack:
    """A number that one person moves by 3, with the noise that honest sites leave in it; of a run, in one round."""
    law = error_laws.SkellamNoise(spread=mechanism.variance)
    return Attack(
        name=name,
        kind=mechanism.KIND,
        epsilon=1.0,
        delta=float(added_noise.DELTA),
        here=lambda _: masses(law, 0),
        there=lambda _: masses(law, MOVE),
        exact=True,
        share=0.8,
    )


_VARIANCE = shared_variance(
    l1=Fraction(MOVE), l2_squared=Fraction(MOVE**2), spend=Budget(epsilon=1, delta=added_noise.DELTA)
)

_ROUND = SharedRounds.calibrated(
    Sensitivity.of(l1=MOVE, l2_squared=MOVE**2),
    Budget(epsilon=1, delta=added_noise.DELTA),
    rounds=1,
    rate=Fraction(1),
)

SITES: tuple[Attack | Drawn, ...] = (
    _moved("across sites: what honest sites leave", SharedSkellam(variance=_VARIANCE)),
    weak("across sites: counts", SharedSkellam.KIND, across, delta=DELTA, draws=1_500),
    _moved("training across sites: what honest sites leave in a round", _ROUND),
    weak(
        "training across sites: weights of a round",
        SharedRounds.KIND,
        trained_across,
        delta=DELTA,
        draws=1_500,
        needs=LEARNING,
    ),
    weak("graph network: sums of a hop", NoisyGraphSums.KIND, passed_on, delta=DELTA, draws=2_000, needs=LEARNING),
)

WEAK_SITES = (
    _moved("across sites: half of the noise leaves with a colluder", SharedSkellam(variance=_VARIANCE / 2)),
    _moved("training across sites: half of the noise", replace(_ROUND, variance=_ROUND.variance / 2)),
)
