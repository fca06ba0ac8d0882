"""Norms, streams and junctions."""

import torch
from support import detached, tensor, typed


def norm_cases():
    for dtype, (strided, gain, grad) in typed(((True, True, True), (False, True, False), (False, False, True))):
        make = dict(dtype=dtype, strided=strided)

        def rms(make=make, dtype=dtype, gain=gain, grad=grad):
            return (tensor(2, 3, 7, grad=grad, **make), tensor(7, dtype=dtype, grad=True) if gain else None, 1e-5)

        def layer(make=make, dtype=dtype, gain=gain, grad=grad):
            extra = [tensor(7, dtype=dtype, grad=grad) if there else None for there in (gain, not gain)]
            return (tensor(2, 3, 7, grad=grad, **make), *extra, 1e-5)

        yield "rms_norm", rms
        yield "layer_norm", layer

        def rms_forward(rms=rms):
            return detached(rms())

        def layer_forward(layer=layer):
            return detached(layer())

        def rms_backward(rms=rms, wanted=(gain, grad)):
            x, gain, eps = detached(rms())
            _, rstd = torch.ops.siamese.rms_norm_forward(x, gain, eps)
            return (torch.randn_like(x), x, gain, rstd, eps, list(wanted))

        def layer_backward(layer=layer, wanted=(True, gain, grad)):
            x, gain, bias, eps = detached(layer())
            _, mean, rstd = torch.ops.siamese.layer_norm_forward(x, gain, bias, eps)
            return (torch.randn_like(x), x, gain, mean, rstd, eps, list(wanted))

        yield "rms_norm_forward", rms_forward
        yield "layer_norm_forward", layer_forward
        yield "rms_norm_backward", rms_backward
        yield "layer_norm_backward", layer_backward


def pointwise_norm_cases():
    for dtype, (strided, affine, shifted, erf) in typed(((True, True, True, True), (False, True, False, False), (False, False, True, True))):
        make = dict(dtype=dtype, strided=strided, grad=True)

        def pointwise(make=make, dtype=dtype, affine=affine, shifted=shifted, erf=erf):
            one = dict(dtype=dtype, grad=True)
            extra = [tensor(7, **one) if affine else None for _ in range(2)]
            return (tensor(2, 3, 7, **make), tensor(1, **one), tensor(1, **one) if shifted else None, *extra, erf)

        def forward(pointwise=pointwise):
            return detached(pointwise())

        def backward(pointwise=pointwise, affine=affine, shifted=shifted):
            x, alpha, shift, gain, _, erf = detached(pointwise())
            return (torch.randn_like(x), x, alpha, shift, gain, erf, [True, shifted, shifted, affine, affine])

        yield "pointwise_norm", pointwise
        yield "pointwise_norm_forward", forward
        yield "pointwise_norm_backward", backward


def junction_args(dtype, grad, branch=True, x=False, x_scale=False, norms="----", scales=(0.5, 1.0, 1.0, 1.0), strided=False, leading=(2, 3), gate=False):
    """norms: of branch, x, y, input; r RMSNorm, R with gain, B LayerNorm with gain and bias. gate: at the end, after half_input."""
    row = dict(dtype=dtype, grad=grad)
    affine = [tensor(7, **row) if kind in kinds else None for kind in norms for kinds in ("RB", "B")]
    return (
        tensor(*leading, 7, strided=strided, **row) if branch else None,
        tensor(*leading, 7, **row) if x else None,
        tensor(*leading, 7, dtype=dtype, grad=True, strided=strided),
        tensor(7, **row) if x_scale else None,
        *affine,
        *scales,
        [kind != "-" for kind in norms],
        [kind == "B" for kind in norms],
        [1e-5, 1e-5, 1e-6, 1e-5],
        *([False, tensor(leading[0], 7, strided=strided, **row)] if gate else []),
    )  # fmt: skip


