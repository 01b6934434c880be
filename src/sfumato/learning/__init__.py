"""Learning: models whose every trained weight is covered by one guarantee for the unit of the vault.

``QUERIES`` are all declarations that a certificate can hold, ``EXAMPLE_QUERIES`` the questions that are asked of
declared examples; reading them needs neither data nor torch.
Names that need torch are imported when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any  # whatever a module has under a name

from sfumato.core.data_kind import DataKind
from sfumato.learning.adaptive import AdaptiveClip, AdaptiveSums
from sfumato.learning.best_of_runs import BestOfRuns
from sfumato.learning.correlated import BandedSums, Correlated, CorrelatedSums
from sfumato.learning.evaluation import Evaluations
from sfumato.learning.graph_networks.edge_training import EdgeTraining
from sfumato.learning.graph_networks.graph_training import GraphTraining, NoisyGraphSums
from sfumato.learning.graph_networks.sampled_roots import NoisyRootSums
from sfumato.learning.graph_networks.subgraph_training import SubgraphTraining
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.paradigms.attention_release import AttentionKey, AttentionLogits
from sfumato.learning.paradigms.contrastive_training import ContrastiveTraining
from sfumato.learning.paradigms.distillation import CloserModel
from sfumato.learning.paradigms.learning_curves import LearningCurve
from sfumato.learning.paradigms.output_perturbation import LogisticWeights
from sfumato.learning.paradigms.soft_labels import SoftLabels
from sfumato.learning.paradigms.student_choice import CloserStudent
from sfumato.learning.paradigms.voting import ConfidentMax, ConfidentVotes, TeacherVotes
from sfumato.learning.training import Training
from sfumato.learning.tuning import Tuning

if TYPE_CHECKING:
    from sfumato.learning.averaging import Average
    from sfumato.learning.engine import ClippedSum, Engine, clipped_sum
    from sfumato.learning.estimators import DPClassifier, DPRegressor
    from sfumato.learning.evaluation import EarlyStop, Evaluator
    from sfumato.learning.features import Features
    from sfumato.learning.generative.course import GeneratorSettings
    from sfumato.learning.generative.generated import GeneratedTable, GeneratorQuality, RowMaker
    from sfumato.learning.generative.trainer import GeneratorTrainer
    from sfumato.learning.graph_networks.edge_trainer import EdgeTrainer
    from sfumato.learning.graph_networks.graph_trainer import GraphTrainer, TrainedGraph
    from sfumato.learning.graph_networks.network import GraphNetwork
    from sfumato.learning.graph_networks.nodes import GraphNodes
    from sfumato.learning.graph_networks.reach import influenced
    from sfumato.learning.graph_networks.subgraph_trainer import SubgraphTrainer, TrainedSubgraphs
    from sfumato.learning.loggers import CSVLogger, TensorBoardLogger
    from sfumato.learning.multiplicity import Multiplied
    from sfumato.learning.open_run import OpenRun, OpenStep
    from sfumato.learning.paradigms.attention_logits import LogitRelease, TopKey
    from sfumato.learning.paradigms.contrastive import assigned_negatives, cyclic_negatives, public_negatives
    from sfumato.learning.paradigms.distillation import floored
    from sfumato.learning.paradigms.examples import Examples, Teachers, lesson
    from sfumato.learning.paradigms.group_losses import gathered, info_nce, policy_gradient, triplet_margin
    from sfumato.learning.paradigms.logit_clipped_step import InBatchContrast
    from sfumato.learning.paradigms.logit_clipping import ClippedLogits
    from sfumato.learning.paradigms.placed_groups import PlacedGroups, seated
    from sfumato.learning.paradigms.private_mean import private_mean, private_mean_event
    from sfumato.learning.paradigms.triplets import own_pairs, triplets
    from sfumato.learning.refusals import check_uncoupled
    from sfumato.learning.scattering import Scattering, group_normalised
    from sfumato.learning.sealed_canaries import Canaries
    from sfumato.learning.step_view import StepView
    from sfumato.learning.trainer import Plan, Trained, Trainer
    from sfumato.learning.tuner import SearchPlan, TunedModel, Tuner
    from sfumato.learning.units import Units
    from sfumato.learning.weights import weights_digest

__all__ = [
    "EXAMPLE_QUERIES",
    "KIND",
    "QUERIES",
    "TRAINING_QUERIES",
    "AdaptiveClip",
    "AdaptiveSums",
    "AttentionKey",
    "AttentionLogits",
    "Average",
    "BandedSums",
    "BestOfRuns",
    "CSVLogger",
    "Canaries",
    "ClippedLogits",
    "ClippedSum",
    "CloserModel",
    "CloserStudent",
    "ConfidentMax",
    "ConfidentVotes",
    "ContrastiveTraining",
    "Correlated",
    "CorrelatedSums",
    "DPClassifier",
    "DPRegressor",
    "EarlyStop",
    "EdgeTrainer",
    "EdgeTraining",
    "Engine",
    "Evaluations",
    "Evaluator",
    "Examples",
    "Features",
    "GeneratedTable",
    "GeneratorQuality",
    "GeneratorSettings",
    "GeneratorTrainer",
    "GraphNetwork",
    "GraphNodes",
    "GraphTrainer",
    "GraphTraining",
    "InBatchContrast",
    "LearningCurve",
    "LogisticWeights",
    "LogitRelease",
    "Multiplied",
    "NoisyGraphSums",
    "NoisyRootSums",
    "NoisySums",
    "OpenRun",
    "OpenStep",
    "PlacedGroups",
    "Plan",
    "RowMaker",
    "Scattering",
    "SearchPlan",
    "SoftLabels",
    "StepView",
    "SubgraphTrainer",
    "SubgraphTraining",
    "TeacherVotes",
    "Teachers",
    "TensorBoardLogger",
    "TopKey",
    "Trained",
    "TrainedGraph",
    "TrainedSubgraphs",
    "Trainer",
    "Training",
    "TunedModel",
    "Tuner",
    "Tuning",
    "Units",
    "assigned_negatives",
    "check_uncoupled",
    "clipped_sum",
    "cyclic_negatives",
    "floored",
    "gathered",
    "group_normalised",
    "influenced",
    "info_nce",
    "lesson",
    "own_pairs",
    "policy_gradient",
    "private_mean",
    "private_mean_event",
    "public_negatives",
    "seated",
    "triplet_margin",
    "triplets",
    "weights_digest",
]

EXAMPLE_QUERIES = (
    TeacherVotes,
    ConfidentVotes,
    SoftLabels,
    CloserStudent,
    LearningCurve,
    CloserModel,
    LogisticWeights,
    AttentionLogits,
    AttentionKey,
)
TRAINING_QUERIES = (Training, ContrastiveTraining, GraphTraining, SubgraphTraining, EdgeTraining, Evaluations, Tuning)
QUERIES: tuple[Any, ...] = (
    *TRAINING_QUERIES,
    NoisySums,
    NoisyGraphSums,
    NoisyRootSums,
    AdaptiveSums,
    AdaptiveClip,
    CorrelatedSums,
    BandedSums,
    BestOfRuns,
    *EXAMPLE_QUERIES,
    ConfidentMax,
)

KIND = DataKind(
    name="learning",
    declarations=QUERIES,
    messages="sfumato.learning",
    plots={"training": "sfumato.learning.plots.training_curve:training"},
    store="sfumato.learning.paradigms.store:ExampleStore",
)

_HOME = {
    "LogitRelease": "sfumato.learning.paradigms.attention_logits",
    "TopKey": "sfumato.learning.paradigms.attention_logits",
    "assigned_negatives": "sfumato.learning.paradigms.contrastive",
    "cyclic_negatives": "sfumato.learning.paradigms.contrastive",
    "public_negatives": "sfumato.learning.paradigms.contrastive",
    "gathered": "sfumato.learning.paradigms.group_losses",
    "info_nce": "sfumato.learning.paradigms.group_losses",
    "policy_gradient": "sfumato.learning.paradigms.group_losses",
    "triplet_margin": "sfumato.learning.paradigms.group_losses",
    "InBatchContrast": "sfumato.learning.paradigms.logit_clipped_step",
    "ClippedLogits": "sfumato.learning.paradigms.logit_clipping",
    "PlacedGroups": "sfumato.learning.paradigms.placed_groups",
    "seated": "sfumato.learning.paradigms.placed_groups",
    "private_mean": "sfumato.learning.paradigms.private_mean",
    "private_mean_event": "sfumato.learning.paradigms.private_mean",
    "own_pairs": "sfumato.learning.paradigms.triplets",
    "triplets": "sfumato.learning.paradigms.triplets",
    "Average": "sfumato.learning.averaging",
    "EarlyStop": "sfumato.learning.evaluation",
    "Evaluator": "sfumato.learning.evaluation",
    "CSVLogger": "sfumato.learning.loggers",
    "Canaries": "sfumato.learning.sealed_canaries",
    "TensorBoardLogger": "sfumato.learning.loggers",
    "OpenRun": "sfumato.learning.open_run",
    "OpenStep": "sfumato.learning.open_run",
    "StepView": "sfumato.learning.step_view",
    "Multiplied": "sfumato.learning.multiplicity",
    "DPClassifier": "sfumato.learning.estimators",
    "DPRegressor": "sfumato.learning.estimators",
    "Features": "sfumato.learning.features",
    "Scattering": "sfumato.learning.scattering",
    "group_normalised": "sfumato.learning.scattering",
    "GeneratedTable": "sfumato.learning.generative.generated",
    "GeneratorQuality": "sfumato.learning.generative.generated",
    "GeneratorSettings": "sfumato.learning.generative.course",
    "GeneratorTrainer": "sfumato.learning.generative.trainer",
    "EdgeTrainer": "sfumato.learning.graph_networks.edge_trainer",
    "GraphNetwork": "sfumato.learning.graph_networks.network",
    "GraphTrainer": "sfumato.learning.graph_networks.graph_trainer",
    "GraphNodes": "sfumato.learning.graph_networks.nodes",
    "SubgraphTrainer": "sfumato.learning.graph_networks.subgraph_trainer",
    "TrainedSubgraphs": "sfumato.learning.graph_networks.subgraph_trainer",
    "TrainedGraph": "sfumato.learning.graph_networks.graph_trainer",
    "influenced": "sfumato.learning.graph_networks.reach",
    "RowMaker": "sfumato.learning.generative.generated",
    "Plan": "sfumato.learning.trainer",
    "Trained": "sfumato.learning.trainer",
    "Trainer": "sfumato.learning.trainer",
    "TunedModel": "sfumato.learning.tuner",
    "SearchPlan": "sfumato.learning.tuner",
    "Tuner": "sfumato.learning.tuner",
    "Units": "sfumato.learning.units",
    "weights_digest": "sfumato.learning.weights",
    "Examples": "sfumato.learning.paradigms.examples",
    "Teachers": "sfumato.learning.paradigms.examples",
    "floored": "sfumato.learning.paradigms.distillation",
    "lesson": "sfumato.learning.paradigms.examples",
    "ClippedSum": "sfumato.learning.engine",
    "Engine": "sfumato.learning.engine",
    "check_uncoupled": "sfumato.learning.refusals",
    "clipped_sum": "sfumato.learning.engine",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.learning' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
