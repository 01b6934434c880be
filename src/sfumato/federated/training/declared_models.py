"""The models that a site trains without code of its own: networks over columns that it declared itself."""

from collections import OrderedDict
from typing import TYPE_CHECKING

from sfumato.core.units import User
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.federated.training.declared_network import MOST_PARAMETERS, DeclaredNetwork
from sfumato.federated.training.training_proposal import TrainingProposal
from sfumato.learning.layered import class_loss
from sfumato.learning.person_updates import PersonUpdates
from sfumato.learning.units import Units
from sfumato.learning.vault_tables import VaultRows
from sfumato.tables.held_rows import held_rows

if TYPE_CHECKING:
    from sfumato.core.query import Dataset
    from sfumato.gate.notary import Notary
    from sfumato.tables.table import Table

__all__ = ["DeclaredModels"]

KEPT = 4  # models whose rows may lie in memory


class DeclaredModels:
    """Makes the model of a run from its declaration, over the columns of one table of the vault.

    Guarantee: a network over columns that this site did not declare in the very same way, over the column that says
    whose rows they are, or of more than ``most_parameters``, is refused before anything is made of it; nothing is read.
    """

    def __init__(self, table: "Table", *, most_parameters: int = MOST_PARAMETERS) -> None:
        held = held_rows(table)
        if held is None:
            raise InvalidInput("a site has a table as its vault declared it; nothing was done. Give vault.table(…).")
        self._table, self._unit, self._most = table, held.unit, most_parameters
        self._made: OrderedDict[str, PersonUpdates] = OrderedDict()

    @property
    def dataset(self) -> "Dataset":
        """What is read."""
        return self._table.dataset

    def check_home(self, notary: "Notary") -> None:
        """Refuse a table of another vault, or one without the public facts that say how much of a person counts."""
        held = held_rows(self._table)
        if held is None or held.notary is not notary:
            raise Refused("this is a table of another vault; nothing was done. Train with its own.")
        if isinstance(self._unit, User) and self._table.limit is None:
            raise NotDeclared("how much of one person counts is not declared; nothing was done. Declare a limit.")

    def __call__(self, proposal: TrainingProposal) -> PersonUpdates:
        """The model of a run; nothing is read."""
        network = proposal.network
        if network is None:
            raise Refused("this site trains networks that are declared, and this run declares none; nothing was sent.")
        if network.parameters > self._most:
            raise Refused(f"this site trains at most {self._most:,} parameters; nothing was sent.")
        if network.digest not in self._made:
            self._made[network.digest] = self._updates(network)
            while len(self._made) > KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(network.digest)
        return self._made[network.digest]

    def _updates(self, network: DeclaredNetwork) -> PersonUpdates:
        names, target = [column.name for column in network.inputs], network.target.name
        if isinstance(self._unit, User) and self._unit.column in (*names, target):
            raise Refused("the column that says whose rows they are is no input; nothing was sent.")
        rows = VaultRows(self._table, inputs=names, targets=target)
        own = DeclaredNetwork(inputs=rows.inputs, target=rows.target, hidden=network.hidden)
        if own.digest != network.digest:
            raise Refused("the columns of the network are not declared here as it says; nothing was sent.")
        data = Units.of_table(self._table, inputs=names, targets=target, n_units=1)  # no site divides by its number
        data.check(self._unit)
        return PersonUpdates(network.model(), class_loss, data, form=network.digest)
