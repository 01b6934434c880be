"""Draws of sums across sites, and of the hops of a graph network, through the calls that users make."""

from fractions import Fraction
from functools import cache

from sfumato import laws as error_laws
from sfumato.audit import added_noise
from sfumato.audit.added_noise import MOVE, masses
from sfumato.audit.fit import Played, numbers
from sfumato.audit.invented_table import invented_table
from sfumato.audit.product import DELTA, LARGE, LEARNING, RECORD, needed, noise_of_sums, weak
from sfumato.audit.verdict import Attack, Drawn
from sfumato.core.budget import Budget
from sfumato.core.foreign import Array
from sfumato.core.units import edge, user
from sfumato.errors import SfumatoError
from sfumato.federated.shared_skellam import SharedSkellam, shared_variance
from sfumato.learning.graph_networks.edge_training import EdgeTraining
from sfumato.learning.graph_networks.graph_training import GraphTraining, NoisyGraphSums
from sfumato.learning.graph_networks.sampled_roots import NoisyRootSums
from sfumato.learning.noisy_sums import WIDTH, NoisySums
from sfumato.vault import Vault, consortium

__all__ = ["SITES", "WEAK_SITES"]


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


def passed_on(size: int) -> Played:
    """The sums of a hop where nobody sends anything, in steps of their lattice; steps too large are not believed."""
    import numpy as np

    from sfumato.learning import GraphNodes
    from sfumato.learning.trainer import Trainer

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
    trainer = vault.graph_network(data=nodes, recipients=1)
    if not isinstance(trainer, Trainer):
        raise SfumatoError("this is no trainer of nodes; nothing was audited.")
    told = trainer.fit(epsilon=1, delta=DELTA, steps=1, progress=False)
    said = told.release.statement
    if not isinstance(said.query, GraphTraining) or not isinstance(said.mechanism, NoisyGraphSums):
        raise SfumatoError("the certificate is not that of a graph network; nothing was audited.")
    steps = min(said.query.message_steps(said.mechanism, RECORD), WIDTH / needed(1.0, DELTA))
    law = error_laws.RoundedGaussian(sigma=Fraction(WIDTH))
    return Played(cells=numbers(law), draws=np.rint(np.asarray(told.model.gathered, dtype=np.float64).ravel() * steps))


def along_links(size: int) -> Played:
    """The sums of a hop where nobody is linked, in steps of their lattice; steps too large are not believed."""
    import numpy as np

    from sfumato.learning import GraphNodes

    unit = edge(relation="add/remove")
    nodes = GraphNodes(
        np.ones((1, 1), dtype=np.float32),
        np.array([0]),
        names=[0],
        lists=[[]],
        roster=range(max(2, size // 2)),
        classes=2,
        n_units=1,
        name="node",
    )
    vault = Vault(unit=unit, budget=LARGE, name="audit")
    told = vault.graph_network(data=nodes).fit(epsilon=1, delta=DELTA, steps=1)
    said = told.release.statement
    if not isinstance(said.query, EdgeTraining) or not isinstance(said.mechanism, NoisySums):
        raise SfumatoError("the certificate is not that of links; nothing was audited.")
    steps = min(said.query.message_steps(said.mechanism, unit), WIDTH / (needed(1.0, DELTA) * 2**0.5))
    law = error_laws.RoundedGaussian(sigma=Fraction(WIDTH))
    return Played(cells=numbers(law), draws=np.rint(np.asarray(told.model.gathered, dtype=np.float64).ravel() * steps))


def rooted(size: int) -> Played:
    """One step on roots that have no gradient, of which every other one is drawn: what is learned is noise alone.

    How much there must be is worked out anew for a node that is in three subgraphs, of which some are drawn.
    """
    import numpy as np

    from sfumato.learning import GraphNodes
    from sfumato.learning.canaries import zero_layer
    from sfumato.learning.trainer import Trainer

    vault = Vault(unit=user("name", relation="add/remove"), budget=LARGE, name="audit")
    width = min(size // 4, 400)
    nodes = GraphNodes(
        np.zeros((2, width), dtype=np.float32),
        np.array([0, 1]),
        names=[0, 1],
        lists=[[], []],
        roster=[0, 1],
        classes=2,
        n_units=2,
        name="node",
    )
    layer = zero_layer(2 * width, 2)
    trainer = vault.graph_network(layer, data=nodes, recipients=2, method="subgraphs")
    if not isinstance(trainer, Trainer):
        raise SfumatoError("this is no trainer of nodes; nothing was audited.")
    told = trainer.fit(epsilon=1, delta=DELTA, steps=1, batch=1, lr=1.0, progress=False)
    said = told.release.statement
    if not isinstance(said.mechanism, NoisyRootSums):
        raise SfumatoError("the certificate is not that of sampled roots; nothing was audited.")
    least = max(float(said.mechanism.clips), _rooted_noise())
    sums = -np.asarray(next(told.model.parameters()).detach(), dtype=np.float64)  # of a batch that expects one root
    return noise_of_sums(sums, told.release, said.mechanism.pitch(said.sensitivity), least)


@cache
def _rooted_noise() -> float:
    """The noise, in clips, at which the charge holds for one root that goes and two that change, each drawn half of the
    time; by a fine grid of floats."""
    import numpy as np
    from scipy.special import ndtr

    line, low, high = np.linspace(-60, 60, 200_001), 1.0, 100.0

    def broken(sigma: float) -> bool:
        here = sum(chance * ndtr((k - line * sigma) / sigma) for k, chance in enumerate((1 / 8, 3 / 8, 3 / 8, 1 / 8)))
        there = sum(chance * ndtr((-k - line * sigma) / sigma) for k, chance in enumerate((1 / 4, 1 / 2, 1 / 4)))
        return float((here - np.e * there).max()) > DELTA

    for _ in range(40):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if broken(middle) else (low, middle)
    return low


def _moved(name: str, mechanism: SharedSkellam) -> Attack:
    """A number that one person moves by 3, with the noise that honest sites leave in it."""
    return Attack(
        name=name,
        kind=SharedSkellam.KIND,
        epsilon=1.0,
        delta=float(added_noise.DELTA),
        here=lambda _: masses(mechanism.law, 0),
        there=lambda _: masses(mechanism.law, MOVE),
        exact=True,
        share=0.8,
    )


_VARIANCE = shared_variance(
    l1=Fraction(MOVE), l2_squared=Fraction(MOVE**2), spend=Budget(epsilon=1, delta=added_noise.DELTA)
)

SITES: tuple[Attack | Drawn, ...] = (
    _moved("across sites: what honest sites leave", SharedSkellam(variance=_VARIANCE)),
    weak("across sites: counts", SharedSkellam.KIND, across, delta=DELTA, draws=1_500),
    weak("graph network: sums of a hop", NoisyGraphSums.KIND, passed_on, delta=DELTA, draws=2_000, needs=LEARNING),
    weak("graph network: sums along links", NoisySums.KIND, along_links, delta=DELTA, draws=2_000, needs=LEARNING),
    weak("graph network: sampled roots", NoisyRootSums.KIND, rooted, delta=DELTA, draws=2_000, needs=LEARNING),
)

WEAK_SITES = (_moved("across sites: half of the noise leaves with a colluder", SharedSkellam(variance=_VARIANCE / 2)),)
