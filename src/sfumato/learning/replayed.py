"""A function of tensors of fixed shapes, recorded once on a device and then replayed.

A step of training starts hundreds of small kernels; on a fast device most of the time goes into starting them. A CUDA
graph starts all of them at once. Every value is computed by the same kernels in the same order as without it.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

import torch
from torch import Tensor

__all__ = ["Replayed"]

Result = TypeVar("Result")


class Replayed(Generic[Result]):
    """A function that is recorded when it is first called on a CUDA device, and replayed from then on.

    On processors it is just called. Assumes: the function takes no decision by the value of a tensor, all tensors that
    it uses besides its arguments (weights) stay where they are, and what it returns is used up before the next call,
    which writes over it. Another shape of the arguments is recorded for itself.

    >>> doubled = Replayed(lambda x: 2 * x)
    >>> doubled(torch.ones(2))
    tensor([2., 2.])
    """

    WARMING = 3

    def __init__(self, function: Callable[..., Result]) -> None:
        self._function = function
        self._recorded: dict[tuple[object, ...], tuple[torch.cuda.CUDAGraph, Sequence[Tensor], Result]] = {}

    def __call__(self, *arguments: Tensor) -> Result:
        """What the function returns for these arguments."""
        if not arguments or arguments[0].device.type != "cuda":
            return self._function(*arguments)
        graph, places, result = self._recording(arguments)
        for place, argument in zip(places, arguments, strict=True):
            place.copy_(argument)
        graph.replay()
        return result

    def recorded(self, *like: Tensor) -> tuple[Sequence[Tensor], Callable[[], Result]]:
        """Where arguments of such shapes are written to, and what runs the recording with them.

        What is recorded is run on ``like`` here, and on a CUDA device never called again.
        """
        if not like or like[0].device.type != "cuda":
            own = [argument.clone() for argument in like]
            return own, lambda: self._function(*own)
        graph, places, result = self._recording(like)

        def run() -> Result:
            graph.replay()
            return result

        return places, run

    def _recording(self, arguments: Sequence[Tensor]) -> tuple[torch.cuda.CUDAGraph, Sequence[Tensor], Result]:
        kinds = tuple((argument.shape, argument.dtype, argument.device) for argument in arguments)
        if kinds not in self._recorded:
            self._recorded[kinds] = self._record([argument.clone() for argument in arguments])
        return self._recorded[kinds]

    def _record(self, places: Sequence[Tensor]) -> tuple[torch.cuda.CUDAGraph, Sequence[Tensor], Result]:
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch states no types for it
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # libraries choose their kernels and take their memory before the recording
            for _ in range(self.WARMING):
                self._function(*places)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with _nothing_collected(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
            result = self._function(*places)
        return graph, places, result


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Let no object die by the collector meanwhile: one that frees memory of the device would end the recording."""
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
