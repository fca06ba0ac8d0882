"""Products, activations, attention and what modulates them."""

import torch
from support import detached, tensor, typed


def linear_cases():
    for dtype, (strided, bias, grad) in typed(((True, True, True), (False, True, False), (False, False, True))):

        def linear(dtype=dtype, strided=strided, bias=bias, grad=grad):
            weight = tensor(7, 5, dtype=dtype).t() if strided else tensor(5, 7, dtype=dtype)
            b = tensor(5, dtype=dtype, grad=True) if bias else None
            return (tensor(2, 3, 7, dtype=dtype, grad=grad, strided=strided), weight.requires_grad_(), b)

        def backward(linear=linear, wanted=(grad, True, bias)):
            x, weight, _ = detached(linear())
            return (tensor(2, 3, 5, dtype=x.dtype), x, weight, list(wanted))

        yield "linear", linear
        yield "linear_forward", lambda linear=linear: detached(linear())
        yield "linear_backward", backward


def activation_cases():
    for dtype, (kind, strided, grad) in typed((("swiglu", True, True), ("gelu", False, True), ("gelu_tanh", True, False))):

        def activation(dtype=dtype, kind=kind, strided=strided, grad=grad):
            return (kind, tensor(2, 3, 6, dtype=dtype, grad=grad, strided=strided))

        def backward(activation=activation):
            kind, x = detached(activation())
            return (kind, torch.randn_like(torch.ops.siamese.activation(kind, x)), x)

        yield "activation", activation
        yield "activation_forward", lambda activation=activation: detached(activation())
        yield "activation_backward", backward
    for op in ("silu", "sigmoid"):
        yield from pointwise_cases_of(op)


def pointwise_cases_of(op):
    for dtype, strided in typed((True, False)):

        def pointwise(dtype=dtype, strided=strided):
            return (tensor(2, 3, 5, dtype=dtype, grad=True, strided=strided),)

        def pointwise_backward(pointwise=pointwise):
            (x,) = detached(pointwise())
            return (torch.randn_like(x), x)

        yield op, pointwise
        yield f"{op}_forward", lambda pointwise=pointwise: detached(pointwise())
        yield f"{op}_backward", pointwise_backward


def feed_forward_cases():
    for dtype, (kind, strided, bias) in typed((("swiglu", True, True), ("gelu", False, False), ("gelu_tanh", False, True))):
        inner = 10 if kind == "swiglu" else 5

        def forward(dtype=dtype, kind=kind, strided=strided, bias=bias, inner=inner):
            biases = [tensor(size, dtype=dtype, grad=True) if bias else None for size in (inner, 7)]
            w_in = tensor(7, inner, dtype=dtype).t() if strided else tensor(inner, 7, dtype=dtype)
            x = tensor(2, 3, 7, dtype=dtype, grad=not strided, strided=strided)
            return (kind, x, w_in.requires_grad_(), biases[0], tensor(7, 5, dtype=dtype, grad=strided), biases[1])

        def backward(forward=forward, wanted=(not strided, True, bias, strided, bias)):
            args = detached(forward())
            kind, x, w_in, _, w_out, _ = args
            _, projected = torch.ops.siamese.feed_forward_forward(*args)
            return (kind, torch.randn_like(x), x, projected, w_in, w_out, list(wanted))

        yield "feed_forward", forward
        yield "feed_forward_forward", lambda forward=forward: detached(forward())
        yield "feed_forward_backward", backward


def modulate_cases():
    for dtype, (strided, grad) in typed(((True, True), (False, True), (False, False))):

        def vectors(count, dtype=dtype, strided=strided, grad=grad):
            """Parts of one wider tensor, or of its transpose."""
            wide = tensor(7 * count, 2, dtype=dtype).t() if strided else tensor(2, 7 * count, dtype=dtype)
            return [part.detach().requires_grad_(grad) for part in wide.chunk(count, 1)]

        def modulate(vectors=vectors, dtype=dtype, strided=strided, grad=grad):
            half = [True] if dtype == torch.float32 and not grad else []  # rounded to bfloat16
            return (tensor(2, 3, 7, dtype=dtype, grad=True, strided=strided), *vectors(2), *half)

        def modulate_backward(modulate=modulate, wanted=(True, grad, strided)):
            x, _, scale, *half = detached(modulate())
            return (torch.randn_like(x).to(torch.bfloat16 if half else x.dtype), x, scale, list(wanted))

        def gate(modulate=modulate):
            x, by, *_ = modulate()
            return (x, by)

        def gate_backward(gate=gate, wanted=(grad, not strided)):
            x, by = detached(gate())
            return (torch.randn_like(x), x, by, list(wanted))

        yield "modulate", modulate
        yield "modulate_forward", lambda modulate=modulate: detached(modulate())
        yield "modulate_backward", modulate_backward
        yield "gate", gate
        yield "gate_forward", lambda gate=gate: detached(gate())
        yield "gate_backward", gate_backward


def rope_cases():
    for dtype, (strided, grad) in typed(((True, True), (False, True), (False, False))):

        def rope(dtype=dtype, strided=strided, grad=grad):
            tables = [tensor(3, 1, 4, dtype=dtype, strided=strided) for _ in range(2)]
            return (tensor(2, 3, 2, 8, dtype=dtype, grad=grad, strided=strided), *tables)

        yield "rope", rope
        yield "rope_forward", lambda rope=rope: detached(rope())
        yield "rope_backward", lambda rope=rope: detached(rope())


def attention_cases():
    # heads, ..., gains, window
    kinds = ((4, 2, True, True, "qkv", 3), (2, 2, False, False, "k", 0), (3, 1, True, False, "", 0))
    for dtype, (heads, kv_heads, causal, rotated, gains, window) in typed(kinds):

        def attention(
            dtype=dtype, heads=heads, kv_heads=kv_heads, causal=causal, rotated=rotated, gains=gains, window=window
        ):
            qkv = tensor(2, 5, (heads + 2 * kv_heads) * 4, dtype=dtype, grad=gains != "k", strided=rotated)
            norms = [tensor(4, dtype=dtype, grad=True) if name in gains else None for name in "qkv"]
            tables = [tensor(5, 1, 2, dtype=dtype) if rotated else None for _ in range(2)]
            return (qkv, *norms, *tables, heads, kv_heads, causal, 1e-5, window)

        def backward(attention=attention, wanted=(gains != "k", "q" in gains, True, "v" in gains)):
            args = detached(attention())
            out, lse = torch.ops.siamese.attention_forward(*args)
            return (torch.randn_like(out), args[0], out, lse, *args[1:-1], list(wanted), args[-1])

        def cached(dtype=dtype, heads=heads, kv_heads=kv_heads, rotated=rotated, gains=gains, window=window):
            tokens, past = (1, [4, 9]) if gains == "k" else (3, [0, 2])
            rows = tensor(2, tokens, (heads + 2 * kv_heads) * 4, dtype=dtype, strided=rotated)
            held = [tensor(2, kv_heads, 5, 4, dtype=dtype, strided=gains == "") for _ in range(2)]
            norms = [tensor(4, dtype=dtype) if name in gains else None for name in "qkv"]
            tables = [tensor(2, tokens, 1, 2, dtype=dtype) if rotated else None for _ in range(2)]
            return (rows, *held, *norms, *tables, past, heads, kv_heads, 1e-5, window)

        yield "attention", attention
        yield "attention_forward", lambda attention=attention: detached(attention())
        yield "attention_backward", backward
        yield "cached_attention", cached
