"""Activations of bfloat16 beside parameters of float32 (engine.precision=bfloat16)."""

import torch
from rows import junction_args
from support import detached, tensor

HALF = torch.bfloat16


def forward_and_pair(op, args):
    yield op, args
    yield f"{op}_forward", lambda: detached(args())


def linear_cases():
    def linear():
        return (tensor(2, 3, 7, dtype=HALF, grad=True), tensor(5, 7, grad=True), tensor(5, grad=True))

    def backward():
        x, weight, _ = detached(linear())
        return (tensor(2, 3, 5, dtype=HALF), x, weight, [True] * 3)

    yield from forward_and_pair("linear", linear)
    yield "linear_backward", backward


def feed_forward_cases():
    def forward():
        x = tensor(2, 3, 7, dtype=HALF, grad=True)
        return ("swiglu", x, tensor(10, 7, grad=True), tensor(10, grad=True), tensor(7, 5, grad=True), None)

    def backward():
        args = detached(forward())
        kind, x, w_in, _, w_out, _ = args
        _, projected = torch.ops.siamese.feed_forward_forward(*args)
        return (kind, torch.randn_like(x), x, projected, w_in, w_out, [True, True, True, True, False])

    yield from forward_and_pair("feed_forward", forward)
    yield "feed_forward_backward", backward


def attention_cases():
    def attention():
        gains = [tensor(4, grad=True) for _ in range(2)]
        tables = [tensor(5, 1, 2) for _ in range(2)]
        return (tensor(2, 5, 16, dtype=HALF, grad=True), *gains, None, *tables, 2, 1, True, 1e-5)

    def backward():
        args = detached(attention())
        out, lse = torch.ops.siamese.attention_forward(*args)
        return (torch.randn_like(out), args[0], out, lse, *args[1:], [True, True, True, False])

    yield from forward_and_pair("attention", attention)
    yield "attention_backward", backward


def head_loss_cases():
    def head_loss():
        hidden = tensor(6, 7, dtype=HALF, grad=True)
        return (hidden, tensor(9, 7, grad=True), torch.randint(0, 9, (6,)), torch.rand(6), 0.5, 0.01)

    yield "head_loss", head_loss
    yield "head_loss_forward", lambda: (*detached(head_loss()), [True, True, False])


def junction_cases():
    for plan in (dict(x=True, norms="-RRR"), dict(norms="R-R-"), dict(norms="----"), dict(branch=False, norms="--B-")):

        def junction(plan=plan):
            branch, *rest = junction_args(torch.float32, True, **plan)
            half = branch.detach().to(HALF).requires_grad_() if branch is not None else None
            return (half, *rest, True)

        def backward(junction=junction):
            branch, x, y, *rest = detached(junction())
            *_, statistics = torch.ops.siamese.junction_forward(branch, x, y, *rest)
            came = (torch.randn_like(y), torch.randn_like(y) if x is not None else None, torch.randn_like(y).to(HALF))
            had, norms = branch is not None, rest[13]
            wanted = [had, *[True] * 12]
            return (*came, branch if norms[0] else None, x, y, *rest[:9], statistics, *rest[9:16], wanted, True, had)

        yield from forward_and_pair("junction", junction)
        yield "junction_backward", backward


def expert_cases():
    def experts():
        chosen = torch.tensor([[0, 2], [1, 0], [2, 1], [0, 1]])
        x = tensor(4, 7, dtype=HALF, grad=True)
        return ("gelu", x, chosen, tensor(4, 2, grad=True), tensor(3, 5, 7, grad=True), tensor(3, 7, 5, grad=True))

    yield "expert_feed_forward", experts

