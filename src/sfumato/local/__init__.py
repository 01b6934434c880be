"""The local model: reports that are protected before they leave the device, and what a server makes of them.

Declarations and the client need the standard library alone; what works on arrays is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any  # whatever a module has under a name

from sfumato.core.data_kind import DataKind
from sfumato.local.client import Client, read_report, write_report
from sfumato.local.collection import ORACLES, Collection, UserCost, collection_from_json
from sfumato.local.hadamard import HadamardResponse
from sfumato.local.heavy_hitters import HeavyHitters, Hitter, PrefixSearch, advised, search_from_json
from sfumato.local.inbox import Inbox, sift
from sfumato.local.kary import KaryResponse
from sfumato.local.local_hash import LocalHash
from sfumato.local.means import MEANS, DuchiMean, HybridMean, PiecewiseMean
from sfumato.local.projective import ProjectiveResponse
from sfumato.local.search_client import SearchClient
from sfumato.local.shuffling import Shuffled
from sfumato.local.subset import SubsetSelection
from sfumato.local.unary import OptimisedUnary, SymmetricUnary

if TYPE_CHECKING:
    from sfumato.local.aggregate import MeanEstimate, Shares, UnfitReports, counts, estimate_mean, estimate_shares
    from sfumato.local.simulate import mean_reports, reports

KIND = DataKind(name="local", declarations=(), messages="sfumato.local", plots={})

_HOME = {
    "MeanEstimate": "aggregate",
    "UnfitReports": "aggregate",
    "Shares": "aggregate",
    "counts": "aggregate",
    "estimate_mean": "aggregate",
    "estimate_shares": "aggregate",
    "mean_reports": "simulate",
    "reports": "simulate",
}

__all__ = [
    "KIND",
    "MEANS",
    "ORACLES",
    "Client",
    "Collection",
    "DuchiMean",
    "HadamardResponse",
    "HeavyHitters",
    "Hitter",
    "HybridMean",
    "Inbox",
    "KaryResponse",
    "LocalHash",
    "MeanEstimate",
    "OptimisedUnary",
    "PiecewiseMean",
    "PrefixSearch",
    "ProjectiveResponse",
    "SearchClient",
    "Shares",
    "Shuffled",
    "SubsetSelection",
    "SymmetricUnary",
    "UnfitReports",
    "UserCost",
    "advised",
    "collection_from_json",
    "counts",
    "estimate_mean",
    "estimate_shares",
    "mean_reports",
    "read_report",
    "reports",
    "search_from_json",
    "sift",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.local' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sfumato.local.{_HOME[name]}"), name)
