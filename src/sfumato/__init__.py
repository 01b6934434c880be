"""Sfumato: statistics about people under differential privacy, with a checkable guarantee and honest error bars.

The public face. Names are imported when they are first used, so that ``import sfumato`` stays light.
"""

import importlib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any  # whatever a module has under a name

from sfumato import errors
from sfumato.core.data_kind import announce
from sfumato.core.presenting import announce_presenter
from sfumato.core.remote import announce_client
from sfumato.core.suggestion import did_you_mean
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.core.budget import Budget
    from sfumato.core.limits import Limit, Noun
    from sfumato.core.units import client, edge, event, family, node, record, user, weight
    from sfumato.engines.expressions import coalesce, col, greatest, least, when
    from sfumato.engines.sources import CellFormat
    from sfumato.governance.ledger import Ledger
    from sfumato.reports.verify import load
    from sfumato.research.connection import connect
    from sfumato.studies.compare import compare
    from sfumato.studies.frontier import best_epsilon, fit_frontier
    from sfumato.studies.multiplicity import adjust
    from sfumato.studies.power import power
    from sfumato.studies.replication import bias, expected_agreement, replication
    from sfumato.studies.stratified import standardised, stratified
    from sfumato.tables.hierarchies import Hierarchy
    from sfumato.tables.measures.association import correlation, covariance
    from sfumato.tables.measures.average import mean
    from sfumato.tables.measures.person_count import persons
    from sfumato.tables.measures.proportion import proportion
    from sfumato.tables.measures.quantile import median, quantile
    from sfumato.tables.measures.quotient import ratio
    from sfumato.tables.measures.row_count import count
    from sfumato.tables.measures.total import sum_of as sum
    from sfumato.tables.measures.variation import standard_deviation, variance
    from sfumato.tables.of_person import any_of as any
    from sfumato.tables.of_person import distinct, every, first, last
    from sfumato.tables.of_person import greatest_of as max
    from sfumato.tables.of_person import least_of as min
    from sfumato.tables.private_bins import QuantileBins
    from sfumato.tables.related import ChildRows
    from sfumato.tables.schema import Schema
    from sfumato.tables.unreadable import unreadable
    from sfumato.vault import Vault, consortium

