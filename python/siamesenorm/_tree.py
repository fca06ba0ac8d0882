"""Modules named as the engine names its parameters: "blocks.3.ffn_junction.x_norm.weight"."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class Node(nn.Module):
    """A place in the tree of names. `kinds` has the kind of each parameter that it holds itself."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[str, str] = {}


def attach(root: nn.Module, name: str, value: Tensor, kind: str | None) -> None:
    """Puts a tensor at its dotted name below `root`: a parameter of this kind, or a buffer without one."""
    *places, last = name.split(".")
    module = root
    for place in places:
        if place not in module._modules:
            module.add_module(place, Node())
        module = module.get_submodule(place)
    if kind is None:
        module.register_buffer(last, value)
        return
    module.register_parameter(last, nn.Parameter(value.detach()))
    kinds = getattr(module, "kinds", None)
    if not isinstance(kinds, dict):
        raise TypeError(f"{name}: expected a Node to hold it, got {type(module).__name__}")
    kinds[last] = kind


def module_at(root: nn.Module, path: tuple[str, ...]) -> Any:
    """The module at a path of names, as it is now; looked up as in tensor_at."""
    module: Any = root
    for name in path:
        child = module._modules.get(name)
        module = getattr(module, name) if child is None else child
    return module


def tensor_at(root: nn.Module, path: tuple[str, ...]) -> Tensor:
    """The tensor at a path of names, as it is now.

    Looked up where nn.Module keeps it: its own __getattr__ is a search in Python and costs more than the call that the
    tensor is for. What is not there (parametrized, wrapped, a buffer) is asked for as usual.
    """
    module: Any = root
    for name in path[:-1]:  # module_at, without the price of a call
        child = module._modules.get(name)
        module = getattr(module, name) if child is None else child
    value = module._parameters.get(path[-1])
    return getattr(module, path[-1]) if value is None else value
