"""Carrying out a plan: its file, what is due, and the releases themselves, each period once and never twice."""

from sfumato.runner.adoption import adopt
from sfumato.runner.plan_file import PlanFile, Planned
from sfumato.runner.run import Fate, Runner, StepOutcome
from sfumato.runner.steps import Standing, Step

__all__ = ["Fate", "PlanFile", "Planned", "Runner", "Standing", "Step", "StepOutcome", "adopt"]