_HOME = {
    "Budget": ("sfumato.core.budget", "Budget"),
    "CellFormat": ("sfumato.engines.sources", "CellFormat"),
    "ChildRows": ("sfumato.tables.related", "ChildRows"),
    "Hierarchy": ("sfumato.tables.hierarchies", "Hierarchy"),
    "Ledger": ("sfumato.governance.ledger", "Ledger"),
    "Limit": ("sfumato.core.limits", "Limit"),
    "Noun": ("sfumato.core.limits", "Noun"),
    "QuantileBins": ("sfumato.tables.private_bins", "QuantileBins"),
    "Schema": ("sfumato.tables.schema", "Schema"),
    "Vault": ("sfumato.vault", "Vault"),
    "adjust": ("sfumato.studies.multiplicity", "adjust"),
    "any": ("sfumato.tables.of_person", "any_of"),
    "best_epsilon": ("sfumato.studies.frontier", "best_epsilon"),
    "bias": ("sfumato.studies.replication", "bias"),
    "client": ("sfumato.core.units", "client"),
    "coalesce": ("sfumato.engines.expressions", "coalesce"),
    "col": ("sfumato.engines.expressions", "col"),
    "compare": ("sfumato.studies.compare", "compare"),
    "connect": ("sfumato.research.connection", "connect"),
    "consortium": ("sfumato.vault", "consortium"),
    "correlation": ("sfumato.tables.measures.association", "correlation"),
    "count": ("sfumato.tables.measures.row_count", "count"),
    "covariance": ("sfumato.tables.measures.association", "covariance"),
    "distinct": ("sfumato.tables.of_person", "distinct"),
    "edge": ("sfumato.core.units", "edge"),
    "event": ("sfumato.core.units", "event"),
    "every": ("sfumato.tables.of_person", "every"),
    "expected_agreement": ("sfumato.studies.replication", "expected_agreement"),
    "family": ("sfumato.core.units", "family"),
    "first": ("sfumato.tables.of_person", "first"),
    "fit_frontier": ("sfumato.studies.frontier", "fit_frontier"),
    "greatest": ("sfumato.engines.expressions", "greatest"),
    "last": ("sfumato.tables.of_person", "last"),
    "least": ("sfumato.engines.expressions", "least"),
    "load": ("sfumato.reports.verify", "load"),
    "max": ("sfumato.tables.of_person", "greatest_of"),
    "mean": ("sfumato.tables.measures.average", "mean"),
    "median": ("sfumato.tables.measures.quantile", "median"),
    "min": ("sfumato.tables.of_person", "least_of"),
    "node": ("sfumato.core.units", "node"),
    "persons": ("sfumato.tables.measures.person_count", "persons"),
    "power": ("sfumato.studies.power", "power"),
    "proportion": ("sfumato.tables.measures.proportion", "proportion"),
    "quantile": ("sfumato.tables.measures.quantile", "quantile"),
    "ratio": ("sfumato.tables.measures.quotient", "ratio"),
    "record": ("sfumato.core.units", "record"),
    "replication": ("sfumato.studies.replication", "replication"),
    "standard_deviation": ("sfumato.tables.measures.variation", "standard_deviation"),
    "standardised": ("sfumato.studies.stratified", "standardised"),
    "stratified": ("sfumato.studies.stratified", "stratified"),
    "sum": ("sfumato.tables.measures.total", "sum_of"),
    "unreadable": ("sfumato.tables.unreadable", "unreadable"),
    "user": ("sfumato.core.units", "user"),
    "variance": ("sfumato.tables.measures.variation", "variance"),
    "weight": ("sfumato.core.units", "weight"),
    "when": ("sfumato.engines.expressions", "when"),
}

__all__ = [
    "Budget",
    "CellFormat",
    "ChildRows",
    "Hierarchy",
    "Ledger",
    "Limit",
    "Noun",
    "QuantileBins",
    "Schema",
    "Vault",
    "__version__",
    "adjust",
    "any",
    "best_epsilon",
    "bias",
    "client",
    "coalesce",
    "col",
    "compare",
    "connect",
    "consortium",
    "correlation",
    "count",
    "covariance",
    "distinct",
    "edge",
    "errors",
    "event",
    "every",
    "expected_agreement",
    "family",
    "first",
    "fit_frontier",
    "greatest",
    "last",
    "least",
    "load",
    "max",
    "mean",
    "median",
    "min",
    "node",
    "persons",
    "power",
    "proportion",
    "quantile",
    "ratio",
    "record",
    "replication",
    "standard_deviation",
    "standardised",
    "stratified",
    "sum",
    "unreadable",
    "user",
    "variance",
    "weight",
    "when",
]


announce("sfumato.kinds")
announce_presenter("sfumato.reports.presenter:Reports")
announce_client("sfumato.client.connection:connect")


def __getattr__(name: str) -> Any:
    if name in _HOME:
        module, there = _HOME[name]
        return getattr(importlib.import_module(module), there)
    meant = ""
    if not name.startswith("_") and find_spec(f"sfumato.{name}") is None:
        from sfumato.tables.measures import ASKED  # a measure brings the functions that ask for it

        if name in ASKED:
            return ASKED[name]
        meant = did_you_mean(name, __dir__(), of_functions=True)
    # With a name and without the module, Python does not add a guess of its own.
    raise AttributeError(f"module 'sfumato' has no attribute {name!r}.{meant}", name=name)


def __dir__() -> list[str]:
    from sfumato.tables.measures import ASKED

    return sorted({*__all__, *ASKED})
