"""Pictures of models: ε by step of training, and accuracy against it."""

from sfumato.learning.plots.training_curve import Trials, accuracies, training

__all__ = ["Trials", "accuracies", "training"]
