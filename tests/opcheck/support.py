"""What the cases are made of."""

import torch



def typed(kinds):
    """(type, kind): our kernel and the plain expression for each kind, and one of each half type."""
    kinds = list(kinds)
    for dtype in (torch.float32, torch.float64):
        yield from ((dtype, kind) for kind in kinds)
    yield torch.bfloat16, kinds[0]
    yield torch.float16, kinds[1]


def tensor(*shape: int, dtype: torch.dtype = torch.float32, grad: bool = False, strided: bool = False) -> torch.Tensor:
    """Normals; strided: the transpose of what lies in memory, as a view into something wider."""
    if strided:
        value = torch.randn(*reversed(shape[:-1]), shape[-1] + 1, dtype=dtype)[..., :-1]
        value = value.permute(*reversed(range(len(shape) - 1)), len(shape) - 1)
    else:
        value = torch.randn(*shape, dtype=dtype)
    return value.requires_grad_(grad)


def detached(args: tuple) -> tuple:
    """All without gradients, also those in lists."""

    def alone(arg):
        return arg.detach() if isinstance(arg, torch.Tensor) else arg

    return tuple([alone(item) for item in arg] if isinstance(arg, list) else alone(arg) for arg in args)
