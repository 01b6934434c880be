"""Names for what the users of learning hand over, which has no class that mypy knows; each with its reason."""

from typing import Any

__all__ = ["GivenRows", "Predictor", "RunState", "Thing", "Tree"]

GivenRows = Any  # rows, targets, ids or a column: an array, a frame, a list or a tensor of any library
Predictor = Any  # a model that is asked: a module of torch, an estimator, or a function
RunState = dict[str, Any]  # what a run goes on from: numbers, tensors and lists of tensors, by name
Tree = Any  # a tensor, or tuples, lists and dictionaries of tensors: what a model and its loss take and give
Thing = Any  # whatever the code of a user reaches: looked at by its exact class
