"""Writes down what the layers of a model see while it runs forward."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from torch import Tensor, nn

from sfumato.learning.engine.layers import forward_of
from sfumato.learning.engine.record import ForwardRecord, Site
from sfumato.learning.given import Tree

__all__ = ["recording"]


@contextmanager
def recording(layers: dict[str, nn.Module]) -> Iterator[ForwardRecord]:
    """Write down the calls of these layers while the block runs."""
    record = ForwardRecord()
    with ExitStack() as stack:
        for name, layer in layers.items():
            own = forward_of(layer, name, record)
            if own is not None:
                layer.forward = own
                stack.callback(layer.__dict__.pop, "forward", None)
            else:
                stack.callback(layer.register_forward_hook(_hook(record, Site(layer=name)), with_kwargs=True).remove)
        yield record


def _hook(record: ForwardRecord, site: Site) -> Callable[..., None]:
    def hook(layer: nn.Module, inputs: tuple[Tree, ...], named: dict[str, Tree], output: Tensor) -> None:
        record.note(site, inputs[0] if inputs else named["input"], output)

    return hook