def junction_cases():
    plans = (
        dict(x=True, norms="-RRR", strided=True),
        dict(x=True, norms="BBBB", x_scale=True, scales=(0.5, 1.0, 0.9, 2.0)),
        dict(norms="r---"),
        dict(branch=False, norms="--B-"),
        dict(x=True, norms="R-BB", gate=True, strided=True),
        dict(norms="--R-", gate=True),
        dict(x=True, norms="BRBr", scales=(0.5, 1.0, 1.0, 1.0)),
    )
    for dtype, (number, plan) in typed(enumerate(plans)):
        grad = number % 2 == 0

        def whole(dtype=dtype, grad=grad, plan=plan):
            return junction_args(dtype, grad, **plan)

        def forward(whole=whole):
            return detached(whole())

        def backward(whole=whole, number=number):
            branch, x, y, *rest = detached(whole())
            *_, statistics = torch.ops.siamese.junction_forward(branch, x, y, *rest)
            came = [torch.randn_like(y) if number != absent else None for absent in (0, 1, 2)]
            wanted = [slot % 7 != number for slot in range(13)]
            norms, gate = rest[13], rest[17] if len(rest) > 17 else None
            branch = branch if norms[0] or gate is not None else None
            return (*came, branch, x, y, *rest[:9], statistics, *rest[9:16], wanted, False, False, gate)

        if dtype == torch.float32 or number < 6:
            yield "junction", whole
        if number < 3 or number in (4, 5):
            yield "junction_forward", forward
            yield "junction_backward", backward


def shared_gradient_cases():
    """The derivative of a sum is the same for all its terms, yet each gradient is a tensor of its own."""
    for dtype, leading in typed(((2, 3), (1,), (1, 1))):

        def backward(dtype=dtype, leading=leading):
            args = detached(junction_args(dtype, False, x=True, norms="---R", leading=leading))
            branch, x, y, *rest = args
            *_, statistics = torch.ops.siamese.junction_forward(*args)
            return (None, None, torch.randn_like(y), None, x, y, *rest[:9], statistics, *rest[9:], [True] * 13)

        def mix_backward(dtype=dtype, leading=leading):
            streams = [tensor(*leading, 7, dtype=dtype) for _ in range(2)]
            came = [tensor(*leading, 7, dtype=dtype) for _ in range(2)]
            return (came, streams, torch.eye(2, dtype=dtype), tensor(*leading, 7, dtype=dtype), torch.ones(2, dtype=dtype), [True] * 4)

        yield "junction_backward", backward
        yield "stream_mix_backward", mix_backward


