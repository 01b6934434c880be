"""Inference: releases in, figures out. What is here can be handed releases alone, and costs nothing."""

from sfumato.inference.figure import Figure, figure
from sfumato.inference.ratio import Ratio
from sfumato.inference.weighted import weighted_mean

__all__ = ["Figure", "Ratio", "figure", "weighted_mean"]
