"""Tables, experts, losses and sums."""

import torch
from support import detached, tensor, typed


def indices(*shape: int, below: int) -> torch.Tensor:
    return torch.randint(below, shape)


def embedding_cases():
    for dtype, (strided, grad) in typed(((True, True), (False, True), (False, False))):

        def embed(dtype=dtype, strided=strided, grad=grad):
            return (tensor(6, 5, dtype=dtype, grad=grad, strided=strided), indices(2, 3, below=6))

        def add(dtype=dtype, strided=strided, grad=grad):
            return (tensor(3, 2, 5, dtype=dtype, strided=strided, grad=grad), tensor(2, 5, dtype=dtype, grad=not grad))

        yield "embedding", embed
        yield "embedding_forward", lambda embed=embed: detached(embed())
        yield "embedding_backward", lambda dtype=dtype: (tensor(2, 3, 5, dtype=dtype), indices(2, 3, below=6), 6)
        yield "add_to_each", add
        yield "add_to_each_forward", lambda add=add: detached(add())
        yield "add_to_each_backward", lambda add=add: detached(add())[:1]


def reduce_cases():
    for dtype, (strided, grad) in typed(((True, True), (False, False))):

        def one(dtype=dtype, strided=strided, grad=grad):
            return (tensor(3, 2, 5, dtype=dtype, strided=strided, grad=grad),)

        yield "fixed_sum", one
        yield "fixed_sum_forward", lambda one=one: detached(one())
        yield "sum_squares", lambda one=one, dtype=dtype: ([*one(), tensor(4, dtype=dtype)],)


def loss_cases():
    for dtype, (strided, weighted, grad) in typed(((True, True, True), (False, False, True), (False, True, False))):

        def entropy(dtype=dtype, strided=strided, weighted=weighted, grad=grad):
            weights = tensor(4, dtype=dtype, grad=grad) if weighted else None
            return (tensor(4, 7, dtype=dtype, grad=grad, strided=strided), indices(4, below=7), weights)

        def head(dtype=dtype, strided=strided, weighted=weighted, grad=grad):
            weights = tensor(4, dtype=dtype, grad=grad) if weighted else None
            weight = tensor(7, 5, dtype=dtype, grad=True, strided=strided)
            return (tensor(4, 5, dtype=dtype, grad=grad, strided=strided), weight, indices(4, below=7), weights, 0.5, 0.1)

        def entropy_backward(entropy=entropy, both=strided, wanted=(True, weighted)):
            args = detached(entropy())
            nll, z, losses = torch.ops.siamese.cross_entropy_forward(*args)
            return (torch.randn_like(nll), torch.randn_like(z) if both else None, *args, losses, list(wanted))

        def head_backward(head=head, wanted=(grad, True, weighted)):
            args = detached(head())
            objective, _, _, *units = torch.ops.siamese.head_loss_forward(*args, list(wanted))
            return (torch.randn_like(objective), args[0], args[1], args[3], *units, list(wanted))

        yield "cross_entropy", entropy
        yield "cross_entropy_forward", lambda entropy=entropy: detached(entropy())
        yield "cross_entropy_backward", entropy_backward
        yield "head_loss", head
        yield "head_loss_forward", lambda head=head, grad=grad: (*detached(head()), [grad, True, grad])
        yield "head_loss_backward", head_backward


def expert_cases():
    for dtype, (strided, kind, grad) in typed(((True, "swiglu", True), (False, "gelu", True), (False, "gelu_tanh", False))):

        def logits(dtype=dtype, strided=strided, grad=grad):
            return (tensor(6, 4, dtype=dtype, strided=strided, grad=grad), 2, strided)

        def route_backward(logits=logits, some=strided):
            x, k, renormalise = detached(logits())
            weights, chosen, balance, z, counts, p, n = torch.ops.siamese.route_forward(x, k, renormalise)
            d_z = torch.randn_like(z) if some else None
            return (torch.randn_like(weights), torch.randn_like(balance), d_z, x, p, n, chosen, counts, renormalise)

        def experts(dtype=dtype, strided=strided, kind=kind, grad=grad):
            make = dict(dtype=dtype, strided=strided)
            w_in = tensor(4, 6 if kind == "swiglu" else 3, 5, grad=True, **make)
            w_out = tensor(4, 5, 3, grad=grad, **make)
            weights = tensor(6, 2, grad=grad, **make)
            return (kind, tensor(6, 5, grad=grad, **make), indices(6, 2, below=3), weights, w_in, w_out)

        def experts_backward(experts=experts, wanted=(grad, True, True, grad)):
            args = detached(experts())
            y, projected = torch.ops.siamese.expert_feed_forward_forward(*args)
            return (args[0], torch.randn_like(y), *args[1:], projected, list(wanted))

        yield "route", logits
        yield "route_forward", lambda logits=logits: detached(logits())
        yield "route_backward", route_backward
        yield "expert_feed_forward", experts
        yield "expert_feed_forward_forward", lambda experts=experts: detached(experts())
        yield "expert_feed_forward_backward", experts_backward