def stream_cases():
    for dtype, (n, each_row, norm) in typed(((3, True, "B"), (2, False, "R"), (5, True, "-"))):
        leading = (2, 3) if each_row else ()

        def streams(grad, dtype=dtype, n=n):
            return [tensor(2, 3, 7, dtype=dtype, grad=grad, strided=i == 0) for i in range(n)]

        def coefficients(*shape, dtype=dtype, leading=leading):
            return tensor(*leading, *shape, dtype=dtype, grad=True)

        def mix(streams=streams, coefficients=coefficients, n=n, dtype=dtype):
            return (streams(n != 2), coefficients(n, n), tensor(2, 3, 7, dtype=dtype, grad=n == 2), coefficients(n))

        def mix_backward(mix=mix, n=n):
            args = detached(mix())
            none = torch.empty(0, dtype=args[1].dtype)
            came = [none if j == 0 else torch.randn_like(args[2]) for j in range(n)]
            return (came, *args, [True, n != 2, n == 2, True])

        def read(streams=streams, coefficients=coefficients, n=n, norm=norm, dtype=dtype):
            gain = tensor(7, dtype=dtype, grad=True) if norm != "-" else None
            bias = tensor(7, dtype=dtype, grad=n == 3) if norm == "B" else None
            half = [True] if n == 3 and dtype == torch.float32 else []  # rounded to bfloat16
            return (streams(n != 2), coefficients(n), gain, bias, norm != "-", norm == "B", 1e-5, *half)

        def read_backward(read=read, n=n):
            args = detached(read())
            _, statistics = torch.ops.siamese.stream_read_forward(*args)
            like = args[0][0]
            through = [torch.randn(2, 3, 7, dtype=like.dtype) for _ in range(n)] if n != 5 else []
            if n == 2:
                through[0] = torch.empty(0, dtype=like.dtype)
            d_input = None if n == 2 else torch.randn(2, 3, 7).to(torch.bfloat16 if len(args) > 7 else like.dtype)
            return (d_input, through, *args[:4], statistics, *args[4:7], [True, n != 3, True, n == 3])

        def attend(streams=streams, n=n, norm=norm, dtype=dtype):
            branch = tensor(2, 3, 7, dtype=dtype, grad=n == 2) if n != 5 else None
            gain = tensor(7, dtype=dtype, grad=True) if norm != "-" else None
            bias = tensor(7, dtype=dtype, grad=n == 3) if norm == "B" else None
            query = tensor(7, dtype=dtype, grad=n != 3)
            half = [True] if n == 3 and dtype == torch.float32 else []
            return (streams(n != 2), branch, query, gain, bias, 1e-3, norm != "-", norm == "B", 1e-5, *half)

        def attend_backward(attend=attend, n=n):
            streams, branch, *rest = detached(attend())
            _, total, statistics = torch.ops.siamese.stream_attend_forward(streams, branch, *rest)
            used = streams if branch is None else [*streams[:-1], total]
            through = [torch.randn(2, 3, 7, dtype=used[0].dtype) for _ in range(n)] if n != 5 else []
            if n == 2:
                through[0] = torch.empty(0, dtype=used[0].dtype)
            d_input = None if n == 2 else torch.randn(2, 3, 7).to(torch.bfloat16 if len(rest) > 7 else used[0].dtype)
            return (d_input, through, used, *rest[:3], statistics, *rest[3:7], [True, n != 3, True, n == 3])

        def depth(n=n, dtype=dtype):
            keys = [tensor(2, 3, 2, 5, dtype=dtype, grad=j != 1, strided=j == 0) for j in range(n)]
            values = [tensor(2, 3, 2, 7, dtype=dtype, grad=n != 3) for _ in range(n)]
            return (tensor(2, 3, 4, 5, dtype=dtype, grad=n != 2), keys, values)

        def depth_backward(depth=depth, n=n):
            args = detached(depth())
            out, weights = torch.ops.siamese.depth_attend_forward(*args)
            return (torch.randn_like(out), *args, weights, [True, n != 3, n != 2])

        yield "depth_attend", depth
        yield "depth_attend_forward", lambda depth=depth: detached(depth())
        yield "depth_attend_backward", depth_backward
        yield "stream_attend", attend
        yield "stream_attend_forward", lambda attend=attend: detached(attend())
        yield "stream_attend_backward", attend_backward
        yield "stream_mix", mix
        yield "stream_mix_forward", lambda mix=mix: detached(mix())
        yield "stream_mix_backward", mix_backward
        yield "stream_read", read
        yield "stream_read_forward", lambda read=read: detached(read())
        yield "stream_read_backward", read_backward


def row_cases():
    for dtype, (strided, x_grad, w_grad) in typed(((True, True, True), (False, True, False), (False, False, True))):

        def args(dtype=dtype, strided=strided, x_grad=x_grad, w_grad=w_grad):
            return (tensor(2, 3, 7, dtype=dtype, grad=x_grad, strided=strided), tensor(5, 7, dtype=dtype, grad=w_grad, strided=strided))

        def linear_backward(args=args, wanted=(x_grad, w_grad)):
            x, weight = detached(args())
            return (torch.randn(2, 3, 5, dtype=x.dtype), x, weight, list(wanted))

        def project_backward(args=args, wanted=(x_grad, w_grad)):
            x, weight = detached(args())
            dy = torch.randn(2, 3, 5, dtype=x.dtype) if wanted[1] else None
            wide = torch.promote_types(x.dtype, torch.float32)
            dsquares = torch.randn(2, 3, 1, dtype=wide) if wanted[0] else None
            through = torch.randn(2, 3, 7, dtype=x.dtype) if not wanted[1] else None
            return (dy, dsquares, through, x, weight, list(wanted))

        for op in ("row_linear", "row_project"):
            yield op, args
            yield f"{op}_forward", lambda args=args: detached(args())
        yield "row_linear_backward", linear_backward
        yield "row_project_backward", project_backward


def sinkhorn_cases():
    for dtype, (shape, strided) in typed((((2, 3, 4, 4), True), ((3, 3), False), ((2, 17, 17), False))):

        def args(dtype=dtype, shape=shape, strided=strided, grad=True):
            return (tensor(*shape, dtype=dtype, grad=grad, strided=strided), 3)

        yield "sinkhorn", args
        yield "sinkhorn_forward", lambda args=args: args(grad=False)
        yield "sinkhorn_backward", lambda args=args, shape=shape, dtype=dtype: (tensor(*shape, dtype=dtype), *args(grad=False))
