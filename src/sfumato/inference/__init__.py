"""Inference: releases in, figures out. What is here can be handed releases alone, and costs nothing."""

from sfumato.inference.consistency import Adjusted, non_negative, rising, rising_medians, whole_table
from sfumato.inference.figure import Figure, figure
from sfumato.inference.hierarchy import consistent
from sfumato.inference.histogram_quantiles import HistogramQuantile, quantile
from sfumato.inference.ratio import Ratio
from sfumato.inference.weighted import weighted_mean

__all__ = [
    "Adjusted",
    "Figure",
    "HistogramQuantile",
    "Ratio",
    "consistent",
    "figure",
    "non_negative",
    "quantile",
    "rising",
    "rising_medians",
    "weighted_mean",
    "whole_table",
]
